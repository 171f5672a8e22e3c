//! The digests of decoded reads and arrays: those that people compare, and those that benchmarks
//! compare.

use sha2::{Digest as _, Sha256};
use thalweg::reads::Read;

/// `read_id<TAB>samples<TAB>sum<TAB>sha256 of the little-endian int16 samples`.
pub(crate) fn row(read: &Read<'_>) -> String {
    let mut hash = Sha256::new();
    let mut bytes = [0_u8; 8192];
    for chunk in read.samples.chunks(bytes.len() / 2) {
        for (pair, sample) in bytes.chunks_exact_mut(2).zip(chunk) {
            pair.copy_from_slice(&sample.to_le_bytes());
        }
        hash.update(&bytes[..chunk.len() * 2]);
    }
    let hash = hex(&hash.finalize());
    format!("{}\t{}\t{}\t{hash}", read.record.read_id, read.samples.len(), sum(read.samples))
}

/// Bytes as people compare them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The sum of the samples. Written so that compilers vectorise it: peers' loops are, too.
pub(crate) fn sum(samples: &[i16]) -> i64 {
    // A block's sum fits an i32: 65,536 samples of at most 2^15 each.
    samples
        .chunks(1 << 16)
        .map(|block| i64::from(block.iter().map(|&s| i32::from(s)).sum::<i32>()))
        .sum()
}

/// FNV-1a, 64 bits, over `read_id<TAB>samples<TAB>sum`. The hashes of a file's reads are added
/// (wrapping), so that the order in which they were decoded does not matter.
pub(crate) fn light(read_id: &str, samples: usize, sum: i64) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let text = format!("{read_id}\t{samples}\t{sum}");
    text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// An array's checksum in benchmarks: the sum (wrapping) of its bytes' little-endian 64-bit words,
/// each times twice its place plus one. A last word that is not full has zeros at its end.
#[cfg(feature = "hdf5")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Words {
    sum: u64,
    /// Bytes so far.
    at: u64,
}

#[cfg(feature = "hdf5")]
impl Words {
    /// Of an array's bytes from this one on.
    pub(crate) fn from(at: u64) -> Self {
        Self { sum: 0, at }
    }

    /// What these bytes add to the array's checksum.
    pub(crate) fn value(&self) -> u64 {
        self.sum
    }

    /// Goes on with more bytes of the array.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let odd = (self.at.wrapping_neg() % 8).min(bytes.len() as u64) as usize;
        let (head, rest) = bytes.split_at(odd);
        self.single(head);
        let (words, tail) = rest.as_chunks::<8>();
        let weight = self.at / 8 * 2 + 1;
        let weighted = (0..)
            .zip(words)
            .map(|(place, word)| u64::from_le_bytes(*word).wrapping_mul(weight + 2 * place));
        self.sum = weighted.fold(self.sum, u64::wrapping_add);
        self.at += words.len() as u64 * 8;
        self.single(tail);
    }

    fn single(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let word = u64::from(byte) << (self.at % 8 * 8);
            self.sum = self.sum.wrapping_add(word.wrapping_mul(self.at / 8 * 2 + 1));
            self.at += 1;
        }
    }

    /// The sum of the words as they are: what a consumer does that looks at every value.
    pub(crate) fn sum(bytes: &[u8]) -> u64 {
        let (words, tail) = bytes.as_chunks::<8>();
        let rest = tail.iter().rev().fold(0, |rest, &byte| rest << 8 | u64::from(byte));
        words.iter().fold(rest, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)))
    }

    /// The checksum of several arrays, in the order of their paths.
    pub(crate) fn all(arrays: &[u64]) -> u64 {
        arrays
            .iter()
            .fold(0, |all: u64, array| all.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(*array))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "hdf5")]
    #[test]
    fn words_are_the_same_in_any_parts() {
        let bytes: Vec<u8> = (0..100).map(|i| (i * 37) as u8).collect();
        let mut whole = Words::default();
        whole.update(&bytes);
        let padded = [&bytes[..], &[0; 4]].concat();
        let expected = (0..).zip(padded.as_chunks::<8>().0);
        let expected = expected.fold(0, |sum: u64, (i, word)| {
            sum.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(2 * i + 1))
        });
        assert_eq!(whole.sum, expected);
        for cut in 0..100 {
            let (mut parts, mut rest) = (Words::default(), Words::from(cut as u64));
            parts.update(&bytes[..cut]);
            rest.update(&bytes[cut..]);
            assert_eq!(parts.value().wrapping_add(rest.value()), expected, "cut at {cut}");
            parts.update(&bytes[cut..]);
            assert_eq!(parts.value(), expected, "cut at {cut}");
        }
        assert_eq!(Words::sum(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 1]), 259);
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(sum(&[i16::MIN; 200_000]), -32_768 * 200_000);
        assert_eq!(sum(&[i16::MAX; 70_000]), 32_767 * 70_000);
        assert_eq!(sum(&[]), 0);
    }

    #[test]
    fn the_light_digest_is_fnv1a() {
        // FNV-1a of "a\t0\t0", by the published algorithm.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in *b"a\t0\t0" {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x100_0000_01b3);
        }
        assert_eq!(light("a", 0, 0), hash);
    }
}
