//! A handle on work from outside: it cancels the work, and tells how far it is.
//!
//! ```
//! use thalweg_io::control::Control;
//!
//! let control = Control::new();
//! let run = control.clone(); // handed to the run, for instance in `open::Options`
//! control.cancel();
//! assert!(run.is_cancelled());
//! ```

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::Result;

/// What has to be done to a file, or to one of its datasets, before a library that may crash on it
/// opens it.
pub type Inspect = dyn Fn(&Path, Option<&str>, &Control) -> Result<()> + Send + Sync;

/// Stops runs from outside, and sees how far they are. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<ControlState>);

#[derive(Default)]
struct ControlState {
    cancelled: AtomicBool,
    fetched: AtomicU64,
    inspect: OnceLock<Box<Inspect>>,
}

impl fmt::Debug for ControlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cancelled, fetched, inspect: _ } = self;
        f.debug_struct("State")
            .field("cancelled", cancelled)
            .field("fetched", fetched)
            .finish_non_exhaustive()
    }
}

impl Control {
    /// A handle that has not been used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every run with this handle to stop; they do within a tenth of a second and one request.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Control::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Bytes that runs with this handle have fetched so far.
    pub fn fetched(&self) -> u64 {
        self.0.fetched.load(Ordering::Relaxed)
    }

    /// Has every file inspected before it is opened by a library that may crash on it. The first
    /// hook stays.
    pub fn inspect_with(&self, inspect: Box<Inspect>) {
        let _ = self.0.inspect.set(inspect);
    }

    /// Inspects a file, or one of its datasets, if there is a hook for it.
    ///
    /// # Errors
    /// Those of the hook.
    pub fn inspect(&self, path: &Path, dataset: Option<&str>) -> Result<()> {
        self.0.inspect.get().map_or(Ok(()), |inspect| inspect(path, dataset, self))
    }

    pub(crate) fn add_fetched(&self, bytes: u64) {
        self.0.fetched.fetch_add(bytes, Ordering::Relaxed);
    }
}
