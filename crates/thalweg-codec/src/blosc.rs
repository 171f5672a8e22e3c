//! Blosc 1 (<https://github.com/Blosc/c-blosc>, README_HEADER.rst): blocks, each shuffled and
//! compressed separately. A block may be compressed in parts, one for each byte of an element.

use super::{bitshuffle, copy_match, deflate, shuffle, zstd};
use crate::Fault;

/// Bytes of the header, which precedes the offsets of the blocks: versions, flags, element size,
/// and the sizes of the values, of a block and of the chunk.
const HEADER: usize = 16;
/// The versions of the format that this decoder reads.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=2;

/// Flags.
pub(super) const SHUFFLED: u8 = 0x01;
pub(super) const PLAIN: u8 = 0x02;
pub(super) const BITSHUFFLED: u8 = 0x04;
pub(super) const WHOLE_BLOCKS: u8 = 0x10;

/// Blocks are compressed in parts only if an element has at most [`MOST_PARTS`] bytes and a part
/// has at least [`LEAST_PART`] bytes.
const MOST_PARTS: usize = 16;
const LEAST_PART: usize = 128;

/// The greatest distance of a short match of BloscLZ.
const NEAR: usize = 8191;

/// The compressor of a part.
#[derive(Debug, Clone, Copy)]
pub(super) enum PartFormat {
    BloscLz,
    Lz4,
    Snappy,
    Deflate,
    Zstd,
}

impl PartFormat {
    /// The compressor that the flags of a chunk name.
    pub(super) fn of(flags: u8) -> Result<Self, Fault> {
        Ok(match flags >> 5 {
            0 => Self::BloscLz,
            1 => Self::Lz4,
            2 => Self::Snappy,
            3 => Self::Deflate,
            4 => Self::Zstd,
            other => {
                return Err(Fault::new(
                    2,
                    format!("the compressor {other} of Blosc"),
                    "BloscLZ, LZ4, snappy, zlib or zstd",
                ));
            }
        })
    }
}

/// Decodes parts for one thread.
#[derive(Debug, Default)]
pub(super) struct PartDecompressor {
    deflate: deflate::DeflateDecompressor,
    zstd: zstd::ZstdDecompressor,
    part: Vec<u8>,
}

impl PartDecompressor {
    /// The `len` bytes of a part.
    pub(super) fn decompress(
        &mut self,
        format: PartFormat,
        coded: &[u8],
        len: usize,
    ) -> Result<&[u8], Fault> {
        let Self { deflate, zstd, part } = self;
        match format {
            PartFormat::BloscLz => blosc_lz(coded, len, part),
            PartFormat::Lz4 => super::lz4::block(coded, len, part),
            PartFormat::Snappy => snappy(coded, len, part),
            PartFormat::Deflate => deflate.decompress(coded, part, len),
            PartFormat::Zstd => zstd.decompress(coded, part, len),
        }?;
        if part.len() != len {
            return Err(Fault::new(0, format!("a part of {} bytes", part.len()), format!("{len}")));
        }
        Ok(part)
    }
}

/// What a block's decoding depends on.
#[derive(Debug, Clone, Copy)]
struct BlockHeader {
    /// The flags of the chunk.
    flags: u8,
    format: PartFormat,
    /// Bytes of an element.
    size: usize,
    /// Bytes of the decompressed block.
    len: usize,
    /// Whether the block is the last one and shorter than the others.
    is_rest: bool,
}

impl BlockHeader {
    /// The number of parts that the block is compressed in.
    fn parts(&self) -> usize {
        let is_split = self.flags & WHOLE_BLOCKS == 0
            && !self.is_rest
            && self.size <= MOST_PARTS
            && self.len / self.size >= LEAST_PART;
        if is_split { self.size } else { 1 }
    }
}

/// Decodes chunks for one thread.
#[derive(Debug, Default)]
pub struct BloscDecompressor {
    parts: PartDecompressor,
    /// The block that is being decoded, still shuffled.
    block: Vec<u8>,
    plain: Vec<u8>,
}

