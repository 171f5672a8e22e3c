//! A handle that cancels a run from outside, and reports its progress and warnings.
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
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Instant;

use crate::error::{Error, Result};

/// Cancels runs from outside, and reports their progress and warnings. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<ControlState>);

#[derive(Debug, Default)]
struct ControlState {
    cancelled: AtomicBool,
    fetched: AtomicU64,
    /// What is told of warnings.
    warned: OnceLock<fn(&str)>,
    /// The handle of which this is a part, and when this part is over.
    within: Option<(Control, Instant)>,
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

    /// A handle for a part of the work that may take no longer than until `end`: it is cancelled
    /// then, and when this handle is.
    ///
    /// ```
    /// use std::time::Instant;
    /// use thalweg_io::control::Control;
    ///
    /// let control = Control::new();
    /// let part = control.until(Instant::now());
    /// assert!(part.is_cancelled() && !control.is_cancelled());
    /// ```
    #[must_use]
    pub fn until(&self, end: Instant) -> Self {
        let within = Some((self.clone(), end));
        Self(Arc::new(ControlState { within, ..ControlState::default() }))
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

    /// Whether [`Control::cancel`] was called, or the time of [`Control::until`] is over.
    pub fn is_cancelled(&self) -> bool {
        let is_over =
            |(whole, end): &(Self, Instant)| whole.is_cancelled() || Instant::now() >= *end;
        self.0.cancelled.load(Ordering::Relaxed) || self.0.within.as_ref().is_some_and(is_over)
    }

    /// Fails once [`Control::is_cancelled`] holds: for loops that take long.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Sets what is told of warnings of work with this handle. Only the first call has an effect.
    ///
    /// ```
    /// use thalweg_io::control::Control;
    ///
    /// let control = Control::new();
    /// control.warn_with(|warning| eprintln!("{warning}"));
    /// ```
    pub fn warn_with(&self, warned: fn(&str)) {
        let _ = self.0.warned.set(warned);
    }

    /// Warns of a defect that does not change what is read, such as one of an index.
    pub fn warn(&self, warning: &str) {
        match (self.0.warned.get(), &self.0.within) {
            (Some(warned), _) => warned(warning),
            (None, Some((whole, _))) => whole.warn(warning),
            (None, None) => {}
        }
    }

    /// Bytes that runs with this handle have fetched so far.
    pub fn fetched(&self) -> u64 {
        self.0.fetched.load(Ordering::Relaxed)
    }

    pub(crate) fn add_fetched(&self, bytes: u64) {
        self.0.fetched.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Control;

    #[test]
    fn a_part_ends_with_the_whole_and_at_its_end() {
        let whole = Control::new();
        let part = whole.until(Instant::now() + Duration::from_secs(3600));
        assert!(!part.is_cancelled());
        whole.cancel();
        assert!(part.is_cancelled());
        whole.reset();
        part.cancel();
        assert!(part.is_cancelled() && !whole.is_cancelled());
        assert!(whole.until(Instant::now()).check().is_err());
    }
}
