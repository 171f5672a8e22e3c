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

use std::cell::RefCell;
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

thread_local! {
    /// The parts of other work that this thread does: see [`Control::within`].
    static PARTS: RefCell<Vec<Control>> = const { RefCell::new(Vec::new()) };
}

/// What a thread hands on to those that it starts.
#[derive(Debug)]
pub(crate) struct Parts(Vec<Control>);

impl Parts {
    pub(crate) fn of_this_thread() -> Self {
        Self(PARTS.with_borrow(Clone::clone))
    }

    /// Does a job as a part of this work.
    pub(crate) fn within<T>(self, job: impl FnOnce() -> T) -> T {
        let _restore = Restore(PARTS.replace(self.0));
        job()
    }
}

/// Sets the parts of this thread to what they were, also after a panic.
struct Restore(Vec<Control>);

impl Drop for Restore {
    fn drop(&mut self) {
        PARTS.set(std::mem::take(&mut self.0));
    }
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

    /// Does a job that this handle cancels, too. Other work with the handles that the job has goes
    /// on. Threads that the job starts belong to it. Progress and warnings stay those of the job's
    /// handles.
    ///
    /// ```
    /// use thalweg_io::control::Control;
    ///
    /// let (whole, one, other) = (Control::new(), Control::new(), Control::new());
    /// one.cancel();
    /// assert!(one.within(|| whole.is_cancelled()));
    /// assert!(!other.within(|| whole.is_cancelled()) && !whole.is_cancelled());
    /// ```
    pub fn within<T>(&self, job: impl FnOnce() -> T) -> T {
        let mut parts = Parts::of_this_thread();
        parts.0.push(self.clone());
        parts.within(job)
    }

    /// Whether this thread works [within](Control::within) this handle. Such a thread must not wait
    /// for the end of the work.
    pub fn is_here(&self) -> bool {
        PARTS.with_borrow(|parts| parts.iter().any(|part| Arc::ptr_eq(&part.0, &self.0)))
    }

    fn is_own_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
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

    /// Whether [`Control::cancel`] was called, the time of [`Control::until`] is over, or this
    /// thread works [within](Control::within) a handle that was cancelled.
    pub fn is_cancelled(&self) -> bool {
        let is_over =
            |(whole, end): &(Self, Instant)| whole.is_cancelled() || Instant::now() >= *end;
        self.is_own_cancelled()
            || self.0.within.as_ref().is_some_and(is_over)
            || PARTS.with_borrow(|parts| parts.iter().any(Self::is_own_cancelled))
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

    /// Adds bytes that were fetched without a run.
    pub fn add_fetched(&self, bytes: u64) {
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
