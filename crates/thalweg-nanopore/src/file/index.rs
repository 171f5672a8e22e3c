//! The index beside a file: loading, building, saving, and locating a list of reads.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::index_fetch::fetch_index;
use thalweg_io::new_file::{NewFile, create_parent};
use thalweg_io::sidecar::{index_places, is_current, places_to_keep};
use thalweg_io::store::FileStore;
use thalweg_io::{Error, InFile, Result};

use super::{FormatFile, OpenFile};
use crate::record::{Entry, Index};

/// Most missing ids that a message names.
const NAMED: usize = 3;

/// Where an index comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOrigin {
    /// The index was loaded from beside the file, or from the user's cache folder.
    Loaded,
    /// The index was built by reading the file, and saved.
    Built,
    /// The index was built by reading the file, but it could not be saved.
    Unsaved,
}

/// Writes an index file, and creates its folder if necessary. A file that is there is replaced.
///
/// # Errors
/// [`Error::Io`], for example if the folder is read-only.
pub fn save_index(index: &Index, path: &Path) -> Result<()> {
    create_parent(path)?;
    write(index, NewFile::replacing(path)?)
}

/// Writes an index file that nobody asked for. Another index is replaced, any other file or link is
/// not.
///
/// # Errors
/// [`Error::Io`], for example if the folder is read-only; [`Error::Exists`].
pub fn save_sidecar(index: &Index, path: &Path) -> Result<()> {
    create_parent(path)?;
    write(index, NewFile::sidecar(path, Index::is_start)?)
}

fn write(index: &Index, mut file: NewFile) -> Result<()> {
    for part in index.parts() {
        file.push(part)?;
    }
    file.finish()
}

/// The index beside a file or in the user's cache folder, if there is a current one.
pub(super) fn load_beside(file: &OpenFile, path: &Path) -> Result<Option<Index>> {
    for place in index_places(path) {
        if is_current(&place, path)
            && let Some(index) = load_index_file(&place, file.store.size())?
        {
            let name: Arc<str> = place.to_string_lossy().into();
            index
                .check(&file.header, file.store.size())
                .map_err(|fault| fault.in_file(&name, 0, "index"))?;
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// The index that lies beside an object at a URL, if there is one that fits.
pub(super) fn fetch_beside(file: &OpenFile, path: &Path) -> Result<Option<Index>> {
    let size = file.store.size();
    let fits = |place: &Path| {
        let index = load_index_file(place, size).ok().flatten();
        index.filter(|index| index.check(&file.header, size).is_ok())
    };
    fetch_index(path, size, &file.options, Index::is_start, fits)
}

/// The saved index, or a new one, which is saved if possible.
pub(super) fn load_or_build<F: FormatFile + ?Sized>(
    format: &F,
    file: &OpenFile,
) -> Result<(Index, IndexOrigin)> {
    let Some(path) = &file.path else {
        return Ok((format.build_index(file)?, IndexOrigin::Unsaved));
    };
    if let Some(index) = format.load(file, path)? {
        return Ok((index, IndexOrigin::Loaded));
    }
    if let Some(index) = fetch_beside(file, path)? {
        return Ok((index, IndexOrigin::Loaded));
    }
    let index = format.build_index(file)?;
    let mut places = places_to_keep(path, file.options.keep_index);
    let Some(place) = places.find(|place| save_sidecar(&index, place).is_ok()) else {
        return Ok((index, IndexOrigin::Unsaved));
    };
    file.options.index_kept.inspect(|kept| kept(&place));
    Ok((index, IndexOrigin::Built))
}

/// The ranges of the reads with these ids in the file.
pub(super) fn places(file: &OpenFile, index: &Index, ids: &[String]) -> Result<Vec<Range<u64>>> {
    let mut missing = Vec::new();
    let mut places = Vec::with_capacity(ids.len());
    for id in ids {
        match index.get(id) {
            Some(Entry { offset, size }) => places.push(offset..offset + size),
            None => missing.push(id.as_str()),
        }
    }
    if missing.is_empty() { Ok(places) } else { Err(file.not_found(&missing, ids.len())) }
}

impl OpenFile {
    /// The path of the saved index, for messages.
    pub fn index_name(&self) -> Option<Arc<str>> {
        let path = self.path.as_deref()?;
        let place = index_places(path).find(|place| is_current(place, path))?;
        Some(place.to_string_lossy().into())
    }

    /// The error about missing reads, out of `of` requested ones.
    pub fn not_found(&self, missing: &[&str], of: usize) -> Error {
        Error::NotFound {
            file: self.name().clone(),
            what: missing_reads(missing, of).into(),
            advice: self.advice_on_ids().into(),
        }
    }

    /// What to do about ids that are not found.
    pub(crate) fn advice_on_ids(&self) -> String {
        self.index_name().map_or_else(
            || "check the ids".to_owned(),
            |index| format!("check the ids; if the file has changed, delete its index {index}"),
        )
    }
}

/// Names reads that were asked for and are missing: how many of `of`, and the first ids.
pub(crate) fn missing_reads(missing: &[&str], of: usize) -> String {
    let named = missing.get(..NAMED).unwrap_or(missing).join(", ");
    let more = if missing.len() > NAMED { ", ..." } else { "" };
    let reads = if of == 1 { "read" } else { "reads" };
    format!("{} of {of} {reads} ({named}{more})", missing.len())
}

/// The index at `place` of a file of `data_bytes`; `None` if the file does not exist.
pub(crate) fn load_index_file(place: &Path, data_bytes: u64) -> Result<Option<Index>> {
    let name: Arc<str> = place.to_string_lossy().into();
    // A pipe without a writer would have this wait for ever.
    let store = match FileStore::open(place) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        store => store?,
    };
    let index = Index::read(store.file(), data_bytes);
    let index = index.map_err(|e| Error::io(&name, "reading", e))?;
    index.map(Some).map_err(|fault| fault.in_file(&name, 0, "index"))
}
