//! Blocks of objects at URLs, kept in a folder that processes share.
//!
//! A [`CachedStore`] stands in front of the store of an object. It takes from the folder what is
//! there, and fetches and keeps the rest. An object is known by its address and the tag of its
//! version: who knows the tag knows what the bytes are, so nothing in the folder gets stale.
//!
//! The folder has two files for an object (for each 64 GiB of it, a *section*). One has the blocks
//! of 64 KiB, at the places that they have in the object, with holes for those that are missing.
//! The other one is a table with a checksum for each block. A block is there if its checksum is not
//! 0. The checksum is written after the block, and compared on each read. So whatever happens to
//! the files, a block is right or it is fetched again: there is no lock, and no wait for the disc.
//! Files are removed and never shortened, so that who has one open can go on.
//!
//! ```
//! use std::sync::Arc;
//! use thalweg_io::object_cache::{CachedStore, ObjectCache, ObjectId};
//! use thalweg_io::store::{MemoryStore, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let cache = ObjectCache::with(folder.path(), 1 << 30, Some(0), |_| {});
//! let object = Arc::new(MemoryStore::new("s3://bucket/key", vec![7; 100_000]));
//! let id = ObjectId::new(object.name(), object.name(), "\"the tag\"", object.size());
//! let store = CachedStore::new(object, &cache, id);
//! store.read_at(50_000, &mut [0; 1000])?;
//! let kept = cache.contents(&Default::default())?;
//! assert_eq!(kept.objects[0].cached, 65_536);
//! # Ok(())
//! # }
//! ```

mod around;
mod blocks;
mod choice;
mod header;
mod open;
mod recent;
mod room;
mod section;
mod sound;
mod store;
#[cfg(test)]
mod tests;
mod upkeep;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use open::Open;
use recent::Recent;
use room::{Bounds, Room, next_use};

pub use choice::CacheChoice;
pub use header::{Header, ObjectId};
pub use store::CachedStore;
pub use upkeep::{CachedObject, Cleared, Contents, Verified};

/// A folder with blocks of objects. Clones share one state.
#[derive(Debug, Clone)]
pub struct ObjectCache(Arc<State>);

#[derive(Debug)]
struct State {
    folder: PathBuf,
    bounds: Bounds,
    warn: fn(&str),
    room: Mutex<Room>,
    open: Open,
    recent: Recent,
    /// Whether writing has failed.
    is_given_up: AtomicBool,
}

impl ObjectCache {
    /// A cache in a folder, which is made when the first block is kept. It takes at most `limit`
    /// bytes of the disc, and leaves a twentieth of the file system free, or 16 GiB if that is
    /// less.
    pub fn new(folder: &Path, limit: u64) -> Self {
        Self::with(folder, limit, None, |_| {})
    }

    /// A cache that leaves `free` bytes of the file system free. It calls `warn` once, if it cannot
    /// be written.
    pub fn with(folder: &Path, limit: u64, free: Option<u64>, warn: fn(&str)) -> Self {
        Self(Arc::new(State {
            folder: folder.to_owned(),
            bounds: Bounds { limit, free },
            warn,
            room: Mutex::default(),
            open: Open::default(),
            recent: Recent::default(),
            is_given_up: AtomicBool::new(false),
        }))
    }

    /// The folder for blocks of objects in the user's cache folder, if there is one.
    pub fn usual_folder() -> Option<PathBuf> {
        Some(crate::cache_folder()?.join("objects"))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// The most bytes of the disc that it takes.
    pub fn limit(&self) -> u64 {
        self.0.bounds.limit
    }

    /// Makes the folder, for its owner alone.
    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder())
    }

    /// Counts one more use.
    fn next_use(&self) -> u64 {
        next_use(self.folder())
    }

    fn open(&self) -> &Open {
        &self.0.open
    }

    fn recent(&self) -> &Recent {
        &self.0.recent
    }

    /// Whether `bytes` may be added. Sections that were used before the count `before` make room.
    fn has_room(&self, bytes: u64, before: u64) -> bool {
        let room = || {
            let mut room = self.0.room.lock().unwrap_or_else(PoisonError::into_inner);
            room.take(self.folder(), self.0.bounds, bytes, before)
        };
        !self.0.is_given_up.load(Ordering::Relaxed) && room()
    }

    /// Ends writing: the disc is full, say.
    fn give_up(&self, error: &io::Error) {
        if !self.0.is_given_up.swap(true, Ordering::Relaxed) {
            let folder = self.folder().display();
            (self.0.warn)(&format!("{folder}: nothing more is kept in the cache: {error}"));
        }
    }
}
