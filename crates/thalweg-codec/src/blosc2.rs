//! Blosc 2, as HDF5's filter 32026 stores it: contiguous frames of chunks
//! (<https://github.com/Blosc/c-blosc2>, README_CFRAME_FORMAT.rst and README_CHUNK_FORMAT.rst).
//!
//! A chunk is divided into blocks, each filtered and compressed separately. In a frame with the
//! metalayer `b2nd` (README_B2ND_METALAYER.rst), the values are an array: its chunks are parts of
//! the array, and their blocks are parts of the chunk, padded to full size at the upper edges.

use super::blosc::{BITSHUFFLED, PLAIN, SHUFFLED, WHOLE_BLOCKS};
use super::blosc::{PartDecompressor, PartFormat, short, u32_at};
use super::{bitshuffle, shuffle};
use crate::Fault;

mod frame;

use frame::Frame;

/// Bytes of a chunk's header.
const HEADER: usize = 32;
/// The versions of the format of chunks that this decoder reads.
const VERSIONS: std::ops::RangeInclusive<u8> = 3..=5;

/// The flags of a chunk with the header of Blosc 2: shuffled in both ways.
const EXTENDED: u8 = SHUFFLED | BITSHUFFLED;

/// The filters of a block.
const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;
/// It only clears bits, so that nothing is to be undone.
const TRUNCATE: u8 = 4;
const FILTERS: usize = 6;

/// Chunks whose elements are all the same.
const ZEROS: u8 = 1;
const NAN: u8 = 2;
const VALUE: u8 = 3;
const UNINITIALISED: u8 = 4;

/// Bytes of the offset of a chunk in the index of a frame.
const OFFSET: usize = 8;
/// The index of a frame may have so many bytes, however few values the frame has.
const LEAST_INDEX: usize = 4096;

/// Takes the offset in its chunk and the decoded bytes of each block.
type Blocks<'a> = &'a mut dyn FnMut(usize, &[u8]);

/// Decodes frames for one thread.
#[derive(Debug, Default)]
pub struct Blosc2Decompressor {
    parts: PartDecompressor,
    /// The block that is being decoded.
    block: Vec<u8>,
    /// The block after one more filter.
    filtered: Vec<u8>,
    /// The first block of the chunk. The filter delta subtracts it from the others.
    first: Vec<u8>,
}

/// A chunk, whose header is parsed.
#[derive(Debug, Clone, Copy)]
struct Chunk<'a> {
    coded: &'a [u8],
    flags: u8,
    /// Bytes of an element.
    size: usize,
    /// Decoded bytes.
    len: usize,
    /// Decoded bytes of a block.
    block: usize,
    /// The code and the parameter of each filter, in the order of application.
    filters: [(u8, u8); FILTERS],
    /// What all elements are; 0 if they are not the same.
    special: u8,
}

impl<'a> Chunk<'a> {
    /// The chunk at the start of `bytes`, which must decode to `len` bytes.
    fn parse(bytes: &'a [u8], len: usize) -> Result<Self, Fault> {
        let Some(header) = bytes.first_chunk::<HEADER>() else {
            return Err(short(0, bytes.len(), HEADER));
        };
        let [version, _, flags, size, ..] = *header;
        if !VERSIONS.contains(&version) {
            return Err(Fault::new(0, format!("version {version} of Blosc's chunks"), "3 to 5"));
        }
        if flags & EXTENDED != EXTENDED {
            return Err(Fault::new(2, format!("the flags {flags:#x}"), "a header of Blosc 2"));
        }
        let found = u32_at(header, 4)?;
        if found != len {
            return Err(Fault::new(4, format!("a chunk of {found} bytes"), format!("{len}")));
        }
        let block = u32_at(header, 8)?;
        if block == 0 || size == 0 {
            return Err(Fault::new(
                3,
                format!("blocks of {block} bytes, elements of {size}"),
                "more than none",
            ));
        }
        let stored = u32_at(header, 12)?;
        let coded = bytes.get(..stored).filter(|coded| coded.len() >= HEADER);
        let coded = coded.ok_or_else(|| short(12, bytes.len(), stored.max(HEADER)))?;
        let others = (header[HEADER - 2], header[HEADER - 1] & 0x8f);
        if others != (0, 0) {
            return Err(Fault::new(
                HEADER - 2,
                format!("the flags {others:x?}"),
                "a chunk without dictionary, blocks of any length or parts elsewhere",
            ));
        }
        let filters = std::array::from_fn(|slot| (header[16 + slot], header[24 + slot]));
        let special = header[HEADER - 1] >> 4;
        let (size, block) = (usize::from(size), block.min(len.max(1)));
        Ok(Self { coded, flags, size, len, block, filters, special })
    }

