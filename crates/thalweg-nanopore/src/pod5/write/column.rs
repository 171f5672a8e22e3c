//! Building columns of the Reads table, one value per read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder,
    Int32Builder, Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray,
    LargeListArray, LargeStringArray, ListArray, PrimitiveArray, StringArray,
};
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, TimeUnit};
use thalweg_io::Fault;

use crate::pod5::fields::StoredType;
use crate::record::Scalar;

/// A value of a column. The column determines which numbers fit.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ColumnValue {
    /// A missing value. Readers that ignore the validity find zero, or the first entry of a
    /// dictionary. In a column of floats it is written as NaN.
    #[default]
    Missing,
    /// An unsigned integer, or a bool as 0 or 1.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// Text.
    Text(Box<str>),
    /// The stored bytes of the items of a list.
    List(Box<[u8]>),
}

/// The texts of a dictionary, numbered in the order of their first appearance.
#[derive(Debug)]
pub(super) struct Dictionary {
    codes: HashMap<Box<str>, i16>,
    texts: Vec<Box<str>>,
}

impl Dictionary {
    /// A dictionary whose first entry is `first`, which readers that ignore the validity find for
    /// a missing value.
    pub(super) fn new(first: &str) -> Self {
        let mut dictionary = Self { codes: HashMap::new(), texts: Vec::new() };
        let _ = dictionary.code(first);
        dictionary
    }

    fn code(&mut self, text: &str) -> Result<i16, Fault> {
        if let Some(&code) = self.codes.get(text) {
            return Ok(code);
        }
        let code = i16::try_from(self.texts.len()).map_err(|_| {
            Fault::new(
                0,
                "more than 32768 different texts",
                "as many as a dictionary of POD5 can hold",
            )
        })?;
        self.codes.insert(text.into(), code);
        self.texts.push(text.into());
        Ok(code)
    }

    pub(super) fn texts(&self) -> StringArray {
        StringArray::from_iter_values(self.texts.iter())
    }
}

/// A column under construction.
#[derive(Debug)]
pub(super) enum GrowingColumn {
    U8(UInt8Builder),
    U16(UInt16Builder),
    U32(UInt32Builder),
    U64(UInt64Builder),
    I8(Int8Builder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Codes(Int16Builder, Dictionary),
    List(List),
}

/// A column of lists under construction.
#[derive(Debug)]
pub(super) struct List {
    items: Scalar,
    ends: Vec<usize>,
    valid: Vec<bool>,
    bytes: Vec<u8>,
}

impl List {
    fn new(items: Scalar) -> Self {
        Self { items, ends: Vec::new(), valid: Vec::new(), bytes: Vec::new() }
    }

    fn push(&mut self, items: Option<&[u8]>) -> Result<(), Fault> {
        let all = self.bytes.len() + items.map_or(0, <[u8]>::len);
        if i32::try_from(all).is_err() {
            return Err(Fault::new(
                0,
                format!("lists of {all} bytes in a batch"),
                "less than 2 GiB",
            ));
        }
        self.bytes.extend(items.unwrap_or_default());
        self.ends.push(self.bytes.len());
        self.valid.push(items.is_some());
        Ok(())
    }

    /// Takes the lists so far as an array, and leaves the column empty.
    fn take(&mut self) -> ArrayRef {
        fn of<T: ArrowPrimitiveType>(bytes: &[u8]) -> ArrayRef {
            // The copy is aligned for the values.
            let mut buffer = MutableBuffer::with_capacity(bytes.len());
            buffer.extend_from_slice(bytes);
            Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(Buffer::from(buffer)), None))
        }
        let Self { items, ends, valid, bytes } = std::mem::replace(self, Self::new(self.items));
        let width = items.size();
        let mut last = 0;
        let lens = ends.iter().map(|&end| (end - std::mem::replace(&mut last, end)) / width);
        let offsets = OffsetBuffer::<i32>::from_lengths(lens);
        let values = match items {
            Scalar::Int8 => of::<Int8Type>(&bytes),
            Scalar::Int16 => of::<Int16Type>(&bytes),
            Scalar::Int32 => of::<Int32Type>(&bytes),
            Scalar::Int64 => of::<Int64Type>(&bytes),
            Scalar::Uint8 | Scalar::Char | Scalar::Enum => of::<UInt8Type>(&bytes),
            Scalar::Uint16 => of::<UInt16Type>(&bytes),
            Scalar::Uint32 => of::<UInt32Type>(&bytes),
            Scalar::Uint64 => of::<UInt64Type>(&bytes),
            Scalar::Float => of::<Float32Type>(&bytes),
            Scalar::Double => of::<Float64Type>(&bytes),
        };
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        Arc::new(ListArray::new(field, offsets, values, Some(valid.into())))
    }
}

/// The Arrow type of a column of this stored type.
pub(in crate::pod5) fn type_of(stored: StoredType) -> DataType {
    GrowingColumn::new(stored).data_type()
}

