//! Streams of bits, the least significant of each byte first.

/// Reads bits.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Position in bits.
    pub(super) at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The bits that are left.
    pub(super) fn left(&self) -> usize {
        (self.bytes.len() * 8).saturating_sub(self.at)
    }

    /// At least the next 57 bits, the next one lowest. Bits beyond the end are zero.
    pub(super) fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => {
                let mut word = [0; 8];
                word[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(word)
            }
        };
        word >> (self.at % 8)
    }
}
