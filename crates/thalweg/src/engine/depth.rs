//! How many requests to keep in flight: the store model's word first, then what the run shows.
//!
//! A worker that finds nothing to decode while as many requests are out as may be asks for one more; a backlog of
//! decoded work to do says that one fewer would be enough. Both are counted over a whole round of requests, so that the
//! start of a run or one slow answer moves nothing.

/// Groups waiting for each worker from which on fetching is ahead of decoding.
const BACKLOG: usize = 4;

/// The depth of a run, as it adapts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    target: usize,
    most: usize,
    /// Requests answered since the target last moved.
    answered: usize,
    /// Of these, how many found fetching ahead.
    ahead: usize,
}

impl Depth {
    /// Starts at `target`; never goes above `most` or below 1.
    pub(super) fn new(target: usize, most: usize) -> Self {
        let most = most.max(1);
        Self { target: target.clamp(1, most), most, answered: 0, ahead: 0 }
    }

    /// Requests that may be in flight now.
    pub(super) fn target(self) -> usize {
        self.target
    }

    /// A request was answered; `waiting` groups wait for `workers`.
    pub(super) fn answered(&mut self, waiting: usize, workers: usize) {
        self.answered += 1;
        self.ahead += usize::from(waiting > workers * BACKLOG);
        // Two rounds of nothing but backlog: one fewer in flight leaves the processor to those who decode.
        if self.ahead >= self.target * 2 && self.ahead == self.answered && self.target > 1 {
            self.moved(self.target - 1);
        }
    }

    /// A worker found nothing to decode, with `in_flight` requests out. Whether there may be more in flight now.
    pub(super) fn starved(&mut self, in_flight: usize) -> bool {
        let full = in_flight >= self.target && self.answered >= self.target;
        if full && self.target < self.most {
            self.moved(self.target + 1);
            return true;
        }
        // The answers so far were not all ahead.
        self.ahead = 0;
        false
    }

    fn moved(&mut self, target: usize) {
        *self = Self { target, answered: 0, ahead: 0, ..*self };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_when_workers_starve_and_only_then() {
        let mut depth = Depth::new(2, 4);
        assert!(!depth.starved(2), "the first blocks of a run are always waited for");
        for _ in 0..100 {
            depth.answered(0, 2);
            depth.starved(depth.target());
        }
        assert_eq!(depth.target(), 4);
        let mut idle = Depth::new(2, 4);
        for _ in 0..100 {
            idle.answered(0, 2);
            assert!(!idle.starved(1), "the plan is out of requests, not the depth");
        }
        assert_eq!(idle.target(), 2);
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