    /// The value of all elements, if they are the same.
    fn value(&self) -> Result<Option<&'a [u8]>, Fault> {
        let value = match self.special {
            0 => return Ok(None),
            ZEROS | UNINITIALISED => &[0],
            NAN => nan(self.size)?,
            VALUE => &self.coded[HEADER..],
            other => {
                let found = format!("the special value {other} of Blosc");
                return Err(Fault::new(HEADER - 1, found, "1 to 4"));
            }
        };
        if value.is_empty() || !self.len.is_multiple_of(value.len()) {
            return Err(Fault::new(
                HEADER,
                format!("a value of {} bytes", value.len()),
                format!("one that fills {}", self.len),
            ));
        }
        Ok(Some(value))
    }
}

/// The number that is none, with elements of this size.
fn nan(size: usize) -> Result<&'static [u8], Fault> {
    match size {
        4 => Ok(&[0, 0, 0xc0, 0x7f]),
        8 => Ok(&[0, 0, 0, 0, 0, 0, 0xf8, 0x7f]),
        _ => Err(Fault::new(3, format!("a NaN of {size} bytes"), "one of 4 or 8")),
    }
}

impl Blosc2Decompressor {
    /// Replaces `out` by the values of a frame, at most `most` bytes.
    ///
    /// # Errors
    /// The defect of the frame, or a feature that this decoder does not have: dictionaries, and
    /// compressors and filters other than the built-in ones.
    pub fn decompress(
        &mut self,
        coded: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        out.clear();
        let frame = Frame::parse(coded, most)?;
        if frame.len == 0 {
            return Ok(());
        }
        out.resize(frame.len, 0);
        let index = self.index(&frame, most)?;
        for (number, offset) in index.chunks_exact(OFFSET).enumerate() {
            let chunk_len = match &frame.tiling {
                Some(tiling) => tiling.chunk_bytes,
                None => frame.chunk.min(frame.len - number * frame.chunk),
            };
            let mut put = |at: usize, bytes: &[u8]| match &frame.tiling {
                Some(tiling) => tiling.put(number, at, bytes, out),
                None => {
                    let at = number * frame.chunk + at;
                    out[at..at + bytes.len()].copy_from_slice(bytes);
                }
            };
            let offset = offset.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
            let block = frame.tiling.as_ref().map(|tiling| tiling.block_bytes);
            // The chunk is not stored: all its elements have a value that the last byte names.
            if offset >> 63 == 1 {
                match (offset >> 56) as u8 & 0x7f {
                    ZEROS | UNINITIALISED => {}
                    NAN => self.repeat(
                        nan(frame.size)?,
                        block.unwrap_or(chunk_len),
                        chunk_len,
                        &mut put,
                    ),
                    other => {
                        let found = format!("the special value {other} of Blosc");
                        return Err(Fault::new(frame.index_at(), found, "1, 2 or 4"));
                    }
                }
                continue;
            }
            let at = usize::try_from(offset).ok().and_then(|at| at.checked_add(frame.header));
            let at = at.filter(|&at| at <= coded.len());
            let at = at.ok_or_else(|| short(frame.index_at(), coded.len(), frame.header))?;
            self.chunk(&coded[at..], chunk_len, block, &mut put)
                .map_err(|fault| fault.shifted(at))?;
        }
        Ok(())
    }

    /// The offsets of the chunks, [`OFFSET`] bytes each, little-endian.
    fn index(&mut self, frame: &Frame<'_>, most: usize) -> Result<Vec<u8>, Fault> {
        let len = frame.chunks().saturating_mul(OFFSET);
        if len > most.max(LEAST_INDEX) {
            let found = format!("{} chunks in a frame", frame.chunks());
            return Err(Fault::new(frame.index_at(), found, "fewer"));
        }
        let at = frame.index_at();
        let coded = frame.bytes.get(at..).ok_or_else(|| short(at, frame.bytes.len(), at))?;
        let mut index = vec![0; len];
        let mut put = |at: usize, bytes: &[u8]| index[at..at + bytes.len()].copy_from_slice(bytes);
        self.chunk(coded, len, None, &mut put).map_err(|fault| fault.shifted(at))?;
        Ok(index)
    }

    /// Passes `value`, repeated, to `put` as the blocks of a chunk.
    fn repeat(&mut self, value: &[u8], block: usize, len: usize, put: Blocks<'_>) {
        self.block.clear();
        self.block.extend(value.iter().copied().cycle().take(block));
        for at in (0..len).step_by(block) {
            put(at, &self.block[..block.min(len - at)]);
        }
    }