impl BloscDecompressor {
    /// Replaces `out` by the values of a chunk, at most `most` bytes.
    ///
    /// # Errors
    /// The defect of the chunk.
    pub fn decompress(
        &mut self,
        coded: &[u8],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        out.clear();
        let Some(&[version, _, flags, size, a @ .., _, _, _, _]) = coded.first_chunk::<HEADER>()
        else {
            return Err(Fault::new(
                0,
                format!("{} bytes", coded.len()),
                "a Blosc chunk of 16 or more",
            ));
        };
        let [n0, n1, n2, n3, b0, b1, b2, b3] = a;
        let bytes = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
        let block = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        if !VERSIONS.contains(&version) {
            return Err(Fault::new(0, format!("version {version} of Blosc"), "1 or 2"));
        }
        if bytes > most {
            return Err(Fault::new(4, format!("{bytes} bytes"), format!("at most {most}")));
        }
        if flags & PLAIN != 0 {
            let plain = coded.get(HEADER..HEADER + bytes);
            out.extend_from_slice(plain.ok_or_else(|| short(HEADER, coded.len() - HEADER, bytes))?);
            return Ok(());
        }
        let format = PartFormat::of(flags)?;
        if bytes == 0 {
            return Ok(());
        }
        if block == 0 || size == 0 {
            return Err(Fault::new(
                3,
                format!("blocks of {block} bytes, elements of {size}"),
                "more than none",
            ));
        }
        for number in 0..bytes.div_ceil(block) {
            let place = HEADER + 4 * number;
            let at = u32_at(coded, place)?;
            let len = block.min(bytes - number * block);
            let is_rest = len < block;
            let header = BlockHeader { flags, format, size: usize::from(size), len, is_rest };
            self.block(coded, at, &header)?;
            self.unshuffle(&header, out);
        }
        Ok(())
    }

    /// Appends the values of `self.block` to `out`, in the order before the shuffling.
    fn unshuffle(&mut self, header: &BlockHeader, out: &mut Vec<u8>) {
        let &BlockHeader { flags, size, len, .. } = header;
        let Self { plain, block, .. } = self;
        if flags & SHUFFLED != 0 && size > 1 {
            plain.resize(block.len(), 0);
            shuffle::undo(block, size, plain);
            out.extend_from_slice(plain);
        } else if flags & BITSHUFFLED != 0 && (len / size).is_multiple_of(bitshuffle::GROUP) {
            let whole = len / size * size;
            let start = out.len();
            out.extend_from_slice(block);
            bitshuffle::undo(&block[..whole], size, &mut out[start..start + whole]);
        } else {
            out.extend_from_slice(block);
        }
    }

    /// Replaces `self.block` by the decompressed block at `at`, still shuffled.
    fn block(&mut self, coded: &[u8], mut at: usize, header: &BlockHeader) -> Result<(), Fault> {
        let &BlockHeader { format, len, .. } = header;
        let Self { parts, block, .. } = self;
        block.clear();
        let count = header.parts();
        let each = len / count;
        for _ in 0..count {
            let stored = u32_at(coded, at)?;
            at += 4;
            let bytes = coded.get(at..at.saturating_add(stored));
            let bytes = bytes.ok_or_else(|| short(at, coded.len().saturating_sub(at), stored))?;
            if stored == each {
                block.extend_from_slice(bytes);
            } else {
                let part = parts.decompress(format, bytes, each);
                block.extend_from_slice(part.map_err(|fault| fault.shifted(at))?);
            }
            at += stored;
        }
        if block.len() != len {
            return Err(Fault::new(
                at,
                format!("a block of {} bytes", block.len()),
                format!("{len}"),
            ));
        }
        Ok(())
    }
}

pub(super) fn u32_at(coded: &[u8], at: usize) -> Result<usize, Fault> {
    let bytes = coded.get(at..).and_then(<[u8]>::first_chunk::<4>);
    bytes
        .map(|bytes| u32::from_le_bytes(*bytes) as usize)
        .ok_or_else(|| short(at, coded.len().saturating_sub(at), 4))
}

