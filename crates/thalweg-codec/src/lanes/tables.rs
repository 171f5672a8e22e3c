//! Byte shuffles that turn packed bytes into eight 16-bit lanes, one shuffle for each combination
//! of eight flags.

/// A shuffle index that yields zero on x86 (top bit set) and on ARM (beyond the table).
const ZERO: u8 = 0x80;

/// 256 shuffles, aligned so that none straddles a cache line.
#[repr(C, align(64))]
pub(crate) struct Shuffles(pub(crate) [[u8; 16]; 256]);

/// Lane i takes two bytes of the source where flag i is set, else one.
pub(crate) static WIDEN: Shuffles = Shuffles(shuffles(Lane::OneOrTwo));
/// The inverse of [`WIDEN`]: the low byte of each lane, and its high byte if flag i is set, without
/// gaps.
pub(crate) static NARROW: Shuffles = Shuffles(narrowing());
/// Lane i takes the next byte of the source where flag i is clear, else zero.
pub(crate) static PLAIN: Shuffles = Shuffles(shuffles(Lane::ByteIfClear));
/// Lane i takes the next two bytes of the source where flag i is set, else zero.
pub(crate) static EXCEPTION: Shuffles = Shuffles(shuffles(Lane::WordIfSet));

#[derive(Clone, Copy)]
enum Lane {
    OneOrTwo,
    ByteIfClear,
    WordIfSet,
}

const fn shuffles(kind: Lane) -> [[u8; 16]; 256] {
    let mut table = [[ZERO; 16]; 256];
    let mut flags = 0;
    while flags < 256 {
        let mut lane = 0;
        let mut from = 0;
        while lane < 8 {
            let set = flags >> lane & 1 == 1;
            let width = match (kind, set) {
                (Lane::OneOrTwo | Lane::WordIfSet, true) => 2,
                (Lane::OneOrTwo, false) | (Lane::ByteIfClear, false) => 1,
                (Lane::ByteIfClear, true) | (Lane::WordIfSet, false) => 0,
            };
            let mut byte = 0;
            while byte < width {
                table[flags][2 * lane + byte] = from;
                from += 1;
                byte += 1;
            }
            lane += 1;
        }
        flags += 1;
    }
    table
}

const fn narrowing() -> [[u8; 16]; 256] {
    let mut table = [[ZERO; 16]; 256];
    let mut flags = 0;
    while flags < 256 {
        let mut lane = 0;
        let mut to = 0;
        while lane < 8 {
            table[flags][to] = 2 * lane;
            to += 1;
            if flags >> lane & 1 == 1 {
                table[flags][to] = 2 * lane + 1;
                to += 1;
            }
            lane += 1;
        }
        flags += 1;
    }
    table
}

/// Running counts of set flags: byte i counts the set flags from 0 to 8i + 7.
#[inline(always)]
pub(crate) const fn running_counts(flags: u32) -> u32 {
    let pairs = flags - ((flags >> 1) & 0x5555_5555);
    let nibbles = (pairs & 0x3333_3333) + ((pairs >> 2) & 0x3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f;
    bytes.wrapping_mul(0x0101_0101)
}

/// Added to [`running_counts`], it gives running byte counts of values that take one byte, or two
/// if flagged: each value takes at least one byte.
pub(crate) const ONE_BYTE_EACH: u32 = 0x2018_1008;

/// The entry of [`running_counts`] for the flags below the `i`-th eight.
#[inline(always)]
pub(crate) const fn below(counts: u32, i: usize) -> usize {
    if i == 0 { 0 } else { (counts >> (8 * i - 8)) as usize & 0xff }
}

/// Spreads the bits of `flags` to the even bits of the result. The inverse of [`even_bits`].
#[inline(always)]
pub(crate) const fn spread(flags: u32) -> u64 {
    let mut x = flags as u64;
    x = (x | (x << 16)) & 0x0000_ffff_0000_ffff;
    x = (x | (x << 8)) & 0x00ff_00ff_00ff_00ff;
    x = (x | (x << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | (x << 2)) & 0x3333_3333_3333_3333;
    (x | (x << 1)) & 0x5555_5555_5555_5555
}

/// Packs the even bits of `codes`.
#[inline(always)]
pub(crate) const fn even_bits(codes: u64) -> u32 {
    let mut x = codes & 0x5555_5555_5555_5555;
    x = (x | (x >> 1)) & 0x3333_3333_3333_3333;
    x = (x | (x >> 2)) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | (x >> 4)) & 0x00ff_00ff_00ff_00ff;
    x = (x | (x >> 8)) & 0x0000_ffff_0000_ffff;
    (x | (x >> 16)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_names_each_source_byte_once_and_in_order() {
        for flags in 0..256_usize {
            let set = flags.count_ones() as usize;
            for (table, width) in [(&WIDEN, 8 + set), (&PLAIN, 8 - set), (&EXCEPTION, 2 * set)] {
                let from: Vec<u8> = table.0[flags].into_iter().filter(|&i| i != ZERO).collect();
                assert_eq!(from, (0..width as u8).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn narrowing_undoes_widening() {
        for (narrow, widen) in NARROW.0.iter().zip(&WIDEN.0) {
            for (to, &from) in narrow.iter().enumerate().filter(|&(_, &from)| from != ZERO) {
                assert_eq!(usize::from(widen[usize::from(from)]), to);
            }
        }
    }

    #[test]
    fn bit_tricks_agree_with_their_definitions() {
        for seed in 0..1000_u64 {
            let x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (seed << 50);
            let flags = x as u32;
            for (i, byte) in running_counts(flags).to_le_bytes().into_iter().enumerate() {
                let below = (u64::from(flags) & ((1 << (8 * i + 8)) - 1)).count_ones();
                assert_eq!(u32::from(byte), below);
            }
            let packed = (0..32).fold(0, |a, i| a | ((x >> (2 * i) & 1) as u32) << i);
            assert_eq!(even_bits(x), packed);
            assert_eq!(spread(packed), x & 0x5555_5555_5555_5555);
        }
    }
}
