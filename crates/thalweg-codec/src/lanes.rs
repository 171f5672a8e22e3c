//! SIMD for the signal codecs, written once over [`Lanes`] and instantiated for each instruction
//! set.
//!
//! All three decoders have the same steps: extract 32 zigzag differences, undo the zigzag, sum the
//! differences up, store the samples. They differ in how they extract the 16-bit differences. The
//! address of the next 32 follows from counting bits of the keys, so that the only dependencies
//! between blocks are one scalar addition and one vector addition.
//!
//! The encoders of the two StreamVByte formats take differences, apply the zigzag, and pack the
//! bytes that are not zero.
//!
//! A driver decodes while 32 samples and enough readable bytes remain, and leaves the rest to the
//! codec's scalar implementation, which also reports the defects.
// SIMD: intrinsics, loads past the bytes consumed (never past the slice), uninitialised output.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use crate::kernel::Kernel;
use crate::picoampere::Calibration;

#[cfg(target_arch = "aarch64")]
mod neon;
mod tables;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Samples in a block.
pub(crate) const BLOCK: usize = 32;
/// The most bytes that a block loads from its start: 32 samples of two bytes.
const REACH: usize = 2 * BLOCK;
/// The bits of 2-bit codes that are set for values of three or four bytes.
const LONG_CODES: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// The progress of decoding or encoding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Samples done.
    pub(crate) samples: usize,
    /// Bytes of data read or written.
    pub(crate) bytes: usize,
    /// The latest sample.
    pub(crate) previous: i16,
}

/// The result of packing a block.
#[derive(Debug, Clone, Copy)]
struct Packed {
    /// Flag i is set if value i took two bytes.
    flags: u32,
    /// Whether a difference does not fit 16 bits.
    wrapped: bool,
}

/// The operations on 32 lanes that an instruction set must offer.
///
/// # Safety
/// Every method may only be called where the instruction set is available, and is inlined into a
/// function that enables it.
unsafe trait Lanes {
    /// A vector of 32 zigzag differences.
    type Zigzag: Copy;
    /// A vector with the latest sample in every lane.
    type Carry: Copy;

    unsafe fn carry(previous: i16) -> Self::Carry;
    unsafe fn last(carry: Self::Carry) -> i16;

    /// Loads 32 lanes. Lane i is two bytes if flag i is set, else one. `data` must be readable for
    /// [`REACH`] bytes.
    unsafe fn widen(flags: u32, data: *const u8) -> Self::Zigzag;

    /// Loads 32 lanes. Lane i is two bytes if bit 2i of `codes` is set, else one; the odd bits are
    /// clear. `data` must be readable for [`REACH`] bytes.
    #[inline(always)]
    unsafe fn widen_codes(codes: u64, data: *const u8) -> Self::Zigzag {
        // SAFETY: the same contract.
        unsafe { Self::widen(tables::even_bits(codes), data) }
    }

    /// Merges 32 lanes. Lane i is the next of `words` if flag i is set, else the next of `bytes`.
    /// `bytes` must be readable for [`BLOCK`] bytes and `words` for [`BLOCK`] words.
    unsafe fn patch(flags: u32, bytes: *const u8, words: *const u16) -> Self::Zigzag;

    /// Undoes the zigzag, sums the differences up from `carry` and writes [`BLOCK`] samples to
    /// `out`. Returns the new carry.
    unsafe fn sum(zigzag: Self::Zigzag, carry: Self::Carry, out: *mut i16) -> Self::Carry;

    /// Writes the zigzag differences of [`BLOCK`] samples, each from the sample before it, modulo
    /// 2^16. A difference takes two bytes if its returned flag is set, else one. `samples` must be
    /// readable from one sample earlier on, `data` writable for [`REACH`] bytes.
    unsafe fn pack(samples: *const i16, data: *mut u8) -> Packed;
}

/// Decodes blocks of StreamVByte with 2-bit codes. Stops before a block with a value of three or
/// four bytes.
///
/// # Safety
/// `L`'s instruction set must be available.
#[inline(always)]
unsafe fn decode_svb_zd<L: Lanes>(
    keys: &[u8],
    data: &[u8],
    out: &mut [MaybeUninit<i16>],
    from: Progress,
) -> Progress {
    let mut at = from;
    // SAFETY: the caller vouches for the instruction set.
    let mut carry = unsafe { L::carry(from.previous) };
    while out.len() - at.samples >= BLOCK && data.len() - at.bytes >= REACH {
        let Some(&codes) = keys[at.samples / 4..].first_chunk::<8>() else { break };
        let codes = u64::from_le_bytes(codes);
        if codes & LONG_CODES != 0 {
            break;
        }
        // SAFETY: REACH bytes are readable and BLOCK samples writable, as the loop's condition
        // says.
        unsafe {
            let zigzag = L::widen_codes(codes, data.as_ptr().add(at.bytes));
            carry = L::sum(zigzag, carry, out.as_mut_ptr().add(at.samples).cast());
        }
        at.samples += BLOCK;
        at.bytes += BLOCK + codes.count_ones() as usize;
    }
    // SAFETY: as above.
    at.previous = unsafe { L::last(carry) };
    at
}

