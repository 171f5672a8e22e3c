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
use crate::store::{Asked, Counter};
use crate::urls::{is_web, url};

/// An object of at most this many bytes is read as soon as an index of it is.
const LEAST: u64 = 1 << 20;
/// Bytes of an index that are fetched with one request.
const PIECE: u64 = 4 << 20;
/// Requests in flight.
const DEPTH: usize = 4;

/// The objects beside which an index was looked for, with their versions. Once is enough.
static ASKED: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// What lies beside an object in the place of its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBeside {
    /// Its URL.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it is used if it fits: it is no older than the object.
    pub is_current: bool,
}

/// Looks for an index beside the object at `path`, of at most `most` bytes, with one request.
/// `None` where [`fetch_index`] would not look, and if there is none.
///
/// # Errors
/// [`Error::Cancelled`]. An index that cannot be looked at is none.
pub fn index_beside(path: &Path, most: u64, control: &Control) -> Result<Option<IndexBeside>> {
    let Some(url) = beside(path, most) else { return Ok(None) };
    let options = Options { control: control.clone(), ..Options::default() };
    let store = match OpenedStore::unthrottled(Path::new(&url), &options) {
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        Err(_) => return Ok(None),
        Ok(opened) => opened.store,
    };
    let (size, is_current) = (store.size(), is_current(&url, path));
    Ok((size <= most).then_some(IndexBeside { url, size, is_current }))
}

/// The URL of the index beside an object, if one is looked for there.
fn beside(path: &Path, most: u64) -> Option<String> {
    let beside = url_of_index(url(path).filter(|_| most > LEAST)?);
    // Without a cache folder, there is no place to keep it.
    url(&index_place(path)).is_none().then_some(beside)
}

/// Whether the index at a URL is no older than the object. Both were opened.
fn is_current(index: &str, object: &Path) -> bool {
    let changed = |url: Option<&str>| url.and_then(modified);
    let both = changed(Some(index)).zip(changed(url(object)));
    both.is_some_and(|(index, object)| index >= object)
}

/// Fetches the index beside the object at `path` to the place of its index in the cache folder,
/// unless something is there. `fits` says what the file at a path is to the object, and `None` if
/// it is no index of it; such a file is not kept. An index that is older than the object is not
/// used, nor one of more than `most` bytes. `is_kind` tells indexes by their first bytes.
///
/// Returns `None` without a request if `path` is no URL, if the object is small, and if its index
/// was looked for before.
///
/// The counter of `options` counts the requests if no index is found: a later process makes them
/// again. An index that is found is kept.
///
/// # Errors
/// [`Error::Cancelled`]. An index that cannot be had is none.
pub fn fetch_index<T>(
    path: &Path,
    most: u64,
    options: &Options,
    is_kind: fn(&[u8]) -> bool,
    fits: impl FnOnce(&Path) -> Option<T>,
) -> Result<Option<T>> {
    let Some(beside) = beside(path, most) else { return Ok(None) };
    let place = index_place(path);
    let is_new = ASKED.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone());
    if !is_new || place.exists() {
        return Ok(None);
    }
    let asked = Counter::default();
    let control = options.control.clone();
    let counted = Options { control, counter: Some(asked.clone()), ..Options::default() };
    let found = match fetch(path, &beside, &place, most, &counted, is_kind, fits) {
        Err(Error::Cancelled) => return Err(Error::Cancelled),
        found => found.ok().flatten(),
    };
    if found.is_none()
        && let Some(counter) = &options.counter
    {
        let Asked { requests, bytes, .. } = asked.asked();
        // A refusal is the answer to a request, too.
        counter.add(requests.max(1), bytes);
    }
    Ok(found)
}

fn fetch<T>(
    path: &Path,
    beside: &str,
    place: &Path,
    most: u64,
    options: &Options,
    is_kind: fn(&[u8]) -> bool,
    fits: impl FnOnce(&Path) -> Option<T>,
) -> Result<Option<T>> {
    let store = OpenedStore::new(Path::new(beside), options)?.store;
    if !is_current(beside, path) || store.size() > most {
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
fn url_of_index(url: &str) -> String {
    let end = if is_web(url) { url.find(['?', '#']) } else { None };
    let (name, query) = url.split_at(end.unwrap_or(url.len()));
    format!("{name}.idx{query}")
}

#[cfg(test)]
mod tests {
    use super::url_of_index;

    #[test]
    fn an_index_has_a_url() {
        assert_eq!(url_of_index("s3://b/a?b#c.blow5"), "s3://b/a?b#c.blow5.idx");
        assert_eq!(url_of_index("https://h/a.blow5?key=1"), "https://h/a.blow5.idx?key=1");
    }
}
