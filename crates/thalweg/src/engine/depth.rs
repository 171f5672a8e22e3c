//! How many requests to keep in flight: the store model's word first, then what the run shows.
//!
//! Workers that often find nothing to decode while as many requests are out as may be ask for one more; a backlog of
//! work to decode says that one fewer would be enough. Both are counted over rounds of requests: at the start of a run, or
//! where a thread merely lost its turn on a busy processor, a deeper queue would only take time from those who decode.

/// Groups waiting for each worker from which on fetching is ahead of decoding.
const BACKLOG: usize = 4;

/// Requests answered before anything is concluded, for each one in flight.
const ROUNDS: usize = 4;

/// The depth of a run, as it adapts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    target: usize,
    most: usize,
    /// Requests answered in this round.
    answered: usize,
    /// Of these, how many found fetching ahead.
    ahead: usize,
    /// How often a worker had to wait in this round.
    starved: usize,
}

impl Depth {
    /// Starts at `target`; never goes above `most` or below 1.
    pub(super) fn new(target: usize, most: usize) -> Self {
        let most = most.max(1);
        Self { target: target.clamp(1, most), most, answered: 0, ahead: 0, starved: 0 }
    }

    /// Requests that may be in flight now.
    pub(super) fn target(self) -> usize {
        self.target
    }

    /// A request was answered; `waiting` groups wait for `workers`.
    pub(super) fn answered(&mut self, waiting: usize, workers: usize) {
        self.answered += 1;
        self.ahead += usize::from(waiting > workers * BACKLOG);
        if self.answered < self.target * ROUNDS {
            return;
        }
        let target = if self.starved * 2 > self.answered {
            (self.target + 1).min(self.most)
        } else if self.ahead == self.answered {
            (self.target - 1).max(1)
        } else {
            self.target
        };
        *self = Self { target, answered: 0, ahead: 0, starved: 0, ..*self };
    }

    /// A worker found nothing to decode, with `in_flight` requests out. Fewer than there may be are no reason for more.
    pub(super) fn starved(&mut self, in_flight: usize) {
        self.starved += usize::from(in_flight >= self.target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_when_workers_starve_most_of_the_time() {
        let mut depth = Depth::new(2, 4);
        for _ in 0..100 {
            depth.starved(depth.target());
            depth.answered(0, 2);
        }
        assert_eq!(depth.target(), 4);
        let mut seldom = Depth::new(2, 4);
        for i in 0..100 {
            if i % 4 == 0 {
                seldom.starved(seldom.target());
            }
            seldom.answered(0, 2);
        }
        assert_eq!(seldom.target(), 2);
        let mut idle = Depth::new(2, 4);
        for _ in 0..100 {
            idle.starved(1);
            idle.answered(0, 2);
        }
        assert_eq!(idle.target(), 2, "the plan is out of requests, not the depth");
    }

    #[test]
    fn shrinks_under_a_backlog_to_one() {
        let mut depth = Depth::new(4, 8);
        for _ in 0..100 {
            depth.answered(9, 2);
        }
        assert_eq!(depth.target(), 1);
        let mut mixed = Depth::new(4, 8);
        for i in 0..100 {
            mixed.answered(if i % 3 == 0 { 0 } else { 9 }, 2);
        }
        assert_eq!(mixed.target(), 4);
    }
}
