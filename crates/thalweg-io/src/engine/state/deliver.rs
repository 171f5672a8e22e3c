//! The consumer's side: delivery of batches and their return to the pool.

use std::time::Instant;

use super::{Delivery, RunState, Shared};
use crate::engine::Decoder;
use crate::error::Result;

impl<D: Decoder> Shared<D> {
    pub(in crate::engine) fn next_batch(&self) -> Option<Result<D::Batch>> {
        let mut state = self.lock();
        self.heed_cancel(&mut state);
        loop {
            if let Some(part) = self.part(&mut state) {
                if part.is_err() {
                    self.stop_locked(&mut state);
                }
                return Some(part);
            }
            if state.stopped || (state.drained() && state.outbox.is_empty()) {
                let error = state.failed.take()?;
                // Without this, a caller who goes on after the error would wait forever for the
                // request that failed.
                self.stop_locked(&mut state);
                return Some(Err(error));
            }
            let waiting = Instant::now();
            state = self.wait(&self.can_deliver, state);
            if self.shape.delivery != Delivery::Worker {
                state.clocks.decode.exposed += waiting.elapsed();
            }
        }
    }

    fn part(&self, state: &mut RunState<D::Batch>) -> Option<Result<D::Batch>> {
        if self.shape.delivery == Delivery::AsTheyCome
            && let Some(part) = state.outbox.iter_mut().find_map(|slot| slot.parts.pop_front())
        {
            self.can_fill.notify_all();
            return Some(part);
        }
        while let Some(front) = state.outbox.front_mut() {
            if let Some(part) = front.parts.pop_front() {
                // The first undelivered group may now make another batch.
                self.can_fill.notify_all();
                return Some(part);
            }
            if !front.complete {
                return None;
            }
            state.outbox.pop_front();
            state.head += 1;
            // The next group is now the first undelivered one: its worker may have waited to make a
            // batch.
            self.can_fill.notify_all();
        }
        None
    }

    /// Pools `batch`, unless the pool is full. If `counted`, the number of batches outside the pool
    /// falls by one.
    pub(in crate::engine) fn recycle(&self, batch: Option<D::Batch>, counted: bool) {
        let mut state = self.lock();
        state.batches_out -= usize::from(counted);
        let room = state.batches.len() < self.shape.batches.max(1) && !state.stopped;
        let surplus = match batch {
            Some(batch) if room => {
                state.batches.push(batch);
                None
            }
            other => other,
        };
        drop(state);
        // Freed outside of the lock, because freeing memory takes a while.
        drop(surplus);
        self.can_fill.notify_all();
    }
}
