//! Memory that is used again.

use std::collections::BTreeMap;

/// Buffers that are not in use, for later ones of about the same length.
#[derive(Debug, Default)]
pub(super) struct SpareMemory {
    /// By their capacity and the order in which they were given.
    buffers: BTreeMap<(usize, u64), Vec<u8>>,
    bytes: usize,
    /// The number of buffers that were ever given.
    given: u64,
    /// That number before the last call of [`SpareMemory::give`].
    given_before_last: u64,
}

impl SpareMemory {
    /// The shortest buffer with room for `len` bytes. Longer ones than twice that are left for
    /// those that need them.
    pub(super) fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let (&key, _) = self.buffers.range((len, 0)..=(2 * len, u64::MAX)).next()?;
        let buffer = self.buffers.remove(&key)?;
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// Takes buffers back. If there are many more than these, the oldest are freed: nothing of
    /// their length is needed any more.
    pub(super) fn give(&mut self, buffers: Vec<Vec<u8>>) {
        let (before, mut bytes) = (self.given, 0);
        for buffer in buffers {
            bytes += buffer.capacity();
            self.buffers.insert((buffer.capacity(), self.given), buffer);
            self.given += 1;
        }
        self.bytes += bytes;
        if self.bytes > 2 * bytes {
            self.buffers.retain(|(_, number), _| *number >= self.given_before_last);
            self.bytes = self.buffers.keys().map(|(capacity, _)| capacity).sum();
        }
        self.given_before_last = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_for_their_length() {
        let mut spare = SpareMemory::default();
        spare.give([1000, 10, 500].map(Vec::with_capacity).into());
        assert_eq!(spare.take(400).map(|buffer| buffer.capacity()), Some(500));
        assert_eq!(spare.take(400), None, "the one of 1000 bytes is too long");
        assert_eq!(spare.take(501).map(|buffer| buffer.capacity()), Some(1000));
        assert_eq!(spare.take(11), None, "the one of 10 bytes is too short");
        assert_eq!(spare.bytes, 10);
    }

    #[test]
    fn little_more_is_kept_than_was_used_last() {
        let mut spare = SpareMemory::default();
        spare.give((0..10).map(|_| Vec::with_capacity(1 << 20)).collect());
        for _ in 0..3 {
            let buffers = (0..10).map(|_| spare.take(1000).unwrap_or(vec![0; 1000])).collect();
            spare.give(buffers);
        }
        assert_eq!(spare.bytes, 10_000);
        assert_eq!(spare.buffers.values().map(Vec::capacity).sum::<usize>(), spare.bytes);
    }
}
