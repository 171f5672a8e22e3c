//! svb-zd: samples as StreamVByte of zigzag differences. BLOW5's signal compression 1; inside zstd,
//! FAST5's VBZ.
//!
//! Samples are widened to 32 bits before the difference is taken (the first from 0), so a value has
//! up to 17 bits and takes one to three bytes. Decoding keeps the low 16 bits of the sum, as
//! slow5lib does.
//!
//! ```
//! use thalweg_codec::svb::zd;
//!
//! let mut coded = Vec::new();
//! let mut samples = Vec::new();
//! zd::encode(&[500, 503, 498], &mut coded)?;
//! assert_eq!(coded, [3, 0, 0, 0, 0b000001, 0xe8, 0x03, 6, 9]);
//! zd::decode(&coded, &mut samples)?;
//! assert_eq!(samples, [500, 503, 498]);
//! # Ok::<(), thalweg_codec::Fault>(())
//! ```
#![allow(unsafe_code)] // The output is filled by SIMD kernels and never zeroed first.

use std::mem::MaybeUninit;

use crate::lanes::{BLOCK, Progress};
use crate::zigzag::zigzag_32;
use crate::{Fault, Kernel, svb};

/// Bytes of the sample count at the start of a payload.
const COUNT_BYTES: usize = 4;

/// Appends the samples of a BLOW5 payload (a 32-bit count, then the samples) to `out`.
pub fn decode(coded: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    decode_with(Kernel::best(), coded, out)
}

/// [`decode`] by a given kernel, which must be available.
#[doc(hidden)]
pub fn decode_with(kernel: Kernel, coded: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    let count = samples(coded)?;
    decode_exact_with(kernel, &coded[COUNT_BYTES..], count, out)
        .map_err(|fault| fault.shifted(COUNT_BYTES))
}

/// The number of samples in a BLOW5 payload. It is checked against the number of bytes.
pub fn samples(coded: &[u8]) -> Result<usize, Fault> {
    let Some((count, rest)) = coded.split_first_chunk::<COUNT_BYTES>() else {
        return Err(Fault::new(0, format!("{} bytes", coded.len()), "a 32-bit sample count"));
    };
    let count = u32::from_le_bytes(*count) as usize;
    if count.div_ceil(4).saturating_add(count) > rest.len() {
        return Err(Fault::new(
            0,
            format!("{count} samples in {} bytes", rest.len()),
            "a count that fits the bytes",
        ));
    }
    Ok(count)
}

/// Appends `samples` samples, stored without a count, to `out`. `coded` must hold exactly these
/// samples.
pub fn decode_exact(coded: &[u8], samples: usize, out: &mut Vec<i16>) -> Result<(), Fault> {
    decode_exact_with(Kernel::best(), coded, samples, out)
}

fn decode_exact_with(
    kernel: Kernel,
    coded: &[u8],
    samples: usize,
    out: &mut Vec<i16>,
) -> Result<(), Fault> {
    let (keys, data) = svb::split(coded, samples)?;
    out.reserve(samples);
    let spare = &mut out.spare_capacity_mut()[..samples];
    let mut at = Progress::default();
    while at.samples < samples {
        at = kernel.decode_svb_zd(keys, data, spare, at);
        // The kernel stops before a block with a long code, or near the end.
        let until =
            if kernel == Kernel::Scalar { samples } else { samples.min(at.samples + BLOCK) };
        svb::sum_scalar(keys, data, spare, &mut at, until)?;
    }
    if at.bytes < data.len() {
        return Err(svb::leftover(keys.len() + at.bytes, data.len() - at.bytes, samples));
    }
    // SAFETY: `samples` elements beyond the length are reserved, and both steps above initialised
    // all of them.
    unsafe { out.set_len(out.len() + samples) };
    Ok(())
}

/// Appends the BLOW5 payload of `samples` to `out`, byte for byte as slow5lib writes it.
///
/// Fails only if the count does not fit its 32 bits.
pub fn encode(samples: &[i16], out: &mut Vec<u8>) -> Result<(), Fault> {
    let Ok(count) = u32::try_from(samples.len()) else {
        return Err(Fault::new(0, format!("{} samples", samples.len()), "a count below 2^32"));
    };
    out.extend_from_slice(&count.to_le_bytes());
    encode_exact(samples, out);
    Ok(())
}

/// Appends the coded form of `samples`, without a count, to `out`.
pub fn encode_exact(samples: &[i16], out: &mut Vec<u8>) {
    encode_exact_with(Kernel::best(), samples, out);
}

/// [`encode_exact`] by a given kernel, which must be available.
#[doc(hidden)]
pub fn encode_exact_with(kernel: Kernel, samples: &[i16], out: &mut Vec<u8>) {
    let key_bytes = samples.len().div_ceil(4);
    out.reserve(key_bytes + MOST_BYTES * samples.len());
    let (keys, data) = out.spare_capacity_mut().split_at_mut(key_bytes);
    let mut at = Progress::default();
    while at.samples < samples.len() {
        // The first sample has no predecessor. Later, the kernel stops before a block with a
        // difference of three bytes, or near the end.
        let until = if kernel == Kernel::Scalar {
            samples.len()
        } else {
            samples.len().min(at.samples + BLOCK)
        };
        pack_scalar(samples, keys, data, &mut at, until);
        at = kernel.pack_zd(samples, keys, data, at);
    }
    // SAFETY: both steps above initialised the keys of all samples and `at.bytes` bytes of data
    // behind them.
    unsafe { out.set_len(out.len() + key_bytes + at.bytes) };
}

/// The most bytes that a difference of two samples takes.
const MOST_BYTES: usize = 3;

/// Encodes up to sample `until`. `at` must be at a multiple of four samples, because key bytes are
/// written whole.
fn pack_scalar(
    samples: &[i16],
    keys: &mut [MaybeUninit<u8>],
    data: &mut [MaybeUninit<u8>],
    at: &mut Progress,
    until: usize,
) {
    for (key, four) in keys[at.samples / 4..].iter_mut().zip(samples[at.samples..until].chunks(4)) {
        let mut codes = 0;
        for (i, &sample) in four.iter().enumerate() {
            let value = zigzag_32(i32::from(sample) - i32::from(at.previous));
            at.previous = sample;
            let len = if value > 0xffff { MOST_BYTES } else { 1 + usize::from(value > 0xff) };
            codes |= (len as u8 - 1) << (2 * i);
            for (byte, place) in
                value.to_le_bytes().into_iter().zip(&mut data[at.bytes..at.bytes + len])
            {
                place.write(byte);
            }
            at.bytes += len;
        }
        key.write(codes);
    }
    at.samples = until;
}
