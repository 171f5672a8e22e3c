//! Locks, channels, atomic numbers and threads. They are the standard library's. With the feature
//! `schedules` they are those of the crate `shuttle`, whose tests run the same code under many
//! interleavings of its threads and find deadlocks: no wait there ever times out.

#[cfg(feature = "schedules")]
pub use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, atomic, mpsc};
#[cfg(feature = "schedules")]
pub(crate) use shuttle::thread;
#[cfg(not(feature = "schedules"))]
pub use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, RwLock, atomic, mpsc};
#[cfg(not(feature = "schedules"))]
pub(crate) use std::thread;

pub use std::sync::PoisonError;

use crate::control::Parts;

/// Starts a thread of `scope` with a name that debuggers show.
///
/// # Errors
/// If the system cannot start a thread.
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    job: impl FnOnce() -> T + Send + 'scope,
) -> std::io::Result<thread::ScopedJoinHandle<'scope, T>> {
    let parts = Parts::of_this_thread();
    let job = move || parts.within(job);
    #[cfg(feature = "schedules")]
    return Ok({
        let _ = name;
        scope.spawn(job)
    });
    #[cfg(not(feature = "schedules"))]
    return thread::Builder::new().name(name.into()).spawn_scoped(scope, job);
}

/// Starts a thread with a name that debuggers show.
///
/// # Errors
/// If the system cannot start a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    job: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<thread::JoinHandle<T>> {
    let parts = Parts::of_this_thread();
    thread::Builder::new().name(name.into()).spawn(move || parts.within(job))
}

/// Runs `test` under many interleavings of its threads. Half of them switch threads at random, and
/// half a few times only, at points that most schedules never switch at (Burckhardt et al., "A
/// randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).
///
/// The variable `SCHEDULES` says how many of each; by default 200.
///
/// # Panics
/// With the panic of the test, or if its threads wait for each other forever.
#[cfg(feature = "schedules")]
pub fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    use shuttle::{Config, FailurePersistence, Runner};

    let count = std::env::var("SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let config = || {
        let mut config = Config::new();
        // Parsers and libhdf5 need more than the default of 32 KiB.
        config.stack_size = 1 << 20;
        config.failure_persistence = FailurePersistence::None;
        config.silence_warnings = true;
        config
    };
    Runner::new(RandomScheduler::new(count), config()).run(test.clone());
    Runner::new(PctScheduler::new(3, count), config()).run(test);
}

/// A cell that is written once, as [`std::sync::OnceLock`], which `shuttle` lacks.
#[cfg(feature = "schedules")]
#[derive(Debug, Default)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    /// Held while the value is made. Waiting for a `std::sync::OnceLock` would stop all threads of
    /// a test.
    making: Mutex<()>,
}

#[cfg(feature = "schedules")]
impl<T> OnceLock<T> {
    /// An empty cell.
    pub fn new() -> Self {
        Self { value: std::sync::OnceLock::new(), making: Mutex::new(()) }
    }

    /// The value, if it is made.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, which `make` makes if there is none.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let _making = self.making.lock();
        self.value.get_or_init(make)
    }

    /// Writes the value if there is none.
    ///
    /// # Errors
    /// With `value`, if there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let _making = self.making.lock();
        self.value.set(value)
    }

    /// The value, if it is made.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}
