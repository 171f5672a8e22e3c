//! Threads for all crates: only this module, the engine and the stores start threads.
//!
//! | work | function |
//! |---|---|
//! | a function of each item, results in order | [`map`], [`try_map`] |
//! | many values in order, few in memory | [`in_order`] |
//! | one job on many threads at the same time | [`together`] |
//! | threads that communicate with each other during a call | [`scope`] |
//! | one job that runs beside the caller and may outlive the call | [`Background`] |
//!
//! A panic in a thread reaches the caller with its payload. Threads that serve a call have ended
//! when the call returns. An error of the caller's closure cancels them.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::mpsc::{SyncSender, sync_channel};
use crate::sync::thread::{self, JoinHandle, ScopedJoinHandle};
use crate::sync::{Mutex, PoisonError, RwLock, spawn, spawn_scoped};

/// Threads that end before [`scope`] returns.
#[derive(Debug)]
pub struct Threads<'scope, 'env: 'scope>(&'scope thread::Scope<'scope, 'env>);

/// A thread of [`Threads`].
#[derive(Debug)]
pub struct Worker<'scope, T>(ScopedJoinHandle<'scope, T>);

impl<'scope> Threads<'scope, '_> {
    /// Starts a thread with a name that debuggers show.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start<T: Send + 'scope>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<Worker<'scope, T>> {
        spawn_scoped(self.0, name, job).map(Worker)
    }
}

impl<T> Worker<'_, T> {
    /// Waits for the thread's result.
    ///
    /// # Panics
    /// With the thread's panic, if it panicked.
    pub fn join(self) -> T {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Runs `f`, which may start threads that borrow from the caller. All of them have ended when this
/// function returns. It panics if a thread that was not joined panicked.
///
/// ```
/// use thalweg_io::pool::scope;
///
/// let words = ["deepest", "line", "of", "a", "valley"];
/// let longest = scope(|threads| {
///     let worker = threads.start("longest", || words.iter().max_by_key(|word| word.len()))?;
///     Ok::<_, std::io::Error>(worker.join())
/// })?;
/// assert_eq!(longest, Some(&"deepest"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn scope<'env, T>(f: impl for<'scope> FnOnce(&Threads<'scope, 'env>) -> T) -> T {
    thread::scope(|scope| f(&Threads(scope)))
}

/// A thread takes its share of the items that are left divided by this number, so that all threads
/// end at about the same time.
const SHARES: usize = 4;
/// The most items that a thread takes at once.
const MOST_TAKEN: usize = 64;

/// `f` of each of `items`, in their order, on up to `threads` threads; the caller's is one of them.
///
/// ```
/// assert_eq!(thalweg_io::pool::map(4, 1..=5, |n| n * n), [1, 4, 9, 16, 25]);
/// ```
pub fn map<T: Send, R: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    f: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let mapped = try_map(threads, items, |item| Ok::<R, std::convert::Infallible>(f(item)));
    match mapped {
        Ok(mapped) => mapped,
        Err(never) => match never {},
    }
}

