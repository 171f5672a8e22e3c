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
    /// they lie. The command of an inspector needs the same option.
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
    /// forbidden, as [`StoreKind::Buffered`], and [`OpenedStore::note`] says why.
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

/// A file's store, and what is known of the device beneath it.
#[derive(Debug)]
pub struct OpenedStore {
    /// Where the bytes come from.
    pub store: Arc<dyn Store>,
    /// What the store can do, and how that is known.
    pub model: (StoreModel, Origin),
    /// A warning where an option could not be followed, as io_uring that is forbidden here.
    pub note: Option<String>,
    /// The open file, to ask the system about it without opening it again. `None` where the bytes
    /// were copied into memory, or where the process may open no more files.
    pub file: Option<File>,
}

impl OpenedStore {
    /// Opens a file as `options` say.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) and [`Error::Unsupported`](crate::Error::Unsupported) about
    /// the path.
    pub fn new(path: &Path, options: &Options) -> Result<Self> {
        Ok(Self::unthrottled(path, options)?.apply(options))
    }

    /// Takes over the model of the options, if they have one, and slows the store down as their
    /// throttle says.
    #[must_use]
    pub fn apply(self, options: &Options) -> Self {
        let (model, origin) = options.model.map_or(self.model, |model| (model, Origin::Given));
        let Some(limits) = options.throttle else {
            return Self { model: (model, origin), ..self };
        };
        let store = Arc::new(ThrottledStore::new(self.store, limits));
        let model = if origin == Origin::Given { model } else { limits.applied_to(&model) };
        Self { store, model: (model, origin), ..self }
    }

    /// Opens a file as `options` say, except that `options.throttle` does not slow it down yet:
    /// what tells a file's format is not part of what a throttle measures.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) and [`Error::Unsupported`](crate::Error::Unsupported) about
    /// the path.
    pub fn unthrottled(path: &Path, options: &Options) -> Result<Self> {
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
                let file = store.file().file().try_clone().ok();
                Ok(Self { store: Arc::new(store), model, note: None, file })
            }
            StoreKind::Memory => {
                let file = FileStore::open(path)?;
                let store = MemoryStore::load(&file, &options.control)?;
                let model = given
                    .map_or((StoreModel::MEMORY, Origin::Prior), |model| (model, Origin::Given));
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
