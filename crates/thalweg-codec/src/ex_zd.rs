//! ex-zd: samples as one-byte zigzag differences, with exceptions listed aside. BLOW5's signal
//! compression 2.
//!
//! ```text
//! u8  version, 0
//! u64 n, number of samples
//! u8  q <= 5: every sample was a multiple of 2^q and was shifted right by q
//! u16 zigzag of the first sample
//! u32 number of exceptions: differences, of the n - 1 that follow, whose zigzag is above 255
//!     none:     nothing
//!     one:      u32 position, u32 value - 256
//!     several:  u32 size, StreamVByte of the positions (the first, then gaps - 1);
//!               u32 size, StreamVByte of the values - 256
//! u8  for every other difference, in order: its zigzag
//! ```
//!
//! Specified by its implementation in slow5lib, `src/slow5_press.c`. Differences are modulo 2^16.
//!
//! slow5lib cannot write zero samples (it reads before its buffer). Here they are the form above
//! with n, q, the first sample and the number of exceptions all zero, so that readers stay inside
//! the payload.
#![allow(unsafe_code)] // The output is filled by SIMD kernels and never zeroed first.

use std::mem::MaybeUninit;

use crate::lanes::{BLOCK, Progress};
use crate::svb::SvbValues;
use crate::zigzag::{unzigzag_16, zigzag_16};
use crate::{Fault, Kernel, svb};

/// The greatest shift (slow5lib's `find_qts` is called with 5).
const MOST_SHIFT: u8 = 5;
/// The smallest exception. Values are stored with this number subtracted.
const LEAST_EXCEPTION: u32 = 256;
/// Samples decoded at a time: their flags and exceptions stay in the first-level cache, on the
/// stack.
const CHUNK: usize = 4096;

/// The fields up to the number of exceptions.
struct ExZdHeader {
    samples: usize,
    shift: u8,
    first: i16,
    exceptions: usize,
}

const HEADER_BYTES: usize = 1 + 8 + 1 + 2 + 4;

impl ExZdHeader {
    fn parse(coded: &[u8]) -> Result<(Self, &[u8]), Fault> {
        let Some((header, rest)) = coded.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Fault::new(
                0,
                format!("{} bytes", coded.len()),
                format!("a header of {HEADER_BYTES}"),
            ));
        };
        let &[version, n0, n1, n2, n3, n4, n5, n6, n7, shift, f0, f1, e0, e1, e2, e3] = header;
        if version != 0 {
            return Err(Fault::new(0, format!("version {version}"), "ex-zd version 0"));
        }
        if shift > MOST_SHIFT {
            return Err(Fault::new(
                9,
                format!("a shift of {shift}"),
                format!("at most {MOST_SHIFT}"),
            ));
        }
        let samples = u64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]);
        let exceptions = u32::from_le_bytes([e0, e1, e2, e3]);
        let first = unzigzag_16(u16::from_le_bytes([f0, f1]));
        // Every sample but the first takes a byte at least, and every exception two.
        if samples > rest.len() as u64 + 1 || u64::from(exceptions) * 2 > rest.len() as u64 {
            let found =
                format!("{samples} samples, {exceptions} exceptions in {} bytes", rest.len());
            return Err(Fault::new(1, found, "counts that fit the bytes"));
        }
        // A first sample says that there is one: the count is damaged. slow5lib reads one then.
        if samples == 0 && (first != 0 || shift != 0) {
            let found = format!("no samples, the first of which is {first}");
            return Err(Fault::new(1, found, "a count of samples"));
        }
        Ok((
            Self { samples: samples as usize, shift, first, exceptions: exceptions as usize },
            rest,
        ))
    }
}

/// The number of samples in a payload. It is checked against the number of bytes.
pub fn samples(coded: &[u8]) -> Result<usize, Fault> {
    Ok(ExZdHeader::parse(coded)?.0.samples)
}

