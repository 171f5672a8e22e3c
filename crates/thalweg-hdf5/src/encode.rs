//! Encoding of chunks: applies HDF5 filters.

use thalweg_codec::{deflate, lz4, shuffle, zstd};
use thalweg_io::Fault;

use crate::filter::fletcher32;

/// A filter that this crate can apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coder {
    /// Shuffle: sorts the bytes of elements by significance.
    Shuffle,
    /// zlib streams, with a level from 0 to 12.
    Deflate(u8),
    /// Zstandard frames, with a level (filter 32015).
    Zstd(u8),
    /// LZ4 blocks (filter 32004).
    Lz4,
    /// A checksum at the end.
    Fletcher32,
}

#[cfg(feature = "libhdf5")]
impl Coder {
    /// The encoder of the filter with this number and client data; `None` if this crate cannot
    /// apply it.
    pub(crate) fn of(number: i32, values: &[u32]) -> Option<Self> {
        let level = values.first();
        match number {
            crate::filter::SHUFFLE => Some(Self::Shuffle),
            crate::filter::DEFLATE => {
                Some(Self::Deflate(level.map_or(9, |&level| level.min(9) as u8)))
            }
            crate::filter::FLETCHER32 => Some(Self::Fletcher32),
            crate::filter::LZ4 => Some(Self::Lz4),
            // The plugin of this filter uses level 3 if no level is given.
            crate::filter::ZSTD => Some(Self::Zstd(level.map_or(3, |&level| level.min(22) as u8))),
            _ => None,
        }
    }

    /// The filter's number, and its client data for elements of `element` bytes.
    pub(crate) fn registered(self, element: usize) -> (i32, u32) {
        match self {
            Self::Shuffle => (crate::filter::SHUFFLE, element as u32),
            // HDF5 knows levels up to 9. Readers do not use the level.
            Self::Deflate(level) => (crate::filter::DEFLATE, level.min(9).into()),
            Self::Zstd(level) => (crate::filter::ZSTD, level.into()),
            Self::Lz4 => (crate::filter::LZ4, 0),
            Self::Fletcher32 => (crate::filter::FLETCHER32, 0),
        }
    }
}

/// The contexts of the encoders of one thread.
#[derive(Debug, Default)]
pub(crate) struct ChunkEncoder {
    /// By level.
    deflate: Vec<(u8, deflate::DeflateCompressor)>,
    zstd: Vec<(u8, zstd::ZstdCompressor)>,
    next: Vec<u8>,
}

impl ChunkEncoder {
    /// Applies filters to the elements of a chunk. A set bit of the returned mask marks a filter
    /// that was skipped because it did not shrink the chunk.
    pub(crate) fn encode(
        &mut self,
        coders: &[Coder],
        element: usize,
        chunk: &mut Vec<u8>,
    ) -> Result<u32, Fault> {
        let mut mask = 0;
        for (place, coder) in coders.iter().enumerate() {
            match *coder {
                Coder::Shuffle => shuffle::sort(chunk, element, &mut self.next),
                Coder::Deflate(level) => {
                    of_level(&mut self.deflate, level, |level| {
                        deflate::DeflateCompressor::new(level.into())
                    })?
                    .compress(chunk, &mut self.next)?;
                }
                Coder::Zstd(level) => {
                    of_level(&mut self.zstd, level, |level| {
                        zstd::ZstdCompressor::new(level.into())
                    })?
                    .compress(chunk, &mut self.next)?;
                }
                Coder::Lz4 => lz4::pack(chunk, &mut self.next),
                Coder::Fletcher32 => {
                    chunk.extend_from_slice(&fletcher32(chunk).to_le_bytes());
                    continue;
                }
            }
            if *coder != Coder::Shuffle && self.next.len() >= chunk.len() {
                mask |= 1 << place;
            } else {
                std::mem::swap(chunk, &mut self.next);
            }
        }
        Ok(mask)
    }
}

fn of_level<T>(
    all: &mut Vec<(u8, T)>,
    level: u8,
    new: impl FnOnce(u8) -> Result<T, Fault>,
) -> Result<&mut T, Fault> {
    let at = match all.iter().position(|(known, _)| *known == level) {
        Some(at) => at,
        None => {
            all.push((level, new(level)?));
            all.len() - 1
        }
    };
    Ok(&mut all[at].1)
}
