//! SplitMix64 (Steele, Lea, Flood 2014): reproducible pseudorandom numbers, and checksums made of
//! them.

/// The odd number nearest 2^64 over the golden ratio: repeated addition of it visits every u64
/// once.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser: a bijection that scatters the bits of its input.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Up to eight bytes as a little-endian number.
pub fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    u64::from_le_bytes(word)
}

/// A checksum that detects accidental damage. It gives no protection against forgery.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        mix(sum.rotate_left(5) ^ word(chunk)).wrapping_add(sum)
    })
}
