//! Fetches the index that lies beside an object at a URL (`URL.idx`).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::new_file::NewFile;
use crate::open::{OpenedStore, Options};
use crate::pool::in_order;
use crate::sidecar::{index_place, modified};
use crate::urls::url;

/// An object of at most this many bytes is read as soon as an index of it is.
const LEAST: u64 = 1 << 20;
/// Bytes of an index that are fetched with one request.
const PIECE: u64 = 4 << 20;
/// Requests in flight.
const DEPTH: usize = 4;

/// The objects beside which an index was looked for, with their versions. Once is enough.
static ASKED: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// Fetches the index beside the object at `path` to the place of its index in the cache folder,
/// unless something is there. `fits` says what the file at a path is to the object, and `None` if
/// it is no index of it; such a file is not kept. An index that is older than the object is not
/// used, nor one of more than `most` bytes. `is_kind` tells indexes by their first bytes.
///
/// Returns `None` without a request if `path` is no URL, if the object is small, and if its index
/// was looked for before.
///
/// # Errors
/// [`Error::Cancelled`]. An index that cannot be had is none.
pub fn fetch_index<T>(
    path: &Path,
    most: u64,
    control: &Control,
    is_kind: fn(&[u8]) -> bool,
    fits: impl FnOnce(&Path) -> Option<T>,
) -> Result<Option<T>> {
    let Some(beside) = url(path).filter(|_| most > LEAST).map(beside) else { return Ok(None) };
    let place = index_place(path);
    if url(&place).is_some() {
        return Ok(None);
    }
    let is_new = ASKED.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone());
    if !is_new || place.exists() {
        return Ok(None);
    }
    match fetch(path, &beside, &place, most, control, is_kind, fits) {
        Err(Error::Cancelled) => Err(Error::Cancelled),
        found => Ok(found.ok().flatten()),
    }
}

fn fetch<T>(
    path: &Path,
    beside: &str,
    place: &Path,
    most: u64,
    control: &Control,
    is_kind: fn(&[u8]) -> bool,
    fits: impl FnOnce(&Path) -> Option<T>,
) -> Result<Option<T>> {
    let options = Options { control: control.clone(), ..Options::default() };
    let store = OpenedStore::unthrottled(Path::new(beside), &options)?.store;
    let changed = |url: Option<&str>| url.and_then(modified);
    let is_current = changed(Some(beside)).zip(changed(url(path)));
    let is_current = is_current.is_some_and(|(index, object)| index >= object);
    if !is_current || store.size() > most {
        return Ok(None);
    }
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io(store.name(), "keeping", e))?;
    }
    let mut new = NewFile::sidecar(place, is_kind)?;
    let size = store.size();
    let make = || {
        |piece: u64| {
            let start = piece * PIECE;
            let mut bytes = vec![0; PIECE.min(size - start) as usize];
            store.read_at(start, &mut bytes).map(|()| bytes)
        }
    };
    in_order(store.name(), DEPTH, 1, size.div_ceil(PIECE), make, |bytes| {
        new.push(&bytes?)?;
        Ok::<_, Error>(true)
    })?;
    new.seal()?;
    let found = fits(new.temporary());
    if found.is_some() {
        new.finish()?;
    }
    Ok(found)
}

/// The URL of the index beside an object. A query may be a key for the whole folder.
fn beside(url: &str) -> String {
    let end = if url.starts_with("http") { url.find(['?', '#']) } else { None };
    let (name, query) = url.split_at(end.unwrap_or(url.len()));
    format!("{name}.idx{query}")
}

#[cfg(test)]
mod tests {
    use super::beside;

    #[test]
    fn an_index_has_a_url() {
        assert_eq!(beside("s3://b/a?b#c.blow5"), "s3://b/a?b#c.blow5.idx");
        assert_eq!(beside("https://h/a.blow5?key=1"), "https://h/a.blow5.idx?key=1");
    }
}
