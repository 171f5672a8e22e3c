//! Fetches the places of signal rows before a pass over all reads needs them, on a store that is
//! far away. Otherwise each list of reads would wait for its own.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use thalweg_io::control::Control;

use super::tables::{SignalRowPlace, Tables};

/// Threads that fetch ahead.
pub(super) const THREADS: usize = 8;

/// Batches of the Signal table that a thread fetches at a time. Their edges adjoin, so that each
/// takes about one request.
const AT_ONCE: usize = 8;

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
        let most = kept.saturating_sub(THREADS * AT_ONCE).min(MOST_AHEAD);
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

    /// Begins the pass. When the returned value is dropped, also by a panic, [`SignalAhead::run`]
    /// ends.
    pub(super) fn pass(&self) -> Pass<'_> {
        Pass(self)
    }

    /// Puts batches into the cache of `tables`, until there are no more or the pass is over.
    /// Several threads may do so.
    pub(super) fn run(&self, tables: &Tables, control: &Control) {
        while let Some(next) = self.next() {
            let end = (next + AT_ONCE).min(tables.signal_blocks.len());
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
        progress.next += AT_ONCE;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_taken_near_those_that_are_needed() {
        let ahead = SignalAhead::with_most(64);
        let first: Vec<_> = (0..=64 / AT_ONCE).map(|_| ahead.next()).collect();
        assert_eq!(first.last(), Some(&Some(64)));
        ahead.need(7);
        assert_eq!(ahead.next(), Some(64 + AT_ONCE));
        // Those before a batch that is needed are not fetched ahead of it.
        ahead.need(1000);
        assert_eq!(ahead.next(), Some(1001));
        drop(ahead.pass());
        assert_eq!(ahead.next(), None);
    }
}
