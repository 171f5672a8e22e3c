//! Moves stored bytes to the code that decodes them, as fast as the machine allows and in bounded
//! memory.
//!
//! Nothing here knows a file format. A format says which runs of bytes it wants ([`extent`]). The
//! planner ([`plan`]) turns them into requests, with sizes that suit the store's [`model`] and the
//! memory budget. A [`store`] answers the requests, and the [`engine`] keeps them in flight while
//! threads decode the bytes that have arrived. All threads start in this crate: in the engine, in
//! stores, and in the [`pool`] that other crates borrow from.
//!
//! Reading three ranges of a file at once, in one pass:
//!
//! ```
//! use std::sync::Arc;
//!
//! use thalweg_io::control::Control;
//! use thalweg_io::engine::{Decoder, Delivery, Run};
//! use thalweg_io::extent::{Group, Source};
//! use thalweg_io::plan::{Budget, GapRule, gather, shape};
//! use thalweg_io::store::{FileStore, Store};
//! use thalweg_io::{Result, model::StoreModel};
//!
//! /// Sums the bytes of each extent.
//! struct Sums;
//!
//! impl Decoder for Sums {
//!     type Worker = u64;
//!     type Batch = Vec<(u64, u64)>;
//!
//!     fn worker(&self) -> u64 {
//!         0
//!     }
//!
//!     fn batch(&self) -> Self::Batch {
//!         Vec::new()
//!     }
//!
//!     fn decode(
//!         &self, bytes: &mut u64, group: &Group, next: &mut usize, batch: &mut Self::Batch,
//!     ) -> Result<()> {
//!         batch.clear();
//!         while let Some(extent) = group.get(*next) {
//!             let sum = extent.bytes.iter().map(|&byte| u64::from(byte)).sum();
//!             batch.push((extent.ordinal, sum));
//!             *bytes += extent.bytes.len() as u64;
//!             *next += 1;
//!         }
//!         Ok(())
//!     }
//!
//!     fn decoded_bytes(bytes: &u64) -> u64 {
//!         *bytes
//!     }
//! }
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("bytes");
//! std::fs::write(&path, [1; 10_000])?;
//! let store: Arc<dyn Store> = Arc::new(FileStore::open(&path)?);
//! let model = StoreModel::LOCAL;
//! let shape = shape(&model, Budget::default(), Delivery::Ordered);
//! let ranges = [9_000..9_100, 0..10, 20..40];
//! let fetches = gather(ranges, GapRule::new(&model), shape.block, u64::MAX);
//! let source = Source::Planned(Box::new(fetches));
//! let run = Run::start(store, source, Sums, shape, Control::new())?;
//! let mut sums = Vec::new();
//! for batch in run {
//!     sums.extend(batch?);
//! }
//! // In the order of the file; ordinals say which range was meant.
//! assert_eq!(sums, [(1, 10), (2, 20), (0, 100)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod arrow_ipc;
pub mod cells;
pub mod condition;
pub mod control;
pub mod disk;
pub mod engine;
pub mod error;
pub mod extent;
pub mod index_fetch;
pub mod lengths;
pub mod model;
pub mod new_file;
pub mod object_cache;
pub mod open;
pub mod plan;
pub mod pool;
pub mod random;
pub mod residency;
pub mod sidecar;
pub mod store;
pub mod sync;
mod sys;
pub mod text;
pub mod urls;

pub use error::{Error, Fault, InFile, Result};
pub use sys::{end_with_this_thread, prefer_huge_pages, return_large_blocks, stdout_was_closed};

/// The user's cache folder for this program. It holds indexes of files in read-only folders, store
/// models and synthetic files. The path is `$XDG_CACHE_HOME/thalweg`, else `~/.cache/thalweg`;
/// `None` if neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn cache_folder() -> Option<std::path::PathBuf> {
    let set = |name| {
        std::env::var_os(name).filter(|value| !value.is_empty()).map(std::path::PathBuf::from)
    };
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("thalweg"))
}

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
