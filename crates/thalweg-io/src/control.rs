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

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};

/// Cancels runs from outside and reports their progress. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<ControlState>);

#[derive(Debug, Default)]
struct ControlState {
    cancelled: AtomicBool,
    fetched: AtomicU64,
}

impl Control {
    /// A new handle, which is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// The handle of the process: what ends a command cancels it. Work heeds it that is given no
    /// handle of its own, such as an upload.
    pub fn of_process() -> Self {
        static PROCESS: LazyLock<Control> = LazyLock::new(Control::new);
        PROCESS.clone()
    }

    /// Asks every run with this handle to stop. A run stops within a tenth of a second plus the
    /// time of one request.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Clears the cancellation. Call it after the cancelled runs have ended.
    pub fn reset(&self) {
        self.0.cancelled.store(false, Ordering::Relaxed);
    }

    /// Whether [`Control::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }

    /// Fails once [`Control::cancel`] was called: for loops that take long.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Bytes that runs with this handle have fetched so far.
    pub fn fetched(&self) -> u64 {
        self.0.fetched.load(Ordering::Relaxed)
    }

    pub(crate) fn add_fetched(&self, bytes: u64) {
        self.0.fetched.fetch_add(bytes, Ordering::Relaxed);
    }
}