/// Decodes blocks of StreamVByte with 1-bit codes.
///
/// # Safety
/// `L`'s instruction set must be available.
#[inline(always)]
unsafe fn decode_svb16<L: Lanes>(
    keys: &[u8],
    data: &[u8],
    out: &mut [MaybeUninit<i16>],
    from: Progress,
) -> Progress {
    let mut at = from;
    // SAFETY: the caller vouches for the instruction set.
    let mut carry = unsafe { L::carry(from.previous) };
    while out.len() - at.samples >= BLOCK && data.len() - at.bytes >= REACH {
        let Some(&flags) = keys[at.samples / 8..].first_chunk::<4>() else { break };
        let flags = u32::from_le_bytes(flags);
        // SAFETY: REACH bytes are readable and BLOCK samples writable, as the loop's condition
        // says.
        unsafe {
            let zigzag = L::widen(flags, data.as_ptr().add(at.bytes));
            carry = L::sum(zigzag, carry, out.as_mut_ptr().add(at.samples).cast());
        }
        at.samples += BLOCK;
        at.bytes += BLOCK + flags.count_ones() as usize;
    }
    // SAFETY: as above.
    at.previous = unsafe { L::last(carry) };
    at
}

/// Decodes blocks of one byte per sample. Samples flagged in `flags` are the next of `words`
/// instead.
///
/// # Safety
/// `L`'s instruction set must be available.
#[inline(always)]
unsafe fn decode_ex_zd<L: Lanes>(
    flags: &[u32],
    words: &[u16],
    data: &[u8],
    out: &mut [MaybeUninit<i16>],
    from: Progress,
) -> Progress {
    let mut at = from;
    let mut word = 0;
    // SAFETY: the caller vouches for the instruction set.
    let mut carry = unsafe { L::carry(from.previous) };
    for (out, &flags) in out.chunks_exact_mut(BLOCK).zip(flags) {
        if data.len().saturating_sub(at.bytes) < BLOCK || words.len() - word < BLOCK {
            break;
        }
        // SAFETY: BLOCK bytes and words are readable, as was just checked, and `out` holds BLOCK
        // samples.
        unsafe {
            let zigzag = L::patch(flags, data.as_ptr().add(at.bytes), words.as_ptr().add(word));
            carry = L::sum(zigzag, carry, out.as_mut_ptr().cast());
        }
        let exceptions = flags.count_ones() as usize;
        word += exceptions;
        at.samples += BLOCK;
        at.bytes += BLOCK - exceptions;
    }
    // SAFETY: as above.
    at.previous = unsafe { L::last(carry) };
    at
}

/// Encodes whole blocks from the second on as StreamVByte with codes of one or two bits. With two,
/// it stops before a block with a difference above 16 bits; with one, differences wrap around.
///
/// # Safety
/// `L`'s instruction set must be available.
#[inline(always)]
unsafe fn pack<L: Lanes, const CODE_BITS: usize>(
    samples: &[i16],
    keys: &mut [MaybeUninit<u8>],
    data: &mut [MaybeUninit<u8>],
    from: Progress,
) -> Progress {
    let key_bytes = BLOCK * CODE_BITS / 8;
    let mut at = from;
    while at.samples > 0 && samples.len() - at.samples >= BLOCK && data.len() - at.bytes >= REACH {
        let Some(keys) = keys[at.samples * CODE_BITS / 8..].get_mut(..key_bytes) else { break };
        // SAFETY: BLOCK samples and the one before are readable, REACH bytes writable, as the
        // loop's condition says.
        let packed = unsafe {
            L::pack(samples.as_ptr().add(at.samples), data.as_mut_ptr().add(at.bytes).cast())
        };
        let codes = if CODE_BITS == 1 {
            u64::from(packed.flags)
        } else if packed.wrapped {
            break;
        } else {
            tables::spread(packed.flags)
        };
        for (key, byte) in keys.iter_mut().zip(codes.to_le_bytes()) {
            key.write(byte);
        }
        at.samples += BLOCK;
        at.bytes += BLOCK + packed.flags.count_ones() as usize;
    }
    at.previous = samples[..at.samples].last().copied().unwrap_or_default();
    at
}

/// Appends samples in picoampere. The compiler makes vectors of it.
#[inline(always)]
fn picoampere(calibration: Calibration, samples: &[i16], out: &mut Vec<f32>) {
    out.extend(samples.iter().map(|&sample| calibration.of(sample)));
}

