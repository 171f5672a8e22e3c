//! Objects of a folder that get other keys.

use std::collections::HashMap;
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

/// Copies all objects below a folder to another one, in which there are none.
///
/// # Errors
/// Those of the store, and where another program puts something into the other folder meanwhile.
/// Copies that were made are removed then.
pub(crate) fn copy_all(storer: &Arc<Storer>, (from, to): (&str, &str)) -> Result<Vec<Copied>> {
    let found = storer.source().below(from)?;
    let (of, into): (Arc<str>, Arc<str>) = (from.into(), to.into());
    let copies = storer.for_each(found, move |storer, (rest, version)| {
        Ok(copy(storer, (&format!("{of}{rest}"), &version), &format!("{into}{rest}"))
            .map(|copy| Copied::new(rest, version, copy)))
    })?;
    let mut failure = None;
    let mut made = Vec::new();
    for copied in copies {
        match copied {
            Ok(copied) => made.push(copied),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let Some(failure) = failure else { return Ok(made) };
    let into: Arc<str> = to.into();
    let undone = storer.for_each(made, move |storer, copied| {
        let is_own = Condition::still(Some(&copied.version()));
        storer.bucket().remove(&format!("{into}{}", copied.rest), &is_own)
    });
    Err(undone.err().unwrap_or(failure))
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
/// changed since, and if its copy has gone.
///
/// # Errors
/// Those of the store.
pub(crate) fn remove_copied(
    storer: &Arc<Storer>,
    (from, to): (&str, &str),
    copies: &[Copied],
) -> Result<()> {
    let sizes: HashMap<String, u64> =
        storer.source().below(to)?.into_iter().map(|(rest, copy)| (rest, copy.size)).collect();
    let copies: HashMap<&str, &Copied> = copies.iter().map(|copy| (&*copy.rest, copy)).collect();
    let is_copied = |(rest, version): &(String, ObjectVersion)| {
        let is_same =
            |copied: &&Copied| (&copied.tag, copied.modified) == (&version.tag, version.modified);
        copies.get(&**rest).is_some_and(is_same) && sizes.get(rest) == Some(&version.size)
    };
    let mut found = storer.source().below(from)?;
    found.retain(is_copied);
    let from: Arc<str> = from.into();
    let removed = storer.for_each(found, move |storer, (rest, version)| {
        let key = format!("{from}{rest}");
        let removed = storer.bucket().remove(&key, &Condition::still(Some(&version)));
        // Another program has replaced it just now.
        match removed {
            Err(error) if io_kind(&error) == Some(ErrorKind::StaleNetworkFileHandle) => Ok(()),
            removed => removed,
        }
    });
    removed.map(drop)
}
