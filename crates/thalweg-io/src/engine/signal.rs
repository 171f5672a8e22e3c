//! A condition variable that takes no system call where nobody waits.

use std::time::Duration;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, MutexGuard, PoisonError};

/// A waiter checks its condition and calls [`wait`](Self::wait) under the lock. A notifier changes
/// the condition under the same lock, then notifies, with the lock or without it. So the notifier
/// sees the waiter's count, or the waiter sees the change.
#[derive(Debug, Default)]
pub(super) struct Signal {
    condition: Condvar,
    /// Threads that wait, or are about to. It grows under the lock.
    waiting: AtomicUsize,
}

impl Signal {
    /// Waits for a notification, for at most `most`. It may return early.
    pub(super) fn wait<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> MutexGuard<'a, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waited = self.condition.wait_timeout(guard, most);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(super) fn notify_one(&self) {
        if self.is_waited_for() {
            self.condition.notify_one();
        }
    }

    pub(super) fn notify_all(&self) {
        if self.is_waited_for() {
            self.condition.notify_all();
        }
    }
}
