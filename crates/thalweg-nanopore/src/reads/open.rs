//! Opening a file of reads from a path or a store.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::open::OpenedStore;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::{Options, ReadFile};
use crate::file;
use crate::file::OpenFile;
use crate::format::Format;

/// Bytes that are read to detect the format. The longest signature has 8.
const HEAD: u64 = 16;

impl ReadFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Unsupported`] about the path; [`Error::Truncated`] and
    /// [`Error::Malformed`] about the header.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        Self::from_opened(path, OpenedStore::new(path, &options)?, options)
    }

    /// Opens a file whose store is already open. `opened` is the store of `path`.
    ///
    /// # Errors
    /// Those of [`ReadFile::open`].
    pub fn from_opened(path: &Path, opened: OpenedStore, options: Options) -> Result<Self> {
        let OpenedStore { store, model: (model, origin), note, .. } = opened;
        let mut read = Self::from_store(store, options.on(model))?;
        let notes = note.into_iter().chain(read.note.take());
        read.note = notes.reduce(|all, note| format!("{all}; {note}"));
        read.file.path = Some(path.to_owned());
        read.origin = origin;
        Ok(read)
    }

    /// Opens a file in any store.
    ///
    /// # Errors
    /// Those of [`ReadFile::open`].
    pub fn from_store(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let mut head = vec![0; HEAD.min(store.size()) as usize];
        store.read_at(0, &mut head)?;
        let format = match Format::cut_short(&head, Path::new(&**store.name())) {
            Some(format) => return Err(truncated(format, &*store)),
            None => Format::of(&head),
        };
        let file::OpenedFormat { file: reads, header, requests } = format.open(&store, &options)?;
        let note = reads.note();
        let origin = if options.model.is_some() { Origin::Given } else { Origin::Prior };
        let model = options.model.unwrap_or(StoreModel::MEMORY);
        let file = OpenFile {
            store,
            path: None,
            header,
            header_requests: requests,
            index: OnceLock::new(),
            model,
            options,
        };
        Ok(Self { file, reads, format, origin, note })
    }
}

/// The error about a file that ends inside its signature.
fn truncated(format: Format, store: &dyn Store) -> Error {
    Error::Truncated {
        file: store.name().clone(),
        what: format!("a {format} file").into(),
        offset: 0,
        size: store.size(),
        advice: "; fetch the file again",
    }
}
