//! The last blocks that only a part of was wanted. Small reads come in groups: one block has many
//! of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::header::{BLOCK, ObjectId};

/// Blocks that are kept: 4 MiB of them.
const MOST: usize = 64;

/// A block of a version of an object.
type Key = ([u64; 2], u64);

/// The last blocks, over all objects of a cache.
#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<VecDeque<(Key, Arc<Vec<u8>>)>>);

impl Recent {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Key, Arc<Vec<u8>>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: Key) -> Option<Arc<Vec<u8>>> {
        self.lock().iter().find(|(other, _)| *other == key).map(|(_, bytes)| bytes.clone())
    }

    pub(super) fn put(&self, id: &ObjectId, block: u64, bytes: Vec<u8>) {
        let key = (id.hash, block);
        let mut blocks = self.lock();
        blocks.retain(|(other, _)| *other != key);
        blocks.truncate(MOST - 1);
        blocks.push_front((key, Arc::new(bytes)));
    }

    /// Fills the ends of `buf`, which is to hold the bytes from `offset` on, as far as they are in
    /// blocks that are kept. Returns the rest.
    pub(super) fn fill<'a>(
        &self,
        id: &ObjectId,
        offset: u64,
        buf: &'a mut [u8],
    ) -> (u64, &'a mut [u8]) {
        let skip = (offset % BLOCK) as usize;
        let (offset, buf) = match self.get((id.hash, offset / BLOCK)) {
            Some(block) => {
                let len = block.len().saturating_sub(skip).min(buf.len());
                let (known, rest) = buf.split_at_mut(len);
                known.copy_from_slice(&block[skip..skip + len]);
                (offset + len as u64, rest)
            }
            None => (offset, buf),
        };
        let end = offset + buf.len() as u64;
        let start = (end / BLOCK * BLOCK).max(offset);
        match self.get((id.hash, end / BLOCK)).filter(|_| start < end) {
            Some(block) => {
                let (rest, known) = buf.split_at_mut((start - offset) as usize);
                let skip = (start % BLOCK) as usize;
                known.copy_from_slice(&block[skip..skip + known.len()]);
                (offset, rest)
            }
            None => (offset, buf),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_read_are_filled() {
        let recent = Recent::default();
        let id = ObjectId::new("u", "a", "1", 3 * BLOCK + 10);
        let bytes: Vec<u8> = (0..id.size).map(|at| (at % 251) as u8).collect();
        let block = |at: u64| bytes[(at * BLOCK) as usize..].iter().take(BLOCK as usize);
        for at in [1, 3] {
            recent.put(&id, at, block(at).copied().collect());
        }
        let rest = |from: u64, to: u64| {
            let mut buf = vec![0; (to - from) as usize];
            let (offset, rest) = recent.fill(&id, from, &mut buf);
            let rest = offset..offset + rest.len() as u64;
            for at in (from..to).filter(|at| !rest.contains(at)) {
                assert_eq!(buf[(at - from) as usize], bytes[at as usize]);
            }
            rest
        };
        assert!(rest(BLOCK + 5, BLOCK + 9).is_empty());
        assert!(rest(BLOCK, 2 * BLOCK).is_empty());
        assert_eq!(rest(BLOCK - 5, BLOCK + 5), BLOCK - 5..BLOCK);
        assert_eq!(rest(BLOCK + 5, 3 * BLOCK + 5), 2 * BLOCK..3 * BLOCK);
        assert_eq!(rest(BLOCK + 5, 2 * BLOCK + 5), 2 * BLOCK..2 * BLOCK + 5);
        assert_eq!(rest(5, BLOCK), 5..BLOCK);
        assert!(rest(3 * BLOCK + 2, 3 * BLOCK + 10).is_empty());
        let other = ObjectId::new("u", "a", "2", id.size);
        assert_eq!(recent.fill(&other, BLOCK, &mut [0; 9]).1.len(), 9);
        (4..100).for_each(|at| recent.put(&id, at, vec![0; 1]));
        assert_eq!(rest(BLOCK, BLOCK + 5), BLOCK..BLOCK + 5);
    }
}