/// Converts an array to another Arrow type for the same values: a type that
/// [`super::super::schema`] gives as [`ColumnSchema::arrow`](crate::pod5::ColumnSchema::arrow).
///
/// # Errors
/// When the type is not for these values, or a value does not fit it.
pub(super) fn retyped(array: ArrayRef, kind: &DataType) -> Result<ArrayRef, Fault> {
    if array.data_type() == kind {
        return Ok(array);
    }
    let made: Option<ArrayRef> = match kind {
        DataType::Timestamp(..) | DataType::Duration(_) | DataType::Date64 | DataType::Date32 => {
            retyped_times(&array, kind)
        }
        DataType::Boolean => array.as_primitive_opt::<UInt8Type>().map(|bits| {
            let bits: BooleanArray = bits.iter().map(|bit| bit.map(|bit| bit != 0)).collect();
            Arc::new(bits) as ArrayRef
        }),
        DataType::LargeUtf8 => array.as_string_opt::<i32>().map(|texts| {
            let texts: LargeStringArray = texts.iter().collect();
            Arc::new(texts) as ArrayRef
        }),
        _ => array.as_list_opt::<i32>().and_then(|lists| retyped_lists(lists, kind)),
    };
    made.ok_or_else(|| {
        Fault::new(0, format!("values of type {}", array.data_type()), format!("the type {kind}"))
    })
}

/// Converts lists to another type of lists, or lists of bytes to a type of binary values.
fn retyped_lists(lists: &ListArray, kind: &DataType) -> Option<ArrayRef> {
    let bytes = || {
        let bytes = lists.values().as_primitive_opt::<UInt8Type>();
        bytes.map(|bytes| bytes.values().inner().clone())
    };
    let nulls = lists.nulls().cloned();
    Some(match kind {
        DataType::Binary => {
            Arc::new(BinaryArray::try_new(lists.offsets().clone(), bytes()?, nulls).ok()?)
        }
        DataType::LargeBinary | DataType::FixedSizeBinary(_) => {
            let bytes = bytes()?;
            let values = lists.offsets().windows(2).enumerate().map(|(i, span)| {
                let value = bytes.as_slice().get(span[0] as usize..span[1] as usize);
                value.filter(|_| lists.is_valid(i))
            });
            if let DataType::FixedSizeBinary(width) = kind {
                let made = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *width);
                return Some(Arc::new(made.ok()?));
            }
            Arc::new(values.collect::<LargeBinaryArray>())
        }
        DataType::List(field) => {
            let offsets = lists.offsets().clone();
            let made = ListArray::try_new(field.clone(), offsets, lists.values().clone(), nulls);
            Arc::new(made.ok()?)
        }
        DataType::LargeList(field) => {
            let offsets = OffsetBuffer::<i64>::from_lengths(lists.offsets().lengths());
            let values = lists.values().clone();
            Arc::new(LargeListArray::try_new(field.clone(), offsets, values, nulls).ok()?)
        }
        _ => return None,
    })
}

/// Converts integers to a type of times or durations.
fn retyped_times(array: &ArrayRef, kind: &DataType) -> Option<ArrayRef> {
    fn numbers<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef) -> Option<PrimitiveArray<T>> {
        Some(array.as_primitive_opt::<Int64Type>()?.reinterpret_cast())
    }
    match kind {
        DataType::Timestamp(unit, zone) => {
            macro_rules! stamps {
                ($kind:ty) => {
                    numbers::<$kind>(array)
                        .map(|stamps| Arc::new(stamps.with_timezone_opt(zone.clone())) as ArrayRef)
                };
            }
            match unit {
                TimeUnit::Second => stamps!(TimestampSecondType),
                TimeUnit::Millisecond => stamps!(TimestampMillisecondType),
                TimeUnit::Microsecond => stamps!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => stamps!(TimestampNanosecondType),
            }
        }
        DataType::Duration(TimeUnit::Second) => {
            numbers::<DurationSecondType>(array).map(|a| Arc::new(a) as _)
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            numbers::<DurationMillisecondType>(array).map(|a| Arc::new(a) as _)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            numbers::<DurationMicrosecondType>(array).map(|a| Arc::new(a) as _)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            numbers::<DurationNanosecondType>(array).map(|a| Arc::new(a) as _)
        }
        DataType::Date64 => numbers::<Date64Type>(array).map(|a| Arc::new(a) as _),
        DataType::Date32 => array
            .as_primitive_opt::<Int32Type>()
            .map(|days| Arc::new(days.reinterpret_cast::<Date32Type>()) as ArrayRef),
        _ => None,
    }
}

