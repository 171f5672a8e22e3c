//! The checksum of arrays that benchmarks compare.

/// An array's checksum in benchmarks: the wrapping sum of the little-endian 64-bit words of its
/// bytes, where word `i` counts `2 * i + 1` times. An incomplete last word is padded with zeros.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WordSum {
    sum: u64,
    /// The offset of the next byte in the array.
    at: u64,
}

impl WordSum {
    /// The empty checksum of a part of an array that starts at byte `at`.
    pub(crate) fn from(at: u64) -> Self {
        Self { sum: 0, at }
    }

    /// The contribution of the bytes so far to the array's checksum.
    pub(crate) fn value(&self) -> u64 {
        self.sum
    }

    /// Adds the next bytes of the array.
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

    /// Adds bytes of an incomplete word.
    fn single(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let word = u64::from(byte) << (self.at % 8 * 8);
            self.sum = self.sum.wrapping_add(word.wrapping_mul(self.at / 8 * 2 + 1));
            self.at += 1;
        }
    }

    /// The plain sum of the words. A consumer that reads every value does this work.
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

    #[test]
    fn words_do_not_depend_on_the_split() {
        let bytes: Vec<u8> = (0..100).map(|i| (i * 37) as u8).collect();
        let mut whole = WordSum::default();
        whole.update(&bytes);
        let padded = [&bytes[..], &[0; 4]].concat();
        let expected = (0..).zip(padded.as_chunks::<8>().0);
        let expected = expected.fold(0, |sum: u64, (i, word)| {
            sum.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(2 * i + 1))
        });
        assert_eq!(whole.sum, expected);
        for cut in 0..100 {
            let mut parts = WordSum::default();
            let mut rest = WordSum::from(cut as u64);
            parts.update(&bytes[..cut]);
            rest.update(&bytes[cut..]);
            assert_eq!(parts.value().wrapping_add(rest.value()), expected, "cut at {cut}");
            parts.update(&bytes[cut..]);
            assert_eq!(parts.value(), expected, "cut at {cut}");
        }
        assert_eq!(WordSum::sum(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 1]), 259);
    }
}
