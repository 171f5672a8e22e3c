//! Objects of a folder that get other keys.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_io::Result;
use thalweg_io::open::ObjectVersion;
use thalweg_object::Condition;

use crate::buckets::Buckets;
use crate::draft::mark;
use crate::errors::is_stale;
use crate::staging::Copied;
use crate::storing::Storer;

/// Copies all objects below a folder to another one, in which there are none, but for its mark.
///
/// # Errors
/// Those of the store, and where another program puts something into the other folder meanwhile.
/// Copies that were made are removed then.
pub(crate) fn copy_all(storer: &Arc<Storer>, (from, to): (&str, &str)) -> Result<Vec<Copied>> {
    let found = storer.source().below(from)?;
    let (of, into): (Arc<str>, Arc<str>) = (from.into(), to.into());
    let copied = storer.for_each(found, move |storer, (rest, version)| {
        let copy = copy(storer, (&format!("{of}{rest}"), &version), &format!("{into}{rest}"));
        // A copy whose answer was lost usually has the tag of the object.
        let (tag, failure) = match copy {
            Ok(tag) => (tag, None),
            Err(error) => (version.tag.clone(), Some(error)),
        };
        Ok((Copied::new(rest, version, tag), failure))
    })?;
    let (copies, failures): (Vec<_>, Vec<_>) = copied.into_iter().unzip();
    match failures.into_iter().flatten().next() {
        None => Ok(copies),
        Some(failure) => {
            undo_copies(storer, to, &copies)?;
            Err(failure)
        }
    }
}

/// Removes copies of objects. The mark of the folder stays, which may have been there.
///
/// # Errors
/// Those of the store.
pub(crate) fn undo_copies(storer: &Arc<Storer>, to: &str, copies: &[Copied]) -> Result<()> {
    let copies = Copied::by_rest(copies);
    let mut there = storer.source().below(to)?;
    there.retain(|(rest, version)| {
        let copied = copies.get(&**rest).filter(|_| !rest.is_empty());
        copied.is_some_and(|copied| copied.copy == version.tag)
    });
    remove_all(storer, to, there)
}

/// Copies an object to where there is none. Returns the tag of the copy.
fn copy(storer: &Storer, from: (&str, &ObjectVersion), to: &str) -> Result<String> {
    let (_, version) = from;
    if to.ends_with('/') && version.size == 0 {
        // The mark of a folder. Not every service copies it.
        let metadata = storer.bucket().head(from.0)?.map(|head| head.metadata).unwrap_or_default();
        return storer.bucket().put(to, Bytes::new(), (&metadata, &mark()), &Condition::Anything);
    }
    storer.bucket().copy(from, to, None, &Condition::Nothing)
}

/// Removes the objects of a folder that have been copied to another one. An object stays if it has
/// changed since, and if its copy has gone or changed.
///
/// # Errors
/// Those of the store.
pub(crate) fn remove_copied(
    storer: &Arc<Storer>,
    (from, to): (&str, &str),
    copies: &[Copied],
) -> Result<()> {
    let copies = Copied::by_rest(copies);
    let there: HashMap<String, String> =
        storer.source().below(to)?.into_iter().map(|(rest, copy)| (rest, copy.tag)).collect();
    let mut found = storer.source().below(from)?;
    found.retain(|(rest, version)| {
        copies.get(&**rest).is_some_and(|copied| {
            (&copied.tag, copied.modified) == (&version.tag, version.modified)
                && there.get(rest) == Some(&copied.copy)
        })
    });
    remove_all(storer, from, found)
}

/// Removes versions of objects of a folder. Other versions stay.
fn remove_all(
    storer: &Arc<Storer>,
    folder: &str,
    objects: Vec<(String, ObjectVersion)>,
) -> Result<()> {
    let folder: Arc<str> = folder.into();
    let removed = storer.for_each(objects, move |storer, (rest, version)| {
        remove_version(storer.bucket(), &format!("{folder}{rest}"), &version)
    });
    removed.map(drop)
}

/// Removes a version of an object. Returns whether nothing is left: another version stays.
///
/// # Errors
/// Those of the store.
pub(crate) fn remove_version(bucket: &Buckets, key: &str, version: &ObjectVersion) -> Result<bool> {
    match bucket.remove(key, &Condition::still(Some(version))) {
        Ok(()) => Ok(true),
        Err(error) if is_stale(&error) => Ok(false),
        Err(error) => Err(error),
    }
}
