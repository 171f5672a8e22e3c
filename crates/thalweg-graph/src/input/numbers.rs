//! Reading ids and offsets: whole numbers of any type, in one or two dimensions.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer};
use thalweg_hdf5::array::{ElementPlace, Found};
use thalweg_hdf5::arrays::{ArrayFile, ArrayRequest, Dataset, Selection, Slab};
use thalweg_io::{Error, Result};

/// The most bytes of values for each byte of a file: deflate compresses no further. A file that
/// claims more is rejected.
const MOST_BYTES_PER_BYTE: u64 = 1032;

/// Large reads take at most this part of the memory budget: an eighth.
const SHARE: usize = 8;

/// A dataset of whole numbers.
#[derive(Debug)]
pub(super) struct IdDataset {
    file: Arc<ArrayFile>,
    dataset: Dataset,
    kind: NumberFormat,
    /// The length of the first dimension.
    pub(super) rows: u64,
    /// The length of the second dimension, or 1.
    pub(super) columns: u64,
    bytes: Vec<u8>,
}

/// How a number is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberFormat {
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
    /// The x86's long double: 80 bits in 16 bytes.
    F80,
}

macro_rules! each {
    ($bytes:expr, $kind:ty, $out:expr) => {{
        let (numbers, _) = $bytes.as_chunks::<{ size_of::<$kind>() }>();
        numbers.iter().try_for_each(|number| {
            let number = <$kind>::from_le_bytes(*number);
            $out.push(u64::try_from(number).map_err(|_| number.to_string())?);
            Ok(())
        })
    }};
}

impl NumberFormat {
    fn of(dtype: &str) -> Option<Self> {
        Some(match dtype {
            "|u1" => Self::U8,
            "<u2" => Self::U16,
            "<u4" => Self::U32,
            "<u8" => Self::U64,
            "|i1" => Self::I8,
            "<i2" => Self::I16,
            "<i4" => Self::I32,
            "<i8" => Self::I64,
            "<f4" => Self::F32,
            "<f8" => Self::F64,
            "<f16" => Self::F80,
            _ => return None,
        })
    }

    /// Appends the numbers in `bytes`. The error is the first number that is negative or has a
    /// fraction, as text.
    fn convert(self, bytes: &[u8], out: &mut Vec<u64>) -> Result<(), String> {
        match self {
            Self::U8 => each!(bytes, u8, out),
            Self::U16 => each!(bytes, u16, out),
            Self::U32 => each!(bytes, u32, out),
            Self::U64 => each!(bytes, u64, out),
            Self::I8 => each!(bytes, i8, out),
            Self::I16 => each!(bytes, i16, out),
            Self::I32 => each!(bytes, i32, out),
            Self::I64 => each!(bytes, i64, out),
            Self::F32 => bytes.as_chunks().0.iter().try_for_each(|bytes| {
                out.push(whole(f64::from(f32::from_le_bytes(*bytes)))?);
                Ok(())
            }),
            Self::F64 => bytes.as_chunks().0.iter().try_for_each(|bytes| {
                out.push(whole(f64::from_le_bytes(*bytes))?);
                Ok(())
            }),
            Self::F80 => bytes.as_chunks().0.iter().try_for_each(|bytes| {
                out.push(long_double(bytes)?);
                Ok(())
            }),
        }
    }
}

/// The number as `u64`, if it is whole and not negative.
fn whole(number: f64) -> Result<u64, String> {
    // 2^64 is the first number that is too large.
    let fits = (0.0..18_446_744_073_709_551_616.0).contains(&number) && number.fract() == 0.0;
    if fits { Ok(number as u64) } else { Err(number.to_string()) }
}

