//! Which requests are slow, compared with the last ones to the same object.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Requests that are remembered.
const KEPT: usize = 256;
/// Fewer requests say nothing about the slow ones.
const LEAST: usize = 4;
/// A request is slow if one of so many takes as long. Others often wait for a small one, and a
/// second one costs little.
const SLOW_SHARE: usize = 10;
const SLOW_SHARE_SMALL: usize = 4;
/// In bytes. Requests up to this length are small.
const SMALL: u64 = 64 << 10;
/// A request is slow if it takes so many times as long as half of the requests. Otherwise a second
/// one would hardly be answered sooner.
const SLOW_FACTOR: u32 = 2;
/// How long a request waits at first if nothing is known, and before each further look.
const LOOK: Duration = Duration::from_millis(10);

/// The last requests, in the order in which they were made.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<Requests>);

#[derive(Debug, Default)]
struct Requests {
    last: VecDeque<Request>,
    /// The number of the first request in `last`.
    first: u64,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    made: Instant,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Waiting,
    /// Answered after this time.
    Answered(Duration),
    /// Failed or given up.
    Failed,
}

/// A request that waits for its answer. It has failed if this is dropped.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    pace: &'a Pace,
    number: u64,
    made: Instant,
    slow_share: usize,
}

impl Pace {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a request for `len` bytes is made now.
    pub(crate) fn made(&self, len: u64) -> Waiting<'_> {
        let made = Instant::now();
        let mut requests = self.lock();
        if requests.last.len() == KEPT {
            requests.last.pop_front();
            requests.first += 1;
        }
        requests.last.push_back(Request { made, state: State::Waiting });
        let number = requests.first + requests.last.len() as u64 - 1;
        let slow_share = if len <= SMALL { SLOW_SHARE_SMALL } else { SLOW_SHARE };
        Waiting { pace: self, number, made, slow_share }
    }
}

impl Requests {
    fn set(&mut self, number: u64, state: State) {
        let place = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(request) = place.and_then(|at| self.last.get_mut(at))
            && request.state == State::Waiting
        {
            request.state = state;
        }
    }

    /// The latency that half of the answered requests exceeded.
    fn usual(&self) -> Option<Duration> {
        let mut took: Vec<Duration> =
            self.last.iter().filter_map(|request| request.state.took()).collect();
        if took.len() < LEAST {
            return None;
        }
        let middle = took.len() / 2;
        Some(*took.select_nth_unstable(middle).1)
    }

    /// Whether a request that has waited for `age` is slow: at most one of `share` waits as long.
    /// Only requests that were made at least as long ago can tell: a later one may become as slow.
    fn is_slow(&self, age: Duration, now: Instant, share: usize) -> bool {
        let (mut known, mut as_slow, mut quick) = (0, 0, 0);
        for request in &self.last {
            if request.state == State::Failed || now.duration_since(request.made) < age {
                continue;
            }
            known += 1;
            match request.state.took() {
                Some(took) if took < age => quick += usize::from(took * SLOW_FACTOR <= age),
                _ => as_slow += 1,
            }
        }
        known >= LEAST && as_slow * share <= known && quick * 2 >= known
    }
}

impl State {
    fn took(self) -> Option<Duration> {
        if let Self::Answered(took) = self { Some(took) } else { None }
    }
}

impl Waiting<'_> {
    /// Notes that the answer is here.
    pub(crate) fn answered(self) {
        let took = self.made.elapsed();
        self.pace.lock().set(self.number, State::Answered(took));
    }

    /// How long it has waited.
    pub(crate) fn age(&self) -> Duration {
        self.made.elapsed()
    }

    /// Whether it is slow.
    pub(crate) fn is_slow(&self) -> bool {
        let now = Instant::now();
        self.pace.lock().is_slow(now.duration_since(self.made), now, self.slow_share)
    }

    /// How long to wait before [`Waiting::is_slow`] can become true.
    pub(crate) fn next_look(&self) -> Duration {
        let usual = self.pace.lock().usual().unwrap_or_default();
        (usual * SLOW_FACTOR).saturating_sub(self.age()).max(LOOK)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pace.lock().set(self.number, State::Failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Requests that were all made at once; those without a latency wait.
    fn requests(took: impl IntoIterator<Item = Option<u32>>, made: Instant) -> Requests {
        let state = |took: Option<u32>| took.map_or(State::Waiting, |ms| State::Answered(MS * ms));
        let last = took.into_iter().map(|took| Request { made, state: state(took) }).collect();
        Requests { last, first: 0 }
    }

    #[test]
    fn the_slowest_tenth_is_slow() {
        let made = Instant::now();
        let at = |ms: u32| made + MS * ms;
        // Latencies of 1 to 100 ms; after 80 ms, 20 requests wait.
        let all = |now: u32| {
            requests((1..=100).map(|took| (took <= now).then_some(took)).collect::<Vec<_>>(), made)
        };
        assert!(!all(80).is_slow(MS * 80, at(80), SLOW_SHARE), "a fifth waits");
        assert!(!all(85).is_slow(MS * 85, at(85), SLOW_SHARE));
        assert!(all(100).is_slow(MS * 100, at(100), SLOW_SHARE), "twice as slow as half of them");
        assert!(all(102).is_slow(MS * 102, at(102), SLOW_SHARE_SMALL));
        assert!(!all(90).is_slow(MS * 90, at(90), SLOW_SHARE_SMALL), "not twice as slow as half");
        assert_eq!(all(100).usual(), Some(MS * 51));
    }

    #[test]
    fn similar_latencies_are_not_slow() {
        let made = Instant::now();
        let steady = requests((0..100).map(|_| Some(50)), made);
        assert!(!steady.is_slow(MS * 60, made + MS * 200, SLOW_SHARE));
        assert!(steady.is_slow(MS * 100, made + MS * 200, SLOW_SHARE));
    }

    #[test]
    fn younger_requests_and_few_requests_tell_nothing() {
        let made = Instant::now();
        let young = requests((0..100).map(|_| Some(1)), made + MS * 60);
        assert!(!young.is_slow(MS * 50, made + MS * 100, SLOW_SHARE));
        let few = requests((1..LEAST).map(|_| Some(1)), made);
        assert!(!few.is_slow(MS * 50, made + MS * 100, SLOW_SHARE));
    }

    #[test]
    fn only_the_last_requests_count() {
        let pace = Pace::default();
        let first = pace.made(1);
        (0..KEPT).for_each(|_| pace.made(1).answered());
        first.answered();
        drop(pace.made(1));
        let requests = pace.lock();
        assert_eq!((requests.last.len(), requests.first), (KEPT, 2));
        let failed = requests.last.iter().filter(|request| request.state == State::Failed).count();
        assert_eq!(failed, 1);
    }
}
