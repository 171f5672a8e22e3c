//! When a request is tried again: how soon, how often, and when it is given up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::admission::Admission;
use crate::pace::Pace;

/// How long a read waits for a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Without progress for this long, all tries included, a read fails.
    pub read: Duration,
    /// Without progress for this long, a request is tried again on another connection.
    pub request: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(Duration::from_secs(30))
    }
}

impl Patience {
    /// The patience of a read that fails after `read` without progress. There is time for three
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
/// more is not helped by more requests. These let a service be away for half a minute, whatever
/// is in flight.
const FREE_RETRIES: u64 = 3000;
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
    pub(crate) pace: Pace,
    answers: AtomicU64,
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

    /// Notes an answer.
    pub(crate) fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a slow request may be made a second time. If so, that is noted.
    pub(crate) fn may_hedge(&self) -> bool {
        /// So many requests may be made twice, and one of so many.
        const FREE_HEDGES: u64 = 8;
        const HEDGE_SHARE: u64 = 10;
        let most = FREE_HEDGES + self.requests.load(Ordering::Relaxed) / HEDGE_SHARE;
        let one_more = |hedges| (hedges < most).then_some(hedges + 1);
        self.hedges.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
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
        tally.answered();
        assert!(tally.may_retry(3) && tally.may_retry(30));
    }

    #[test]
    fn retries_are_a_part_of_the_requests() {
        let tally = Tally::default();
        tally.answered();
        assert_eq!((0..9000).filter(|_| tally.may_retry(1)).count() as u64, FREE_RETRIES);
        tally.requests.store(50_000, Ordering::Relaxed);
        assert!(tally.may_retry(1));
    }

    #[test]
    fn a_service_may_be_away_for_as_long_as_a_read_waits() {
        // The most that a read with the memory for a long line has in flight.
        const IN_FLIGHT: u64 = 165;
        let (mut away, mut tries) = (Duration::ZERO, 0);
        while away < Patience::default().read {
            tries += 1;
            away += wait_before(tries, 0.0);
        }
        assert!(IN_FLIGHT * u64::from(tries) <= FREE_RETRIES, "{tries} tries");
    }

    #[test]
    fn few_requests_are_made_twice() {
        let tally = Tally::default();
        tally.requests.store(1000, Ordering::Relaxed);
        assert_eq!((0..1000).filter(|_| tally.may_hedge()).count(), 108);
    }
}
