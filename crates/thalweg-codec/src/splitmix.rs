//! SplitMix64 (Steele, Lea, Flood 2014): reproducible pseudorandom numbers, and checksums made of
//! them.

/// The odd number nearest 2^64 over the golden ratio: repeated addition of it visits every u64
/// once.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser: a bijection that scatters the bits of its input.
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Up to eight bytes as a little-endian number.
#[inline]
pub fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    u64::from_le_bytes(word)
}

/// A checksum that detects accidental damage. It gives no protection against forgery.
pub fn checksum(bytes: &[u8]) -> u64 {
    let add = |sum: u64, word: u64| mix(sum.rotate_left(5) ^ word).wrapping_add(sum);
    let (words, rest) = bytes.as_chunks();
    let sum = bytes.len() as u64;
    let sum = words.iter().fold(sum, |sum, bytes| add(sum, u64::from_le_bytes(*bytes)));
    if rest.is_empty() { sum } else { add(sum, word(rest)) }
}

#[cfg(test)]
mod tests {
    /// Files keep checksums, so the values must never change.
    #[test]
    fn checksums_stay_what_they_were() {
        let bytes: Vec<u8> = (0..21).collect();
        let sums = [0, 1, 7, 8, 9, 16, 21].map(|len| super::checksum(&bytes[..len]));
        let expected = [
            0x0000_0000_0000_0000,
            0xadfb_1ebb_497f_ad46,
            0x6581_75fa_b81b_a664,
            0x5833_b112_9459_7543,
            0x5211_7f9e_1ee5_bc81,
            0x1b24_08e0_b1a0_bb20,
            0x6c88_a28d_81e7_42ff,
        ];
        assert_eq!(sums, expected);
    }
}
