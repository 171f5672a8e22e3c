//! The memory of the whole mount: one bound for everything that is fetched and not yet read.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_io::prefer_huge_pages;

/// One piece fetched ahead may take this part of the memory that is free, so that many files that
/// are read at the same time all get some.
const SHARE_AHEAD: u64 = 4;

/// Buffers that are kept for the next pieces take this part of the limit at most.
const SHARE_KEPT: u64 = 8;
/// Larger buffers are worth huge pages.
const LARGE: usize = 4 << 20;

/// A number of bytes that may be in use.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    /// Buffers that nobody uses. A new one costs as much as receiving its bytes: the system has to
    /// zero its pages.
    kept: Vec<Vec<u8>>,
    kept_bytes: u64,
}

/// Bytes in use. They are free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default(), freed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in use, and in buffers that are kept.
    pub(crate) fn used(&self) -> u64 {
        let state = self.lock();
        state.used + state.kept_bytes
    }

    fn take(self: &Arc<Self>, bytes: u64, is_allowed: impl Fn(u64) -> bool) -> Option<Charge> {
        let mut state = self.lock();
        if !is_allowed(state.used) {
            return None;
        }
        state.used += bytes;
        while state.used + state.kept_bytes > self.limit
            && let Some(buffer) = state.kept.pop()
        {
            state.kept_bytes -= buffer.len() as u64;
        }
        Some(Charge { memory: self.clone(), bytes })
    }

    /// Takes bytes for a read that waits for them, if they are free. If nothing is in use, it gets
    /// more than the limit.
    pub(crate) fn take_now(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        self.take(bytes, |used| used == 0 || used + bytes <= self.limit)
    }

    /// Takes bytes for what may be read later.
    pub(crate) fn take_ahead(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        self.take(bytes, |used| bytes <= self.limit.saturating_sub(used) / SHARE_AHEAD)
    }

    /// Waits until something is freed, or until some time has passed.
    pub(crate) fn wait(&self, longest: Duration) {
        let state = self.lock();
        drop(self.freed.wait_timeout(state, longest));
    }
}

impl Charge {
    /// A buffer for the bytes.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        let mut state = self.memory.lock();
        let kept = state.kept.iter().rposition(|buffer| buffer.len() as u64 == self.bytes);
        if let Some(at) = kept {
            state.kept_bytes -= self.bytes;
            return state.kept.swap_remove(at);
        }
        drop(state);
        let mut buffer = vec![0; self.bytes as usize];
        if buffer.len() >= LARGE {
            prefer_huge_pages(&mut buffer);
        }
        buffer
    }

    /// Frees the bytes, and keeps their buffer for others.
    pub(crate) fn keep(&self, buffer: Vec<u8>) {
        let mut state = self.memory.lock();
        let kept_bytes = state.kept_bytes + buffer.len() as u64;
        let limit = self.memory.limit;
        // Its own bytes will be free.
        if kept_bytes <= limit / SHARE_KEPT && state.used - self.bytes + kept_bytes <= limit {
            state.kept.push(buffer);
            state.kept_bytes = kept_bytes;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.lock().used -= self.bytes;
        self.memory.freed.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_wait_get_all_that_is_free() {
        let memory = Memory::new(100);
        let ahead = memory.take_ahead(25).unwrap();
        assert!(memory.take_ahead(25).is_none(), "a quarter of 75 is less");
        let now = memory.take_now(75).unwrap();
        assert!(memory.take_now(1).is_none());
        drop((ahead, now));
        assert_eq!(memory.used(), 0);
        let large = memory.take_now(1000).unwrap();
        assert!(memory.take_now(1).is_none());
        drop(large);
        assert!(memory.take_now(1).is_some());
    }

    #[test]
    fn buffers_are_kept_while_there_is_room() {
        let memory = Memory::new(100);
        let charge = memory.take_now(10).unwrap();
        charge.keep(vec![7; 10]);
        drop(charge);
        assert_eq!(memory.used(), 10, "a tenth may be kept");
        let charge = memory.take_now(10).unwrap();
        assert_eq!(charge.buffer(), [7; 10]);
        charge.keep(vec![8; 10]);
        let all = memory.take_now(90).unwrap();
        assert_eq!(memory.used(), 100);
        charge.keep(vec![9; 10]);
        drop((charge, all));
        assert_eq!(memory.used(), 10, "its own bytes became free");
    }
}
