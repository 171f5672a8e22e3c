//! A folder of objects at a URL.

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::{Disk, Sink};
use crate::error::{Error, Result};
use crate::model::StoreModel;
use crate::open::{OpenedStore, Options};
use crate::plan::side_depth;
use crate::store::Store;
use crate::urls::{in_folder, shown};

/// Bytes at the end of a file that come with the answer that says how long it is.
const END: u64 = 64 << 10;

/// The least number of these bytes, where memory is short.
const LEAST_END: u64 = 4 << 10;

/// The ends of files take this part of the memory budget.
const END_SHARE: u64 = 8;

/// The most files that are opened at a time.
const MOST_AT_ONCE: usize = 32;

/// A folder of objects at a URL. It is read, and never changed.
#[derive(Debug)]
pub struct UrlFolder {
    url: String,
    /// The URL for messages.
    name: Arc<str>,
    options: Options,
    /// The model of the store, once a file was opened.
    model: OnceLock<StoreModel>,
}

impl UrlFolder {
    /// The folder at a URL, whose files are read as `options` say. The throttle holds for
    /// [`Disk::open_plain`] only.
    pub fn new(url: &str, options: Options) -> Self {
        Self { url: url.to_owned(), name: shown(url).into(), options, model: OnceLock::new() }
    }

    fn opened(&self, file: &str, first: Option<Range<u64>>) -> Result<OpenedStore> {
        let options = Options { first, ..self.options.clone() };
        let opened = OpenedStore::unthrottled(Path::new(&in_folder(&self.url, file)), &options)?;
        self.model.get_or_init(|| opened.model.0);
        Ok(opened)
    }

    fn both(&self, opened: OpenedStore) -> [Arc<dyn Store>; 2] {
        let store = opened.store.clone();
        [store, opened.apply(&self.options).store]
    }

    fn refused(&self) -> Error {
        Error::Unsupported {
            file: self.name.clone(),
            what: "changing what is at a URL".into(),
            advice: "copy it to a folder, as with `aws s3 cp --recursive`, and change the copy"
                .into(),
        }
    }
}

impl Disk for UrlFolder {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn list(&self) -> Result<Vec<String>> {
        Err(Error::Unsupported {
            file: self.name.clone(),
            what: "a list of what is at a URL".into(),
            advice: "copy it to a folder, as with `aws s3 cp --recursive`".into(),
        })
    }

    fn is_far(&self) -> bool {
        true
    }

    fn at_once(&self) -> usize {
        side_depth(&self.model(), MOST_AT_ONCE)
    }

    fn open(&self, file: &str) -> Result<Arc<dyn Store>> {
        Ok(self.opened(file, None)?.store)
    }

    fn open_both(&self, file: &str) -> Result<[Arc<dyn Store>; 2]> {
        Ok(self.both(self.opened(file, None)?))
    }

    fn open_end(&self, file: &str, size: u64, files: usize) -> Result<[Arc<dyn Store>; 2]> {
        let room = self.options.budget.memory as u64 / END_SHARE / files.max(1) as u64;
        if room < LEAST_END {
            let what = format!(
                "{}: {files} segments need more than {} bytes of memory; give more --memory, or \
                 compact a copy of the network",
                self.name, self.options.budget.memory
            );
            return Err(Error::Usage(what.into()));
        }
        let opened = self.opened(file, Some(size.saturating_sub(room.min(END))..size.max(1)))?;
        Ok(self.both(opened))
    }

    fn model(&self) -> StoreModel {
        let model = self.options.model.or(self.model.get().copied()).unwrap_or(StoreModel::S3);
        self.options.throttle.map_or(model, |limits| limits.applied_to(&model))
    }

    fn create(&self, _file: &str) -> Result<Box<dyn Sink>> {
        Err(self.refused())
    }

    fn append(&self, _file: &str, _len: u64) -> Result<Box<dyn Sink>> {
        Err(self.refused())
    }

    fn rename(&self, _from: &str, _to: &str) -> Result<()> {
        Err(self.refused())
    }

    fn remove(&self, _file: &str) -> Result<()> {
        Err(self.refused())
    }

    fn sync(&self) -> Result<()> {
        Err(self.refused())
    }

    fn lock(&self) -> Result<Option<Box<dyn Any + Send + Sync>>> {
        Err(self.refused())
    }
}
