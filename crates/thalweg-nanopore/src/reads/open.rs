//! From a path to a file whose header is known.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::open::OpenedStore;
use thalweg_io::store::Store;
use thalweg_io::{Error, InFile, Result};

use super::layout::Layout;
use super::{Options, ReadFile};
use crate::format::Format;
use crate::slow5::{Header, Parsed};

impl ReadFile {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Unsupported`] about the path, [`Error::Malformed`] about the
    /// header.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        Self::from_opened(path, OpenedStore::new(path, &options)?, options)
    }

    /// Reads the header of a file whose store is open already: `opened` is that of `path`.
    ///
    /// # Errors
    /// As [`ReadFile::open`].
    pub fn from_opened(path: &Path, opened: OpenedStore, options: Options) -> Result<Self> {
        let OpenedStore { store, model: (model, origin), note, .. } = opened;
        let file = Self::from_store(store, Options { model: Some(model), ..options })?;
        let note =
            note.into_iter().chain(file.note.clone()).reduce(|all, note| format!("{all}; {note}"));
        Ok(Self { path: Some(path.to_owned()), origin, note, ..file })
    }

    /// The same over any store.
    ///
    /// # Errors
    /// As [`ReadFile::open`].
    pub fn from_store(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let (format, layout, header, header_requests) = read_layout(&store, &options)?;
        let note = if let Layout::Pod5(file) = &layout { file.note() } else { None };
        let origin = if options.model.is_some() { Origin::Given } else { Origin::Prior };
        let model = options.model.unwrap_or(StoreModel::MEMORY);
        Ok(Self {
            store,
            path: None,
            format,
            header,
            layout,
            header_requests,
            index: OnceLock::new(),
            model,
            origin,
            note,
            options,
        })
    }
}

/// Bytes that tell a format.
const HEAD: u64 = 16;

/// What kind of file it is, what is known of it, and how many requests that took.
fn read_layout(
    store: &Arc<dyn Store>,
    options: &Options,
) -> Result<(Format, Layout, Arc<Header>, u64)> {
    let mut head = vec![0; HEAD.min(store.size()) as usize];
    store.read_at(0, &mut head)?;
    let format = Format::of(&head);
    if format == Format::Fast5 {
        let (layout, header, requests) = super::fast5::layout(store, options)?;
        return Ok((format, layout, header, 1 + requests));
    }
    if format == Format::Pod5 {
        let model = options.model.unwrap_or(StoreModel::MEMORY);
        let (file, requests) = super::pod5::open(store, model, options.budget, &options.control)?;
        let header = Arc::new(file.tables.reads.header());
        return Ok((format, Layout::Pod5(file), header, 1 + requests));
    }
    let (format, header, requests) = read_header(&**store)?;
    Ok((format, Layout::Slow5, Arc::new(header), requests))
}

/// First guess at how many bytes hold a header.
const HEADER_GUESS: u64 = 64 << 10;

/// What kind of file it is, its header, and how many requests that took.
fn read_header(store: &dyn Store) -> Result<(Format, Header, u64)> {
    let mut want = HEADER_GUESS;
    let mut requests = 0;
    loop {
        let have = want.min(store.size());
        let mut bytes = vec![0; have as usize];
        store.read_at(0, &mut bytes)?;
        requests += 1;
        let format = Format::of(&bytes);
        match Header::parse(&bytes).map_err(|fault| fault.in_file(store.name(), 0, "header"))? {
            Parsed::Done(header) => return Ok((format, header, requests)),
            Parsed::NeedMore(more) if have == store.size() => {
                return Err(Error::Truncated {
                    file: store.name().clone(),
                    what: format!("a header of at least {more} bytes").into(),
                    offset: 0,
                    size: store.size(),
                    advice: "; fetch the file again",
                });
            }
            Parsed::NeedMore(more) => want = more.max(have + 1),
        }
    }
}
