//! x86-64: SSSE3, AVX2 and AVX-512 VBMI2.

use std::arch::asm;
use std::arch::x86_64::*;

use super::tables::{
    EXCEPTION, NARROW, ONE_BYTE_EACH, PLAIN, Shuffles, WIDEN, below, running_counts,
};
use super::{Lanes, Packed};

/// The shuffle that copies the last word of each 128-bit lane to all of its words.
const LAST_WORD: [u8; 16] = [14, 15, 14, 15, 14, 15, 14, 15, 14, 15, 14, 15, 14, 15, 14, 15];

/// The shuffle for the `i`-th eight of `flags`.
///
/// # Safety
/// SSE2, which every x86-64 has.
#[inline(always)]
unsafe fn shuffle(table: &Shuffles, flags: u32, i: usize) -> __m128i {
    let row = &table.0[(flags >> (8 * i)) as usize & 0xff];
    // SAFETY: a row is 16 bytes.
    unsafe { _mm_loadu_si128(row.as_ptr().cast()) }
}

/// A flag for each of eight words: whether it is above 255.
///
/// # Safety
/// SSE2.
#[inline(always)]
unsafe fn above_a_byte(words: __m128i) -> u32 {
    // SAFETY: SSE2.
    unsafe {
        let zero = _mm_setzero_si128();
        let small = _mm_cmpeq_epi16(_mm_srli_epi16::<8>(words), zero);
        // The upper eight lanes are zero and pack to clear bits, so that they would count as large;
        // the mask removes them.
        !_mm_movemask_epi8(_mm_packs_epi16(small, zero)) as u32 & 0xff
    }
}

/// Packs 32 words: always the low byte, and the high byte if it is not zero. Returns a flag for
/// each word: whether its high byte was packed.
///
/// # Safety
/// SSSE3 must be available, and 64 bytes writable at `data`.
#[inline(always)]
unsafe fn narrow(zigzag: [__m128i; 4], data: *mut u8) -> u32 {
    let mut all = 0;
    let mut at = 0;
    for (i, words) in zigzag.into_iter().enumerate() {
        // SAFETY: eight words start 48 bytes in at most, and 16 bytes are stored.
        unsafe {
            let flags = above_a_byte(words);
            _mm_storeu_si128(
                data.add(at).cast(),
                _mm_shuffle_epi8(words, shuffle(&NARROW, flags, 0)),
            );
            all |= flags << (8 * i);
            at += 8 + flags.count_ones() as usize;
        }
    }
    all
}

/// Eight lanes at a time.
pub(super) struct Ssse3;

// SAFETY: each method needs SSSE3 and no more; loads stay within the reach of the contract, as
// noted.
unsafe impl Lanes for Ssse3 {
    type Zigzag = [__m128i; 4];
    type Carry = __m128i;

    #[inline(always)]
    unsafe fn carry(previous: i16) -> __m128i {
        // SAFETY: SSE2.
        unsafe { _mm_set1_epi16(previous) }
    }

    #[inline(always)]
    unsafe fn last(carry: __m128i) -> i16 {
        // SAFETY: SSE2.
        unsafe { _mm_extract_epi16::<0>(carry) as i16 }
    }

    #[inline(always)]
    unsafe fn widen(flags: u32, data: *const u8) -> [__m128i; 4] {
        let ends = running_counts(flags) + ONE_BYTE_EACH;
        // SAFETY: eight samples start 48 bytes in at most, and 16 bytes are loaded.
        std::array::from_fn(|i| unsafe {
            let packed = _mm_loadu_si128(data.add(below(ends, i)).cast());
            _mm_shuffle_epi8(packed, shuffle(&WIDEN, flags, i))
        })
    }

    #[inline(always)]
    unsafe fn patch(flags: u32, bytes: *const u8, words: *const u16) -> [__m128i; 4] {
        let ends = running_counts(flags);
        // SAFETY: eight samples start at byte 24 at most, and 8 bytes are loaded; the words
        // likewise.
        std::array::from_fn(|i| unsafe {
            let set = below(ends, i);
            let plain = _mm_loadl_epi64(bytes.add(8 * i - set).cast());
            let exceptions = _mm_loadu_si128(words.add(set).cast());
            _mm_or_si128(
                _mm_shuffle_epi8(plain, shuffle(&PLAIN, flags, i)),
                _mm_shuffle_epi8(exceptions, shuffle(&EXCEPTION, flags, i)),
            )
        })
    }

