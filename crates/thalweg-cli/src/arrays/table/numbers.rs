//! Elements of datasets as Arrow arrays.

use std::sync::Arc;

use arrow_array::types::Float16Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, ListArray,
    PrimitiveArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field};
use thalweg::event_table::{number_type, numbers};
use thalweg::hdf5::array::Variable;
use thalweg::hdf5::dtype::Dtype;
use thalweg::nexus::NumericType;

/// Some rows of a dataset.
pub(super) enum Part {
    /// Little-endian elements of one size.
    Elements(Vec<u8>),
    /// Strings, or lists as the bytes of their little-endian elements.
    Variable(Vec<Vec<u8>>),
}

impl Part {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Elements(bytes) => bytes.len() as u64,
            Self::Variable(elements) => elements.iter().map(|element| element.len() as u64).sum(),
        }
    }
}

/// Why rows do not become a column.
pub(super) enum ColumnRefusal {
    /// A string is not UTF-8, and the column is one of text.
    NotText,
    /// So many bytes of strings or lists are more than Arrow counts.
    TooLong(u64),
    Arrow(ArrowError),
}

impl From<ArrowError> for ColumnRefusal {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// The type of a column.
pub(super) struct Element {
    kind: ElementKind,
    /// Whether the elements are lists of any length of these.
    is_list: bool,
    /// Bytes of an element or item; 1 for strings of any length.
    size: usize,
    /// The shape of a row.
    inner: Vec<i32>,
}

#[derive(Clone, Copy)]
enum ElementKind {
    Number(NumericType),
    Half,
    Boolean,
    /// Strings. Zero bytes at the ends of those of a fixed size are left out.
    Text,
    /// Strings of which one is not UTF-8.
    TextBytes,
    Bytes(i32),
    Complex(NumericType),
}

impl ElementKind {
    fn of(dtype: &Dtype) -> Option<Self> {
        let name = dtype.to_string();
        Some(match (NumericType::of(dtype), name.as_str()) {
            (Some(number), _) => Self::Number(number),
            (None, "<f2") => Self::Half,
            (None, "|b1") => Self::Boolean,
            (None, "<c8") => Self::Complex(NumericType::F32),
            (None, "<c16") => Self::Complex(NumericType::F64),
            (None, name) if name.starts_with("|S") => Self::Text,
            (None, name) if name.starts_with("|V") => {
                Self::Bytes(i32::try_from(dtype.size()).ok()?)
            }
            _ => return None,
        })
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Number(number) => number_type(number),
            Self::Half => DataType::Float16,
            Self::Boolean => DataType::Boolean,
            Self::Text => DataType::Utf8,
            Self::TextBytes => DataType::Binary,
            Self::Bytes(size) => DataType::FixedSizeBinary(size),
            Self::Complex(part) => DataType::FixedSizeList(item(number_type(part)), 2),
        }
    }

    /// Little-endian elements of `size` bytes as an array.
    fn array(self, bytes: &[u8], size: usize) -> Result<ArrayRef, ColumnRefusal> {
        Ok(match self {
            Self::Number(number) => numbers(number, bytes),
            // `Buffer::from` copies the bytes into a buffer that is aligned for every type.
            Self::Half => {
                Arc::new(PrimitiveArray::<Float16Type>::new(Buffer::from(bytes).into(), None))
            }
            Self::Boolean => {
                let bits = BooleanBuffer::collect_bool(bytes.len(), |at| {
                    bytes.get(at).is_some_and(|&byte| byte != 0)
                });
                Arc::new(BooleanArray::new(bits, None))
            }
            Self::Text | Self::TextBytes => {
                return self.strings(bytes.chunks_exact(size).map(|element| {
                    let end =
                        element.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    element.get(..end).unwrap_or_default()
                }));
            }
            Self::Bytes(size) => {
                Arc::new(FixedSizeBinaryArray::try_new(size, Buffer::from(bytes), None)?)
            }
            Self::Complex(part) => list(numbers(part, bytes), 2)?,
        })
    }

    fn strings<'a>(self, texts: impl Iterator<Item = &'a [u8]>) -> Result<ArrayRef, ColumnRefusal> {
        if matches!(self, Self::TextBytes) {
            return Ok(Arc::new(BinaryArray::from_iter_values(texts)));
        }
        let texts: Result<Vec<&str>, _> = texts.map(std::str::from_utf8).collect();
        let texts = texts.map_err(|_| ColumnRefusal::NotText)?;
        Ok(Arc::new(StringArray::from_iter_values(texts)))
    }
}

impl Element {
    /// The type of an array of elements of one size; `None` if Arrow cannot hold it.
    pub(super) fn new(dtype: &Dtype, shape: &[u64]) -> Option<Self> {
        let kind = ElementKind::of(dtype)?;
        Some(Self { kind, is_list: false, size: dtype.size(), inner: inner(shape)? })
    }

    /// The type of strings or lists of any length; `None` if Arrow cannot hold them.
    pub(super) fn variable(variable: &Variable) -> Option<Self> {
        let (kind, size) = match &variable.item {
            Some(item) => (ElementKind::of(item)?, item.size()),
            None => (ElementKind::Text, 1),
        };
        let inner = inner(&variable.shape)?;
        Some(Self { kind, is_list: variable.item.is_some(), size, inner })
    }

    /// Makes a column of text one of bytes.
    pub(super) fn make_bytes(&mut self) {
        self.kind = ElementKind::TextBytes;
    }

    pub(super) fn data_type(&self) -> DataType {
        let element = self.kind.data_type();
        let element = if self.is_list { DataType::List(item(element)) } else { element };
        self.inner
            .iter()
            .rev()
            .fold(element, |inner, &length| DataType::FixedSizeList(item(inner), length))
    }

    /// Rows as a column.
    pub(super) fn column(&self, part: &Part) -> Result<ArrayRef, ColumnRefusal> {
        let elements = match part {
            Part::Elements(bytes) => self.kind.array(bytes, self.size)?,
            Part::Variable(elements) => {
                let bytes = part.bytes();
                if i32::try_from(bytes).is_err() {
                    return Err(ColumnRefusal::TooLong(bytes));
                }
                if self.is_list {
                    let lengths = elements.iter().map(|element| element.len() / self.size);
                    let offsets = OffsetBuffer::from_lengths(lengths);
                    let items = self.kind.array(&elements.concat(), self.size)?;
                    let field = item(items.data_type().clone());
                    Arc::new(ListArray::try_new(field, offsets, items, None)?)
                } else {
                    self.kind.strings(elements.iter().map(Vec::as_slice))?
                }
            }
        };
        let listed = |inner, &length: &i32| list(inner, length);
        Ok(self.inner.iter().rev().try_fold(elements, listed)?)
    }
}

/// The shape of a row; `None` if Arrow has no such list.
fn inner(shape: &[u64]) -> Option<Vec<i32>> {
    let length = |&length: &u64| i32::try_from(length).ok().filter(|&length| length > 0);
    shape.iter().skip(1).map(length).collect()
}

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(of, false))
}

fn list(values: ArrayRef, length: i32) -> Result<ArrayRef, ArrowError> {
    let field = item(values.data_type().clone());
    Ok(Arc::new(FixedSizeListArray::try_new(field, length, values, None)?))
}
