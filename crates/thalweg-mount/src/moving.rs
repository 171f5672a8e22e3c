//! Objects of a folder that get other keys.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::Arc;

use bytes::Bytes;
use thalweg_io::Result;
use thalweg_io::open::ObjectVersion;
use thalweg_object::Condition;

use crate::draft::mark;
use crate::errors::io_kind;
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
    let copies = storer.for_each(found.clone(), move |storer, (rest, version)| {
        let copy = copy(storer, (&format!("{of}{rest}"), &version), &format!("{into}{rest}"));
        Ok(copy.map(|copy| Copied::new(rest, version, copy)))
    })?;
    let (mut made, mut failure) = (Vec::new(), None);
    for copied in copies {
        match copied {
            Ok(copied) => made.push(copied),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let Some(failure) = failure else { return Ok(made) };
    // Answers of copies may have been lost. These usually have the tags of the objects.
    let is_made: HashSet<String> = made.iter().map(|copied| copied.rest.clone()).collect();
    let lost = found.into_iter().filter(|(rest, _)| !is_made.contains(rest));
    made.extend(lost.map(|(rest, version)| {
        let tag = version.tag.clone();
        Copied::new(rest, version, tag)
    }));
    undo_copies(storer, to, &made)?;
    Err(failure)
}

/// Removes copies of objects. The mark of the folder stays, which may have been there.
///
/// # Errors
/// Those of the store.
pub(crate) fn undo_copies(storer: &Arc<Storer>, to: &str, copies: &[Copied]) -> Result<()> {
    let copies: HashMap<&str, &Copied> = copies.iter().map(|copy| (&*copy.rest, copy)).collect();
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
    let copies: HashMap<&str, &Copied> = copies.iter().map(|copy| (&*copy.rest, copy)).collect();
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
        let key = format!("{folder}{rest}");
        match storer.bucket().remove(&key, &Condition::still(Some(&version))) {
            // Another program has replaced it just now.
            Err(error) if io_kind(&error) == Some(ErrorKind::StaleNetworkFileHandle) => Ok(()),
            removed => removed,
        }
    });
    removed.map(drop)
}
