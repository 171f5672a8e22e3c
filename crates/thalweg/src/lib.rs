//! Scientific files become arrays, as fast as the machine allows and in bounded memory.
//!
//! The data flows one way: a *format* turns a file into extents, a *plan* turns extents into requests, a *store*
//! answers them, a *codec* turns stored bytes into values, and a sink hands them to the caller. The engine knows no
//! format; a format opens no threads. `docs/design.md` has the words and the rules.

#[cfg(feature = "hdf5")]
pub mod arrays;
mod cells;
pub mod codec;
pub mod condition;
pub mod convert;
#[cfg(feature = "hdf5")]
pub mod doctor;
pub mod engine;
pub mod error;
pub mod extent;
pub mod format;
pub mod graph;
#[cfg(feature = "hdf5")]
pub mod guard;
pub mod model;
#[cfg(feature = "hdf5")]
pub mod nexus;
pub mod plan;
pub mod reads;
#[cfg(feature = "hdf5")]
pub mod repack;
pub mod residency;
mod splitmix;
pub mod store;
pub mod synth;
#[doc(hidden)]
mod sys;
pub mod testing;

pub mod write;

pub use error::{Error, Fault, Result};

/// The user's cache folder for this program: indexes of files in read-only folders, store models, synthetic files.
/// `$XDG_CACHE_HOME/thalweg`, else `~/.cache/thalweg`; `None` where neither variable is set.
pub fn cache_folder() -> Option<std::path::PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(std::path::PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("thalweg"))
}
