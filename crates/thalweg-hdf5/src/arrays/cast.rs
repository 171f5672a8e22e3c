//! Conversion of numbers to the type of a virtual dataset. Integers that do not fit become the
//! nearest that do, as in libhdf5.

use thalweg_io::Result;

use crate::dtype::Dtype;

/// How elements of one type become elements of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cast {
    from: Number,
    /// `None` for elements of the same type.
    to: Option<Number>,
}

/// A type of elements; the kind is a letter of numpy's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number {
    kind: char,
    size: usize,
}

impl Number {
    fn of(dtype: &Dtype) -> Self {
        Self { kind: dtype.kind(), size: dtype.size() }
    }

    fn is_castable(self) -> bool {
        matches!((self.kind, self.size), ('i' | 'u', 1 | 2 | 4 | 8) | ('f', 4 | 8))
    }

    /// The value of little-endian bytes: an integer, or a floating-point number.
    fn read(self, bytes: &[u8]) -> Result<i128, f64> {
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        let unused = 64 - 8 * self.size;
        match (self.kind, self.size) {
            ('f', 4) => Err(f32::from_bits(word as u32).into()),
            ('f', _) => Err(f64::from_bits(word)),
            ('i', _) => Ok((word << unused).cast_signed() as i128 >> unused),
            _ => Ok(word.into()),
        }
    }

    /// The bits of a value.
    fn bits(self, value: Result<i128, f64>) -> u64 {
        let bits = 8 * self.size as u32;
        match (self.kind, self.size) {
            ('f', 4) => value.map_or_else(|float| float as f32, |int| int as f32).to_bits().into(),
            ('f', _) => value.map_or_else(|float| float, |int| int as f64).to_bits(),
            ('i', _) => {
                let most = (1i128 << (bits - 1)) - 1;
                value.unwrap_or_else(|float| float as i128).clamp(-most - 1, most) as u64
            }
            _ => {
                let most = (1i128 << bits) - 1;
                value.unwrap_or_else(|float| float as i128).clamp(0, most) as u64
            }
        }
    }
}

impl Cast {
    /// How elements of the type `from` become elements of the type `to`, both little-endian; `None`
    /// if they cannot. `same` says whether types of records are the same.
    ///
    /// # Errors
    /// Those of `same`.
    pub(super) fn between(
        from: &Dtype,
        to: &Dtype,
        same: impl FnOnce() -> Result<bool>,
    ) -> Result<Option<Self>> {
        let own = Number::of(from);
        let other = Number::of(to);
        if from.to_string() == to.to_string() {
            let is_same = own.kind != 'V' || same()?;
            return Ok(is_same.then_some(Self { from: own, to: None }));
        }
        let can = own.is_castable() && other.is_castable();
        Ok(can.then_some(Self { from: own, to: Some(other) }))
    }

    /// Bytes of an element before the conversion.
    pub(super) fn stored_size(self) -> usize {
        self.from.size
    }

    /// Converts elements into `out`, which has room for them.
    pub(super) fn apply(self, stored: &[u8], out: &mut [u8]) {
        let Some(to) = self.to else { return out.copy_from_slice(stored) };
        let pairs = stored.chunks_exact(self.from.size).zip(out.chunks_exact_mut(to.size));
        for (stored, out) in pairs {
            let bits = to.bits(self.from.read(stored)).to_le_bytes();
            out.copy_from_slice(&bits[..to.size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Cast;
    use crate::dtype::Dtype;

    fn cast(from: (char, usize), to: (char, usize), stored: &[u8]) -> Option<Vec<u8>> {
        let dtype = |(kind, size)| Dtype::number(kind, size, false);
        let cast = Cast::between(&dtype(from), &dtype(to), || Ok(false)).ok()??;
        let mut out = vec![9; stored.len() / from.1 * to.1];
        cast.apply(stored, &mut out);
        Some(out)
    }

    #[test]
    fn integers_that_do_not_fit_are_the_nearest_that_do() {
        let stored = [-1i32, 300, 7].map(i32::to_le_bytes).concat();
        assert_eq!(cast(('i', 4), ('u', 1), &stored), Some(vec![0, 255, 7]));
        let wanted = [-1i16, 300, 7].map(i16::to_le_bytes).concat();
        assert_eq!(cast(('i', 4), ('i', 2), &stored), Some(wanted));
        assert_eq!(cast(('i', 4), ('i', 4), &stored), Some(stored.clone()));
    }

    #[test]
    fn floats_are_cut_and_rounded() {
        let stored = [1.9f64, -1.9, f64::NAN, 1e30].map(f64::to_le_bytes).concat();
        let wanted = [1i16, -1, 0, i16::MAX].map(i16::to_le_bytes).concat();
        assert_eq!(cast(('f', 8), ('i', 2), &stored), Some(wanted));
        let stored = [(1u64 << 53) + 1, u64::MAX].map(u64::to_le_bytes).concat();
        let wanted = [9_007_199_254_740_992f64, 18_446_744_073_709_551_616.0];
        assert_eq!(cast(('u', 8), ('f', 8), &stored), Some(wanted.map(f64::to_le_bytes).concat()));
    }

    #[test]
    fn other_types_must_be_the_same() {
        assert_eq!(cast(('c', 8), ('f', 4), &[0; 8]), None);
        let record = Dtype::void(4);
        for is_same in [false, true] {
            let found = Cast::between(&record, &record, || Ok(is_same));
            assert_eq!(found.ok().map(|found| found.is_some()), Some(is_same));
        }
    }
}
