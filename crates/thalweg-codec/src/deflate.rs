//! zlib streams (RFC 1950). libdeflate decodes whole streams; a streaming decoder decodes only the
//! first bytes.
//!
//! Bytes after the end of a stream are ignored, as by zlib and slow5lib.

mod huffman;
mod runs;

pub use runs::RunCompressor;

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{CompressionLvl, DecompressionError};

use crate::Fault;

/// The most decoded bytes per stored byte: the longest match is 258 bytes, and a length and a
/// distance take at least one bit each (RFC 1951, section 3.2.5).
pub const MOST_BYTES_PER_BYTE: usize = 1032;
/// The ratio of decoded to stored bytes that is expected of the first stream, in sixteenths.
/// Signals have a smaller ratio, text a greater one.
const FIRST_RATIO: usize = 3 * 16;
/// Room beyond the expected size, in bytes, so that tiny streams need no second attempt.
const SLACK_BYTES: usize = 256;

/// A decompression context for one thread. It remembers the compression ratio of its streams,
/// because a zlib stream does not record its decoded size.
pub struct DeflateDecompressor {
    whole: libdeflater::Decompressor,
    streaming: Option<Decompress>,
    ratio: usize,
}

impl std::fmt::Debug for DeflateDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("deflate::Decompressor").field("ratio", &self.ratio).finish_non_exhaustive()
    }
}

impl Default for DeflateDecompressor {
    fn default() -> Self {
        Self::new()
    }
}

impl DeflateDecompressor {
    /// A new context.
    #[must_use]
    pub fn new() -> Self {
        Self { whole: libdeflater::Decompressor::new(), streaming: None, ratio: FIRST_RATIO }
    }

    /// Replaces `out` by the decoded bytes, at most `limit`.
    ///
    /// Fastest if `out` still holds the bytes of the last call, because only bytes beyond its
    /// length are zeroed first.
    pub fn decompress(
        &mut self,
        coded: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), Fault> {
        let most = coded.len().saturating_mul(MOST_BYTES_PER_BYTE).min(limit);
        let mut room =
            (coded.len() / 16).saturating_mul(self.ratio).saturating_add(SLACK_BYTES).min(most);
        let result = loop {
            if out.len() < room {
                // The old contents are not needed, so that growing must not copy them.
                if out.capacity() < room {
                    out.clear();
                }
                out.resize(room, 0);
            }
            let space = out.len().min(most);
            match self.whole.zlib_decompress(coded, &mut out[..space]) {
                Ok(n) => break Ok(n),
                Err(DecompressionError::InsufficientSpace) if space < most => {
                    room = space.saturating_mul(2).min(most);
                }
                Err(DecompressionError::InsufficientSpace) if limit <= most => {
                    let found = format!("a stream that goes on, of {} bytes", coded.len());
                    break Err(Fault::new(0, found, format!("at most {limit} decoded bytes")));
                }
                Err(_) => break Err(self.defect(coded)),
            }
        };
        out.truncate(*result.as_ref().unwrap_or(&0));
        let decoded = result?;
        // The ratio falls slowly and rises at once, because a second attempt costs more than unused
        // room.
        let observed = (decoded * 17).div_ceil(coded.len().max(1)) + 1;
        self.ratio = observed.max(self.ratio - self.ratio / 16);
        Ok(())
    }

    /// Fills `out` with the decoded bytes. Their number must be the length of `out`.
    pub fn decompress_exact(&mut self, coded: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        match self.whole.zlib_decompress(coded, out) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(n) => Err(Fault::new(0, format!("{n} decoded bytes"), format!("{}", out.len()))),
            Err(DecompressionError::InsufficientSpace) => {
                Err(Fault::new(0, "a stream that goes on", format!("{} decoded bytes", out.len())))
            }
            Err(_) => Err(self.defect(coded)),
        }
    }

    /// Replaces `out` by the first `n` decoded bytes, or by all of them if there are fewer.
    ///
    /// The checksum at the end of the stream is checked only if the stream ends within these bytes.
    pub fn prefix(&mut self, coded: &[u8], out: &mut Vec<u8>, n: usize) -> Result<(), Fault> {
        out.clear();
        let n_or_all = n.min(coded.len().saturating_mul(MOST_BYTES_PER_BYTE));
        // One byte more, so that a stream of exactly n bytes is decoded to its end.
        out.reserve(n_or_all + 1);
        let streaming = self.streaming.get_or_insert_with(|| Decompress::new(true));
        streaming.reset(true);
        while out.len() < n {
            let read = streaming.total_in() as usize;
            let had = out.len();
            match streaming.decompress_vec(&coded[read..], out, FlushDecompress::None) {
                Ok(Status::StreamEnd) => break,
                Ok(_) if streaming.total_in() as usize == read && out.len() == had => {
                    return Err(Fault::new(
                        read,
                        "the end of the bytes",
                        "the rest of the zlib stream",
                    ));
                }
                Ok(_) => {}
                Err(error) => {
                    return Err(Fault::new(
                        streaming.total_in() as usize,
                        error.to_string(),
                        STREAM,
                    ));
                }
            }
        }
        out.truncate(n);
        Ok(())
    }

    /// Locates the defect in a stream that libdeflate refuses.
    fn defect(&mut self, coded: &[u8]) -> Fault {
        let streaming = self.streaming.get_or_insert_with(|| Decompress::new(true));
        streaming.reset(true);
        let mut window = vec![0; 32 * 1024];
        loop {
            let read = streaming.total_in() as usize;
            let had = streaming.total_out();
            match streaming.decompress(&coded[read..], &mut window, FlushDecompress::None) {
                Ok(Status::StreamEnd) => {
                    return Fault::new(read, "a stream that libdeflate refuses", STREAM);
                }
                Ok(_) if streaming.total_in() as usize == read && streaming.total_out() == had => {
                    return Fault::new(read, "the end of the bytes", "the rest of the zlib stream");
                }
                Ok(_) => {}
                Err(error) => {
                    return Fault::new(streaming.total_in() as usize, error.to_string(), STREAM);
                }
            }
        }
    }
}

const STREAM: &str = "a valid zlib stream";

/// A compression context for one thread.
pub struct DeflateCompressor(libdeflater::Compressor);

impl std::fmt::Debug for DeflateCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("deflate::Compressor")
    }
}

impl DeflateCompressor {
    /// A new context; `level` is 0 to 12. zlib's default, which slow5lib uses, is 6.
    pub fn new(level: i32) -> Result<Self, Fault> {
        let level = CompressionLvl::new(level)
            .map_err(|_| Fault::new(0, format!("deflate level {level}"), "a level from 0 to 12"))?;
        Ok(Self(libdeflater::Compressor::new(level)))
    }

    /// Replaces `out` by `plain` as one zlib stream.
    pub fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let bound = self.0.zlib_compress_bound(plain.len());
        out.resize(bound, 0);
        let n = self.0.zlib_compress(plain, out).map_err(|_| no_room(bound))?;
        out.truncate(n);
        Ok(())
    }

    /// Replaces `out` by `plain` as one member of a gzip file (RFC 1952). Members may follow each
    /// other.
    pub fn gzip(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let bound = self.0.gzip_compress_bound(plain.len());
        out.resize(bound, 0);
        let n = self.0.gzip_compress(plain, out).map_err(|_| no_room(bound))?;
        out.truncate(n);
        Ok(())
    }
}

fn no_room(bound: usize) -> Fault {
    Fault::new(0, format!("no room in {bound} bytes"), "libdeflate's own bound to hold")
}
