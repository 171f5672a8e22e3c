//! How many requests to keep in flight: the store model's word first, then what the run shows.
//!
//! Workers that spend most of their time waiting, while as many requests are out as may be, ask for
//! twice as many: the store is the bottleneck, and nothing is lost by asking more of it. A backlog
//! of work to decode says that one fewer would be enough. Both are judged over rounds of requests:
//! at the start of a run, or where a thread merely lost its turn on a busy processor, a deeper
//! queue would only take time from those who decode.

use std::time::Duration;

/// Groups waiting for each worker from which on fetching is ahead of decoding.
const BACKLOG: usize = 4;

/// Requests answered before anything is concluded, for each one in flight.
const ROUNDS: usize = 4;

/// The depth of a run, as it adapts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    target: usize,
    most: usize,
    /// When this round began, since the run did.
    since: Duration,
    /// Requests answered in this round.
    answered: usize,
    /// Of these, how many found fetching ahead.
    ahead: usize,
    /// How long workers waited in this round, summed over them.
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

    /// A request was answered `now`, counted from the start of the run; `waiting` groups wait for
    /// `workers`.
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

    /// A worker found nothing to decode for so long, with `in_flight` requests out. Fewer than
    /// there may be are no reason for more.
    pub(super) fn starved(&mut self, in_flight: usize, waited: Duration) {
        if in_flight >= self.target {
            self.starved += waited;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers 100 requests a millisecond apart, before each of which one of two workers waited.
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