/// `f` of each of `items`, in their order, on up to `threads` threads; the caller's is one of them.
/// After an error no thread begins with a later item.
///
/// # Errors
/// The first error of `f`, in the order of the items.
pub fn try_map<T: Send, R: Send, E: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    f: impl Fn(T) -> std::result::Result<R, E> + Sync,
) -> std::result::Result<Vec<R>, E> {
    let items = items.into_iter();
    let others = threads.min(items.size_hint().1.unwrap_or(threads)).saturating_sub(1);
    let items = Mutex::new(items.enumerate());
    let is_over = AtomicBool::new(false);
    // The place of the first item that has failed.
    let failed = AtomicUsize::new(usize::MAX);
    let is_stopped =
        |place| is_over.load(Ordering::Relaxed) || place > failed.load(Ordering::Relaxed);
    let take = || {
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        let count = items.size_hint().0 / (threads.max(1) * SHARES);
        items.by_ref().take(count.clamp(1, MOST_TAKEN)).collect::<Vec<_>>()
    };
    let work = || {
        // Stops the other threads if `f` panics.
        let stop = Raise(&is_over);
        let mut done = Vec::new();
        while !is_stopped(usize::MAX) {
            let taken = take();
            if taken.is_empty() {
                break;
            }
            for (place, item) in taken {
                // Items before one that failed are not left out: the first error is returned.
                if is_stopped(place) {
                    break;
                }
                let result = f(item);
                if result.is_err() {
                    failed.fetch_min(place, Ordering::Relaxed);
                }
                done.push((place, result));
            }
        }
        std::mem::forget(stop);
        done
    };
    let mut all = scope(|pool| {
        // If the system starts fewer threads, these do all the work.
        let workers: Vec<_> =
            (0..others).map_while(|_| pool.start("thalweg-map", work).ok()).collect();
        let mut all = work();
        workers.into_iter().for_each(|worker| all.extend(worker.join()));
        all
    });
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Sets a flag when it is dropped.
struct Raise<'a>(&'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes the values with the indices `0..count` on `threads` threads and passes them to `take` in
/// order. Each thread makes its values with its own closure from `maker`, and keeps at most `ahead`
/// finished values waiting. The call ends early when `take` returns `false`. `name` is the file
/// name in errors.
///
/// ```
/// use thalweg_io::pool::in_order;
///
/// let mut taken = Vec::new();
/// in_order(&"squares".into(), 2, 4, 100, || |n| n * n, |square| {
///     taken.push(square);
///     Ok::<_, thalweg_io::Error>(square < 16)
/// })?;
/// assert_eq!(taken, [0, 1, 4, 9, 16]);
/// # Ok::<(), thalweg_io::Error>(())
/// ```
///
/// # Errors
/// The errors of `take`, which end the threads; [`Error::Io`] if the system cannot start a thread.
pub fn in_order<T: Send, M: FnMut(u64) -> T + Send, E: From<Error>>(
    name: &Arc<str>,
    threads: usize,
    ahead: usize,
    count: u64,
    maker: impl Fn() -> M,
    mut take: impl FnMut(T) -> std::result::Result<bool, E>,
) -> std::result::Result<(), E> {
    let threads = threads.max(1);
    scope(|pool| {
        // Thread t makes every threads-th value from t on, so that taking turns restores the order.
        let mut turns = Vec::with_capacity(threads);
        for first in 0..threads as u64 {
            let (sender, receiver) = sync_channel(ahead);
            let mut make = maker();
            let job = move || {
                let mut own = (first..count).step_by(threads);
                // Sending fails once the receiver is dropped, which happens after `take` has ended
                // the call.
                while own.next().is_some_and(|i| sender.send(make(i)).is_ok()) {}
            };
            let worker = pool.start("thalweg-make", job);
            let worker = worker.map_err(|e| Error::io(name, "starting a thread for", e))?;
            turns.push((Some(worker), receiver));
        }
        for i in 0..count {
            let (worker, receiver) = &mut turns[(i % threads as u64) as usize];
            let Ok(value) = receiver.recv() else {
                // The thread ended early, so it panicked; `join` passes the panic on.
                worker.take().map(Worker::join);
                return Err(Error::Cancelled.into());
            };
            if !take(value)? {
                break;
            }
        }
        Ok(())
    })
}

/// Runs `job` on exactly `threads` threads at the same time. Each thread first calls `prepare` to
/// make the input of its job; the jobs begin when all threads are prepared. `name` is the file name
/// in errors.
///
/// ```
/// use thalweg_io::pool::together;
///
/// let sums = together(&"sums".into(), 3, || vec![1; 1 << 10], |v| v.iter().sum::<u32>())?;
/// assert_eq!(sums, [1 << 10; 3]);
/// # Ok::<(), thalweg_io::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] if the system cannot start all threads; then no job begins.
pub fn together<P, T: Send>(
    name: &Arc<str>,
    threads: usize,
    prepare: impl Fn() -> P + Sync,
    job: impl Fn(P) -> T + Sync,
) -> Result<Vec<T>> {
    // The threads block on a read lock while the caller holds the write lock.
    let may_begin = RwLock::new(false);
    let (is_ready, ready) = sync_channel(threads);
    let work = |is_ready: SyncSender<()>| {
        let prepared = prepare();
        drop(is_ready);
        may_begin.read().unwrap_or_else(PoisonError::into_inner).then(|| job(prepared))
    };
    scope(|pool| {
        let mut begin = may_begin.write().unwrap_or_else(PoisonError::into_inner);
        let mut workers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let is_ready = is_ready.clone();
            let worker = pool.start("thalweg-together", || work(is_ready));
            workers.push(worker.map_err(|e| Error::io(name, "starting a thread for", e))?);
        }
        drop(is_ready);
        // Nothing is sent. This returns when the last thread has dropped its sender.
        let _ = ready.recv();
        *begin = true;
        drop(begin);
        Ok(workers.into_iter().filter_map(Worker::join).collect())
    })
}

