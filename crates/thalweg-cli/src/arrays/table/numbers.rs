//! Elements of datasets as Arrow arrays.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, PrimitiveArray,
};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{ArrowError, DataType, Field};
use thalweg::hdf5::array::Array;
use thalweg::nexus::NumericType;

/// Arrow's name of a type of numbers.
pub(in crate::arrays) fn data_type(number: NumericType) -> DataType {
    match number {
        NumericType::U8 => DataType::UInt8,
        NumericType::U16 => DataType::UInt16,
        NumericType::U32 => DataType::UInt32,
        NumericType::U64 => DataType::UInt64,
        NumericType::I8 => DataType::Int8,
        NumericType::I16 => DataType::Int16,
        NumericType::I32 => DataType::Int32,
        NumericType::I64 => DataType::Int64,
        NumericType::F32 => DataType::Float32,
        NumericType::F64 => DataType::Float64,
    }
}

/// Little-endian numbers as an array.
pub(in crate::arrays) fn array(number: NumericType, bytes: &[u8]) -> ArrayRef {
    match number {
        NumericType::U8 => fixed::<UInt8Type>(bytes),
        NumericType::U16 => fixed::<UInt16Type>(bytes),
        NumericType::U32 => fixed::<UInt32Type>(bytes),
        NumericType::U64 => fixed::<UInt64Type>(bytes),
        NumericType::I8 => fixed::<Int8Type>(bytes),
        NumericType::I16 => fixed::<Int16Type>(bytes),
        NumericType::I32 => fixed::<Int32Type>(bytes),
        NumericType::I64 => fixed::<Int64Type>(bytes),
        NumericType::F32 => fixed::<Float32Type>(bytes),
        NumericType::F64 => fixed::<Float64Type>(bytes),
    }
}

/// Elements that are stored in Arrow's layout.
fn fixed<T: ArrowPrimitiveType>(bytes: &[u8]) -> ArrayRef {
    // `Buffer::from` copies the bytes into a buffer that is aligned for every type.
    Arc::new(PrimitiveArray::<T>::new(Buffer::from(bytes).into(), None))
}

/// The type of a column.
pub(super) struct Element {
    kind: ElementKind,
    /// The shape of a row.
    inner: Vec<i32>,
}

enum ElementKind {
    Number(NumericType),
    Half,
    Boolean,
    /// Strings of this size; zero bytes at their ends are left out.
    Text(usize),
    Bytes(i32),
    Complex(NumericType),
}

impl Element {
    /// The type of an array; `None` if Arrow cannot hold it.
    pub(super) fn new(array: &Array) -> Option<Self> {
        let name = array.dtype.to_string();
        let size = array.dtype.size();
        let kind = match (NumericType::of(&array.dtype), name.as_str()) {
            (Some(number), _) => ElementKind::Number(number),
            (None, "<f2") => ElementKind::Half,
            (None, "|b1") => ElementKind::Boolean,
            (None, "<c8") => ElementKind::Complex(NumericType::F32),
            (None, "<c16") => ElementKind::Complex(NumericType::F64),
            (None, name) if name.starts_with("|S") => ElementKind::Text(size),
            (None, name) if name.starts_with("|V") => ElementKind::Bytes(i32::try_from(size).ok()?),
            _ => return None,
        };
        let length = |&length: &u64| i32::try_from(length).ok().filter(|&length| length > 0);
        let inner = array.shape.iter().skip(1).map(length).collect::<Option<_>>()?;
        Some(Self { kind, inner })
    }

    fn element_type(&self) -> DataType {
        match self.kind {
            ElementKind::Number(number) => data_type(number),
            ElementKind::Half => DataType::Float16,
            ElementKind::Boolean => DataType::Boolean,
            ElementKind::Text(_) => DataType::Binary,
            ElementKind::Bytes(size) => DataType::FixedSizeBinary(size),
            ElementKind::Complex(part) => DataType::FixedSizeList(item(data_type(part)), 2),
        }
    }

    pub(super) fn data_type(&self) -> DataType {
        self.inner.iter().rev().fold(self.element_type(), |inner, &length| {
            DataType::FixedSizeList(item(inner), length)
        })
    }

    /// Little-endian elements as a column.
    pub(super) fn column(&self, bytes: &[u8]) -> Result<ArrayRef, ArrowError> {
        let elements: ArrayRef = match self.kind {
            ElementKind::Number(number) => array(number, bytes),
            ElementKind::Half => fixed::<Float16Type>(bytes),
            ElementKind::Boolean => {
                let bits = BooleanBuffer::collect_bool(bytes.len(), |at| {
                    bytes.get(at).is_some_and(|&byte| byte != 0)
                });
                Arc::new(BooleanArray::new(bits, None))
            }
            ElementKind::Text(size) => {
                Arc::new(BinaryArray::from_iter_values(bytes.chunks_exact(size).map(|element| {
                    let end =
                        element.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    element.get(..end).unwrap_or_default()
                })))
            }
            ElementKind::Bytes(size) => {
                Arc::new(FixedSizeBinaryArray::try_new(size, Buffer::from(bytes), None)?)
            }
            ElementKind::Complex(part) => list(array(part, bytes), 2)?,
        };
        self.inner.iter().rev().try_fold(elements, |inner, &length| list(inner, length))
    }
}

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, false))
}

fn list(values: ArrayRef, length: i32) -> Result<ArrayRef, ArrowError> {
    let field = item(values.data_type().clone());
    Ok(Arc::new(FixedSizeListArray::try_new(field, length, values, None)?))
}