/// Appends the samples of a payload to `out`.
pub fn decode(coded: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    decode_with(Kernel::best(), coded, out)
}

/// [`decode`] by a given kernel, which must be available.
#[doc(hidden)]
pub fn decode_with(kernel: Kernel, coded: &[u8], out: &mut Vec<i16>) -> Result<(), Fault> {
    let (header, rest) = ExZdHeader::parse(coded)?;
    let samples = header.samples;
    if samples == 0 {
        return match rest {
            [] if header.exceptions == 0 => Ok(()),
            _ => Err(svb::leftover(HEADER_BYTES, rest.len(), 0)),
        };
    }
    let (mut exceptions, data) = Exceptions::parse(&header, rest)?;
    let plain = (samples - 1).checked_sub(header.exceptions);
    if plain != Some(data.len()) {
        let found = format!("{} bytes, {} exceptions", data.len(), header.exceptions);
        return Err(Fault::new(
            coded.len() - data.len(),
            found,
            format!("{} differences", samples - 1),
        ));
    }
    out.reserve(samples);
    let spare = &mut out.spare_capacity_mut()[..samples];
    let (first, differences) = spare.split_at_mut(1);
    first[0].write(header.first);
    let mut at = Progress { previous: header.first, ..Progress::default() };
    for chunk in differences.chunks_mut(CHUNK) {
        let words = exceptions.fill(at.samples, chunk.len(), samples - 1)?;
        let from = at.samples;
        at = kernel.decode_ex_zd(&exceptions.flags, &exceptions.words, data, chunk, at);
        sum_scalar(&exceptions, words, data, chunk, from, &mut at)
            .map_err(|fault| fault.shifted(coded.len() - data.len()))?;
    }
    exceptions.finish()?;
    if header.shift > 0 {
        for sample in &mut *spare {
            // SAFETY: all samples have been written: the first above, each chunk of the others in
            // the loop.
            sample.write(unsafe { sample.assume_init() } << header.shift);
        }
    }
    // SAFETY: `samples` elements beyond the length are reserved, and all have been written.
    unsafe { out.set_len(out.len() + samples) };
    Ok(())
}

/// Decodes the rest of a chunk, which starts at sample `from`, after the kernel has stopped.
fn sum_scalar(
    exceptions: &Exceptions<'_>,
    words: usize,
    data: &[u8],
    chunk: &mut [MaybeUninit<i16>],
    from: usize,
    at: &mut Progress,
) -> Result<(), Fault> {
    let done = at.samples - from;
    let seen: u32 = exceptions.flags[..done / BLOCK].iter().map(|flags| flags.count_ones()).sum();
    let mut words = exceptions.words[seen as usize..words].iter();
    for (i, out) in chunk.iter_mut().enumerate().skip(done) {
        let flagged = exceptions.flags[i / BLOCK] >> (i % BLOCK) & 1 == 1;
        let value = if flagged {
            // One word was stored for each flag.
            words.next().copied().unwrap_or_default()
        } else if let Some(&byte) = data.get(at.bytes) {
            at.bytes += 1;
            u16::from(byte)
        } else {
            // The counts match, so that the missing exceptions have positions beyond the end.
            return Err(Fault::new(
                at.bytes,
                "the end",
                format!("the byte of difference {}", from + i),
            ));
        };
        at.previous = at.previous.wrapping_add(unzigzag_16(value));
        out.write(at.previous);
    }
    at.samples = from + chunk.len();
    Ok(())
}

/// The two lists of exceptions, and the exceptions of the current chunk.
struct Exceptions<'a> {
    lists: Lists<'a>,
    /// Position of the next exception, if it has been read.
    next: Option<usize>,
    /// Position of the latest exception read, plus one.
    after: usize,
    /// One flag per sample of the chunk: whether it is an exception.
    flags: [u32; CHUNK / BLOCK],
    /// The chunk's exceptions, with room for kernels that read past them.
    words: [u16; CHUNK + BLOCK],
}

