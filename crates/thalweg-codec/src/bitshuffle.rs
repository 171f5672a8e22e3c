//! Bitshuffle (Masui and others, 2015): the bits of a block's elements, sorted by significance, so
//! that bits that hardly vary are next to each other.

/// Elements are shuffled in multiples of this number. Elements that do not fill a group are stored
/// unchanged.
pub const GROUP: usize = 8;

/// Undoes the shuffle of a block of elements of `size` bytes, from `sorted` to `out`. Both have the
/// same length, a multiple of [`GROUP`] elements.
pub fn undo(sorted: &[u8], size: usize, out: &mut [u8]) {
    let rows = sorted.len() / (size * 8).max(1);
    for (byte, planes) in sorted.chunks_exact((rows * 8).max(1)).enumerate() {
        for group in 0..rows {
            let mut bits = [0; 8];
            for (bit, plane) in bits.iter_mut().zip(planes.chunks_exact(rows)) {
                *bit = plane[group];
            }
            let bytes = transpose(u64::from_le_bytes(bits)).to_le_bytes();
            let first = group * GROUP * size + byte;
            for (element, byte) in out[first..].iter_mut().step_by(size).zip(bytes) {
                *element = byte;
            }
        }
    }
}

/// Transposes a matrix of eight by eight bits (Warren, "Hacker's Delight", section 7-3).
const fn transpose(x: u64) -> u64 {
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    let x = x ^ t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    let x = x ^ t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

#[cfg(test)]
mod tests {
    use super::{GROUP, undo};
    use proptest::prelude::*;

    /// The definition of the shuffle, bit by bit.
    fn sorted(plain: &[u8], size: usize) -> Vec<u8> {
        let count = plain.len() / size;
        let mut out = vec![0; plain.len()];
        for (i, element) in plain.chunks_exact(size).enumerate() {
            for bit in 0..size * 8 {
                let value = element[bit / 8] >> (bit % 8) & 1;
                out[bit * (count / 8) + i / 8] |= value << (i % 8);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn bits_come_back(size in 1..20_usize, groups in 0..9_usize, seed in any::<u64>()) {
            let plain: Vec<u8> = (0..size * groups * GROUP)
                .map(|i| crate::splitmix::mix(seed.wrapping_add(i as u64)) as u8)
                .collect();
            let mut out = vec![0; plain.len()];
            undo(&sorted(&plain, size), size, &mut out);
            prop_assert_eq!(out, plain);
        }
    }
}
