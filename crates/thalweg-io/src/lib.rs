//! Moves stored bytes to whoever decodes them, as fast as the machine allows and in bounded memory.
//!
//! Nothing here knows a file format. A format says which runs of bytes it wants ([`extent`]); a
//! *plan* turns them into requests ([`plan`]); a *store* answers these ([`store`]), and what a
//! store can do is told by a [`model`]; the [`engine`] keeps requests in flight and has what
//! arrives decoded by all threads.

pub mod arrow_ipc;
pub mod cells;
pub mod chance;
pub mod condition;
pub mod control;
pub mod disk;
pub mod engine;
pub mod error;
pub mod extent;
pub mod model;
pub mod new_file;
pub mod open;
pub mod plan;
pub mod pool;
pub mod residency;
pub mod sidecar;
pub mod store;
mod sys;

pub use error::{Error, Fault, InFile, Result};

/// The user's cache folder for this program: indexes of files in read-only folders, store models,
/// synthetic files. `$XDG_CACHE_HOME/thalweg`, else `~/.cache/thalweg`; `None` where neither
/// variable is set.
pub fn cache_folder() -> Option<std::path::PathBuf> {
    let set = |name| {
        std::env::var_os(name).filter(|value| !value.is_empty()).map(std::path::PathBuf::from)
    };
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("thalweg"))
}