enum Lists<'a> {
    None,
    One {
        value: u16,
    },
    Several {
        positions: SvbValues<'a>,
        positions_at: usize,
        values: SvbValues<'a>,
        values_at: usize,
    },
}

impl<'a> Exceptions<'a> {
    /// Splits the exceptions from the bytes that follow.
    fn parse(header: &ExZdHeader, rest: &'a [u8]) -> Result<(Self, &'a [u8]), Fault> {
        let (lists, next, data) = match header.exceptions {
            0 => (Lists::None, None, rest),
            1 => {
                let Some((&[p0, p1, p2, p3, v0, v1, v2, v3], data)) = rest.split_first_chunk::<8>()
                else {
                    return Err(Fault::new(
                        HEADER_BYTES,
                        format!("{} bytes", rest.len()),
                        "position and value",
                    ));
                };
                let value = exception(u32::from_le_bytes([v0, v1, v2, v3]), HEADER_BYTES + 4)?;
                (Lists::One { value }, Some(u32::from_le_bytes([p0, p1, p2, p3]) as usize), data)
            }
            count => {
                let (positions, after) =
                    list(rest, count).map_err(|fault| fault.shifted(HEADER_BYTES))?;
                let values_at = HEADER_BYTES + rest.len() - after.len();
                let (values, data) =
                    list(after, count).map_err(|fault| fault.shifted(values_at))?;
                let mut lists = Lists::Several {
                    positions,
                    positions_at: HEADER_BYTES + 4,
                    values,
                    values_at: values_at + 4,
                };
                let first = lists.next_position()?;
                (lists, first, data)
            }
        };
        Ok((
            Self { lists, next, after: 0, flags: [0; CHUNK / BLOCK], words: [0; CHUNK + BLOCK] },
            data,
        ))
    }

    /// Flags the exceptions among the `len` differences from `from` on, of `all`; returns how many
    /// there are.
    fn fill(&mut self, from: usize, len: usize, all: usize) -> Result<usize, Fault> {
        self.flags[..len.div_ceil(BLOCK)].fill(0);
        let mut words = 0;
        while let Some(position) = self.next {
            if position >= all {
                let found = format!("an exception at difference {position}");
                return Err(Fault::new(
                    self.lists.offset(),
                    found,
                    format!("one of the {all} differences"),
                ));
            }
            if position >= from + len {
                break;
            }
            self.flags[(position - from) / BLOCK] |= 1 << ((position - from) % BLOCK);
            self.words[words] = self.lists.value()?;
            words += 1;
            self.after = position + 1;
            self.next = self.lists.next_position()?.map(|gap| gap + self.after);
        }
        Ok(words)
    }

    /// Checks that both lists are used up.
    fn finish(&self) -> Result<(), Fault> {
        match &self.lists {
            Lists::Several { positions, positions_at, values, values_at } => {
                positions.finish().map_err(|fault| fault.shifted(*positions_at))?;
                values.finish().map_err(|fault| fault.shifted(*values_at))
            }
            Lists::None | Lists::One { .. } => Ok(()),
        }
    }
}

impl Lists<'_> {
    /// The next stored position: the first is absolute, each other is the gap to the one before,
    /// less 1. `None` after the last.
    #[inline(always)]
    fn next_position(&mut self) -> Result<Option<usize>, Fault> {
        let Self::Several { positions, positions_at, .. } = self else { return Ok(None) };
        match positions.next() {
            Some(gap) => Ok(Some(gap as usize)),
            None => positions.finish().map(|()| None).map_err(|fault| fault.shifted(*positions_at)),
        }
    }

    #[inline(always)]
    fn value(&mut self) -> Result<u16, Fault> {
        match self {
            Self::None => Ok(0),
            Self::One { value } => Ok(*value),
            Self::Several { values, values_at, .. } => match values.next() {
                Some(value) => exception(value, *values_at + values.offset()),
                None => {
                    values.finish().map_err(|fault| fault.shifted(*values_at))?;
                    Ok(0)
                }
            },
        }
    }

    fn offset(&self) -> usize {
        match self {
            Self::Several { positions, positions_at, .. } => *positions_at + positions.offset(),
            Self::None | Self::One { .. } => HEADER_BYTES,
        }
    }
}

