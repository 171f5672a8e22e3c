//! Turns stored bytes into values and back: pure functions, no I/O, no threads.
//!
//! The codecs are those of nanopore signal ([`svb`], [`svb16`], [`ex_zd`], [`vbz`]), the filters of
//! HDF5 ([`shuffle`], [`bitshuffle`], [`blosc`], [`blosc2`], [`lz4`], [`lzf`], [`szip`], [`zfp`]),
//! and general byte codecs ([`zstd`], [`deflate`], [`gzip`], [`bzip2`]).
//!
//! ```
//! use thalweg_codec::svb::zd;
//!
//! // Three samples as a BLOW5 file stores them: their number, the keys, the zigzag differences.
//! let stored = [3, 0, 0, 0, 0b000001, 0xe8, 0x03, 6, 9];
//! let mut samples: Vec<i16> = Vec::new();
//! zd::decode(&stored, &mut samples)?;
//! assert_eq!(samples, [500, 503, 498]);
//! # Ok::<(), thalweg_codec::Fault>(())
//! ```
//!
//! Signal codecs *append* decoded samples to a `Vec<i16>`, so that many reads share one buffer, and
//! never allocate more than the coded bytes can hold. A defect is a [`Fault`] with
//! the offset inside the coded bytes, and leaves the buffer as it was. Byte codecs ([`zstd`],
//! [`deflate`], HDF5's filters) *replace* the contents of their output and obey a limit.
//!
//! The SIMD kernels of the signal codecs are in one module, `lanes`. Each codec also has a scalar
//! implementation. Only the scalar code reports defects, so that every machine accepts and refuses
//! the same bytes.

mod bits;
pub mod bitshuffle;
pub mod blosc;
pub mod blosc2;
pub mod bzip2;
pub mod deflate;
pub mod ex_zd;
mod fault;
pub mod gzip;
mod inflate;
mod kernel;
mod lanes;
pub mod lz4;
pub mod lzf;
pub mod nbit;
pub mod picoampere;
pub mod scale_offset;
pub mod shuffle;
pub mod splitmix;
pub mod svb;
pub mod svb16;
pub mod szip;
pub mod vbz;
pub mod zfp;
pub mod zigzag;
pub mod zstd;

pub use fault::Fault;
#[doc(hidden)]
pub use kernel::Kernel;

/// Appends a match: `len` bytes that start `distance` before the end of `out`. The match may
/// overlap the bytes that it appends. `at` is the offset of the match in the stream, for faults.
fn copy_match(out: &mut Vec<u8>, distance: usize, len: usize, at: usize) -> Result<(), Fault> {
    let Some(start) = out.len().checked_sub(distance) else {
        return Err(Fault::new(
            at,
            format!("bytes from {distance} back"),
            format!("at most {}", out.len()),
        ));
    };
    if distance >= len {
        out.extend_from_within(start..start + len);
    } else {
        // An overlapping match repeats itself, so that each step can copy twice as many bytes as
        // the one before.
        let end = out.len() + len;
        while out.len() < end {
            let step = (out.len() - start).min(end - out.len());
            out.extend_from_within(start..start + step);
        }
    }
    Ok(())
}

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