    #[inline(always)]
    unsafe fn sum(zigzag: [__m128i; 4], mut carry: __m128i, out: *mut i16) -> __m128i {
        // SAFETY: four stores of eight samples.
        unsafe {
            let last_word = _mm_loadu_si128(LAST_WORD.as_ptr().cast());
            for (i, z) in zigzag.into_iter().enumerate() {
                let sign = _mm_sub_epi16(_mm_setzero_si128(), _mm_and_si128(z, _mm_set1_epi16(1)));
                let mut s = _mm_xor_si128(_mm_srli_epi16::<1>(z), sign);
                s = _mm_add_epi16(s, _mm_slli_si128::<2>(s));
                s = _mm_add_epi16(s, _mm_slli_si128::<4>(s));
                s = _mm_add_epi16(s, _mm_slli_si128::<8>(s));
                _mm_storeu_si128(out.add(8 * i).cast(), _mm_add_epi16(s, carry));
                carry = _mm_add_epi16(carry, _mm_shuffle_epi8(s, last_word));
            }
            carry
        }
    }

    #[inline(always)]
    unsafe fn pack(samples: *const i16, data: *mut u8) -> Packed {
        // SAFETY: the contract permits the loads and the stores.
        unsafe {
            let mut same = _mm_set1_epi16(-1);
            let zigzag = std::array::from_fn(|i| {
                let here = _mm_loadu_si128(samples.add(8 * i).cast());
                let before = _mm_loadu_si128(samples.add(8 * i).sub(1).cast());
                let d = _mm_sub_epi16(here, before);
                same = _mm_and_si128(same, _mm_cmpeq_epi16(d, _mm_subs_epi16(here, before)));
                _mm_xor_si128(_mm_slli_epi16::<1>(d), _mm_srai_epi16::<15>(d))
            });
            Packed { flags: narrow(zigzag, data), wrapped: _mm_movemask_epi8(same) != 0xffff }
        }
    }
}

/// Sixteen lanes at a time.
pub(super) struct Avx2;

// SAFETY: each method needs AVX2 and no more; loads stay within the reach of the contract, as
// noted.
unsafe impl Lanes for Avx2 {
    type Zigzag = [__m256i; 2];
    type Carry = __m256i;

    #[inline(always)]
    unsafe fn carry(previous: i16) -> __m256i {
        // SAFETY: AVX.
        unsafe { _mm256_set1_epi16(previous) }
    }

    #[inline(always)]
    unsafe fn last(carry: __m256i) -> i16 {
        // SAFETY: SSE2.
        unsafe { _mm_extract_epi16::<0>(_mm256_castsi256_si128(carry)) as i16 }
    }

    #[inline(always)]
    unsafe fn widen(flags: u32, data: *const u8) -> [__m256i; 2] {
        let ends = running_counts(flags) + ONE_BYTE_EACH;
        // SAFETY: eight samples start 48 bytes in at most, and 16 bytes are loaded.
        std::array::from_fn(|i| unsafe {
            let low = _mm_loadu_si128(data.add(below(ends, 2 * i)).cast());
            let high = _mm_loadu_si128(data.add(below(ends, 2 * i + 1)).cast());
            let by =
                _mm256_set_m128i(shuffle(&WIDEN, flags, 2 * i + 1), shuffle(&WIDEN, flags, 2 * i));
            _mm256_shuffle_epi8(_mm256_set_m128i(high, low), by)
        })
    }

    #[inline(always)]
    unsafe fn patch(flags: u32, bytes: *const u8, words: *const u16) -> [__m256i; 2] {
        // SAFETY: AVX2 implies SSSE3, and the contract is the same.
        let [a, b, c, d] = unsafe { Ssse3::patch(flags, bytes, words) };
        // SAFETY: AVX.
        unsafe { [_mm256_set_m128i(b, a), _mm256_set_m128i(d, c)] }
    }