/// Splits off a list of `count` values, which its size in bytes precedes. Returns the list and the
/// remaining bytes.
fn list(rest: &[u8], count: usize) -> Result<(SvbValues<'_>, &[u8]), Fault> {
    let (size, rest) = rest.split_first_chunk::<4>().ok_or_else(|| {
        Fault::new(0, format!("{} bytes", rest.len()), "the size of a list of exceptions")
    })?;
    let size = u32::from_le_bytes(*size) as usize;
    let Some((coded, after)) = rest.split_at_checked(size) else {
        return Err(Fault::new(
            0,
            format!("a list of {size} bytes"),
            format!("at most the {} left", rest.len()),
        ));
    };
    Ok((SvbValues::new(coded, count).map_err(|fault| fault.shifted(4))?, after))
}

/// The zigzag difference of an exception stored as `stored`. A value above 16 bits is a fault.
#[inline(always)]
fn exception(stored: u32, at: usize) -> Result<u16, Fault> {
    match u16::try_from(u64::from(stored) + u64::from(LEAST_EXCEPTION)) {
        Ok(value) => Ok(value),
        Err(_) => {
            Err(Fault::new(at, format!("an exception of {stored} + 256"), "a 16-bit difference"))
        }
    }
}

/// Appends the payload of `samples` to `out`, byte for byte as slow5lib writes it, except for zero
/// samples.
///
/// Fails only if the count does not fit 32 bits: slow5lib counts differences with them.
pub fn encode(samples: &[i16], out: &mut Vec<u8>) -> Result<(), Fault> {
    if u32::try_from(samples.len()).is_err() {
        return Err(Fault::new(0, format!("{} samples", samples.len()), "a count below 2^32"));
    }
    out.push(0);
    out.extend_from_slice(&(samples.len() as u64).to_le_bytes());
    let Some((&first, others)) = samples.split_first() else {
        out.extend_from_slice(&[0; HEADER_BYTES - 9]);
        return Ok(());
    };
    let shift = shift(samples);
    out.push(shift);
    let mut previous = first >> shift;
    out.extend_from_slice(&zigzag_16(previous).to_le_bytes());

    let mut gaps = Vec::new();
    let mut values = Vec::new();
    let mut plain = Vec::with_capacity(others.len());
    let mut after = 0;
    for (i, &sample) in others.iter().enumerate() {
        let sample = sample >> shift;
        let value = zigzag_16(sample.wrapping_sub(previous));
        previous = sample;
        if let Ok(byte) = u8::try_from(value) {
            plain.push(byte);
        } else {
            gaps.push((i - after) as u32);
            after = i + 1;
            values.push(u32::from(value) - LEAST_EXCEPTION);
        }
    }
    out.extend_from_slice(&(gaps.len() as u32).to_le_bytes());
    match (&gaps[..], &values[..]) {
        ([], _) => {}
        (&[position], &[value]) => {
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
        _ => {
            for list in [&gaps, &values] {
                let size_at = out.len();
                out.extend_from_slice(&[0; 4]);
                svb::encode_u32(list, out);
                let size = (out.len() - size_at - 4) as u32;
                out[size_at..size_at + 4].copy_from_slice(&size.to_le_bytes());
            }
        }
    }
    out.extend_from_slice(&plain);
    Ok(())
}

/// The number of low bits that are clear in every sample, at most [`MOST_SHIFT`].
fn shift(samples: &[i16]) -> u8 {
    let any = samples.iter().fold(0, |any, &sample| any | sample);
    (any.trailing_zeros() as u8).min(MOST_SHIFT)
}
