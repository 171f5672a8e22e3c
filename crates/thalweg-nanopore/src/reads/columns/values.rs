//! The values of one column under construction: a vector of their type. It becomes an Arrow buffer,
//! and is reused afterwards.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};

use crate::record::{AuxValue, Scalar};

/// A vector of one of the types of fields. Characters and codes of enumerations are `U8`.
#[derive(Debug)]
pub(super) enum Values {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Evaluates an expression for a vector of any type.
macro_rules! each {
    ($values:expr, $vec:ident => $body:expr) => {
        match $values {
            Values::I8($vec) => $body,
            Values::I16($vec) => $body,
            Values::I32($vec) => $body,
            Values::I64($vec) => $body,
            Values::U8($vec) => $body,
            Values::U16($vec) => $body,
            Values::U32($vec) => $body,
            Values::U64($vec) => $body,
            Values::F32($vec) => $body,
            Values::F64($vec) => $body,
        }
    };
}

impl Values {
    pub(super) fn new(element: Scalar) -> Self {
        match element {
            Scalar::Int8 => Self::I8(Vec::new()),
            Scalar::Int16 => Self::I16(Vec::new()),
            Scalar::Int32 => Self::I32(Vec::new()),
            Scalar::Int64 => Self::I64(Vec::new()),
            Scalar::Uint8 | Scalar::Char | Scalar::Enum => Self::U8(Vec::new()),
            Scalar::Uint16 => Self::U16(Vec::new()),
            Scalar::Uint32 => Self::U32(Vec::new()),
            Scalar::Uint64 => Self::U64(Vec::new()),
            Scalar::Float => Self::F32(Vec::new()),
            Scalar::Double => Self::F64(Vec::new()),
        }
    }

    pub(super) fn len(&self) -> usize {
        each!(self, vec => vec.len())
    }

    /// Makes room for so many bytes in all.
    pub(super) fn reserve(&mut self, bytes: usize) {
        each!(self, vec => {
            let more = (bytes / element_size(vec)).saturating_sub(vec.len());
            vec.reserve_exact(more);
        });
    }

    pub(super) fn truncate(&mut self, len: usize) {
        each!(self, vec => vec.truncate(len));
    }

    /// Appends a scalar if it is of this type. Returns whether it is.
    pub(super) fn push(&mut self, value: AuxValue<'_>) -> bool {
        match (self, value) {
            (Self::I8(vec), AuxValue::Int8(v)) => vec.push(v),
            (Self::I16(vec), AuxValue::Int16(v)) => vec.push(v),
            (Self::I32(vec), AuxValue::Int32(v)) => vec.push(v),
            (Self::I64(vec), AuxValue::Int64(v)) => vec.push(v),
            (Self::U8(vec), AuxValue::Uint8(v) | AuxValue::Char(v) | AuxValue::Enum(v)) => {
                vec.push(v);
            }
            (Self::U16(vec), AuxValue::Uint16(v)) => vec.push(v),
            (Self::U32(vec), AuxValue::Uint32(v)) => vec.push(v),
            (Self::U64(vec), AuxValue::Uint64(v)) => vec.push(v),
            (Self::F32(vec), AuxValue::Float(v)) => vec.push(v),
            (Self::F64(vec), AuxValue::Double(v)) => vec.push(v),
            _ => return false,
        }
        true
    }

    /// Appends the placeholder for a missing value.
    pub(super) fn push_nothing(&mut self) {
        each!(self, vec => vec.push(Default::default()));
    }

    /// Appends the stored elements of a record.
    pub(super) fn extend_stored(&mut self, bytes: &[u8]) {
        match self {
            Self::I8(vec) => extend(vec, bytes, i8::from_le_bytes),
            Self::I16(vec) => extend(vec, bytes, i16::from_le_bytes),
            Self::I32(vec) => extend(vec, bytes, i32::from_le_bytes),
            Self::I64(vec) => extend(vec, bytes, i64::from_le_bytes),
            Self::U8(vec) => vec.extend_from_slice(bytes),
            Self::U16(vec) => extend(vec, bytes, u16::from_le_bytes),
            Self::U32(vec) => extend(vec, bytes, u32::from_le_bytes),
            Self::U64(vec) => extend(vec, bytes, u64::from_le_bytes),
            Self::F32(vec) => extend(vec, bytes, f32::from_le_bytes),
            Self::F64(vec) => extend(vec, bytes, f64::from_le_bytes),
        }
    }

