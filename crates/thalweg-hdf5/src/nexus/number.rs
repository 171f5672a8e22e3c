//! Conversion of stored numbers of any type to types for computation.

use crate::array::Found;
use crate::arrays::Dataset;
use crate::dtype::Dtype;

/// The type of an array of numbers, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NumericType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

/// A number without loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ExactNumber {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

macro_rules! each {
    ($bytes:expr, $kind:ty, $f:expr) => {{
        let (numbers, _) = $bytes.as_chunks::<{ size_of::<$kind>() }>();
        numbers.iter().for_each(|number| $f(<$kind>::from_le_bytes(*number)))
    }};
}

impl NumericType {
    /// The numeric type of elements; `None` if they are not numbers.
    pub fn of(dtype: &Dtype) -> Option<Self> {
        let name = dtype.to_string();
        Self::ALL.into_iter().find(|number| number.name() == name)
    }

    const ALL: [Self; 10] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
    ];

    /// The name that numpy's array interface has for the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }

    /// The type and the length of a dataset that is a list of numbers; else a description of the
    /// dataset.
    pub(super) fn list(dataset: &Dataset) -> Result<(Self, u64), String> {
        match &dataset.found {
            Found::Other(what) => Err(what.clone()),
            Found::Array(array) => match (Self::of(&array.dtype), &array.shape[..]) {
                (Some(number), [length]) => Ok((number, *length)),
                (None, _) => Err(format!("elements of type {}", array.dtype)),
                (_, shape) => Err(format!("{} dimensions", shape.len())),
            },
        }
    }

    /// Bytes per number.
    pub fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Whether the type is a floating-point type.
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Passes each number to `f` as the nearest f64.
    pub fn floats(self, bytes: &[u8], mut f: impl FnMut(f64)) {
        match self {
            Self::U8 => each!(bytes, u8, |n| f(f64::from(n))),
            Self::U16 => each!(bytes, u16, |n| f(f64::from(n))),
            Self::U32 => each!(bytes, u32, |n| f(f64::from(n))),
            Self::U64 => each!(bytes, u64, |n| f(n as f64)),
            Self::I8 => each!(bytes, i8, |n| f(f64::from(n))),
            Self::I16 => each!(bytes, i16, |n| f(f64::from(n))),
            Self::I32 => each!(bytes, i32, |n| f(f64::from(n))),
            Self::I64 => each!(bytes, i64, |n| f(n as f64)),
            Self::F32 => each!(bytes, f32, |n| f(f64::from(n))),
            Self::F64 => each!(bytes, f64, f),
        }
    }

    /// Passes each number to `f`.
    pub(super) fn scalars(self, bytes: &[u8], mut f: impl FnMut(ExactNumber)) {
        match self {
            Self::U64 => each!(bytes, u64, |n| f(ExactNumber::Unsigned(n))),
            Self::I64 => each!(bytes, i64, |n| f(ExactNumber::Signed(n))),
            Self::F32 | Self::F64 => self.floats(bytes, |n| f(ExactNumber::Float(n))),
            // All other types are exact as f64.
            _ => self.floats(bytes, |n| f(ExactNumber::Signed(n as i64))),
        }
    }
}

impl ExactNumber {
    /// The number as an index. Negative numbers and fractions become an index beyond every list.
    pub(super) fn place(self) -> u64 {
        match self {
            Self::Unsigned(n) => n,
            Self::Signed(n) => u64::try_from(n).unwrap_or(u64::MAX),
            Self::Float(n) if n >= 0.0 && n.fract() == 0.0 => n as u64,
            Self::Float(_) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ExactNumber, NumericType};
    use crate::dtype::Dtype;

    #[test]
    fn numbers_are_what_numpy_calls_them() {
        for (kind, size, number) in [
            ('u', 4, NumericType::U32),
            ('i', 8, NumericType::I64),
            ('f', 4, NumericType::F32),
            ('i', 1, NumericType::I8),
        ] {
            assert_eq!(NumericType::of(&Dtype::number(kind, size, true)), Some(number));
            assert_eq!(number.size(), size);
        }
        assert_eq!(NumericType::of(&Dtype::number('c', 8, false)), None);
        assert_eq!(NumericType::of(&Dtype::number('f', 2, false)), None);
    }

    #[test]
    fn places_are_exact() {
        let mut seen = Vec::new();
        NumericType::U64.scalars(&u64::MAX.to_le_bytes(), |n| seen.push(n.place()));
        NumericType::I32.scalars(&(-1_i32).to_le_bytes(), |n| seen.push(n.place()));
        NumericType::F64.scalars(&7.0_f64.to_le_bytes(), |n| seen.push(n.place()));
        assert_eq!(seen, [u64::MAX, u64::MAX, 7]);
        assert_eq!(ExactNumber::Float(0.5).place(), u64::MAX);
        assert_eq!(ExactNumber::Float(f64::NAN).place(), u64::MAX);
    }
}
