//! When a request is tried again: how soon, how often, and when it is given up.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::admission::Admission;

/// How long a read waits for a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Without a byte for this long, all tries included, a read fails.
    pub read: Duration,
    /// Without a byte for this long, a request is tried again on another connection.
    pub request: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(Duration::from_secs(30))
    }
}

impl Patience {
    /// The patience of a read that fails after `read` without a byte. There is time for three
    /// requests.
    pub fn of(read: Duration) -> Self {
        Self { read, request: read / 3 }
    }
}

/// The first wait before another try. Each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Tries of a connection to a server that has never answered. Most likely the address is wrong.
const TRIES_AT_FIRST: u32 = 3;
/// Tries after the first may be this many, and this part of all requests. A server that refuses
/// more is not helped by more requests.
const FREE_RETRIES: u64 = 100;
const RETRY_SHARE: u64 = 5;

/// The wait before the `tries`-th try: up to twice as long each time. `chance` in [0, 1) spreads
/// the waits of many requests.
pub(crate) fn wait_before(tries: u32, chance: f64) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(LONGEST_WAIT);
    longest.mul_f64(0.5 + chance / 2.0)
}

/// The requests for an object, over all threads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) hedges: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) admission: Admission,
    answers: AtomicU64,
    latencies: Mutex<Latencies>,
}

impl Tally {
    /// Whether a failed request may be tried again, after `tries` tries.
    pub(crate) fn may_retry(&self, tries: u32) -> bool {
        if self.answers.load(Ordering::Relaxed) == 0 && tries >= TRIES_AT_FIRST {
            return false;
        }
        let requests = self.requests.load(Ordering::Relaxed);
        let retries = self.retries.fetch_add(1, Ordering::Relaxed);
        retries < FREE_RETRIES + requests / RETRY_SHARE
    }

    /// Notes that a request was answered after `latency`.
    pub(crate) fn answered(&self, latency: Duration) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.lock().add(latency);
    }

    /// How long to wait for an answer before the request is made a second time; `None` if that does
    /// not pay.
    pub(crate) fn hedge_after(&self) -> Option<Duration> {
        /// One of so many requests may be made twice.
        const HEDGE_SHARE: u64 = 20;
        let requests = self.requests.load(Ordering::Relaxed);
        if self.hedges.load(Ordering::Relaxed) > requests / HEDGE_SHARE {
            return None;
        }
        self.lock().slow()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Latencies> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The latencies of the last requests.
#[derive(Debug, Default)]
struct Latencies {
    last: Vec<Duration>,
    next: usize,
}

impl Latencies {
    const KEPT: usize = 128;
    /// Fewer say nothing about the slow ones.
    const LEAST: usize = 32;

    fn add(&mut self, latency: Duration) {
        if self.last.len() < Self::KEPT {
            self.last.push(latency);
        } else {
            self.last[self.next] = latency;
            self.next = (self.next + 1) % Self::KEPT;
        }
    }

    /// A latency that is slow for this store. A second request pays if the usual answer comes well
    /// before it.
    fn slow(&self) -> Option<Duration> {
        if self.last.len() < Self::LEAST {
            return None;
        }
        let mut sorted = self.last.clone();
        sorted.sort_unstable();
        let at = |part: f64| sorted[((sorted.len() - 1) as f64 * part) as usize];
        Some(at(0.95).max(at(0.5) * 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let waits: Vec<_> = (1..20).map(|tries| wait_before(tries, 0.0)).collect();
        assert!(waits.is_sorted() && waits[0] == FIRST_WAIT / 2);
        assert_eq!(waits[18], LONGEST_WAIT / 2);
        assert!(wait_before(u32::MAX, 0.999) < LONGEST_WAIT);
    }

    #[test]
    fn an_address_without_a_server_is_given_up_soon() {
        let tally = Tally::default();
        assert!(tally.may_retry(1) && tally.may_retry(2) && !tally.may_retry(3));
        tally.answered(Duration::from_millis(1));
        assert!(tally.may_retry(3) && tally.may_retry(30));
    }

    #[test]
    fn retries_are_a_part_of_the_requests() {
        let tally = Tally::default();
        tally.answered(Duration::from_millis(1));
        assert_eq!((0..500).filter(|_| tally.may_retry(1)).count() as u64, FREE_RETRIES);
        tally.requests.store(10_000, Ordering::Relaxed);
        assert!(tally.may_retry(1));
    }

    #[test]
    fn only_slow_requests_are_made_twice() {
        let tally = Tally::default();
        assert_eq!(tally.hedge_after(), None, "nothing is known");
        for at in 0..128 {
            tally.answered(Duration::from_millis(if at % 16 == 0 { 300 } else { 30 }));
        }
        assert_eq!(tally.hedge_after(), Some(Duration::from_millis(300)));
        tally.hedges.store(1, Ordering::Relaxed);
        assert_eq!(tally.hedge_after(), None, "too many were");
    }
}
