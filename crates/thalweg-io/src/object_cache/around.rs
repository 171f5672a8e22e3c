//! Memory for the whole blocks around a read: the caller's, but for the two at its edges.

use std::ops::Range;

use super::header::BLOCK;

/// The bytes of a block of an object.
pub(super) fn range(size: u64, block: u64) -> Range<u64> {
    block * BLOCK..((block + 1) * BLOCK).min(size)
}

/// Room for a block of an object.
fn room(size: u64, block: u64) -> Vec<u8> {
    let Range { start, end } = range(size, block);
    vec![0; (end - start) as usize]
}

/// The whole blocks around a read of a few bytes or of many.
#[derive(Debug)]
pub(super) struct Around<'a> {
    blocks: Range<u64>,
    /// The blocks that lie in the caller's memory.
    inner: Range<u64>,
    /// Where the read begins.
    offset: u64,
    /// The block before the inner ones, if the read begins inside of it.
    head: Vec<u8>,
    /// The block after the inner ones, if the read ends inside of it.
    tail: Vec<u8>,
    before: &'a mut [u8],
    middle: &'a mut [u8],
    after: &'a mut [u8],
}

impl<'a> Around<'a> {
    /// The blocks around a read of some bytes of an object of `size` bytes, inside of it.
    pub(super) fn new(size: u64, offset: u64, buf: &'a mut [u8]) -> Self {
        let end = offset + buf.len() as u64;
        let blocks = offset / BLOCK..end.div_ceil(BLOCK);
        let is_whole = |block| {
            let range = range(size, block);
            offset <= range.start && range.end <= end
        };
        let mut inner = blocks.clone();
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let mut middle = 0..buf.len();
        if !is_whole(inner.start) {
            head = room(size, inner.start);
            middle.start = (range(size, inner.start).end.min(end) - offset) as usize;
            inner.start += 1;
        }
        if inner.start < inner.end && !is_whole(inner.end - 1) {
            inner.end -= 1;
            tail = room(size, inner.end);
            middle.end = (range(size, inner.end).start - offset) as usize;
        }
        let (rest, after) = buf.split_at_mut(middle.end);
        let (before, middle) = rest.split_at_mut(middle.start);
        Self { blocks, inner, offset, head, tail, before, middle, after }
    }

    /// The numbers of its blocks.
    pub(super) fn blocks(&self) -> Range<u64> {
        self.blocks.clone()
    }

    /// The memory of some of its blocks: up to three pieces, each with the number of its first
    /// block.
    pub(super) fn pieces(&mut self, of: Range<u64>) -> impl Iterator<Item = (u64, &mut [u8])> {
        let inner = of.start.max(self.inner.start)..of.end.min(self.inner.end);
        let byte = |block: u64| ((block - self.inner.start) * BLOCK) as usize;
        let middle = if inner.start < inner.end {
            let end = byte(inner.end).min(self.middle.len());
            &mut self.middle[byte(inner.start)..end]
        } else {
            &mut []
        };
        let first = self.blocks.start;
        let head = if of.contains(&first) { &mut self.head[..] } else { &mut [] };
        let last = self.inner.end;
        let tail = if of.contains(&last) { &mut self.tail[..] } else { &mut [] };
        let pieces = [(first, head), (inner.start, middle), (last, tail)];
        pieces.into_iter().filter(|(_, memory)| !memory.is_empty())
    }

    /// Gives the caller the bytes at the edges. Returns the blocks there.
    pub(super) fn finish(self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        if !self.head.is_empty() {
            let skip = (self.offset - self.blocks.start * BLOCK) as usize;
            self.before.copy_from_slice(&self.head[skip..skip + self.before.len()]);
        }
        if !self.tail.is_empty() {
            self.after.copy_from_slice(&self.tail[..self.after.len()]);
        }
        let edges = [(self.blocks.start, self.head), (self.inner.end, self.tail)];
        edges.into_iter().filter(|(_, memory)| !memory.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_blocks_around_a_read() {
        let size = 3 * BLOCK + 100;
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let edges = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK, 3 * BLOCK + 1, size];
        for from in edges {
            for to in edges.into_iter().filter(|to| *to > from) {
                let mut buf = vec![0; (to - from) as usize];
                let mut around = Around::new(size, from, &mut buf);
                let blocks = around.blocks();
                assert_eq!(blocks, from / BLOCK..to.div_ceil(BLOCK));
                // Each block by itself, then all that were not yet filled.
                let mut next = blocks.start;
                for (first, memory) in around.pieces(blocks.clone()) {
                    assert_eq!(first, next, "{from}..{to}");
                    let start = (first * BLOCK) as usize;
                    memory.copy_from_slice(&bytes[start..start + memory.len()]);
                    next += (memory.len() as u64).div_ceil(BLOCK);
                }
                assert_eq!(next, blocks.end, "{from}..{to}");
                for block in blocks {
                    let mut pieces = around.pieces(block..block + 1);
                    let len = pieces.next().map(|(first, memory)| (first, memory.len() as u64));
                    let range = range(size, block);
                    assert_eq!(len, Some((block, range.end - range.start)));
                    assert!(pieces.next().is_none());
                }
                for (block, memory) in around.finish() {
                    assert!(memory == bytes[(block * BLOCK) as usize..][..memory.len()]);
                }
                assert!(buf == bytes[from as usize..to as usize], "{from}..{to}");
            }
        }
    }
}
