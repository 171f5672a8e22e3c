//! The header of a frame, and the tiling of an array by chunks and blocks.

use crate::Fault;
use crate::blosc::short;

/// The magic number, after the length of msgpack's array.
const MAGIC: &[u8] = b"\xa8b2frame\0";
/// Bytes of the fixed part of the header, before the metalayers.
const FIXED: usize = 87;
/// The version of the format and the width of offsets, in the general flags.
const OFFSETS_OF_64_BITS: u8 = 0x10;
const OFFSETS_MASK: u8 = 0x30;
/// The most dimensions of an array (`B2ND_MAX_DIM`).
const MOST_DIMENSIONS: usize = 16;

/// A frame, whose header is parsed.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) bytes: &'a [u8],
    /// Bytes of the header. The chunks follow.
    pub(super) header: usize,
    /// Stored bytes of all chunks. The index of the chunks follows.
    stored: usize,
    /// Bytes of the values.
    pub(super) len: usize,
    /// Decoded bytes of a chunk, except the last one.
    pub(super) chunk: usize,
    /// Bytes of an element.
    pub(super) size: usize,
    pub(super) tiling: Option<Tiling>,
}

impl<'a> Frame<'a> {
    /// Parses the header of a frame whose values take at most `most` bytes.
    pub(super) fn parse(bytes: &'a [u8], most: usize) -> Result<Self, Fault> {
        if bytes.get(1..1 + MAGIC.len()) != Some(MAGIC) {
            return Err(Fault::new(0, "other bytes", "a contiguous frame of Blosc 2"));
        }
        if bytes.len() < FIXED {
            return Err(short(0, bytes.len(), FIXED));
        }
        let header = number(bytes, 11, 4)?;
        let stored = number(bytes, 39, 8)?;
        let (flags, kind) = (bytes[25], bytes[26]);
        if flags & OFFSETS_MASK != OFFSETS_OF_64_BITS || kind & 0x0f != 0 {
            return Err(Fault::new(
                25,
                format!("a frame with the flags {flags:#x} and {kind:#x}"),
                "a contiguous one with offsets of 64 bits",
            ));
        }
        if header < FIXED || header.saturating_add(stored) > bytes.len() {
            return Err(short(11, bytes.len(), header.saturating_add(stored).max(FIXED)));
        }
        let size = number(bytes, 48, 4)?;
        let mut len = number(bytes, 30, 8)?;
        let chunk = number(bytes, 58, 4)?;
        let tiling = match metalayer(bytes, header)? {
            None => None,
            Some(at) => Some(Tiling::parse(bytes, at, size)?),
        };
        if let Some(tiling) = &tiling {
            len = tiling
                .shape
                .iter()
                .try_fold(size, |all, &one| all.checked_mul(one))
                .unwrap_or(usize::MAX);
        }
        if len > most {
            return Err(Fault::new(30, format!("{len} bytes"), format!("at most {most}")));
        }
        if len > 0 && (chunk == 0 || size == 0) {
            return Err(Fault::new(
                48,
                format!("elements of {size} bytes, chunks of {chunk}"),
                "more than none",
            ));
        }
        Ok(Self { bytes, header, stored, len, chunk, size, tiling })
    }

    /// The offset of the index of the chunks.
    pub(super) fn index_at(&self) -> usize {
        self.header + self.stored
    }

    /// The number of chunks.
    pub(super) fn chunks(&self) -> usize {
        match &self.tiling {
            Some(tiling) => tiling.chunks.iter().product(),
            None => self.len.div_ceil(self.chunk),
        }
    }
}

/// A big-endian number of `bytes` bytes. One that does not fit is as great as possible.
fn number(from: &[u8], at: usize, bytes: usize) -> Result<usize, Fault> {
    let found = at.checked_add(bytes).and_then(|end| from.get(at..end));
    let found = found.ok_or_else(|| short(at, from.len().saturating_sub(at), bytes))?;
    let value = found.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
    Ok(usize::try_from(value).unwrap_or(usize::MAX))
}

/// The offset of the content of the metalayer `b2nd`, if the frame has one.
fn metalayer(bytes: &[u8], header: usize) -> Result<Option<usize>, Fault> {
    let layers = &bytes[..header];
    // An array of 3: the size of the map, the map of names and offsets, the contents.
    let mut at = FIXED + 1 + 3 + 1;
    let count = number(layers, at, 2)?;
    at += 2;
    for _ in 0..count {
        // A string of at most 31 bytes, then a number of 32 bits.
        let name_len = number(layers, at, 1)? & 0x1f;
        let name = layers.get(at + 1..at + 1 + name_len);
        let name = name.ok_or_else(|| short(at, layers.len().saturating_sub(at), name_len))?;
        at += 1 + name_len;
        let content = number(layers, at + 1, 4)?;
        at += 5;
        if name == b"b2nd" {
            // Binary content with a length of 32 bits.
            return Ok(Some(content.saturating_add(5)));
        }
    }
    Ok(None)
}

