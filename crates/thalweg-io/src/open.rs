//! Opens a path or URL as a store and determines the model of its device.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::control::Control;
use crate::engine::default_threads;
use crate::error::{Error, Result};
use crate::model::{Origin, StoreModel, saved};
use crate::object_cache::ObjectCache;
use crate::plan::{Budget, DEFAULT_MEMORY, is_long_line, long_line_memory};
use crate::residency::{better_direct, cache_room, resident};
use crate::sidecar::KeepIndex;
use crate::store::throttled::{Limits, ThrottledStore};
use crate::store::{CountedStore, Counter, FileStore, MemoryStore, MmapStore, Store};
use crate::urls::{Depth, Entry, unknown_scheme, url};

/// Bytes that are fetched from the end of a POD5 file when it is opened, if its store is far away.
/// A connection to S3 transfers as much during one latency. A table of 16,000 reads, and all that
/// lies behind the signal, is in it. An object whose name ends in `.pod5` is opened with them.
pub const POD5_END: u64 = 2 << 20;

/// How many files one part of a program may keep open: `most`, or a quarter of what the process may
/// open, if that is less.
pub fn open_files(most: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(most, |limit| usize::try_from(limit / 4).unwrap_or(most).clamp(1, most))
}

/// How to read a file. The defaults suit most uses.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How the bytes are read.
    pub store: StoreKind,
    /// Threads and memory.
    pub budget: Budget,
    /// Memory that replaces that of the budget on a [long line](crate::plan::is_long_line). By
    /// default none does; [`long_line_memory`] suits.
    pub long_line_memory: Option<usize>,
    /// Cancels reads from outside and reports their progress.
    pub control: Control,
    /// The model of the store, if the caller knows one. It replaces the measured model and the
    /// prior.
    pub model: Option<StoreModel>,
    /// Slows the store down on purpose: for measurements, and to find out how long a read would
    /// take on another store.
    pub throttle: Option<Limits>,
    /// Gaps between chunks of arrays up to this many bytes are read rather than skipped. It
    /// replaces the planner's choice, for measurements.
    pub gap: Option<u64>,
    /// Finds chunks of arrays in the file itself, even if an index beside the file lists their
    /// locations.
    pub own_index: bool,
    /// Where an index that is made because reads are looked up is kept.
    pub keep_index: KeepIndex,
    /// Called with the path of each index that was kept.
    pub index_kept: Option<fn(&Path)>,
    /// Finds what is in an HDF5 file in rounds of requests, even if the file is in the page cache,
    /// to learn what that costs on a store that has to be waited for.
    pub finds_in_rounds: bool,
    /// Counts the requests to the store, the throttled one if it is, and those that opening an
    /// object takes.
    pub counter: Option<Counter>,
    /// Without a byte of an object for this long, all tries included, a read fails; 30 s by
    /// default.
    pub timeout: Option<Duration>,
    /// Where blocks of objects at URLs are kept. By default they are not.
    pub cache: Option<ObjectCache>,
    /// The bytes of an object at a URL that are needed first: they come with the answer that says
    /// how long the object is. `None` for its first ones.
    pub first: Option<Range<u64>>,
    /// The version of an object at a URL, if the caller knows it. Opening it then takes no request,
    /// and reading another version fails.
    pub version: Option<ObjectVersion>,
}

/// A version of an object, as a list has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    /// Bytes of the object.
    pub size: u64,
    /// Its tag (RFC 9110, section 8.8.3).
    pub tag: String,
    /// When it was made, in seconds since 1970, if the server says it.
    pub modified: Option<i64>,
}

impl ObjectVersion {
    /// Whether its tag tells it from all others: a weak one does not (RFC 9110, section 8.8.3).
    pub fn is_certain(&self) -> bool {
        !self.tag.starts_with("W/") && !matches!(&*self.tag, "" | "\"\"")
    }
}

