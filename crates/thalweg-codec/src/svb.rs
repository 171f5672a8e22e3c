//! StreamVByte with 2-bit keys ("1234"): 32-bit values as one to four bytes each.
//!
//! ```text
//! keys: ceil(n / 4) bytes, four 2-bit codes each, lowest first; code c means c + 1 bytes
//! data: the values' bytes, little-endian, without gaps
//! ```
//!
//! Specified by its implementation, <https://github.com/lemire/streamvbyte> (README, "Format
//! Specification"). The unused codes of the last key byte are zero when written and ignored when
//! read, as there.

pub mod zd;

use std::mem::MaybeUninit;

use crate::Fault;
use crate::lanes::Progress;
use crate::zigzag::unzigzag_32;

/// The mask of the value bits for each code.
const MASK: [u32; 4] = [0xff, 0xffff, 0x00ff_ffff, 0xffff_ffff];

/// Decodes `count` values and appends them to `out`. `coded` must hold exactly these values.
pub fn decode_u32(coded: &[u8], count: usize, out: &mut Vec<u32>) -> Result<(), Fault> {
    let mut values = SvbValues::new(coded, count)?;
    let start = out.len();
    out.reserve(count);
    while let Some(value) = values.next() {
        out.push(value);
    }
    let end = values.finish();
    if end.is_err() {
        out.truncate(start);
    }
    end
}

/// Appends the coded form of `values` to `out`.
pub fn encode_u32(values: &[u32], out: &mut Vec<u8>) {
    let keys_at = out.len();
    let mut at = keys_at + values.len().div_ceil(4);
    out.resize(at + size_of_val(values), 0);
    for (i, &value) in values.iter().enumerate() {
        let code =
            u8::from(value > MASK[0]) + u8::from(value > MASK[1]) + u8::from(value > MASK[2]);
        out[keys_at + i / 4] |= code << (2 * (i % 4));
        out[at..at + 4].copy_from_slice(&value.to_le_bytes());
        at += usize::from(code) + 1;
    }
    out.truncate(at);
}

/// Splits keys from data, and checks that the data can hold `count` values.
fn split(coded: &[u8], count: usize) -> Result<(&[u8], &[u8]), Fault> {
    coded.split_at_checked(count.div_ceil(4)).filter(|(_, data)| data.len() >= count).ok_or_else(
        || {
            Fault::new(
                coded.len(),
                format!("{} bytes", coded.len()),
                format!("keys and data of {count} values"),
            )
        },
    )
}

/// The value with `code` at byte `at`; `None` if the data end within it.
#[inline(always)]
fn value(data: &[u8], at: usize, code: u8) -> Option<u32> {
    if let Some(four) = data.get(at..).and_then(|rest| rest.first_chunk()) {
        return Some(u32::from_le_bytes(*four) & MASK[usize::from(code)]);
    }
    let bytes = data.get(at..=at + usize::from(code))?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)))
}

/// The code of the `i`-th value.
#[inline(always)]
fn code(keys: &[u8], i: usize) -> u8 {
    keys[i / 4] >> (2 * (i % 4)) & 3
}

/// A list of values, read one by one.
pub(crate) struct SvbValues<'a> {
    keys: &'a [u8],
    data: &'a [u8],
    count: usize,
    read: usize,
    at: usize,
}

impl<'a> SvbValues<'a> {
    pub(crate) fn new(coded: &'a [u8], count: usize) -> Result<Self, Fault> {
        let (keys, data) = split(coded, count)?;
        Ok(Self { keys, data, count, read: 0, at: 0 })
    }

    /// The next value; `None` after the last one, or if the data end too early.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.read == self.count {
            return None;
        }
        let code = code(self.keys, self.read);
        let value = value(self.data, self.at, code)?;
        self.read += 1;
        self.at += usize::from(code) + 1;
        Some(value)
    }

    /// Byte offset of the next value.
    pub(crate) fn offset(&self) -> usize {
        self.keys.len() + self.at
    }

    /// Checks that every value was read and no bytes are left.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        let left = self.data.len() - self.at;
        if self.read < self.count {
            return Err(missing(self.offset(), left, self.read, self.count));
        }
        if left > 0 {
            return Err(leftover(self.offset(), left, self.count));
        }
        Ok(())
    }
}

pub(crate) fn missing(at: usize, left: usize, read: usize, count: usize) -> Fault {
    Fault::new(
        at,
        format!("{left} bytes left at value {read}"),
        format!("the data of {count} values"),
    )
}

pub(crate) fn leftover(at: usize, left: usize, count: usize) -> Fault {
    Fault::new(at, format!("{left} more bytes"), format!("the end, after {count} values"))
}

/// Decodes zigzag differences up to sample `until`. Fails if the data end before.
fn sum_scalar(
    keys: &[u8],
    data: &[u8],
    out: &mut [MaybeUninit<i16>],
    at: &mut Progress,
    until: usize,
) -> Result<(), Fault> {
    let from = at.samples;
    let out_len = out.len();
    for (i, out) in out.iter_mut().enumerate().take(until).skip(from) {
        let code = code(keys, i);
        let Some(value) = value(data, at.bytes, code) else {
            return Err(missing(keys.len() + at.bytes, data.len() - at.bytes, i, out_len));
        };
        at.previous = at.previous.wrapping_add(unzigzag_32(value) as i16);
        at.bytes += usize::from(code) + 1;
        out.write(at.previous);
    }
    at.samples = from.max(until);
    Ok(())
}