    #[inline(always)]
    unsafe fn sum(zigzag: [__m256i; 2], mut carry: __m256i, out: *mut i16) -> __m256i {
        // SAFETY: two stores of sixteen samples.
        unsafe {
            let last_word = _mm256_broadcastsi128_si256(_mm_loadu_si128(LAST_WORD.as_ptr().cast()));
            for (i, z) in zigzag.into_iter().enumerate() {
                let sign = _mm256_sub_epi16(
                    _mm256_setzero_si256(),
                    _mm256_and_si256(z, _mm256_set1_epi16(1)),
                );
                let mut s = _mm256_xor_si256(_mm256_srli_epi16::<1>(z), sign);
                s = _mm256_add_epi16(s, _mm256_slli_si256::<2>(s));
                s = _mm256_add_epi16(s, _mm256_slli_si256::<4>(s));
                s = _mm256_add_epi16(s, _mm256_slli_si256::<8>(s));
                let totals = _mm256_shuffle_epi8(s, last_word);
                // The low half's total belongs to the high half too; 0x08 puts zero into the low
                // half.
                s = _mm256_add_epi16(s, _mm256_permute2x128_si256::<0x08>(totals, totals));
                _mm256_storeu_si256(out.add(16 * i).cast(), _mm256_add_epi16(s, carry));
                let both = _mm256_add_epi16(totals, _mm256_permute4x64_epi64::<0x4e>(totals));
                carry = _mm256_add_epi16(carry, both);
            }
            carry
        }
    }

    #[inline(always)]
    unsafe fn pack(samples: *const i16, data: *mut u8) -> Packed {
        // SAFETY: AVX2 implies SSSE3; the contract permits the loads and the stores.
        unsafe {
            let mut same = _mm256_set1_epi16(-1);
            let mut halves = [_mm_setzero_si128(); 4];
            // A closure would not have the instruction set, unless the compiler inlines it.
            for (i, halves) in halves.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let here = _mm256_loadu_si256(samples.add(16 * i).cast());
                let before = _mm256_loadu_si256(samples.add(16 * i).sub(1).cast());
                let d = _mm256_sub_epi16(here, before);
                same =
                    _mm256_and_si256(same, _mm256_cmpeq_epi16(d, _mm256_subs_epi16(here, before)));
                let z = _mm256_xor_si256(_mm256_slli_epi16::<1>(d), _mm256_srai_epi16::<15>(d));
                *halves = [_mm256_castsi256_si128(z), _mm256_extracti128_si256::<1>(z)];
            }
            Packed { flags: narrow(halves, data), wrapped: _mm256_movemask_epi8(same) != -1 }
        }
    }
}

/// Loads 64 bytes into a register. The compiler would make the load a part of the expansion that
/// follows. AMD's processors run that in microcode, which takes three times as long.
///
/// # Safety
/// AVX-512F must be available, and 64 bytes readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_64(data: *const u8) -> __m512i {
    // SAFETY: the contract permits the load. The assembly is a comment.
    unsafe {
        let mut bytes = _mm512_loadu_si512(data.cast());
        asm!("/* {} */", inout(zmm_reg) bytes, options(pure, nomem, nostack, preserves_flags));
        bytes
    }
}

/// [`load_64`] of 32 bytes.
///
/// # Safety
/// AVX must be available, and 32 bytes readable.
#[inline]
#[target_feature(enable = "avx")]
unsafe fn load_32(data: *const u8) -> __m256i {
    // SAFETY: as above.
    unsafe {
        let mut bytes = _mm256_loadu_si256(data.cast());
        asm!("/* {} */", inout(ymm_reg) bytes, options(pure, nomem, nostack, preserves_flags));
        bytes
    }
}

/// All 32 lanes at once.
pub(super) struct Avx512;

// SAFETY: each method needs AVX-512 F, BW, VL, VBMI2 and BMI2, and no more; loads are of REACH
// bytes at most.
unsafe impl Lanes for Avx512 {
    type Zigzag = __m512i;
    type Carry = __m512i;

    #[inline(always)]
    unsafe fn carry(previous: i16) -> __m512i {
        // SAFETY: AVX-512F.
        unsafe { _mm512_set1_epi16(previous) }
    }