/// How an array is divided into chunks, and these into blocks, all in C order.
#[derive(Debug)]
pub(super) struct Tiling {
    shape: Vec<usize>,
    chunk: Vec<usize>,
    block: Vec<usize>,
    /// Bytes of an element.
    size: usize,
    /// The number of chunks along each dimension.
    pub(super) chunks: Vec<usize>,
    /// The number of blocks of a chunk along each dimension.
    blocks: Vec<usize>,
    /// Bytes of a chunk with all of its blocks.
    pub(super) chunk_bytes: usize,
    /// Bytes of a block.
    pub(super) block_bytes: usize,
}

impl Tiling {
    /// Parses the content of the metalayer `b2nd`, which begins at `at`.
    fn parse(bytes: &[u8], at: usize, size: usize) -> Result<Self, Fault> {
        // An array; the version; the number of dimensions.
        let dimensions = number(bytes, at.saturating_add(2), 1)?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            let found = format!("{dimensions} dimensions");
            return Err(Fault::new(at, found, format!("1 to {MOST_DIMENSIONS}")));
        }
        let mut at = at + 3;
        // An array of marked numbers. Arrays of 16 elements have a longer mark.
        let mut list = |width: usize| -> Result<Vec<usize>, Fault> {
            at += if dimensions < 16 { 1 } else { 3 };
            (0..dimensions)
                .map(|_| {
                    let value = number(bytes, at + 1, width);
                    at += 1 + width;
                    value
                })
                .collect()
        };
        let shape = list(8)?;
        let chunk = list(4)?;
        let block = list(4)?;
        let fits = |(&inner, &outer): (&usize, &usize)| (1..=outer).contains(&inner);
        if !chunk.iter().zip(&shape).all(fits) || !block.iter().zip(&chunk).all(fits) {
            return Err(Fault::new(
                at,
                format!("blocks of {block:?} in chunks of {chunk:?} in an array of {shape:?}"),
                "blocks inside chunks inside the array",
            ));
        }
        let count = |outer: &[usize], inner: &[usize]| -> Vec<usize> {
            outer.iter().zip(inner).map(|(outer, inner)| outer.div_ceil(*inner)).collect()
        };
        let chunks = count(&shape, &chunk);
        let blocks = count(&chunk, &block);
        let product =
            |numbers: &[usize]| numbers.iter().try_fold(1, |all: usize, &one| all.checked_mul(one));
        let block_bytes = product(&block).and_then(|elements| elements.checked_mul(size));
        let chunk_bytes =
            block_bytes.zip(product(&blocks)).and_then(|(bytes, blocks)| bytes.checked_mul(blocks));
        // A chunk has at most 2 GiB.
        let (Some(block_bytes), Some(chunk_bytes), Some(_)) = (
            block_bytes.filter(|&bytes| bytes > 0),
            chunk_bytes.filter(|&bytes| i32::try_from(bytes).is_ok()),
            product(&chunks),
        ) else {
            let found = format!("chunks of {chunk:?} elements of {size} bytes");
            return Err(Fault::new(at, found, "at most 2 GiB"));
        };
        Ok(Self { shape, chunk, block, size, chunks, blocks, chunk_bytes, block_bytes })
    }

    /// Copies the block at byte `at` of a chunk to its place among the values of the array. What
    /// lies outside of the chunk or the array is padding.
    pub(super) fn put(&self, chunk: usize, at: usize, bytes: &[u8], out: &mut [u8]) {
        let in_chunk = coordinates(at / self.block_bytes, &self.blocks);
        let in_array = coordinates(chunk, &self.chunks);
        let dimensions = self.shape.len();
        // The first element of the block, and how many there are along each dimension.
        let mut start = vec![0; dimensions];
        let mut extent = vec![0; dimensions];
        for d in 0..dimensions {
            let inside = in_chunk[d] * self.block[d];
            start[d] = in_array[d] * self.chunk[d] + inside;
            extent[d] = self.block[d]
                .min(self.chunk[d] - inside)
                .min(self.shape[d].saturating_sub(start[d]));
        }
        let Some((&run, outer)) = extent.split_last() else { return };
        if extent.contains(&0) {
            return;
        }
        // The row that is copied: its first element in the block.
        let mut row = vec![0; dimensions];
        loop {
            let (mut from, mut to) = (0, 0);
            for d in 0..dimensions {
                from = from * self.block[d] + row[d];
                to = to * self.shape[d] + start[d] + row[d];
            }
            let (from, to, len) = (from * self.size, to * self.size, run * self.size);
            out[to..to + len].copy_from_slice(&bytes[from..from + len]);
            let next = (0..outer.len()).rev().find(|&d| {
                row[d] = (row[d] + 1) % outer[d];
                row[d] > 0
            });
            if next.is_none() {
                return;
            }
        }
    }
}

/// The coordinates of the element with this number in an array of this shape, in C order.
fn coordinates(mut number: usize, shape: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&count| {
            let here = number % count;
            number /= count;
            here
        })
        .collect();
    found.reverse();
    found
}
