//! A cache of parts of the tables that may be needed again. It keeps the newest, up to a size.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

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
