//! VBZ as HDF5 stores it (filter 32020): StreamVByte, with or without zigzag differences, inside
//! zstd.
//!
//! ```text
//! u32 bytes of the decoded chunk; then, inside a zstd frame unless the level is 0:
//! StreamVByte of the integers, each widened to 32 bits
//! ```
//!
//! Not POD5's codec of the same name, which is [`svb16`](super::svb16). Specified by its
//! implementation, <https://github.com/nanoporetech/vbz_compression>, and checked against the
//! plugin that it builds. Version 1 differs from version 0 for 8-bit integers only, whose codes
//! stand for 0, 1, 2 or 4 half bytes.

use crate::svb::zd;
use crate::zigzag::unzigzag_32;
use crate::{Fault, svb, zstd};

/// The number of the filter in an HDF5 pipeline.
pub const FILTER: i32 = 32020;

/// Bytes of the size at the start of a chunk.
const SIZE_BYTES: usize = 4;

/// The parameters of the filter, from its client data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VbzParams {
    /// 0 or 1.
    pub version: u32,
    /// Bytes of an integer: 1, 2 or 4.
    pub integer_size: u32,
    /// Whether zigzag differences are stored in place of the integers.
    pub zigzag: bool,
    /// zstd's level; 0 for no zstd.
    pub level: u32,
}

impl VbzParams {
    /// The parameters that ONT's software writes for signals.
    pub const SIGNAL: Self = Self { version: 0, integer_size: 2, zigzag: true, level: 1 };

    /// Parses the client data. A missing level is 1, as in the plugin.
    ///
    /// # Errors
    /// Values that are invalid in every version.
    pub fn parse(values: &[u32]) -> Result<Self, Fault> {
        let [version, integer_size, zigzag, ref rest @ ..] = *values else {
            return Err(Fault::new(0, format!("{} VBZ parameters", values.len()), "at least 3"));
        };
        if version > 1 {
            return Err(Fault::new(0, format!("VBZ version {version}"), "version 0 or 1"));
        }
        if ![1, 2, 4].contains(&integer_size) {
            return Err(Fault::new(
                0,
                format!("VBZ of integers of {integer_size} bytes"),
                "1, 2 or 4 bytes",
            ));
        }
        Ok(Self {
            version,
            integer_size,
            zigzag: zigzag != 0,
            level: rest.first().copied().unwrap_or(1),
        })
    }

    /// The client data.
    pub const fn values(&self) -> [u32; 4] {
        [self.version, self.integer_size, self.zigzag as u32, self.level]
    }
}

/// A decompression context for one thread.
#[derive(Debug, Default)]
pub struct VbzDecompressor {
    zstd: zstd::ZstdDecompressor,
    plain: Vec<u8>,
    values: Vec<u32>,
}

impl VbzDecompressor {
    /// Appends the 16-bit samples of a chunk. The chunk must decode to `bytes` bytes.
    ///
    /// # Errors
    /// The defect of the chunk. `out` is then unchanged.
    pub fn samples(
        &mut self,
        params: VbzParams,
        chunk: &[u8],
        bytes: usize,
        out: &mut Vec<i16>,
    ) -> Result<(), Fault> {
        if params.integer_size == 2 && params.zigzag {
            let coded = unwrap(&mut self.zstd, &mut self.plain, params, chunk, bytes)?;
            return zd::decode_exact(coded, bytes / size_of::<i16>(), out);
        }
        let mut decoded = Vec::new();
        self.bytes(params, chunk, bytes, &mut decoded)?;
        out.extend(decoded.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])));
        Ok(())
    }

    /// Replaces `out` by the decoded bytes of a chunk. Their number must be `bytes`.
    ///
    /// # Errors
    /// The defect of the chunk.
    pub fn bytes(
        &mut self,
        params: VbzParams,
        chunk: &[u8],
        bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        out.clear();
        let size = params.integer_size as usize;
        let coded = unwrap(&mut self.zstd, &mut self.plain, params, chunk, bytes)?;
        let count = bytes / size;
        self.values.clear();
        if size == 1 && params.version == 1 {
            halves(coded, count, &mut self.values)?;
        } else {
            svb::decode_u32(coded, count, &mut self.values)?;
        }
        let mut previous = 0i32;
        out.reserve(bytes);
        for &value in &self.values {
            let value = if params.zigzag {
                previous = previous.wrapping_add(unzigzag_32(value));
                previous as u32
            } else {
                value
            };
            out.extend_from_slice(&value.to_le_bytes()[..size]);
        }
        Ok(())
    }

    /// Frees scratch memory beyond `keep` bytes.
    pub fn trim(&mut self, keep: usize) {
        self.plain.clear();
        self.plain.shrink_to(keep);
        self.values.clear();
        self.values.shrink_to(keep / size_of::<u32>());
    }
}

