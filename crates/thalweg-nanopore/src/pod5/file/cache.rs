//! A cache of parts of the tables that may be needed again, which keeps the newest, up to a size.
//! And what is on its way there.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Values by number. The oldest values are dropped when the cache is full.
#[derive(Debug)]
pub(super) struct Cache<T> {
    most: usize,
    kept: Mutex<Kept<T>>,
}

#[derive(Debug)]
struct Kept<T> {
    by_number: HashMap<usize, (Arc<T>, usize)>,
    order: VecDeque<usize>,
    size: usize,
}

impl<T> Cache<T> {
    /// An empty cache for values of at most `most` bytes in total.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            kept: Mutex::new(Kept { by_number: HashMap::new(), order: VecDeque::new(), size: 0 }),
        }
    }

    /// The most bytes that the values have in total.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn get(&self, number: usize) -> Option<Arc<T>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_number.get(&number).map(|(value, _)| value.clone())
    }

    /// Adds a value of `size` bytes.
    pub(super) fn put(&self, number: usize, value: Arc<T>, size: usize) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.by_number.insert(number, (value, size)).is_none() {
            kept.order.push_back(number);
            kept.size += size;
        }
        while kept.size > self.most {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some((_, size)) = kept.by_number.remove(&oldest) {
                kept.size -= size;
            }
        }
    }
}

/// The batches of the Signal table that threads fetch now, so that none is fetched twice.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    batches: Mutex<BTreeSet<usize>>,
    ended: Condvar,
}

/// Batches that a thread fetches, until this is dropped.
pub(super) struct Claimed<'a> {
    in_flight: &'a InFlight,
    batches: Vec<usize>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes those of the `absent` batches that no other thread fetches. If others fetch all of
    /// them, waits for one of the others, and asks again which are absent. `None` if none is.
    pub(super) fn claim(&self, mut absent: impl FnMut() -> Vec<usize>) -> Option<Claimed<'_>> {
        let mut in_flight = self.lock();
        loop {
            let mut batches = absent();
            if batches.is_empty() {
                return None;
            }
            batches.retain(|batch| in_flight.insert(*batch));
            if !batches.is_empty() {
                return Some(Claimed { in_flight: self, batches });
            }
            in_flight = self.ended.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Claimed<'_> {
    pub(super) fn indices(&self) -> &[usize] {
        &self.batches
    }
}

impl Drop for Claimed<'_> {
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
            while let Some(claimed) = in_flight.claim(absent) {
                std::thread::sleep(Duration::from_micros(200));
                let mut fetched = fetched.lock().unwrap_or_else(PoisonError::into_inner);
                let is_new = |batch: &&usize| !fetched.insert(**batch);
                let count = claimed.indices().iter().filter(is_new).count();
                *twice.lock().unwrap_or_else(PoisonError::into_inner) += count;
            }
        };
        pool::map(8, (0..400).step_by(5).collect::<Vec<_>>(), work);
        assert_eq!(*twice.lock().unwrap_or_else(PoisonError::into_inner), 0);
        assert_eq!(fetched.lock().unwrap_or_else(PoisonError::into_inner).len(), 415);
        assert!(in_flight.lock().is_empty());
    }
}