    #[inline(always)]
    unsafe fn last(carry: __m512i) -> i16 {
        // SAFETY: SSE2.
        unsafe { _mm_extract_epi16::<0>(_mm512_castsi512_si128(carry)) as i16 }
    }

    #[inline(always)]
    unsafe fn widen(flags: u32, data: *const u8) -> __m512i {
        // SAFETY: BMI2, and the same contract.
        unsafe { Self::widen_codes(_pdep_u64(u64::from(flags), 0x5555_5555_5555_5555), data) }
    }

    #[inline(always)]
    unsafe fn widen_codes(codes: u64, data: *const u8) -> __m512i {
        // A sample's low byte is always stored, its high byte only if the code is 1.
        let present = codes << 1 | 0x5555_5555_5555_5555;
        // SAFETY: 64 bytes are loaded.
        unsafe { _mm512_maskz_expand_epi8(present, load_64(data)) }
    }

    #[inline(always)]
    unsafe fn patch(flags: u32, bytes: *const u8, words: *const u16) -> __m512i {
        // SAFETY: 32 bytes and 32 words are loaded.
        unsafe {
            let plain = _mm256_maskz_expand_epi8(!flags, load_32(bytes));
            let exceptions = load_64(words.cast());
            _mm512_mask_expand_epi16(_mm512_cvtepu8_epi16(plain), flags, exceptions)
        }
    }

    #[inline(always)]
    unsafe fn sum(z: __m512i, carry: __m512i, out: *mut i16) -> __m512i {
        // SAFETY: one store of 32 samples.
        unsafe {
            let last_word = _mm512_broadcast_i32x4(_mm_loadu_si128(LAST_WORD.as_ptr().cast()));
            let sign =
                _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_and_si512(z, _mm512_set1_epi16(1)));
            let mut s = _mm512_xor_si512(_mm512_srli_epi16::<1>(z), sign);
            s = _mm512_add_epi16(s, _mm512_bslli_epi128::<2>(s));
            s = _mm512_add_epi16(s, _mm512_bslli_epi128::<4>(s));
            s = _mm512_add_epi16(s, _mm512_bslli_epi128::<8>(s));
            // Running totals of the four 128-bit lanes, in two steps. The offset of a lane is its
            // running total less its own total.
            let totals = _mm512_shuffle_epi8(s, last_word);
            let zero = _mm512_setzero_si512();
            let one_up = _mm512_alignr_epi64::<6>(totals, zero);
            let inclusive = _mm512_add_epi16(totals, one_up);
            let inclusive = _mm512_add_epi16(inclusive, _mm512_alignr_epi64::<4>(inclusive, zero));
            let exclusive = _mm512_sub_epi16(inclusive, totals);
            let sum = _mm512_add_epi16(_mm512_add_epi16(s, exclusive), carry);
            _mm512_storeu_si512(out.cast(), sum);
            _mm512_add_epi16(carry, _mm512_shuffle_i64x2::<0xff>(inclusive, inclusive))
        }
    }

    #[inline(always)]
    unsafe fn pack(samples: *const i16, data: *mut u8) -> Packed {
        // SAFETY: 32 samples are loaded twice, the second time from one earlier on, and 64 bytes
        // stored.
        unsafe {
            let here = _mm512_loadu_si512(samples.cast());
            let before = _mm512_loadu_si512(samples.sub(1).cast());
            let d = _mm512_sub_epi16(here, before);
            let z = _mm512_xor_si512(_mm512_slli_epi16::<1>(d), _mm512_srai_epi16::<15>(d));
            let flags = _mm512_cmpgt_epu16_mask(z, _mm512_set1_epi16(0xff));
            let present =
                _pdep_u64(u64::from(flags), 0x5555_5555_5555_5555) << 1 | 0x5555_5555_5555_5555;
            _mm512_storeu_si512(data.cast(), _mm512_maskz_compress_epi8(present, z));
            Packed {
                flags,
                wrapped: _mm512_cmpneq_epi16_mask(d, _mm512_subs_epi16(here, before)) != 0,
            }
        }
    }
}