/// The StreamVByte bytes of a chunk, decoded from their zstd frame if there is one.
fn unwrap<'a>(
    zstd: &mut zstd::ZstdDecompressor,
    plain: &'a mut Vec<u8>,
    params: VbzParams,
    chunk: &'a [u8],
    bytes: usize,
) -> Result<&'a [u8], Fault> {
    let Some((said, coded)) = chunk.split_first_chunk::<SIZE_BYTES>() else {
        return Err(Fault::new(
            0,
            format!("a chunk of {} bytes", chunk.len()),
            "the 32-bit size of what it decodes to",
        ));
    };
    let said = u32::from_le_bytes(*said) as usize;
    if said != bytes || !bytes.is_multiple_of(params.integer_size as usize) {
        let expected = format!(
            "the {bytes} bytes of the dataset's chunks, in integers of {}",
            params.integer_size
        );
        return Err(Fault::new(0, format!("a chunk that decodes to {said} bytes"), expected));
    }
    if params.level == 0 {
        return Ok(coded);
    }
    // Keys, and at most four bytes per value.
    let count = bytes / params.integer_size as usize;
    let most = count.div_ceil(4).saturating_add(count.saturating_mul(4));
    zstd.decompress(coded, plain, most).map_err(|fault| fault.shifted(SIZE_BYTES))?;
    Ok(plain)
}

/// Appends `count` 8-bit integers in the coding of version 1: 2-bit codes, four to a byte, then
/// half bytes, lowest first.
fn halves(coded: &[u8], count: usize, out: &mut Vec<u32>) -> Result<(), Fault> {
    let Some((keys, data)) = coded.split_at_checked(count.div_ceil(4)) else {
        return Err(Fault::new(
            coded.len(),
            format!("{} bytes", coded.len()),
            format!("the keys of {count} values"),
        ));
    };
    let mut at = 0;
    for i in 0..count {
        let halves = [0, 1, 2, 4][usize::from(keys[i / 4] >> (2 * (i % 4)) & 3)];
        let mut value = 0;
        for half in 0..halves {
            let Some(byte) = data.get((at + half) / 2) else {
                return Err(svb::missing(keys.len() + data.len(), 0, i, count));
            };
            value |= u32::from(byte >> ((at + half) % 2 * 4) & 15) << (4 * half);
        }
        at += halves;
        out.push(value);
    }
    match data.len() - at.div_ceil(2) {
        0 => Ok(()),
        left => Err(svb::leftover(keys.len() + at.div_ceil(2), left, count)),
    }
}

/// A compression context for signals, for one thread.
#[derive(Debug)]
pub struct VbzCompressor {
    zstd: Option<zstd::ZstdCompressor>,
    coded: Vec<u8>,
    frame: Vec<u8>,
}

impl VbzCompressor {
    /// A new context for zstd's `level`; 0 for no zstd.
    ///
    /// # Errors
    /// A level that zstd does not have.
    pub fn new(level: i32) -> Result<Self, Fault> {
        let zstd = if level == 0 { None } else { Some(zstd::ZstdCompressor::new(level)?) };
        Ok(Self { zstd, coded: Vec::new(), frame: Vec::new() })
    }

    /// Replaces `out` by the chunk of `samples`, with the parameters of [`VbzParams::SIGNAL`] at
    /// the context's level.
    ///
    /// # Errors
    /// At least 2^31 samples: the size in bytes must fit 32 bits.
    pub fn chunk(&mut self, samples: &[i16], out: &mut Vec<u8>) -> Result<(), Fault> {
        let Ok(bytes) = u32::try_from(size_of_val(samples)) else {
            return Err(Fault::new(0, format!("{} samples", samples.len()), "a chunk below 4 GiB"));
        };
        out.clear();
        out.extend_from_slice(&bytes.to_le_bytes());
        self.coded.clear();
        zd::encode_exact(samples, &mut self.coded);
        match &mut self.zstd {
            None => out.extend_from_slice(&self.coded),
            Some(zstd) => {
                zstd.compress(&self.coded, &mut self.frame)?;
                out.extend_from_slice(&self.frame);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
