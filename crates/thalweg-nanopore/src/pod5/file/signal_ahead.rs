//! Fetches the places of signal rows before a pass over all reads needs them, on a store that is
//! far away. Otherwise each list of reads would wait for its own.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use thalweg_io::control::Control;

use super::tables::{SignalRowPlace, Tables};

/// Threads that fetch ahead.
pub(super) const THREADS: usize = 8;

/// Batches of the Signal table that a thread fetches at a time. Their edges adjoin, so that each
/// takes about one request.
const COUNT: usize = 8;

/// The most batches ahead of those that were needed.
const MOST_AHEAD: usize = 128;

/// The progress of a pass.
#[derive(Debug)]
pub(super) struct SignalAhead {
    /// The most batches ahead of those that were needed.
    most: usize,
    progress: Mutex<Progress>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    /// The next batch that nobody fetches yet.
    next: usize,
    /// The batch after the last that was needed.
    needed: usize,
    is_over: bool,
}

impl SignalAhead {
    /// `None` if the cache of `tables` has no room for batches that are needed later.
    pub(super) fn new(tables: &Tables) -> Option<Self> {
        let batch = tables.rows_per_batch as usize * size_of::<SignalRowPlace>();
        // Half of the cache is left to the batches that are needed now.
        let kept = tables.signal_cache.most() / 2 / batch.max(1);
        let most = kept.saturating_sub(THREADS * COUNT).min(MOST_AHEAD);
        (most > 0).then(|| Self::with_most(most))
    }

    fn with_most(most: usize) -> Self {
        Self { most, progress: Mutex::default(), moved: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the pass needs a batch now. The pass fetches it, and those before it, itself.
    pub(super) fn need(&self, batch: usize) {
        let mut progress = self.lock();
        progress.needed = progress.needed.max(batch + 1);
        progress.next = progress.next.max(progress.needed);
        self.moved.notify_all();
    }

    /// Ends [`SignalAhead::run`] when the returned value is dropped, also by a panic.
    pub(super) fn end_after(&self) -> Pass<'_> {
        Pass(self)
    }

    /// Puts batches into the cache of `tables`, until there are no more or the pass is over.
    /// Several threads may do so.
    pub(super) fn run(&self, tables: &Tables, control: &Control) {
        while let Some(next) = self.next() {
            let end = (next + COUNT).min(tables.signal_blocks.len());
            let batches: Vec<usize> = (next..end).collect();
            // What fails here fails again when it is needed.
            if batches.is_empty() || tables.signal_batches(&batches, control).is_err() {
                return;
            }
        }
    }

    /// The first of the next batches, once they are near enough to those that are needed. `None` if
    /// the pass is over.
    fn next(&self) -> Option<usize> {
        let mut progress = self.lock();
        while progress.next > progress.needed + self.most && !progress.is_over {
            progress = self.moved.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        let next = progress.next;
        progress.next += COUNT;
        (!progress.is_over).then_some(next)
    }
}

/// A pass over all reads.
pub(super) struct Pass<'a>(&'a SignalAhead);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.moved.notify_all();
    }
}

/// The batches of the Signal table that threads fetch now, so that none is fetched twice.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    batches: Mutex<BTreeSet<usize>>,
    ended: Condvar,
}

/// Batches that a thread fetches, until this is dropped.
pub(super) struct Mine<'a> {
    in_flight: &'a InFlight,
    batches: Vec<usize>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes those of the `absent` batches that no other thread fetches. If others fetch all of
    /// them, waits for one of the others, and asks again which are absent. `None` if none is.
    pub(super) fn take(&self, mut absent: impl FnMut() -> Vec<usize>) -> Option<Mine<'_>> {
        let mut in_flight = self.lock();
        loop {
            let mut batches = absent();
            if batches.is_empty() {
                return None;
            }
            batches.retain(|batch| in_flight.insert(*batch));
            if !batches.is_empty() {
                return Some(Mine { in_flight: self, batches });
            }
            in_flight = self.ended.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Mine<'_> {
    pub(super) fn indices(&self) -> &[usize] {
        &self.batches
    }
}

impl Drop for Mine<'_> {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        for batch in &self.batches {
            in_flight.remove(batch);
        }
        self.in_flight.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thalweg_io::pool;

    use super::*;

    #[test]
    fn no_batch_is_fetched_by_two_threads_at_a_time() {
        let in_flight = InFlight::default();
        let fetched = Mutex::new(BTreeSet::new());
        let twice = Mutex::new(0);
        let work = |first: usize| {
            let wanted: Vec<usize> = (first..first + 20).collect();
            let absent = || {
                let fetched = fetched.lock().unwrap_or_else(PoisonError::into_inner);
                wanted.iter().copied().filter(|batch| !fetched.contains(batch)).collect()
            };
            while let Some(mine) = in_flight.take(absent) {
                std::thread::sleep(Duration::from_micros(200));
                let mut fetched = fetched.lock().unwrap_or_else(PoisonError::into_inner);
                let is_new = |batch: &&usize| !fetched.insert(**batch);
                let count = mine.indices().iter().filter(is_new).count();
                *twice.lock().unwrap_or_else(PoisonError::into_inner) += count;
            }
        };
        pool::map(8, (0..400).step_by(5).collect::<Vec<_>>(), work);
        assert_eq!(*twice.lock().unwrap_or_else(PoisonError::into_inner), 0);
        assert_eq!(fetched.lock().unwrap_or_else(PoisonError::into_inner).len(), 415);
        assert!(in_flight.lock().is_empty());
    }

    #[test]
    fn batches_are_taken_near_those_that_are_needed() {
        let ahead = SignalAhead::with_most(64);
        let first: Vec<_> = (0..=64 / COUNT).map(|_| ahead.next()).collect();
        assert_eq!(first.last(), Some(&Some(64)));
        ahead.need(7);
        assert_eq!(ahead.next(), Some(64 + COUNT));
        // Those before a batch that is needed are not fetched ahead of it.
        ahead.need(1000);
        assert_eq!(ahead.next(), Some(1001));
        drop(ahead.end_after());
        assert_eq!(ahead.next(), None);
    }
}
