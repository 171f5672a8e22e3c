//! StreamVByte16: samples as 16-bit zigzag differences of one or two bytes. Inside zstd it is
//! POD5's VBZ.
//!
//! ```text
//! keys: ceil(n / 8) bytes, one flag a sample, lowest first: 0 one byte, 1 two bytes
//! data: the values' bytes, little-endian, without gaps
//! ```
//!
//! A value is the zigzag of the difference from the sample before (the first from 0), modulo 2^16.
//! Specified by its implementation, <https://github.com/nanoporetech/pod5-file-format>
//! (`c++/pod5_format/svb16`). Unused flags of the last key byte are zero when written and ignored
//! when read, as there.
//!
//! ```
//! use thalweg_codec::svb16;
//!
//! let mut coded = Vec::new();
//! let mut samples = Vec::new();
//! svb16::encode(&[500, 503, 498], &mut coded);
//! assert_eq!(coded, [0b001, 0xe8, 0x03, 6, 9]);
//! svb16::decode(&coded, 3, &mut samples)?;
//! assert_eq!(samples, [500, 503, 498]);
//! # Ok::<(), thalweg_codec::Fault>(())
//! ```
#![allow(unsafe_code)] // The output is filled by SIMD kernels and never zeroed first.

use std::mem::MaybeUninit;

use crate::lanes::{BLOCK, Progress};
use crate::svb::{leftover, missing};
use crate::zigzag::{unzigzag_16, zigzag_16};
use crate::{Fault, Kernel};

/// Bytes of the sample count at the start of a BLOW5 payload.
const COUNT_BYTES: usize = 4;

/// Appends `samples` samples to `out`. `coded` must hold exactly these samples.
pub fn decode(coded: &[u8], samples: usize, out: &mut Vec<i16>) -> Result<(), Fault> {
    decode_with(Kernel::best(), coded, samples, out)
}

/// [`decode`] by a given kernel, which must be available.
#[doc(hidden)]
pub fn decode_with(
    kernel: Kernel,
    coded: &[u8],
    samples: usize,
    out: &mut Vec<i16>,
) -> Result<(), Fault> {
    let key_bytes = samples.div_ceil(8);
    let Some((keys, data)) =
        coded.split_at_checked(key_bytes).filter(|(_, data)| data.len() >= samples)
    else {
        let found = format!("{} bytes", coded.len());
        return Err(Fault::new(coded.len(), found, format!("keys and data of {samples} samples")));
    };
    out.reserve(samples);
    let spare = &mut out.spare_capacity_mut()[..samples];
    let mut at = kernel.decode_svb16(keys, data, spare, Progress::default());
    sum_scalar(keys, data, spare, &mut at)?;
    if at.bytes < data.len() {
        return Err(leftover(keys.len() + at.bytes, data.len() - at.bytes, samples));
    }
    // SAFETY: `samples` elements beyond the length are reserved, and the two steps above
    // initialised all of them.
    unsafe { out.set_len(out.len() + samples) };
    Ok(())
}

fn sum_scalar(
    keys: &[u8],
    data: &[u8],
    out: &mut [MaybeUninit<i16>],
    at: &mut Progress,
) -> Result<(), Fault> {
    let samples = out.len();
    for (i, out) in out.iter_mut().enumerate().skip(at.samples) {
        let two = keys[i / 8] >> (i % 8) & 1 == 1;
        let value = match (data.get(at.bytes), data.get(at.bytes + 1)) {
            (Some(&low), _) if !two => u16::from(low),
            (Some(&low), Some(&high)) => u16::from_le_bytes([low, high]),
            _ => return Err(missing(keys.len() + at.bytes, data.len() - at.bytes, i, samples)),
        };
        at.previous = at.previous.wrapping_add(unzigzag_16(value));
        at.bytes += 1 + usize::from(two);
        out.write(at.previous);
    }
    at.samples = samples;
    Ok(())
}

/// Appends the coded form of `samples` to `out`.
pub fn encode(samples: &[i16], out: &mut Vec<u8>) {
    encode_with(Kernel::best(), samples, out);
}

/// [`encode`] by a given kernel, which must be available.
#[doc(hidden)]
pub fn encode_with(kernel: Kernel, samples: &[i16], out: &mut Vec<u8>) {
    let key_bytes = samples.len().div_ceil(8);
    out.reserve(key_bytes + 2 * samples.len());
    let (keys, data) = out.spare_capacity_mut().split_at_mut(key_bytes);
    let mut at = Progress::default();
    // The first sample has no predecessor, so that scalar code encodes the first block.
    pack_scalar(samples, keys, data, &mut at, samples.len().min(BLOCK));
    if at.samples == BLOCK {
        at = kernel.pack16(samples, keys, data, at);
    }
    pack_scalar(samples, keys, data, &mut at, samples.len());
    // SAFETY: both steps above initialised the keys of all samples and `at.bytes` bytes of data
    // behind them.
    unsafe { out.set_len(out.len() + key_bytes + at.bytes) };
}

/// Encodes up to sample `until`. `at` must be at a multiple of eight samples, because key bytes are
/// written whole.
fn pack_scalar(
    samples: &[i16],
    keys: &mut [MaybeUninit<u8>],
    data: &mut [MaybeUninit<u8>],
    at: &mut Progress,
    until: usize,
) {
    for (key, eight) in keys[at.samples / 8..].iter_mut().zip(samples[at.samples..until].chunks(8))
    {
        let mut flags = 0;
        for (i, &sample) in eight.iter().enumerate() {
            let value = zigzag_16(sample.wrapping_sub(at.previous));
            at.previous = sample;
            let two = value > 0xff;
            flags |= u8::from(two) << i;
            let [low, high] = value.to_le_bytes();
            data[at.bytes].write(low);
            if two {
                data[at.bytes + 1].write(high);
            }
            at.bytes += 1 + usize::from(two);
        }
        key.write(flags);
    }
    at.samples = until;
}

/// Appends the samples of a BLOW5 payload of signal compression 253 (a 32-bit count, then the
/// samples) to `out`.
pub fn decode_prefixed(coded: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    decode_prefixed_with(Kernel::best(), coded, out)
}

/// [`decode_prefixed`] by a given kernel, which must be available.
#[doc(hidden)]
pub fn decode_prefixed_with(kernel: Kernel, coded: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    let Some((count, rest)) = coded.split_first_chunk::<COUNT_BYTES>() else {
        return Err(Fault::new(0, format!("{} bytes", coded.len()), "a 32-bit sample count"));
    };
    decode_with(kernel, rest, u32::from_le_bytes(*count) as usize, out)
        .map_err(|fault| fault.shifted(COUNT_BYTES))
}

/// Appends the BLOW5 payload of `samples` to `out`. Fails only if the count does not fit its 32
/// bits.
pub fn encode_prefixed(samples: &[i16], out: &mut Vec<u8>) -> Result<(), Fault> {
    let Ok(count) = u32::try_from(samples.len()) else {
        return Err(Fault::new(0, format!("{} samples", samples.len()), "a count below 2^32"));
    };
    out.extend_from_slice(&count.to_le_bytes());
    encode(samples, out);
    Ok(())
}
