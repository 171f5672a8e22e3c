//! 64-bit ARM: NEON.

use std::arch::aarch64::*;

use super::tables::{
    EXCEPTION, NARROW, ONE_BYTE_EACH, PLAIN, Shuffles, WIDEN, below, running_counts,
};
use super::{Lanes, Packed};

/// The shuffle for the `i`-th eight of `flags`.
///
/// # Safety
/// NEON must be available.
#[inline(always)]
unsafe fn shuffle(table: &Shuffles, flags: u32, i: usize) -> uint8x16_t {
    let row = &table.0[(flags >> (8 * i)) as usize & 0xff];
    // SAFETY: a row is 16 bytes.
    unsafe { vld1q_u8(row.as_ptr()) }
}

/// Eight lanes at a time.
pub(super) struct Neon;

// SAFETY: each method needs only NEON; loads stay within the bytes that the contract allows, as
// noted.
unsafe impl Lanes for Neon {
    type Zigzag = [uint16x8_t; 4];
    type Carry = uint16x8_t;

    #[inline(always)]
    unsafe fn carry(previous: i16) -> uint16x8_t {
        // SAFETY: NEON.
        unsafe { vdupq_n_u16(previous as u16) }
    }

    #[inline(always)]
    unsafe fn last(carry: uint16x8_t) -> i16 {
        // SAFETY: NEON.
        unsafe { vgetq_lane_u16::<0>(carry) as i16 }
    }

    #[inline(always)]
    unsafe fn widen(flags: u32, data: *const u8) -> [uint16x8_t; 4] {
        let ends = running_counts(flags) + ONE_BYTE_EACH;
        // SAFETY: eight samples start 48 bytes in at most, and 16 bytes are loaded.
        std::array::from_fn(|i| unsafe {
            let packed = vld1q_u8(data.add(below(ends, i)));
            vreinterpretq_u16_u8(vqtbl1q_u8(packed, shuffle(&WIDEN, flags, i)))
        })
    }

    #[inline(always)]
    unsafe fn patch(flags: u32, bytes: *const u8, words: *const u16) -> [uint16x8_t; 4] {
        let ends = running_counts(flags);
        // SAFETY: eight samples start at byte 24 at most, and 8 bytes are loaded; the words
        // likewise.
        std::array::from_fn(|i| unsafe {
            let set = below(ends, i);
            let plain = vcombine_u8(vld1_u8(bytes.add(8 * i - set)), vdup_n_u8(0));
            let exceptions = vld1q_u8(words.add(set).cast());
            vreinterpretq_u16_u8(vorrq_u8(
                vqtbl1q_u8(plain, shuffle(&PLAIN, flags, i)),
                vqtbl1q_u8(exceptions, shuffle(&EXCEPTION, flags, i)),
            ))
        })
    }

    #[inline(always)]
    unsafe fn sum(zigzag: [uint16x8_t; 4], mut carry: uint16x8_t, out: *mut i16) -> uint16x8_t {
        // SAFETY: four stores of eight samples.
        unsafe {
            let zero = vdupq_n_u16(0);
            for (i, z) in zigzag.into_iter().enumerate() {
                let sign = vsubq_u16(zero, vandq_u16(z, vdupq_n_u16(1)));
                let mut s = veorq_u16(vshrq_n_u16::<1>(z), sign);
                s = vaddq_u16(s, vextq_u16::<7>(zero, s));
                s = vaddq_u16(s, vextq_u16::<6>(zero, s));
                s = vaddq_u16(s, vextq_u16::<4>(zero, s));
                vst1q_u16(out.add(8 * i).cast(), vaddq_u16(s, carry));
                carry = vaddq_u16(carry, vdupq_laneq_u16::<7>(s));
            }
            carry
        }
    }

    #[inline(always)]
    unsafe fn pack(samples: *const i16, data: *mut u8) -> Packed {
        const WEIGHTS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
        let mut all = 0;
        let mut at = 0;
        let mut wrapped = false;
        for i in 0..4 {
            // SAFETY: the contract permits the loads. Eight words start 48 bytes in at most, and 16
            // bytes are stored.
            unsafe {
                let here = vld1q_s16(samples.add(8 * i));
                let before = vld1q_s16(samples.add(8 * i).sub(1));
                let d = vsubq_s16(here, before);
                wrapped |= vminvq_u16(vceqq_s16(d, vqsubq_s16(here, before))) == 0;
                let z = vreinterpretq_u16_s16(veorq_s16(vshlq_n_s16::<1>(d), vshrq_n_s16::<15>(d)));
                let large = vandq_u16(vcgtq_u16(z, vdupq_n_u16(0xff)), vld1q_u16(WEIGHTS.as_ptr()));
                let flags = u32::from(vaddvq_u16(large));
                vst1q_u8(
                    data.add(at),
                    vqtbl1q_u8(vreinterpretq_u8_u16(z), shuffle(&NARROW, flags, 0)),
                );
                all |= flags << (8 * i);
                at += 8 + flags.count_ones() as usize;
            }
        }
        Packed { flags: all, wrapped }
    }
}