    /// Passes the blocks of the chunk at the start of `coded` to `put`, each with its offset in the
    /// chunk, which must have `len` bytes. Blocks must have `block` bytes, if that is given.
    fn chunk(
        &mut self,
        coded: &[u8],
        len: usize,
        block: Option<usize>,
        put: Blocks<'_>,
    ) -> Result<(), Fault> {
        let chunk = Chunk::parse(coded, len)?;
        if let Some(block) = block.filter(|&block| block != chunk.block) {
            return Err(Fault::new(
                8,
                format!("blocks of {} bytes", chunk.block),
                format!("{block}, as the shape of the blocks says"),
            ));
        }
        if let Some(value) = chunk.value()? {
            // A block need not hold whole elements.
            let block = if chunk.block.is_multiple_of(value.len()) { chunk.block } else { len };
            self.repeat(value, block, len, put);
            return Ok(());
        }
        if chunk.flags & PLAIN != 0 {
            let plain = chunk.coded.get(HEADER..HEADER + len);
            let plain = plain.ok_or_else(|| short(HEADER, chunk.coded.len() - HEADER, len))?;
            plain.chunks(chunk.block).enumerate().for_each(|(number, bytes)| {
                put(number * chunk.block, bytes);
            });
            return Ok(());
        }
        let format = PartFormat::of(chunk.flags)?;
        for (number, at) in (0..len).step_by(chunk.block).enumerate() {
            self.streams(&chunk, format, number, chunk.block.min(len - at))?;
            self.unfilter(&chunk, number == 0)?;
            put(at, &self.block);
        }
        Ok(())
    }

    /// Replaces `self.block` by a block of `len` bytes, before its filters are undone.
    fn streams(
        &mut self,
        chunk: &Chunk<'_>,
        format: PartFormat,
        number: usize,
        len: usize,
    ) -> Result<(), Fault> {
        let coded = chunk.coded;
        let mut at = u32_at(coded, HEADER + 4 * number)?;
        let is_split = chunk.flags & WHOLE_BLOCKS == 0 && len == chunk.block;
        let streams = if is_split { chunk.size } else { 1 };
        let each = len / streams;
        if each * streams != len {
            let found = format!("a block of {len} bytes in {streams} parts");
            return Err(Fault::new(8, found, "parts of the same size"));
        }
        self.block.clear();
        for _ in 0..streams {
            let size = u32_at(coded, at)?;
            at += 4;
            let end = self.block.len() + each;
            match size as u32 as i32 {
                0 => self.block.resize(end, 0),
                // One byte, repeated. A token follows.
                run @ -255..0 => {
                    if coded.get(at).is_none_or(|token| token & 1 == 0) {
                        return Err(Fault::new(at, "a part of no known form", "a repeated byte"));
                    }
                    at += 1;
                    self.block.resize(end, run.unsigned_abs() as u8);
                }
                _ => {
                    let bytes = coded.get(at..at.saturating_add(size));
                    let bytes =
                        bytes.ok_or_else(|| short(at, coded.len().saturating_sub(at), size))?;
                    if size == each {
                        self.block.extend_from_slice(bytes);
                    } else {
                        let part = self.parts.decompress(format, bytes, each);
                        self.block.extend_from_slice(part.map_err(|fault| fault.shifted(at))?);
                    }
                    at += size;
                }
            }
        }
        Ok(())
    }

    /// Undoes the filters of `self.block`, the last one first.
    fn unfilter(&mut self, chunk: &Chunk<'_>, is_first: bool) -> Result<(), Fault> {
        let Self { block, filtered, first, .. } = self;
        for (slot, (filter, parameter)) in chunk.filters.into_iter().enumerate().rev() {
            let size = match parameter {
                0 => chunk.size,
                group => usize::from(group),
            };
            match filter {
                0 | TRUNCATE => {}
                SHUFFLE => {
                    filtered.resize(block.len(), 0);
                    shuffle::undo(block, size, filtered);
                    std::mem::swap(block, filtered);
                }
                BITSHUFFLE => {
                    let elements = block.len() / chunk.size;
                    let groups = elements / bitshuffle::GROUP * bitshuffle::GROUP * chunk.size;
                    filtered.clear();
                    filtered.extend_from_slice(block);
                    bitshuffle::undo(&block[..groups], chunk.size, &mut filtered[..groups]);
                    std::mem::swap(block, filtered);
                }
                // What delta needs of the first block is known only after all other filters.
                DELTA
                    if chunk.filters[..slot]
                        .iter()
                        .all(|(code, _)| [0, TRUNCATE].contains(code)) =>
                {
                    undelta(block, chunk.size, first, is_first);
                }
                other => {
                    return Err(Fault::new(
                        16 + slot,
                        format!("the filter {other} of Blosc 2"),
                        "shuffle, bitshuffle, delta first, or truncation",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Undoes the filter delta. Elements of the first block are combined with the element before them,
/// those of other blocks with the element of the first block at the same place.
fn undelta(block: &mut [u8], size: usize, first: &mut Vec<u8>, is_first: bool) {
    let unit = match size {
        1 | 2 | 4 | 8 => size,
        _ if size.is_multiple_of(8) => 8,
        _ => 1,
    };
    let whole = block.len() / unit * unit;
    if is_first {
        for at in unit..whole {
            block[at] ^= block[at - unit];
        }
        first.clear();
        first.extend_from_slice(block);
    } else {
        block[..whole].iter_mut().zip(first.iter()).for_each(|(byte, first)| *byte ^= first);
    }
}

#[cfg(test)]
mod tests;