impl GrowingColumn {
    pub(super) fn new(stored: StoredType) -> Self {
        match stored {
            StoredType::U8 => Self::U8(UInt8Builder::new()),
            StoredType::U16 => Self::U16(UInt16Builder::new()),
            StoredType::U32 => Self::U32(UInt32Builder::new()),
            StoredType::U64 => Self::U64(UInt64Builder::new()),
            StoredType::I8 => Self::I8(Int8Builder::new()),
            StoredType::I16 => Self::I16(Int16Builder::new()),
            StoredType::I32 => Self::I32(Int32Builder::new()),
            StoredType::I64 => Self::I64(Int64Builder::new()),
            StoredType::F32 => Self::F32(Float32Builder::new()),
            StoredType::F64 => Self::F64(Float64Builder::new()),
            StoredType::Bool => Self::Bool(BooleanBuilder::new()),
            StoredType::Text => Self::Text(StringBuilder::new()),
            StoredType::List(items) => Self::List(List::new(items)),
        }
    }

    /// A column of texts with a dictionary whose first entry is `first`.
    pub(super) fn dictionary(first: &str) -> Self {
        Self::Codes(Int16Builder::new(), Dictionary::new(first))
    }

    /// The Arrow type of the arrays that [`GrowingColumn::take`] gives.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::U8(_) => DataType::UInt8,
            Self::U16(_) => DataType::UInt16,
            Self::U32(_) => DataType::UInt32,
            Self::U64(_) => DataType::UInt64,
            Self::I8(_) => DataType::Int8,
            Self::I16(_) | Self::Codes(..) => DataType::Int16,
            Self::I32(_) => DataType::Int32,
            Self::I64(_) => DataType::Int64,
            Self::F32(_) => DataType::Float32,
            Self::F64(_) => DataType::Float64,
            Self::Bool(_) => DataType::Boolean,
            Self::Text(_) => DataType::Utf8,
            Self::List(list) => List::new(list.items).take().data_type().clone(),
        }
    }

    /// Appends a value.
    ///
    /// # Errors
    /// When the column cannot hold the value.
    pub(super) fn push(&mut self, value: &ColumnValue) -> Result<(), Fault> {
        fn whole<T: TryFrom<u64> + TryFrom<i64>>(value: &ColumnValue) -> Result<Option<T>, Fault> {
            match value {
                ColumnValue::Missing => Ok(None),
                ColumnValue::Unsigned(n) => T::try_from(*n).map(Some).map_err(|_| refused(value)),
                ColumnValue::Signed(n) => T::try_from(*n).map(Some).map_err(|_| refused(value)),
                _ => Err(refused(value)),
            }
        }
        match (self, value) {
            (Self::U8(column), value) => column.append_option(whole(value)?),
            (Self::U16(column), value) => column.append_option(whole(value)?),
            (Self::U32(column), value) => column.append_option(whole(value)?),
            (Self::U64(column), value) => column.append_option(whole(value)?),
            (Self::I8(column), value) => column.append_option(whole(value)?),
            (Self::I16(column), value) => column.append_option(whole(value)?),
            (Self::I32(column), value) => column.append_option(whole(value)?),
            (Self::I64(column), value) => column.append_option(whole(value)?),
            (Self::F32(column), ColumnValue::Float(value)) => column.append_value(*value),
            (Self::F32(column), ColumnValue::Missing) => column.append_value(f32::NAN),
            (Self::F64(column), ColumnValue::Double(value)) => column.append_value(*value),
            (Self::F64(column), ColumnValue::Missing) => column.append_value(f64::NAN),
            (Self::Bool(column), ColumnValue::Unsigned(value @ 0..=1)) => {
                column.append_value(*value == 1);
            }
            (Self::Bool(column), ColumnValue::Missing) => column.append_null(),
            (Self::Text(column), ColumnValue::Text(text)) => column.append_value(text),
            (Self::Text(column), ColumnValue::Missing) => column.append_null(),
            (Self::Codes(column, dictionary), ColumnValue::Text(text)) => {
                column.append_value(dictionary.code(text)?);
            }
            (Self::Codes(column, _), ColumnValue::Missing) => column.append_null(),
            (Self::List(list), ColumnValue::List(items)) => list.push(Some(items))?,
            (Self::List(list), ColumnValue::Missing) => list.push(None)?,
            (_, value) => return Err(refused(value)),
        }
        Ok(())
    }

    /// Takes the values so far as an array, and leaves the column empty. The array of a column with
    /// a dictionary has codes in place of texts.
    pub(super) fn take(&mut self) -> ArrayRef {
        match self {
            Self::U8(column) => ArrayBuilder::finish(column),
            Self::U16(column) => ArrayBuilder::finish(column),
            Self::U32(column) => ArrayBuilder::finish(column),
            Self::U64(column) => ArrayBuilder::finish(column),
            Self::I8(column) => ArrayBuilder::finish(column),
            Self::I16(column) | Self::Codes(column, _) => ArrayBuilder::finish(column),
            Self::I32(column) => ArrayBuilder::finish(column),
            Self::I64(column) => ArrayBuilder::finish(column),
            Self::F32(column) => ArrayBuilder::finish(column),
            Self::F64(column) => ArrayBuilder::finish(column),
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
            Self::List(list) => list.take(),
        }
    }
}

#[cold]
fn refused(value: &ColumnValue) -> Fault {
    Fault::new(0, format!("{value:?}"), "a value that the column can hold")
}
