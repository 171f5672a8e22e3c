//! The values of auxiliary fields, borrowed from their record.

use thalweg_io::Fault;

use super::{AuxField, Scalar, cut_short};

/// A value of an auxiliary field, borrowed from its record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AuxValue<'a> {
    /// A missing value: `.` in text; the type's maximum, NaN, NUL or an empty array in binary.
    Missing,
    /// An `int8_t`.
    Int8(i8),
    /// An `int16_t`.
    Int16(i16),
    /// An `int32_t`.
    Int32(i32),
    /// An `int64_t`.
    Int64(i64),
    /// A `uint8_t`.
    Uint8(u8),
    /// A `uint16_t`.
    Uint16(u16),
    /// A `uint32_t`.
    Uint32(u32),
    /// A `uint64_t`.
    Uint64(u64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A `char`.
    Char(u8),
    /// The code of an enumeration; [`AuxField::label`] has its name.
    Enum(u8),
    /// A `char*`: usually text, but the format does not define its encoding.
    String(&'a [u8]),
    /// Any other array.
    Array(AuxArray<'a>),
}

impl AuxValue<'_> {
    /// The type of a value that is neither missing nor an array.
    pub(crate) fn scalar(self) -> Option<Scalar> {
        match self {
            Self::Missing | Self::String(_) | Self::Array(_) => None,
            Self::Int8(_) => Some(Scalar::Int8),
            Self::Int16(_) => Some(Scalar::Int16),
            Self::Int32(_) => Some(Scalar::Int32),
            Self::Int64(_) => Some(Scalar::Int64),
            Self::Uint8(_) => Some(Scalar::Uint8),
            Self::Uint16(_) => Some(Scalar::Uint16),
            Self::Uint32(_) => Some(Scalar::Uint32),
            Self::Uint64(_) => Some(Scalar::Uint64),
            Self::Float(_) => Some(Scalar::Float),
            Self::Double(_) => Some(Scalar::Double),
            Self::Char(_) => Some(Scalar::Char),
            Self::Enum(_) => Some(Scalar::Enum),
        }
    }

    pub(crate) fn push_scalar(self, out: &mut Vec<u8>) {
        match self {
            Self::Missing | Self::String(_) | Self::Array(_) => {}
            Self::Int8(v) => out.extend(v.to_le_bytes()),
            Self::Int16(v) => out.extend(v.to_le_bytes()),
            Self::Int32(v) => out.extend(v.to_le_bytes()),
            Self::Int64(v) => out.extend(v.to_le_bytes()),
            Self::Uint8(v) | Self::Char(v) | Self::Enum(v) => out.push(v),
            Self::Uint16(v) => out.extend(v.to_le_bytes()),
            Self::Uint32(v) => out.extend(v.to_le_bytes()),
            Self::Uint64(v) => out.extend(v.to_le_bytes()),
            Self::Float(v) => out.extend(v.to_le_bytes()),
            Self::Double(v) => out.extend(v.to_le_bytes()),
        }
    }
}

/// An array in the bytes of its record: little-endian and unaligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuxArray<'a> {
    pub(crate) element: Scalar,
    pub(crate) bytes: &'a [u8],
}

impl<'a> AuxArray<'a> {
    /// An array over little-endian bytes; `None` if they are not a whole number of elements.
    pub fn new(element: Scalar, bytes: &'a [u8]) -> Option<Self> {
        bytes.len().is_multiple_of(element.size()).then_some(Self { element, bytes })
    }

    /// The type of one element.
    pub const fn element(self) -> Scalar {
        self.element
    }

    /// The stored bytes.
    pub const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// The number of elements.
    pub const fn len(self) -> usize {
        self.bytes.len() / self.element.size()
    }

    /// Whether there are no elements.
    pub const fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements. Missing ones are [`AuxValue::Missing`].
    pub fn iter(self) -> impl ExactSizeIterator<Item = AuxValue<'static>> + 'a {
        self.bytes.chunks_exact(self.element.size()).map(move |bytes| self.element.value(bytes))
    }
}

/// The auxiliary values of one record, in header order. Stops after the first fault.
#[derive(Debug, Clone)]
pub struct AuxValues<'a, 'h> {
    fields: std::slice::Iter<'h, AuxField>,
    bytes: &'a [u8],
    at: usize,
}

impl<'a, 'h> AuxValues<'a, 'h> {
    pub(crate) fn new(fields: &'h [AuxField], bytes: &'a [u8]) -> Self {
        Self { fields: fields.iter(), bytes, at: 0 }
    }
}

impl<'a, 'h> Iterator for AuxValues<'a, 'h> {
    type Item = Result<(&'h AuxField, AuxValue<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.next()?;
        match field.kind.split(self.bytes, self.at) {
            Some((value, next)) => {
                self.at = next;
                Some(Ok((field, field.kind.value(value))))
            }
            None => {
                self.fields = [].iter();
                Some(Err(cut_short(field, self.bytes, self.at)))
            }
        }
    }
}