pub(super) fn short(at: usize, found: usize, expected: usize) -> Fault {
    Fault::new(at, format!("{found} bytes to the end of the chunk"), format!("{expected}"))
}

/// Replaces `out` by the decoded bytes of a BloscLZ stream, at most `most`. The format is FastLZ
/// with matches that reach 72 KiB back.
fn blosc_lz(coded: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    out.clear();
    let mut rest = coded;
    // The first control byte is always a literal run; its upper bits have another meaning.
    let mut mask = 31;
    while let Some((&control, after)) = rest.split_first() {
        let at = coded.len() - rest.len();
        let end = || Fault::new(at, "the end of the stream", "the rest of what starts here");
        let control = control & std::mem::replace(&mut mask, 0xff);
        rest = after;
        let mut next = || -> Result<usize, Fault> {
            let (&byte, after) = rest.split_first().ok_or_else(end)?;
            rest = after;
            Ok(usize::from(byte))
        };
        if control < 32 {
            let (literals, after) =
                rest.split_at_checked(usize::from(control) + 1).ok_or_else(end)?;
            rest = after;
            out.extend_from_slice(literals);
        } else {
            let mut len = usize::from(control >> 5) + 2;
            if len == 9 {
                loop {
                    let more = next()?;
                    len += more;
                    if more < 255 || len > most {
                        break;
                    }
                }
            }
            let high = usize::from(control & 31) << 8;
            let low = next()?;
            let distance =
                if high + low == NEAR { (next()? << 8 | next()?) + NEAR } else { high + low };
            copy_match(out, distance + 1, len.min(most + 1), at)?;
        }
        if out.len() > most {
            return Err(Fault::new(
                at,
                format!("more than {most} bytes"),
                format!("at most {most}"),
            ));
        }
    }
    Ok(())
}

/// Replaces `out` by the `len` decoded bytes of a snappy stream.
fn snappy(coded: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let failed = |error: snap::Error| Fault::new(0, error.to_string(), "snappy's format");
    // Without this check, `out` would be as long as the stream claims.
    let claimed = snap::raw::decompress_len(coded).map_err(failed)?;
    if claimed != len {
        return Err(Fault::new(0, format!("a part of {claimed} bytes"), format!("{len}")));
    }
    out.clear();
    out.resize(len, 0);
    snap::raw::Decoder::new().decompress(coded, out).map(drop).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::{BloscDecompressor, LEAST_PART, SHUFFLED, WHOLE_BLOCKS};

    /// A chunk of 16-bit elements in blocks of `block` bytes, shuffled, in parts that are stored as
    /// they are.
    fn chunk(values: &[u8], block: usize, flags: u8) -> Vec<u8> {
        let word = |number: usize| (number as u32).to_le_bytes();
        let blocks: Vec<&[u8]> = values.chunks(block).collect();
        let mut bytes = vec![2, 1, flags | SHUFFLED, 2];
        bytes.extend([word(values.len()), word(block), word(0)].concat());
        let mut stored = Vec::new();
        for values in blocks.iter() {
            bytes.extend(word(16 + 4 * blocks.len() + stored.len()));
            let halves = [0, 1].map(|half| values.iter().skip(half).step_by(2).copied());
            let shuffled: Vec<u8> = halves.into_iter().flatten().collect();
            let is_split = flags & WHOLE_BLOCKS == 0 && values.len() == block;
            for part in shuffled.chunks(if is_split { block / 2 } else { block }) {
                stored.extend(word(part.len()));
                stored.extend(part);
            }
        }
        [bytes, stored].concat()
    }

    #[test]
    fn full_blocks_are_split_and_the_rest_is_not() {
        let values: Vec<u8> = (0..LEAST_PART * 5).map(|i| (i * 7 % 251) as u8).collect();
        for flags in [0, WHOLE_BLOCKS] {
            let mut out = Vec::new();
            let coded = chunk(&values, LEAST_PART * 2, flags);
            let outcome = BloscDecompressor::default().decompress(&coded, values.len(), &mut out);
            assert!(outcome.is_ok() && out == values, "flags {flags}: {outcome:?}");
        }
    }
}
