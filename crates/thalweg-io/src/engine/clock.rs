//! Where the time goes: the busy time, exposed time and bytes of each stage.

use std::time::Duration;

/// One stage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stage {
    /// Time spent working, summed over the stage's workers.
    pub busy: Duration,
    /// Time that the threads which need its results waited for them: the mean over these threads.
    pub exposed: Duration,
    /// Bytes that came out of it.
    pub bytes: u64,
}

/// The clocks of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Wall time from the start of the run to the end of its last batch.
    pub wall: Duration,
    /// From storage to buffers. Exposed: decode workers had nothing to decode.
    pub fetch: Stage,
    /// From buffers to values. Exposed: the consumer waited for a batch. Bytes: as the decoder
    /// counts them.
    pub decode: Stage,
    /// From batches to the consumer. Exposed: decode workers had no batch to decode into.
    pub deliver: Stage,
    /// Requests to the store.
    pub requests: u64,
    /// The largest target for requests in flight that the run chose; 0 if no request was answered.
    pub max_depth: usize,
    /// The most bytes of pooled block buffers that were alive at once.
    pub peak_buffers: u64,
    /// The most bytes, alive at once, of extents that are too long for a pooled buffer. These bytes
    /// come on top of the budget.
    pub peak_oversize: u64,
}

impl Stage {
    fn then(self, later: Self) -> Self {
        Self {
            busy: self.busy + later.busy,
            exposed: self.exposed + later.exposed,
            bytes: self.bytes + later.bytes,
        }
    }
}

impl Clocks {
    /// The combined clocks of two runs, the second after the first.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        Self {
            wall: self.wall + later.wall,
            fetch: self.fetch.then(later.fetch),
            decode: self.decode.then(later.decode),
            deliver: self.deliver.then(later.deliver),
            requests: self.requests + later.requests,
            max_depth: self.max_depth.max(later.max_depth),
            peak_buffers: self.peak_buffers.max(later.peak_buffers),
            peak_oversize: self.peak_oversize.max(later.peak_oversize),
        }
    }
}
