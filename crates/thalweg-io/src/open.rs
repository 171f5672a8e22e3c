//! From a path to a store, and what is known of the device beneath it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::control::Control;
use crate::error::Result;
use crate::model::{Origin, StoreModel};
use crate::plan::Budget;
use crate::residency::{better_direct, cache_room, resident};
use crate::store::throttled::{Limits, ThrottledStore};
use crate::store::{FileStore, MemoryStore, MmapStore, Store};

/// How to read: everything has a default that is right without thought.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which way the bytes come.
    pub store: StoreKind,
    /// Threads and memory.
    pub budget: Budget,
    /// Stops reads from elsewhere, and sees how far they are.
    pub control: Control,
    /// What the store can do, where it is known better than from the kind of file system.
    pub model: Option<StoreModel>,
    /// Makes the store slower on purpose: for measurements, and for trying out what a read would
    /// take elsewhere.
    pub throttle: Option<Limits>,
    /// Gaps between arrays' chunks up to so many bytes are read rather than skipped, instead of
    /// what suits the store best: for measurements.
    pub gap: Option<u64>,
    /// Chunks of arrays are found in the file itself, even where an index beside it tells where
    /// they lie. The command that inspects files before libhdf5 opens them must get the same
    /// option.
    pub own_index: bool,
}

/// Which way the bytes come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// [`StoreKind::Direct`] for files that are too large to stay in the page cache and are not in
    /// it; else [`StoreKind::Buffered`], so that the next read is quick.
    #[default]
    Auto,
    /// Through the page cache, several reads in flight.
    Buffered,
    /// Past the page cache.
    Direct,
    /// Past the page cache with io_uring: many requests in flight from one thread. Where that is
    /// forbidden, as [`StoreKind::Buffered`], and [`Opened::note`] says why.
    Uring,
    /// Through a map of the file. Only for files that nothing changes meanwhile: see
    /// [`MmapStore`].
    Mmap,
    /// All of the file is read into memory, over the budget, when it is opened. For measurements:
    /// what a read takes when storage takes nothing.
    Memory,
}

/// What happens where io_uring cannot be had.
const INSTEAD: &str = "going on through the page cache";

/// A store, what is known of the device beneath it, and what is not as it was asked for.
pub struct Opened {
    /// Where the bytes come from.
    pub store: Arc<dyn Store>,
    /// What the store can do, and how that is known.
    pub model: (StoreModel, Origin),
    /// A warning where the store is not the one that was asked for.
    pub note: Option<String>,
}

impl Opened {
    /// Opens a file as `options` say.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) and [`Error::Unsupported`](crate::Error::Unsupported) about
    /// the path.
    pub fn new(path: &Path, options: &Options) -> Result<Self> {
        let opened = Self::unthrottled(path, options)?;
        let Some(limits) = options.throttle else { return Ok(opened) };
        let store = Arc::new(ThrottledStore::new(opened.store, limits));
        let (model, origin) = opened.model;
        let model = if origin == Origin::Given { model } else { limits.applied_to(&model) };
        Ok(Self { store, model: (model, origin), ..opened })
    }

    fn unthrottled(path: &Path, options: &Options) -> Result<Self> {
        let given = options.model;
        let known = |file: &File| {
            given.map_or_else(|| StoreModel::known(file), |model| (model, Origin::Given))
        };
        let plain = |store: FileStore, note| {
            let model = known(store.file());
            Ok(Self { store: Arc::new(store), model, note })
        };
        match options.store {
            StoreKind::Auto => {
                let store = FileStore::open(path)?;
                let cached = resident(store.file(), 0..store.size()).map(|pages| pages.fraction());
                if better_direct(store.size(), cached, cache_room()) {
                    return plain(FileStore::open_direct(path)?, None);
                }
                plain(store, None)
            }
            StoreKind::Buffered => plain(FileStore::open(path)?, None),
            StoreKind::Direct => plain(FileStore::open_direct(path)?, None),
            StoreKind::Mmap => {
                let store = MmapStore::open(path)?;
                let model = known(store.file().file());
                Ok(Self { store: Arc::new(store), model, note: None })
            }
            StoreKind::Memory => {
                let file = FileStore::open(path)?;
                let store = MemoryStore::load(&file, &options.control)?;
                let model = given
                    .map_or((StoreModel::MEMORY, Origin::Prior), |model| (model, Origin::Given));
                Ok(Self { store: Arc::new(store), model, note: None })
            }
            #[cfg(target_os = "linux")]
            StoreKind::Uring => {
                let store = crate::store::UringStore::open(path, true)?;
                if let Some(why) = store.refused() {
                    return plain(FileStore::open(path)?, Some(format!("{INSTEAD}: {why}")));
                }
                let model = known(store.file().file());
                Ok(Self { store: Arc::new(store), model, note: None })
            }
            #[cfg(not(target_os = "linux"))]
            StoreKind::Uring => plain(
                FileStore::open(path)?,
                Some(format!("{INSTEAD}: this system has no io_uring")),
            ),
        }
    }
}
