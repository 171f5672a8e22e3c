//! Opens URLs for whoever opens paths.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thalweg_io::control::Control;
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::new_file::{NewObject, Replaced, WriteUrl};
use thalweg_io::object_cache::CachedStore;
use thalweg_io::open::{
    Counts, ObjectVersion, OpenUrl, OpenedStore, Options, POD5_END, StoreKind, timeout_of_urls,
    url_model,
};
use thalweg_io::sidecar::note_version;
use thalweg_io::store::{MemoryStore, Store};
use thalweg_io::urls::{Depth, Entry, is_file};
use thalweg_io::{Error, Result};
use url::Url;

use crate::address::device;
use crate::list::{has_bucket, list, list_buckets};
use crate::object::{open, open_at, open_version, open_with_end};
use crate::retries::Patience;
use crate::totals::totals;
use crate::upload::{self, Upload};

/// Lets every function that opens a path, or makes a file, take URLs, too.
pub fn register() {
    thalweg_io::open::open_urls_with(&Urls);
    thalweg_io::new_file::write_urls_with(&Urls);
}

#[derive(Debug)]
struct Urls;

impl OpenUrl for Urls {
    fn open(&self, url: &str, options: &Options) -> Result<OpenedStore> {
        if is_file(url) {
            return OpenedStore::unthrottled(&self.path(url)?, options);
        }
        let patience = patience(options.timeout);
        let known = options.version.clone().filter(ObjectVersion::is_certain);
        let object = match (known, options.first.clone()) {
            (Some(version), _) => open_version(url, version, &options.control, patience)?,
            (None, Some(first)) => open_at(url, first, &options.control, patience)?,
            // A cache keeps whole blocks, and asks for those at the end itself.
            (None, None) if options.cache.is_none() && ends_with_tables(url) => {
                open_with_end(url, POD5_END, &options.control, patience)?
            }
            (None, None) => open(url, &options.control, patience)?,
        };
        if let Some(counter) = &options.counter {
            let Counts { requests, bytes, .. } = object.counts();
            counter.add(requests, bytes);
        }
        if let Some(version) = object.version() {
            note_version(url, &version, object.modified());
        }
        let model = url_model(url);
        let id = object.cache_id();
        let (store, model): (Arc<dyn Store>, _) = match options.cache.as_ref().zip(id) {
            Some((cache, id)) => {
                let store = CachedStore::new(Arc::new(object), cache, id);
                let model = store.model(model);
                (Arc::new(store), model)
            }
            None => (Arc::new(object), model),
        };
        let note = match options.store {
            StoreKind::Auto | StoreKind::Buffered => None,
            StoreKind::Memory => {
                let store = MemoryStore::load(&*store, &options.control)?;
                let model = options.model_or(StoreModel::MEMORY);
                return Ok(OpenedStore { store: Arc::new(store), model, note: None, file: None });
            }
            StoreKind::Direct | StoreKind::Uring | StoreKind::Mmap => {
                Some("an object is read by HTTP, whatever --store says".to_owned())
            }
        };
        let model = options.model.map_or(model, |model| (model, Origin::Given));
        Ok(OpenedStore { store, model, note, file: None })
    }

    fn list(
        &self,
        prefix: &str,
        depth: Depth,
        control: &Control,
        found: &mut dyn FnMut(Entry) -> Result<bool>,
    ) -> Result<()> {
        list(prefix, depth, control, patience(None), found)
    }

    fn list_buckets(&self, url: &str, control: &Control) -> Result<Option<Vec<String>>> {
        list_buckets(url, control, patience(None))
    }

    fn has_bucket(&self, url: &str, control: &Control) -> Result<bool> {
        has_bucket(url, control, patience(None))
    }

    fn device(&self, url: &str) -> Result<String> {
        device(url)
    }

    fn counts(&self) -> Counts {
        totals()
    }
}

/// Whether an object is a POD5 file by its name: its tables lie at the end.
fn ends_with_tables(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.ends_with(".pod5")
}

/// The patience for a time-out, or else for that of the process.
fn patience(timeout: Option<Duration>) -> Patience {
    timeout.or_else(timeout_of_urls).map_or_else(Patience::default, Patience::of)
}

impl WriteUrl for Urls {
    fn path(&self, url: &str) -> Result<PathBuf> {
        let path = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
        path.ok_or_else(|| Error::Usage(format!("{url}: no path of a file").into()))
    }

    fn find(&self, url: &str) -> Result<Option<Vec<u8>>> {
        upload::find(url, &Control::of_process(), patience(None))
    }

    fn create(&self, url: &str, replaced: Replaced) -> Result<Box<dyn NewObject>> {
        let upload = Upload::create(url, replaced, &Control::of_process(), patience(None))?;
        Ok(Box::new(upload))
    }

    fn remove(&self, url: &str) -> Result<()> {
        // What is cancelled removes what it has made.
        upload::remove(url, &Control::new(), patience(None))
    }
}
