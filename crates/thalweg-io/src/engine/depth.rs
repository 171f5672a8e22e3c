//! How many requests to keep in flight: first the depth of the store model, then what the run
//! measures.
//!
//! If workers spend most of their time waiting while all permitted requests are in flight, the
//! depth doubles: the store is the bottleneck, and more requests cost nothing. If decoding has a
//! backlog, the depth falls by one. Both are judged over rounds of requests, because workers also
//! wait at the start of a run or when the scheduler suspends a thread; a deeper queue would then
//! only take processor time from decoding.

use std::time::Duration;

/// Waiting groups per worker above which fetching is ahead of decoding.
const BACKLOG: usize = 4;

/// Requests answered in a round, for each request in flight.
const ROUNDS: usize = 4;

/// The adaptive depth of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    target: usize,
    most: usize,
    /// Time from the start of the run to the start of this round.
    since: Duration,
    /// Requests answered in this round.
    answered: usize,
    /// How many of the answered requests found fetching ahead of decoding.
    ahead: usize,
    /// Time that workers waited in this round, summed over workers.
    starved: Duration,
}

impl Depth {
    /// Starts at `target`; never goes above `most` or below 1.
    pub(super) fn new(target: usize, most: usize) -> Self {
        let most = most.max(1);
        let zero = Duration::ZERO;
        Self {
            target: target.clamp(1, most),
            most,
            since: zero,
            answered: 0,
            ahead: 0,
            starved: zero,
        }
    }

    /// Requests that may be in flight now.
    pub(super) fn target(self) -> usize {
        self.target
    }

    /// Records that a request was answered at `now`, counted from the start of the run. `waiting`
    /// groups wait for `workers` workers.
    pub(super) fn answered(&mut self, waiting: usize, workers: usize, now: Duration) {
        self.answered += 1;
        self.ahead += usize::from(waiting > workers * BACKLOG);
        if self.answered < self.target * ROUNDS {
            return;
        }
        let worked = now.saturating_sub(self.since) * workers as u32;
        let target = if self.starved * 2 > worked {
            (self.target * 2).min(self.most)
        } else if self.ahead == self.answered {
            (self.target - 1).max(1)
        } else {
            self.target
        };
        *self = Self { since: now, ..Self::new(target, self.most) };
    }

    /// Records that a worker had nothing to decode for `waited`, with `in_flight` requests in
    /// flight. The time does not count if fewer requests were in flight than permitted: a greater
    /// depth would not help.
    pub(super) fn starved(&mut self, in_flight: usize, waited: Duration) {
        if in_flight >= self.target {
            self.starved += waited;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers 100 requests, a millisecond apart. Before each, one of two workers waits for
    /// `waited`.
    fn run(
        depth: &mut Depth,
        waited: impl Fn(u32) -> Duration,
        in_flight: impl Fn(&Depth) -> usize,
    ) {
        for i in 0..100 {
            depth.starved(in_flight(depth), waited(i));
            depth.answered(0, 2, Duration::from_millis(1) * (i + 1));
        }
    }

    #[test]
    fn grows_when_workers_starve_most_of_the_time() {
        let full = |depth: &Depth| depth.target();
        let mut depth = Depth::new(2, 7);
        run(&mut depth, |_| Duration::from_micros(1500), full);
        assert_eq!(depth.target(), 7);
        let mut seldom = Depth::new(2, 7);
        run(&mut seldom, |i| Duration::from_micros(if i % 4 == 0 { 1500 } else { 100 }), full);
        assert_eq!(seldom.target(), 2);
        let mut idle = Depth::new(2, 7);
        run(&mut idle, |_| Duration::from_micros(1500), |_| 1);
        assert_eq!(idle.target(), 2, "the plan is out of requests, not the depth");
    }

    #[test]
    fn shrinks_under_a_backlog_to_one() {
        let mut depth = Depth::new(4, 8);
        for _ in 0..100 {
            depth.answered(9, 2, Duration::ZERO);
        }
        assert_eq!(depth.target(), 1);
        let mut mixed = Depth::new(4, 8);
        for i in 0..100 {
            mixed.answered(if i % 3 == 0 { 0 } else { 9 }, 2, Duration::ZERO);
        }
        assert_eq!(mixed.target(), 4);
    }
}
