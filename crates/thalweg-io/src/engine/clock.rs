//! Where the time goes: busy and exposed time of each stage, and bytes through it.

use std::time::Duration;

/// One stage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stage {
    /// Time spent working, summed over the stage's workers.
    pub busy: Duration,
    /// Time that those who need its results waited for them, averaged over those who waited.
    pub exposed: Duration,
    /// Bytes that came out of it.
    pub bytes: u64,
}

/// The clocks of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Wall time from the start of the run to the end of its last batch.
    pub wall: Duration,
    /// Storage to buffers. Exposed: decode workers had nothing to decode.
    pub fetch: Stage,
    /// Buffers to values. Exposed: the consumer waited for a batch. Bytes are decoded bytes.
    pub decode: Stage,
    /// Batches to the consumer. Exposed: decode workers had no batch to decode into.
    pub deliver: Stage,
    /// Requests made of the store.
    pub requests: u64,
    /// Most requests that the run found worth keeping in flight; 0 if it never had to wait for one.
    pub max_depth: usize,
    /// Most bytes of block buffers that were alive at once.
    pub peak_buffers: u64,
    /// Most bytes of extents too long for a pooled buffer that were alive at once: the part over
    /// the budget.
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
    /// The clocks of two runs, one after the other.
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
