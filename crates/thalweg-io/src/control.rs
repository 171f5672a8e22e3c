//! A handle that cancels a run from outside and reports its progress.
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

/// A hook that inspects a file, or one of its datasets, before a library that may crash on it opens
/// it.
pub type Inspect = dyn Fn(&Path, Option<&str>, &Control) -> Result<()> + Send + Sync;

/// Cancels runs from outside and reports their progress. Clones share one state.
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
    /// A new handle, which is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every run with this handle to stop. A run stops within a tenth of a second plus the
    /// time of one request.
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

    /// Sets the hook that inspects every file before a library that may crash on it opens it. Later
    /// calls do not replace the first hook.
    pub fn inspect_with(&self, inspect: Box<Inspect>) {
        let _ = self.0.inspect.set(inspect);
    }

    /// Inspects a file, or one of its datasets. Does nothing if no hook is set.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn inspect(&self, path: &Path, dataset: Option<&str>) -> Result<()> {
        self.0.inspect.get().map_or(Ok(()), |inspect| inspect(path, dataset, self))
    }

    pub(crate) fn add_fetched(&self, bytes: u64) {
        self.0.fetched.fetch_add(bytes, Ordering::Relaxed);
    }
}
