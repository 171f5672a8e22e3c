//! Zstandard frames, with reused contexts and output buffers that are not zeroed first.
//!
//! ```
//! use thalweg_codec::zstd::{ZstdCompressor, ZstdDecompressor};
//!
//! # fn main() -> Result<(), thalweg_codec::Fault> {
//! let plain = [7; 1000];
//! let mut coded = Vec::new();
//! ZstdCompressor::new(1)?.compress(&plain, &mut coded)?;
//! let mut decoded = Vec::new();
//! ZstdDecompressor::new().decompress(&coded, &mut decoded, 1 << 20)?;
//! assert_eq!(decoded, plain);
//! # Ok(())
//! # }
//! ```
#![allow(unsafe_code)] // Only to let zstd-safe write into part of a vector's spare capacity.

use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, ResetDirective, WriteBuf};

use crate::Fault;

/// The most decoded bytes per stored byte: a block of 128 KiB from a header of three bytes and one
/// repeated byte (RFC 8878, sections 3.1.1.2.2 and 3.1.1.2.4).
const MOST_BYTES_PER_BYTE: u64 = 128 * 1024 / 4;
/// The initial room for a frame without a declared size, in decoded bytes per stored byte. A wrong
/// guess costs little.
const GUESS_BYTES_PER_BYTE: usize = 4;
/// The smallest step, in bytes, by which the output of such a frame grows.
const LEAST_STEP_BYTES: usize = 64 * 1024;

/// The version of the C library, such as "1.5.7".
pub fn version() -> &'static str {
    zstd_safe::version_string()
}

/// A decompression context for one thread.
#[derive(Default)]
pub struct ZstdDecompressor {
    /// About 100 kB, made when the first data are decoded.
    context: Option<DCtx<'static>>,
}

impl std::fmt::Debug for ZstdDecompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("zstd::Decompressor")
    }
}

impl ZstdDecompressor {
    /// A new context.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn context(&mut self) -> &mut DCtx<'static> {
        self.context.get_or_insert_with(DCtx::create)
    }

    /// Replaces `out` by the decoded bytes, at most `limit`.
    ///
    /// If the first frame declares a size, it must be the size of all decoded bytes, as slow5lib
    /// demands. A second frame with content is refused. Without a declared size, all frames are
    /// decoded.
    pub fn decompress(
        &mut self,
        coded: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), Fault> {
        out.clear();
        let result = match declared_size(coded)? {
            Some(size) => self.decompress_declared(coded, out, size, limit),
            None => self.decompress_unknown(coded, out, limit),
        };
        if result.is_err() {
            out.clear();
        }
        result
    }

    fn decompress_declared(
        &mut self,
        coded: &[u8],
        out: &mut Vec<u8>,
        size: u64,
        limit: usize,
    ) -> Result<(), Fault> {
        if size > limit as u64 {
            return Err(too_large(
                coded,
                format!("a frame that declares {size} decoded bytes"),
                limit,
            ));
        }
        if size > (coded.len() as u64).saturating_mul(MOST_BYTES_PER_BYTE) {
            let found = format!("{} bytes that declare {size} decoded bytes", coded.len());
            return Err(Fault::new(0, found, "a size that the frame can hold"));
        }
        out.reserve(size as usize);
        let mut window = Limited { out, limit: size as usize };
        let decoded =
            self.context().decompress(&mut window, coded).map_err(|code| refused(0, code))?;
        if decoded as u64 != size {
            let found = format!("{decoded} decoded bytes");
            return Err(Fault::new(0, found, format!("the {size} bytes that the frame declares")));
        }
        Ok(())
    }

    fn decompress_unknown(
        &mut self,
        coded: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), Fault> {
        self.context().reset(ResetDirective::SessionOnly).map_err(|code| refused(0, code))?;
        let mut input = InBuffer::around(coded);
        out.reserve(coded.len().saturating_mul(GUESS_BYTES_PER_BYTE).min(limit));
        let mut frame = OpenFrame::at(coded, 0, out)?;
        loop {
            let read = input.pos();
            let had = out.len();
            let pending = self.step(&mut input, out, limit)?;
            if pending == 0 {
                frame = frame.ended(coded, input.pos(), out)?;
            }
            if input.pos() == coded.len() && pending == 0 {
                return Ok(());
            }
            let stuck = had == out.len() && input.pos() == read;
            if out.len() < out.capacity().min(limit) {
                if stuck {
                    return Err(cut_short(coded, out.len()));
                }
            } else if out.len() < limit {
                out.reserve(out.len().max(LEAST_STEP_BYTES).min(limit - out.len()));
            } else if stuck {
                // The output is full. It is checked only here, because the previous step may have
                // reached the end of the frame.
                return Err(too_large(coded, "a frame that goes on".into(), limit));
            }
        }
    }

    /// Continues decoding into the spare capacity of `out`, up to a length of `limit` bytes.
    /// Returns zero once a frame has ended.
    fn step(
        &mut self,
        input: &mut InBuffer<'_>,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<usize, Fault> {
        let at = out.len();
        let mut window = Limited { out, limit };
        let mut output = OutBuffer::around_pos(&mut window, at);
        let result = self.context().decompress_stream(&mut output, input);
        result.map_err(|code| refused(input.pos(), code))
    }

    /// Replaces `out` by the first `n` decoded bytes, or by all of them if there are fewer.
    pub fn prefix(&mut self, coded: &[u8], out: &mut Vec<u8>, n: usize) -> Result<(), Fault> {
        out.clear();
        let most = (coded.len() as u64).saturating_mul(MOST_BYTES_PER_BYTE);
        out.reserve(n.min(usize::try_from(most).unwrap_or(n)));
        if coded.is_empty() {
            return Err(cut_short(coded, 0));
        }
        self.context().reset(ResetDirective::SessionOnly).map_err(|code| refused(0, code))?;
        let mut input = InBuffer::around(coded);
        let mut frame = OpenFrame::at(coded, 0, out)?;
        while out.len() < n.min(out.capacity()) {
            let read = input.pos();
            let had = out.len();
            let pending = self.step(&mut input, out, n)?;
            if pending == 0 {
                frame = frame.ended(coded, input.pos(), out)?;
            }
            if pending == 0 && input.pos() == coded.len() {
                break;
            }
            if had == out.len() && input.pos() == read {
                return Err(cut_short(coded, out.len()));
            }
        }
        Ok(())
    }
}