/// The drivers above, compiled for one instruction set.
macro_rules! compile {
    ($module:ident, $lanes:ty, $features:literal) => {
        mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(super) fn decode_svb_zd(
                k: &[u8],
                d: &[u8],
                o: &mut [MaybeUninit<i16>],
                from: Progress,
            ) -> Progress {
                // SAFETY: this function enables the instruction set.
                unsafe { super::decode_svb_zd::<$lanes>(k, d, o, from) }
            }

            #[target_feature(enable = $features)]
            pub(super) fn decode_svb16(
                k: &[u8],
                d: &[u8],
                o: &mut [MaybeUninit<i16>],
                from: Progress,
            ) -> Progress {
                // SAFETY: this function enables the instruction set.
                unsafe { super::decode_svb16::<$lanes>(k, d, o, from) }
            }

            #[target_feature(enable = $features)]
            pub(super) fn decode_ex_zd(
                f: &[u32],
                w: &[u16],
                d: &[u8],
                o: &mut [MaybeUninit<i16>],
                from: Progress,
            ) -> Progress {
                // SAFETY: this function enables the instruction set.
                unsafe { super::decode_ex_zd::<$lanes>(f, w, d, o, from) }
            }

            #[target_feature(enable = $features)]
            pub(super) fn picoampere(c: Calibration, s: &[i16], out: &mut Vec<f32>) {
                super::picoampere(c, s, out);
            }

            #[target_feature(enable = $features)]
            pub(super) fn pack16(
                s: &[i16],
                k: &mut [MaybeUninit<u8>],
                d: &mut [MaybeUninit<u8>],
                from: Progress,
            ) -> Progress {
                // SAFETY: this function enables the instruction set.
                unsafe { super::pack::<$lanes, 1>(s, k, d, from) }
            }

            #[target_feature(enable = $features)]
            pub(super) fn pack_zd(
                s: &[i16],
                k: &mut [MaybeUninit<u8>],
                d: &mut [MaybeUninit<u8>],
                from: Progress,
            ) -> Progress {
                // SAFETY: this function enables the instruction set.
                unsafe { super::pack::<$lanes, 2>(s, k, d, from) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compile!(ssse3, x86::Ssse3, "ssse3,popcnt");
#[cfg(target_arch = "x86_64")]
compile!(avx2, x86::Avx2, "avx2,popcnt");
#[cfg(target_arch = "x86_64")]
compile!(avx512, x86::Avx512, "avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt");
#[cfg(target_arch = "aarch64")]
compile!(with_neon, neon::Neon, "neon");

/// Runs the driver of a kernel, or `$scalar`.
macro_rules! run {
    ($kernel:expr, $driver:ident($($argument:expr),*), $scalar:expr) => {{
        debug_assert!($kernel.is_available());
        match $kernel {
            Kernel::Scalar => $scalar,
            // SAFETY: `Kernel::available` names a kernel only if the processor has its
            // instructions.
            #[cfg(target_arch = "x86_64")]
            Kernel::Ssse3 => unsafe { ssse3::$driver($($argument),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::$driver($($argument),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::$driver($($argument),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => unsafe { with_neon::$driver($($argument),*) },
        }
    }};
}

impl Kernel {
    /// Appends samples in picoampere.
    pub(crate) fn picoampere(self, of: Calibration, samples: &[i16], out: &mut Vec<f32>) {
        run!(self, picoampere(of, samples, out), picoampere(of, samples, out));
    }

    /// Decodes blocks of StreamVByte-1234 zigzag differences from `from` on, up to the first block
    /// that has a value above two bytes or lies too close to the end. All samples up to the
    /// returned progress are initialised.
    pub(crate) fn decode_svb_zd(
        self,
        keys: &[u8],
        data: &[u8],
        out: &mut [MaybeUninit<i16>],
        from: Progress,
    ) -> Progress {
        run!(self, decode_svb_zd(keys, data, out, from), from)
    }

    /// Decodes blocks of StreamVByte16 zigzag differences; see [`Kernel::decode_svb_zd`].
    pub(crate) fn decode_svb16(
        self,
        keys: &[u8],
        data: &[u8],
        out: &mut [MaybeUninit<i16>],
        from: Progress,
    ) -> Progress {
        run!(self, decode_svb16(keys, data, out, from), from)
    }

    /// Decodes blocks of bytes with exceptions into `out`. Sample `32 * b + i` is the next of
    /// `words` if bit i of `flags[b]` is set. `from.bytes` is an offset in `data`; `from.samples`
    /// is only incremented.
    pub(crate) fn decode_ex_zd(
        self,
        flags: &[u32],
        words: &[u16],
        data: &[u8],
        out: &mut [MaybeUninit<i16>],
        from: Progress,
    ) -> Progress {
        run!(self, decode_ex_zd(flags, words, data, out, from), from)
    }

    /// Encodes blocks of samples as StreamVByte16 zigzag differences, from the second block on:
    /// `from` must be a whole number of blocks, at least one. All keys and data up to the returned
    /// progress are initialised.
    pub(crate) fn pack16(
        self,
        samples: &[i16],
        keys: &mut [MaybeUninit<u8>],
        data: &mut [MaybeUninit<u8>],
        from: Progress,
    ) -> Progress {
        run!(self, pack16(samples, keys, data, from), from)
    }

    /// Encodes blocks of samples as StreamVByte-1234 zigzag differences, as [`Kernel::pack16`]
    /// does, up to the first block that has a difference above 16 bits.
    pub(crate) fn pack_zd(
        self,
        samples: &[i16],
        keys: &mut [MaybeUninit<u8>],
        data: &mut [MaybeUninit<u8>],
        from: Progress,
    ) -> Progress {
        run!(self, pack_zd(samples, keys, data, from), from)
    }
}