/// An x86 80-bit number as `u64`, if it is whole and not negative. It has 64 bits of mantissa, the
/// highest before the point, then 15 bits of exponent (plus 16,383) and a sign. The other bytes
/// have no meaning. (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1,
/// 4.2.2.)
fn long_double(bytes: &[u8; 16]) -> Result<u64, String> {
    let bits = u128::from_le_bytes(*bytes);
    let mantissa = bits as u64;
    let exponent = (bits >> 64) as u32 & 0x7fff;
    let is_negative = bits >> 79 & 1 == 1;
    if mantissa == 0 && exponent < 0x7fff {
        return Ok(0);
    }
    let words = || format!("the 80-bit number {:#022x}", bits & ((1 << 80) - 1));
    // How many bits of the mantissa are after the point.
    let fraction =
        (16_383_u32 + 63).checked_sub(exponent).filter(|&bits| bits <= 63).ok_or_else(words)?;
    let number = mantissa >> fraction;
    let is_whole = number << fraction == mantissa && mantissa >> 63 == 1;
    if is_whole && !is_negative { Ok(number) } else { Err(words()) }
}

impl IdDataset {
    /// Opens a dataset of one or two dimensions.
    ///
    /// # Errors
    /// [`Error::Malformed`] for other shapes and types.
    pub(super) fn new(file: &Arc<ArrayFile>, dataset: Dataset) -> Result<Self> {
        let expected = "whole numbers in one or two dimensions";
        let array = match &dataset.found {
            Found::Array(array) => array,
            Found::Other(what) => return Err(malformed(file, &dataset, 0, what.clone(), expected)),
        };
        let Some(kind) = NumberFormat::of(&array.dtype.to_string()) else {
            let found = format!("elements of type {}", array.dtype);
            return Err(malformed(file, &dataset, 0, found, expected));
        };
        let (rows, columns) = match array.shape[..] {
            [rows] => (rows, 1),
            [rows, columns] if columns > 0 => (rows, columns),
            _ => {
                return Err(malformed(
                    file,
                    &dataset,
                    0,
                    format!("the shape {:?}", array.shape),
                    expected,
                ));
            }
        };
        let size = file.store().size();
        if array.bytes() / MOST_BYTES_PER_BYTE > size {
            let found = format!("{} bytes of values in a file of {size}", array.bytes());
            return Err(malformed(file, &dataset, 0, found, "values that are stored"));
        }
        Ok(Self { file: file.clone(), dataset, kind, rows, columns, bytes: Vec::new() })
    }

    /// The path of the dataset in the file.
    pub(super) fn path(&self) -> &str {
        self.dataset.path()
    }

    /// How many rows to read at a time, about `most` numbers: whole chunks, if the dataset has
    /// chunks. Also returns whether it has.
    pub(super) fn step(&self, most: u64) -> (u64, bool) {
        let most = (most / self.columns).max(1);
        let Found::Array(array) = &self.dataset.found else { return (most, false) };
        let chunk = match &array.place {
            ElementPlace::Chunked(chunk, _) => chunk.first().copied().unwrap_or(1).max(1),
            _ => return (most, false),
        };
        let step = if chunk <= most {
            most - most % chunk
        } else {
            chunk.min((self.room() / self.columns).max(most))
        };
        (step, true)
    }

    /// How many numbers a large read may have.
    pub(super) fn room(&self) -> u64 {
        (self.file.options().budget.memory / SHARE / size_of::<u64>()) as u64
    }

    /// Replaces `out` by the numbers of some rows.
    ///
    /// # Errors
    /// [`Error::Malformed`] for numbers that are negative or have a fraction; the file's own.
    pub(super) fn read(&mut self, rows: Range<u64>, out: &mut Vec<u64>) -> Result<()> {
        let count = (rows.end.saturating_sub(rows.start) * self.columns) as usize;
        if self.kind == NumberFormat::U64 {
            // Read into the vector's own memory: the buffer takes it over and gives it back.
            let mut numbers = std::mem::take(out);
            numbers.resize(count, 0);
            let mut buffer = MutableBuffer::from(numbers);
            let read =
                read_rows(&self.file, &self.dataset, &rows, self.columns, buffer.as_slice_mut());
            *out = Buffer::from(buffer).into_vec().unwrap_or_default();
            read?;
            if cfg!(target_endian = "big") {
                out.iter_mut().for_each(|number| *number = u64::from_le(*number));
            }
            return Ok(());
        }
        let size = match &self.dataset.found {
            Found::Array(array) => array.dtype.size(),
            Found::Other(_) => 0,
        };
        self.bytes.resize(count * size, 0);
        read_rows(&self.file, &self.dataset, &rows, self.columns, &mut self.bytes)?;
        out.clear();
        out.reserve(count);
        self.kind.convert(&self.bytes, out).map_err(|found| {
            let element = rows.start * self.columns + out.len() as u64;
            self.wrong(element, found, "a whole number from 0 on")
        })
    }

