//! Columns of the Reads table that fill up, a value a read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, StringArray};
use arrow_schema::DataType;

use crate::Fault;
use crate::format::pod5::fields::Stored;

/// A value of a column. Which numbers fit is the column's to say.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// Nothing is known. Readers that look past the validity find zero, or the first entry of a dictionary; in a column
    /// of floats it is written as NaN.
    #[default]
    Missing,
    /// A whole number, or a truth value.
    Unsigned(u64),
    /// A whole number of either sign.
    Signed(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// Text.
    Text(Box<str>),
}

/// Texts by number, in the order of their first appearance.
#[derive(Debug)]
pub(super) struct Dictionary {
    codes: HashMap<Box<str>, i16>,
    texts: Vec<Box<str>>,
}

impl Dictionary {
    /// A dictionary whose first entry is what a missing value should look like.
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
            Fault::new(0, "more than 32768 different texts", "as many as a dictionary of POD5 can hold")
        })?;
        self.codes.insert(text.into(), code);
        self.texts.push(text.into());
        Ok(code)
    }

    pub(super) fn texts(&self) -> StringArray {
        StringArray::from_iter_values(self.texts.iter())
    }
}

/// A column that fills up.
#[derive(Debug)]
pub(super) enum Column {
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
}

impl Column {
    pub(super) fn new(stored: Stored) -> Self {
        match stored {
            Stored::U8 => Self::U8(UInt8Builder::new()),
            Stored::U16 => Self::U16(UInt16Builder::new()),
            Stored::U32 => Self::U32(UInt32Builder::new()),
            Stored::U64 => Self::U64(UInt64Builder::new()),
            Stored::I8 => Self::I8(Int8Builder::new()),
            Stored::I16 => Self::I16(Int16Builder::new()),
            Stored::I32 => Self::I32(Int32Builder::new()),
            Stored::I64 => Self::I64(Int64Builder::new()),
            Stored::F32 => Self::F32(Float32Builder::new()),
            Stored::F64 => Self::F64(Float64Builder::new()),
            Stored::Bool => Self::Bool(BooleanBuilder::new()),
            Stored::Text => Self::Text(StringBuilder::new()),
        }
    }

    /// A column of texts stored through a dictionary.
    pub(super) fn dictionary(first: &str) -> Self {
        Self::Codes(Int16Builder::new(), Dictionary::new(first))
    }

    /// Its type on disk, where it has no dictionary.
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
        }
    }

    /// Takes the next value.
    ///
    /// # Errors
    /// When the column cannot hold it.
    pub(super) fn push(&mut self, value: &Value) -> Result<(), Fault> {
        fn whole<T: TryFrom<u64> + TryFrom<i64>>(value: &Value) -> Result<Option<T>, Fault> {
            match value {
                Value::Missing => Ok(None),
                Value::Unsigned(n) => T::try_from(*n).map(Some).map_err(|_| refused(value)),
                Value::Signed(n) => T::try_from(*n).map(Some).map_err(|_| refused(value)),
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
            (Self::F32(column), Value::Float(value)) => column.append_value(*value),
            (Self::F32(column), Value::Missing) => column.append_value(f32::NAN),
            (Self::F64(column), Value::Double(value)) => column.append_value(*value),
            (Self::F64(column), Value::Missing) => column.append_value(f64::NAN),
            (Self::Bool(column), Value::Unsigned(value @ 0..=1)) => column.append_value(*value == 1),
            (Self::Bool(column), Value::Missing) => column.append_null(),
            (Self::Text(column), Value::Text(text)) => column.append_value(text),
            (Self::Text(column), Value::Missing) => column.append_null(),
            (Self::Codes(column, dictionary), Value::Text(text)) => column.append_value(dictionary.code(text)?),
            (Self::Codes(column, _), Value::Missing) => column.append_null(),
            (_, value) => return Err(refused(value)),
        }
        Ok(())
    }

    /// The values so far, codes in place of texts that have them; the column goes on with none.
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
        }
    }
}

#[cold]
fn refused(value: &Value) -> Fault {
    Fault::new(0, format!("{value:?}"), "a value that the column can hold")
}
