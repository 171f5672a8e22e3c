//! A store that counts what is asked of it: requests, bytes, and how often one waited for another.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::Store;
use crate::error::Result;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// What was asked of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Asked {
    /// Requests in the longest chain, each of which began after the one before it had ended.
    pub rounds: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes that were asked for.
    pub bytes: u64,
}

/// Counts what is asked of one or more stores. Clones share one count.
///
/// ```
/// use std::sync::Arc;
/// use thalweg_io::store::{Counter, CountedStore, MemoryStore, Store};
///
/// let counter = Counter::default();
/// let store = MemoryStore::new("memory", vec![7; 100]);
/// let store = CountedStore::new(Arc::new(store), counter.clone());
/// let mut buf = [0; 10];
/// store.read_at(0, &mut buf)?;
/// store.read_at(50, &mut buf)?;
/// let asked = counter.asked();
/// assert_eq!((asked.rounds, asked.requests, asked.bytes), (2, 2, 20));
/// # Ok::<(), thalweg_io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<Mutex<Asked>>);

impl Counter {
    /// The count so far.
    pub fn asked(&self) -> Asked {
        *self.lock()
    }

    /// Adds a round of requests that were made before the store could be counted.
    pub fn add(&self, requests: u64, bytes: u64) {
        let mut asked = self.lock();
        asked.rounds += 1;
        asked.requests += requests;
        asked.bytes += bytes;
    }

    /// Counts a request. The requests that have ended by now are those it may have waited for.
    fn count(&self, bytes: u64, request: impl FnOnce() -> Result<()>) -> Result<()> {
        let round = self.lock().rounds + 1;
        let outcome = request();
        let mut asked = self.lock();
        asked.rounds = asked.rounds.max(round);
        asked.requests += 1;
        asked.bytes += bytes;
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store whose requests are counted. Bytes that are at hand or in a cache are no request.
#[derive(Debug)]
pub struct CountedStore {
    inner: Arc<dyn Store>,
    counter: Counter,
}

impl CountedStore {
    /// Counts what is asked of `inner`.
    pub fn new(inner: Arc<dyn Store>, counter: Counter) -> Self {
        Self { inner, counter }
    }
}

impl Store for CountedStore {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if buf.is_empty() || self.inner.read_at_hand(offset, buf) {
            return Ok(());
        }
        let missing = self.inner.missing(offset..offset + buf.len() as u64);
        if missing.is_empty() {
            return self.inner.read_at(offset, buf);
        }
        let bytes = missing.end - missing.start;
        self.counter.count(bytes, || self.inner.read_at(offset, buf))
    }

    fn bytes(&self) -> Option<&[u8]> {
        self.inner.bytes()
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        self.inner.read_at_hand(offset, buf)
    }

    fn is_at_hand(&self, offset: u64) -> bool {
        self.inner.is_at_hand(offset)
    }

    fn head(&self) -> u64 {
        self.inner.head()
    }

    fn missing(&self, range: Range<u64>) -> Range<u64> {
        self.inner.missing(range)
    }

    fn touch(&self, offset: u64, len: usize) -> Result<()> {
        self.inner.touch(offset, len)
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::pool;
    use crate::store::FileStore;

    #[test]
    fn requests_at_the_same_time_are_one_round() {
        let counter = Counter::default();
        let begun = std::sync::Barrier::new(3);
        let request = |()| {
            counter.count(5, || {
                begun.wait();
                Ok(())
            })
        };
        let outcomes = pool::together(&"requests".into(), 3, || (), request).unwrap();
        assert!(outcomes.into_iter().all(|outcome| outcome.is_ok()));
        assert_eq!(counter.asked(), Asked { rounds: 1, requests: 3, bytes: 15 });
        counter.count(1, || Ok(())).unwrap();
        assert_eq!(counter.asked().rounds, 2);
        counter.add(2, 100);
        assert_eq!(counter.asked(), Asked { rounds: 3, requests: 6, bytes: 116 });
    }

    #[test]
    fn what_is_at_hand_is_no_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [1; 50]).unwrap();
        let file: Arc<dyn Store> = Arc::new(FileStore::open(&path).unwrap());
        let is_at_hand = file.is_at_hand(0);
        let counter = Counter::default();
        let counted = CountedStore::new(file, counter.clone());
        counted.read_at(0, &mut [0; 5]).unwrap();
        assert_eq!(counter.asked().requests, u64::from(!is_at_hand));
        assert!(counted.read_at(49, &mut [0; 5]).is_err());
    }
}