    /// The error for a wrong element.
    pub(super) fn wrong(&self, element: u64, found: String, expected: impl Into<String>) -> Error {
        malformed(&self.file, &self.dataset, element, found, expected)
    }
}

fn read_rows(
    file: &ArrayFile,
    dataset: &Dataset,
    rows: &Range<u64>,
    columns: u64,
    out: &mut [u8],
) -> Result<()> {
    let mut slabs = vec![Slab::from(rows.clone())];
    if matches!(&dataset.found, Found::Array(array) if array.shape.len() == 2) {
        slabs.push(Slab::from(0..columns));
    }
    file.read(&mut [ArrayRequest { dataset, selection: Selection::Slab(slabs), out }]).map(drop)
}

/// The error for a wrong element of a dataset.
pub(super) fn malformed(
    file: &ArrayFile,
    dataset: &Dataset,
    element: u64,
    found: String,
    expected: impl Into<String>,
) -> Error {
    let at = match &dataset.found {
        Found::Array(array) => match array.place {
            ElementPlace::Contiguous(Some(start)) => {
                start.saturating_add(element.saturating_mul(array.dtype.size() as u64))
            }
            _ => 0,
        },
        Found::Other(_) => 0,
    };
    Error::Malformed {
        file: file.store().name().clone(),
        what: format!("{}, element {element}", dataset.path()).into(),
        offset: at,
        found: found.into(),
        expected: expected.into().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{NumberFormat, long_double, whole};

    /// A number as an x86 stores it.
    fn stored(mantissa: u64, exponent: u32) -> [u8; 16] {
        (u128::from(exponent) << 64 | u128::from(mantissa)).to_le_bytes()
    }

    #[test]
    fn long_doubles_are_exact() {
        let of = |number: u64| {
            let zeros = number.leading_zeros();
            stored(number << zeros, 16_383 + 63 - zeros)
        };
        for number in [1, 2, 3, 10, 1 << 52, (1 << 53) + 1, u64::MAX - 1, u64::MAX] {
            assert_eq!(long_double(&of(number)), Ok(number));
        }
        assert_eq!(long_double(&[0; 16]), Ok(0));
        // The bytes without meaning are ignored.
        let mut noisy = of(7);
        noisy[10..].fill(0xee);
        assert_eq!(long_double(&noisy), Ok(7));
        let wrong = [
            ("1.5", stored(3 << 62, 16_383)),
            ("0.5", stored(1 << 63, 16_382)),
            ("2^64", stored(1 << 63, 16_383 + 64)),
            ("-1", stored(1 << 63, 16_383 | 1 << 15)),
            ("infinity", stored(1 << 63, 0x7fff)),
            ("not a number", stored(3 << 62, 0x7fff)),
            ("zero's mantissa, infinity's exponent", stored(0, 0x7fff)),
            ("a number without its first bit", stored(1, 16_383 + 63)),
        ];
        for (name, bytes) in wrong {
            assert!(long_double(&bytes).is_err(), "{name}");
        }
    }

    #[test]
    fn numbers_are_whole_or_refused() {
        assert_eq!(whole(3.0), Ok(3));
        assert_eq!(whole(18_446_744_073_709_549_568.0), Ok(18_446_744_073_709_549_568));
        for wrong in [-1.0, 0.5, f64::NAN, f64::INFINITY, 18_446_744_073_709_551_616.0] {
            assert!(whole(wrong).is_err(), "{wrong}");
        }
        let mut out = Vec::new();
        assert_eq!(
            NumberFormat::I32.convert(&[5, 0, 0, 0, 255, 255, 255, 255], &mut out),
            Err("-1".into())
        );
        assert_eq!(out, [5]);
    }
}
