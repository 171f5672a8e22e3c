//! Streams of bits.

use crate::Fault;

/// Reads bits, the most significant of each byte first.
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// Position in bits.
    pub(crate) at: usize,
}

impl<'a> Bits<'a> {
    /// The bits of these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn short(&self) -> Fault {
        Fault::new(self.at / 8, "the end of the stream", "the rest of a block")
    }

    /// Checks that so many bits are left.
    fn check(&self, bits: u32) -> Result<(), Fault> {
        let is_there = self.at + bits as usize <= self.bytes.len() * 8;
        if is_there { Ok(()) } else { Err(self.short()) }
    }

    /// A word with at least the next 32 bits in its high bits. Bits beyond the end are zero.
    fn window(&self) -> u64 {
        let from = self.at / 8;
        let mut window = [0; 8];
        let here = self.bytes.get(from..).unwrap_or_default();
        let part = here.len().min(8);
        window[..part].copy_from_slice(&here[..part]);
        u64::from_be_bytes(window) << (self.at % 8)
    }

    /// Reads a number of at most 32 bits.
    pub(crate) fn number(&mut self, bits: u32) -> Result<u32, Fault> {
        if bits == 0 {
            return Ok(0);
        }
        self.check(bits)?;
        let number = self.window() >> (64 - bits);
        self.at += bits as usize;
        Ok(number as u32)
    }

    /// Reads a number of at most 128 bits.
    pub(crate) fn wide_number(&mut self, bits: u32) -> Result<u128, Fault> {
        self.check(bits)?;
        let mut number = 0;
        let mut left = bits;
        while left > 0 {
            let part = left.min(u32::BITS);
            number = number << part | u128::from(self.number(part)?);
            left -= part;
        }
        Ok(number)
    }

    /// Reads the zero bits before the next one bit, and this one bit. Returns the number of zeros.
    pub(crate) fn zeros(&mut self) -> Result<u32, Fault> {
        let mut zeros = 0;
        loop {
            // The number of bits in the window that belong to the stream.
            let whole = (64 - self.at % 8).min((self.bytes.len() * 8).saturating_sub(self.at));
            if whole == 0 {
                return Err(self.short());
            }
            let here = self.window().leading_zeros() as usize;
            if here < whole {
                self.at += here + 1;
                return Ok(zeros + here as u32);
            }
            self.at += whole;
            zeros += whole as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Bits;

    proptest! {
        #[test]
        fn bits_are_those_of_the_bytes(
            bytes: Vec<u8>,
            counts in prop::collection::vec(0usize..=128, 0..40),
        ) {
            let mut bits = Bits::new(&bytes);
            let mut at = 0;
            for count in counts {
                let bit = |i: usize| u128::from(bytes[i / 8] >> (7 - i % 8) & 1);
                let wanted = (at + count <= bytes.len() * 8)
                    .then(|| (at..at + count).fold(0, |all, i| all << 1 | bit(i)));
                prop_assert_eq!(bits.wide_number(count as u32).ok(), wanted);
                at += if wanted.is_some() { count } else { 0 };
            }
        }
    }
}