impl Options {
    /// The options for a number of decode threads and of bytes of memory. By default, threads are
    /// as many as this process may run at once, and objects that are far away get more memory than
    /// [`DEFAULT_MEMORY`]. Who names the memory gets no more.
    pub fn limited(threads: Option<usize>, memory: Option<usize>) -> Self {
        let budget = Budget {
            threads: threads.unwrap_or_else(default_threads),
            memory: memory.unwrap_or(DEFAULT_MEMORY),
        };
        let long_line_memory = memory.is_none().then(long_line_memory);
        Self { budget, long_line_memory, ..Self::default() }
    }

    /// The options for a file on a store with this model.
    #[must_use]
    pub fn on(self, model: StoreModel) -> Self {
        let memory = self.long_line_memory.filter(|_| is_long_line(&model));
        let memory = memory.unwrap_or(self.budget.memory);
        Self { model: Some(model), budget: Budget { memory, ..self.budget }, ..self }
    }

    /// The model that the caller knows, or else `prior`.
    pub fn model_or(&self, prior: StoreModel) -> (StoreModel, Origin) {
        self.model.map_or((prior, Origin::Prior), |model| (model, Origin::Given))
    }
}

/// How the bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// [`StoreKind::Direct`] for files that are too large for the page cache and mostly not in it;
    /// else [`StoreKind::Buffered`], so that the next read is quick.
    #[default]
    Auto,
    /// Through the page cache, several reads in flight.
    Buffered,
    /// Past the page cache.
    Direct,
    /// Past the page cache with io_uring: many requests in flight from one thread. Where io_uring
    /// is forbidden, the file is read as by [`StoreKind::Buffered`], and [`OpenedStore::note`]
    /// gives the reason.
    Uring,
    /// Through a map of the file. Only for files that nothing changes during the read: see
    /// [`MmapStore`].
    Mmap,
    /// From memory: the whole file is loaded when it is opened, regardless of the budget. For
    /// measurements of the time that a read takes without storage.
    Memory,
}

/// Opens objects at URLs. A crate above this one does it, so that this one needs no network.
pub trait OpenUrl: Send + Sync + std::fmt::Debug {
    /// Opens an object without the throttle of `options`.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Usage`] about the URL.
    fn open(&self, url: &str, options: &Options) -> Result<OpenedStore>;

    /// Calls `found` with what has a URL that begins with `prefix`, in any order, until it returns
    /// `false`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for servers without lists; [`Error::Io`] and [`Error::Usage`] about
    /// the URL; [`Error::Cancelled`]; the errors of `found`.
    fn list(
        &self,
        prefix: &str,
        depth: Depth,
        control: &Control,
        found: &mut dyn FnMut(Entry) -> Result<bool>,
    ) -> Result<()>;

    /// The names of the buckets of a service, whose URL has none, as in `s3://`. `None` if these
    /// credentials may not ask.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Usage`] about the URL; [`Error::Cancelled`].
    fn list_buckets(&self, url: &str, control: &Control) -> Result<Option<Vec<String>>>;

    /// Whether there is a bucket, whose URL ends with `/`.
    ///
    /// # Errors
    /// Those of [`OpenUrl::list`].
    fn has_bucket(&self, url: &str, control: &Control) -> Result<bool>;

    /// A name for the service and bucket of a URL, under which their measured model is saved.
    ///
    /// # Errors
    /// [`Error::Usage`] about the URL.
    fn device(&self, url: &str) -> Result<String>;

    /// What reading all objects took, since the process started.
    fn counts(&self) -> Counts;
}

/// What reading objects took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Requests, all tries included.
    pub requests: u64,
    /// Requests that were tries after a failure.
    pub retries: u64,
    /// Why they were.
    #[serde(skip)]
    pub reasons: Reasons,
    /// Requests that were made a second time because the answer was slow.
    pub hedges: u64,
    /// Bytes that were received.
    pub bytes: u64,
}

