//! zlib streams (RFC 1950): libdeflate where the whole stream is wanted, a streaming decoder for
//! its first bytes.
//!
//! Whatever follows the end of a stream is ignored, as zlib and slow5lib do.

mod huffman;
mod runs;

pub use runs::RunCompressor;

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{CompressionLvl, DecompressionError};

use crate::Fault;

/// No stream decodes to more bytes than this for each of its own: the longest match is 258 bytes,
/// and a length and a distance take at least one bit each (RFC 1951, section 3.2.5).
pub const MOST_BYTES_PER_BYTE: usize = 1032;
/// Ratio of decoded to stored bytes expected of the first stream, in sixteenths: signals make less,
/// text makes more.
const FIRST_RATIO: usize = 3 * 16;
/// Room beyond what the ratio foretells, so that tiny streams need no second attempt.
const SLACK_BYTES: usize = 256;

/// A decompression context for one thread. It remembers how well its streams compress, because a
/// zlib stream does not say how long it is.
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
    /// Fastest if `out` still holds what was decoded into it last: only what lies beyond is zeroed
    /// first.
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
                // The old contents are of no use: don't copy them to a new place.
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
        // Falls slowly and rises at once: a second attempt costs more than room.
        let observed = (decoded * 17).div_ceil(coded.len().max(1)) + 1;
        self.ratio = observed.max(self.ratio - self.ratio / 16);
        Ok(())
    }

    /// Fills `out` with the decoded bytes, which must be exactly as many.
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
    /// The checksum at the end of the stream is seen only if the stream ends before.
    pub fn prefix(&mut self, coded: &[u8], out: &mut Vec<u8>, n: usize) -> Result<(), Fault> {
        out.clear();
        let n_or_all = n.min(coded.len().saturating_mul(MOST_BYTES_PER_BYTE));
        // One more, so that the end of a stream of n bytes is reached.
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

    /// Finds where a stream that libdeflate refuses goes wrong.
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