/// One job on its own thread, which may outlive the call that started it. The job goes on if this
/// handle is dropped.
#[derive(Debug)]
pub struct Background<T> {
    thread: JoinHandle<T>,
    is_over: Arc<AtomicBool>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts a job on a thread with a name that debuggers show.
    ///
    /// # Errors
    /// [`Error::Io`] about `what`, if the system cannot start a thread.
    pub fn start(
        name: &str,
        what: &Arc<str>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let thread = spawn(name, move || {
            let _raise = Raise(&flag);
            job()
        });
        let thread = thread.map_err(|e| Error::io(what, "starting a thread for", e))?;
        Ok(Self { thread, is_over })
    }

    /// Whether the job is over: [`Background::join`] would return at once.
    pub fn is_finished(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits for the job's result.
    ///
    /// # Panics
    /// With the job's panic, if it panicked.
    pub fn join(self) -> T {
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Waits for the end of a job and discards its result or panic.
    pub fn wait(self) {
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn panic_of(f: impl FnOnce()) -> Option<&'static str> {
        let panic = catch_unwind(AssertUnwindSafe(f)).err()?;
        panic.downcast_ref::<&'static str>().copied()
    }

    #[test]
    fn values_come_in_order() {
        for threads in [0, 1, 2, 7, 100] {
            let expected: Vec<u64> = (0..50).map(|i| i * 3).collect();
            assert_eq!(map(threads, 0..50, |i| i * 3), expected);
            let mut taken = Vec::new();
            let all = in_order(
                &"test".into(),
                threads,
                1,
                50,
                || |i| i * 3,
                |value| {
                    taken.push(value);
                    Ok::<_, Error>(true)
                },
            );
            assert!(all.is_ok());
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn the_first_error_ends_the_others() {
        for threads in [1, 3] {
            let error = try_map(threads, 0..1_000_000, |i| if i < 10 { Ok(i) } else { Err(i) });
            assert_eq!(error, Err(10));
            // The item that fails first is not the first that fails.
            let slow = |i| {
                if i == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                if (5..300).contains(&i) { Ok(i) } else { Err(i) }
            };
            assert_eq!(try_map(threads, 0..1000, slow), Err(0));
        }
        let made = AtomicBool::new(false);
        let make = || {
            |i| {
                if i > 1000 {
                    made.store(true, Ordering::Relaxed);
                }
            }
        };
        let ended = in_order(&"test".into(), 2, 2, u64::MAX, make, |()| Err(Error::Cancelled));
        assert!(matches!(ended, Err(Error::Cancelled)));
        assert!(!made.load(Ordering::Relaxed), "threads end soon after the caller's error");
    }

    #[test]
    fn jobs_begin_when_all_are_prepared() {
        let prepared = AtomicUsize::new(0);
        for threads in [0, 1, 5] {
            prepared.store(0, Ordering::SeqCst);
            let prepare = || {
                prepared.fetch_add(1, Ordering::SeqCst);
            };
            let seen =
                together(&"test".into(), threads, prepare, |()| prepared.load(Ordering::SeqCst));
            assert_eq!(seen.ok(), Some(vec![threads; threads]));
        }
    }

    #[test]
    fn panics_reach_the_caller() {
        let fail = |i: u64| assert!(i != 5, "of a worker");
        assert_eq!(panic_of(|| drop(map(3, 0..10, fail))), Some("of a worker"));
        let all = || in_order(&"test".into(), 3, 1, 10, || fail, |()| Ok::<_, Error>(true));
        assert_eq!(panic_of(|| drop(all())), Some("of a worker"));
        let job = || Background::start("test", &"test".into(), move || fail(5));
        assert_eq!(panic_of(|| drop(job().map(Background::join))), Some("of a worker"));
        assert!(job().map(Background::wait).is_ok());
    }
}