/// Why requests were made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Reasons {
    /// The server refused them: it had too many, or had a fault.
    pub refused: u64,
    /// There was no connection.
    pub unconnected: u64,
    /// Nothing came for too long.
    pub late: u64,
    /// Bytes were missing or damaged.
    pub broken: u64,
}

static URLS: OnceLock<&dyn OpenUrl> = OnceLock::new();

/// Sets what opens URLs in this process. Only the first call has an effect.
pub fn open_urls_with(opener: &'static dyn OpenUrl) {
    let _ = URLS.set(opener);
}

static TIMEOUT: OnceLock<Duration> = OnceLock::new();

/// Sets how long requests for objects wait that no [`Options::timeout`] is for: those for lists,
/// for new objects, and for what lies beside an object. Only the first call has an effect.
pub fn set_timeout_of_urls(timeout: Duration) {
    let _ = TIMEOUT.set(timeout);
}

/// The time-out that [`set_timeout_of_urls`] was given.
pub fn timeout_of_urls() -> Option<Duration> {
    TIMEOUT.get().copied()
}

/// What opens URLs in this process.
fn opener(url: &str) -> Result<&'static dyn OpenUrl> {
    URLS.get().copied().ok_or_else(|| Error::Unsupported {
        file: url.into(),
        what: "a URL".into(),
        advice: "register what opens URLs: `thalweg_object::register()`".into(),
    })
}

/// Calls `found` with what has a URL that begins with `prefix`, in any order, until it returns
/// `false`.
///
/// # Errors
/// Those of [`OpenUrl::list`]; [`Error::Unsupported`] if nothing opens URLs.
pub fn list_url(
    prefix: &str,
    depth: Depth,
    control: &Control,
    found: &mut dyn FnMut(Entry) -> Result<bool>,
) -> Result<()> {
    opener(prefix)?.list(prefix, depth, control, found)
}

/// The names of the buckets of a service, whose URL has none, as in `s3://`. `None` if these
/// credentials may not ask.
///
/// # Errors
/// Those of [`OpenUrl::list_buckets`]; [`Error::Unsupported`] if nothing opens URLs.
pub fn list_buckets(url: &str, control: &Control) -> Result<Option<Vec<String>>> {
    opener(url)?.list_buckets(url, control)
}

/// Whether there is a bucket, whose URL ends with `/`.
///
/// # Errors
/// Those of [`OpenUrl::has_bucket`]; [`Error::Unsupported`] if nothing opens URLs.
pub fn has_bucket(url: &str, control: &Control) -> Result<bool> {
    opener(url)?.has_bucket(url, control)
}

/// A name for the service and bucket of a URL, as [`saved::device`] is one for the
/// device of a file.
///
/// # Errors
/// [`Error::Usage`] about the URL; [`Error::Unsupported`] if nothing opens URLs.
pub fn url_device(url: &str) -> Result<String> {
    opener(url)?.device(url)
}

/// The measured model of the service and bucket of a URL, if there is one that has not expired, or
/// else that of S3.
pub fn url_model(url: &str) -> (StoreModel, Origin) {
    let measured = || saved::load(&saved::folder()?, &url_device(url).ok()?, SystemTime::now());
    measured().map_or((StoreModel::S3, Origin::Prior), |saved| {
        (saved.model, Origin::Measured(saved.measured_at_unix_s))
    })
}

/// What reading all objects took, since the process started.
pub fn counts_of_urls() -> Counts {
    URLS.get().map(|urls| urls.counts()).unwrap_or_default()
}

/// The consequence, in messages, if io_uring is not available.
const INSTEAD: &str = "going on through the page cache";

/// The store of a file and the model of its device.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store of the file.
    pub store: Arc<dyn Store>,
    /// The model of the store, and its origin.
    pub model: (StoreModel, Origin),
    /// A warning if an option could not be followed, for instance because io_uring is forbidden.
    pub note: Option<String>,
    /// The open file, for queries about it without opening it again. `None` if the bytes were
    /// copied into memory, or if the process may open no more files.
    pub file: Option<File>,
}