/// A frame that is being decoded. Where a frame ends with an empty block, libzstd does not always
/// compare the declared size with that of the decoded bytes.
struct OpenFrame {
    /// Its offset.
    at: usize,
    declared: Option<u64>,
    /// The decoded bytes of the frames before.
    before: usize,
}

impl OpenFrame {
    /// The frame at an offset of `coded`. No frame starts at the end.
    fn at(coded: &[u8], at: usize, out: &[u8]) -> Result<Self, Fault> {
        let declared = match coded.get(at..) {
            None | Some([]) => None,
            Some(rest) => declared_size(rest).map_err(|fault| fault.shifted(at))?,
        };
        Ok(Self { at, declared, before: out.len() })
    }

    /// The frame after this one, which has ended before the offset `next`.
    fn ended(self, coded: &[u8], next: usize, out: &[u8]) -> Result<Self, Fault> {
        let decoded = out.len() - self.before;
        match self.declared {
            Some(size) if size != decoded as u64 => Err(Fault::new(
                self.at,
                format!("{decoded} decoded bytes"),
                format!("the {size} bytes that the frame declares"),
            )),
            _ => Self::at(coded, next, out),
        }
    }
}

/// The spare capacity of a vector, up to a length.
struct Limited<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
}

// SAFETY: a vector owns `capacity()` bytes from its pointer on, its slice is its initialised part,
// and its length is what marks them; a smaller limit only narrows what may be written.
unsafe impl WriteBuf for Limited<'_> {
    fn as_slice(&self) -> &[u8] {
        self.out
    }

    fn capacity(&self) -> usize {
        self.out.capacity().min(self.limit)
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.out.as_mut_ptr()
    }

    unsafe fn filled_until(&mut self, n: usize) {
        // SAFETY: the caller has written the first `n` bytes.
        unsafe { self.out.set_len(n) };
    }
}

/// The decoded size that the first frame declares; `None` if it declares none.
fn declared_size(coded: &[u8]) -> Result<Option<u64>, Fault> {
    zstd_safe::get_frame_content_size(coded).map_err(|_| {
        Fault::new(0, format!("{} bytes without a valid frame header", coded.len()), "a zstd frame")
    })
}

fn refused(at: usize, code: usize) -> Fault {
    Fault::new(at, zstd_safe::get_error_name(code), "a valid zstd frame")
}

fn too_large(coded: &[u8], what: String, limit: usize) -> Fault {
    Fault::new(
        0,
        format!("{what} in {} bytes", coded.len()),
        format!("at most {limit} decoded bytes"),
    )
}

fn cut_short(coded: &[u8], decoded: usize) -> Fault {
    Fault::new(
        coded.len(),
        format!("the end after {decoded} decoded bytes"),
        "the rest of the zstd frame",
    )
}

/// A compression context for one thread.
pub struct ZstdCompressor {
    context: CCtx<'static>,
}

impl std::fmt::Debug for ZstdCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("zstd::Compressor")
    }
}

impl ZstdCompressor {
    /// A new context. slow5lib and POD5 use level 1.
    pub fn new(level: i32) -> Result<Self, Fault> {
        let mut context = CCtx::create();
        context
            .set_parameter(CParameter::CompressionLevel(level))
            .map_err(|code| refused(0, code))?;
        Ok(Self { context })
    }

    /// Replaces `out` by `plain` as one frame that declares its size.
    pub fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        out.clear();
        let bound = zstd_safe::compress_bound(plain.len());
        out.reserve(bound);
        self.context
            .compress2(&mut Limited { out, limit: bound }, plain)
            .map_err(|code| refused(0, code))?;
        Ok(())
    }
}