    /// Appends values of another vector if it is of the same type. Returns whether it is.
    pub(super) fn extend_from(&mut self, from: &Self, range: Range<usize>) -> bool {
        match (self, from) {
            (Self::I8(vec), Self::I8(from)) => vec.extend_from_slice(&from[range]),
            (Self::I16(vec), Self::I16(from)) => vec.extend_from_slice(&from[range]),
            (Self::I32(vec), Self::I32(from)) => vec.extend_from_slice(&from[range]),
            (Self::I64(vec), Self::I64(from)) => vec.extend_from_slice(&from[range]),
            (Self::U8(vec), Self::U8(from)) => vec.extend_from_slice(&from[range]),
            (Self::U16(vec), Self::U16(from)) => vec.extend_from_slice(&from[range]),
            (Self::U32(vec), Self::U32(from)) => vec.extend_from_slice(&from[range]),
            (Self::U64(vec), Self::U64(from)) => vec.extend_from_slice(&from[range]),
            (Self::F32(vec), Self::F32(from)) => vec.extend_from_slice(&from[range]),
            (Self::F64(vec), Self::F64(from)) => vec.extend_from_slice(&from[range]),
            _ => return false,
        }
        true
    }

    /// Empties the vector, and frees its memory beyond `keep` bytes.
    pub(super) fn clear(&mut self, keep: usize) {
        each!(self, vec => clear(vec, keep));
    }

    /// Turns the values into an Arrow array without copying them.
    pub(super) fn export(&mut self, nulls: Option<NullBuffer>) -> ArrayRef {
        use std::mem::take;
        match self {
            Self::I8(vec) => Arc::new(Int8Array::new(take(vec).into(), nulls)),
            Self::I16(vec) => Arc::new(Int16Array::new(take(vec).into(), nulls)),
            Self::I32(vec) => Arc::new(Int32Array::new(take(vec).into(), nulls)),
            Self::I64(vec) => Arc::new(Int64Array::new(take(vec).into(), nulls)),
            Self::U8(vec) => Arc::new(UInt8Array::new(take(vec).into(), nulls)),
            Self::U16(vec) => Arc::new(UInt16Array::new(take(vec).into(), nulls)),
            Self::U32(vec) => Arc::new(UInt32Array::new(take(vec).into(), nulls)),
            Self::U64(vec) => Arc::new(UInt64Array::new(take(vec).into(), nulls)),
            Self::F32(vec) => Arc::new(Float32Array::new(take(vec).into(), nulls)),
            Self::F64(vec) => Arc::new(Float64Array::new(take(vec).into(), nulls)),
        }
    }

    /// Takes back the memory of a buffer from [`Values::export`], unless it is still in use.
    pub(super) fn reclaim(&mut self, buffer: Buffer) {
        each!(self, vec => *vec = reclaim(buffer));
    }
}

fn extend<T, const N: usize>(vec: &mut Vec<T>, bytes: &[u8], value: fn([u8; N]) -> T) {
    vec.extend(bytes.as_chunks().0.iter().map(|&bytes| value(bytes)));
}

pub(super) fn clear<T>(vec: &mut Vec<T>, keep: usize) {
    vec.clear();
    vec.shrink_to(keep / size_of::<T>());
}

/// The vector that `buffer` was made from, emptied. A new vector if the buffer is still in use.
pub(super) fn reclaim<T: ArrowNativeType>(buffer: Buffer) -> Vec<T> {
    let mut vec = buffer.into_vec().unwrap_or_default();
    vec.clear();
    vec
}

/// Bytes of an element.
fn element_size<T>(_: &[T]) -> usize {
    size_of::<T>()
}