impl OpenedStore {
    /// Opens a file as `options` say.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Unsupported`] about
    /// the path.
    pub fn new(path: &Path, options: &Options) -> Result<Self> {
        Ok(Self::unthrottled(path, options)?.apply(options))
    }

    /// Applies the model and the throttle of `options`, where they are set.
    #[must_use]
    pub fn apply(self, options: &Options) -> Self {
        let (model, origin) = options.model.map_or(self.model, |model| (model, Origin::Given));
        let mut opened = Self { model: (model, origin), ..self };
        if let Some(limits) = options.throttle {
            let throttled = ThrottledStore::new(opened.store, limits);
            opened.store = Arc::new(throttled.heeding(&options.control));
            if origin != Origin::Given {
                opened.model.0 = limits.applied_to(&model);
            }
        }
        if let Some(counter) = &options.counter {
            opened.store = Arc::new(CountedStore::new(opened.store, counter.clone()));
        }
        opened
    }

    /// Another handle to the same store, without the open file.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { store: self.store.clone(), model: self.model, note: self.note.clone(), file: None }
    }

    /// Opens a file as `options` say, but without the throttle. Reads that detect the format of the
    /// file should not count in throttled measurements.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Unsupported`] about
    /// the path.
    pub fn unthrottled(path: &Path, options: &Options) -> Result<Self> {
        if let Some(url) = url(path) {
            return opener(url)?.open(url, options);
        }
        if let Some(error) = unknown_scheme(path) {
            return Err(error);
        }
        let given = options.model;
        let known = |file: &File| {
            given.map_or_else(|| StoreModel::known(file), |model| (model, Origin::Given))
        };
        let plain = |store: FileStore, note| {
            let model = known(store.file());
            let file = store.file().try_clone().ok();
            Ok(Self { store: Arc::new(store), model, note, file })
        };
        match options.store {
            StoreKind::Auto => {
                let store = FileStore::open(path)?;
                let cached =
                    || resident(store.file(), 0..store.size()).map(|pages| pages.fraction());
                if better_direct(store.size(), cache_room(), cached) {
                    return plain(FileStore::open_direct(path)?, None);
                }
                plain(store, None)
            }
            StoreKind::Buffered => plain(FileStore::open(path)?, None),
            StoreKind::Direct => plain(FileStore::open_direct(path)?, None),
            StoreKind::Mmap => {
                let store = MmapStore::open(path)?;
                let model = known(store.file().file());
                let file = store.file().file().try_clone().ok();
                Ok(Self { store: Arc::new(store), model, note: None, file })
            }
            StoreKind::Memory => {
                let file = FileStore::open(path)?;
                let store = MemoryStore::load(&file, &options.control)?;
                let model = options.model_or(StoreModel::MEMORY);
                Ok(Self { store: Arc::new(store), model, note: None, file: None })
            }
            #[cfg(target_os = "linux")]
            StoreKind::Uring => {
                let store = crate::store::UringStore::open(path, true)?;
                if let Some(why) = store.refused() {
                    return plain(FileStore::open(path)?, Some(format!("{INSTEAD}: {why}")));
                }
                let model = known(store.file().file());
                let file = store.file().file().try_clone().ok();
                Ok(Self { store: Arc::new(store), model, note: None, file })
            }
            #[cfg(not(target_os = "linux"))]
            StoreKind::Uring => plain(
                FileStore::open(path)?,
                Some(format!("{INSTEAD}: this system has no io_uring")),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{OpenedStore, Options};

    #[test]
    fn without_an_opener_a_url_is_an_error() {
        let error = OpenedStore::new(Path::new("s3://b/k"), &Options::default()).map(drop);
        assert!(error.is_err_and(|error| error.to_string().contains("a URL is not supported")));
    }
}
