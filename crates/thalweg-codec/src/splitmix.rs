//! SplitMix64 (Steele, Lea, Flood 2014): numbers without a pattern, the same everywhere, and
//! checksums made of them.

/// The odd number nearest 2^64 over the golden ratio: steps of it visit every u64 once.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser: a bijection that leaves no trace of its input's structure.
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

/// Tells damaged bytes from those that were written; nothing that somebody could not forge.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        mix(sum.rotate_left(5) ^ word(chunk)).wrapping_add(sum)
    })
}
