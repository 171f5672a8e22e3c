//! Attributes that Python gives: columns of numpy as Arrow data.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{Buffer as ArrowBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;

use crate::arrow::primitive;
use crate::errors::usage;

/// The name of text among numpy's names of types.
const TEXT: &str = "text";

/// A column: its name, numpy's name of its type, and its bytes, or a list of strings.
pub(super) type Column<'py> = (String, String, Bound<'py, PyAny>);

/// The names of the columns of a schema, and numpy's names of their types.
pub(super) fn wanted(py: Python<'_>, schema: &Schema) -> PyResult<Vec<(String, &'static str)>> {
    let wanted = |field: &Arc<Field>| {
        let kind = match field.data_type() {
            DataType::Utf8 => Some(TEXT),
            DataType::Boolean => Some("|b1"),
            other => primitive(other).map(|(kind, _)| kind),
        };
        let of = (field.name(), field.data_type());
        let kind = kind.ok_or_else(|| {
            usage(py, format!("attribute {:?} of {} cannot be written from Python", of.0, of.1))
        })?;
        Ok((field.name().clone(), kind))
    };
    schema.fields().iter().map(wanted).collect()
}

/// Columns as rows of attributes. They fit `known`, where it is.
pub(super) fn rows(
    py: Python<'_>,
    columns: Vec<Column<'_>>,
    known: Option<&SchemaRef>,
) -> PyResult<RecordBatch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, kind, values) in columns {
        let array = array(py, &name, &kind, &values)?;
        let has_missing = array.null_count() > 0;
        fields.push(Field::new(name, array.data_type().clone(), has_missing));
        arrays.push(array);
    }
    let schema = known.cloned().unwrap_or_else(|| Arc::new(Schema::new(fields)));
    RecordBatch::try_new(schema, arrays).map_err(|error| usage(py, format!("attributes: {error}")))
}

fn array(py: Python<'_>, name: &str, kind: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if kind == TEXT {
        return Ok(Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)));
    }
    let bytes: &[u8] = values.extract()?;
    let numbers = |size: usize| (ArrowBuffer::from(bytes), bytes.len() / size);
    fn primitive<T: ArrowPrimitiveType>((bytes, count): (ArrowBuffer, usize)) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(bytes, 0, count), None))
    }
    Ok(match kind {
        "|b1" => {
            Arc::new(BooleanArray::from(bytes.iter().map(|byte| *byte != 0).collect::<Vec<_>>()))
        }
        "|i1" | "<i1" => primitive::<Int8Type>(numbers(1)),
        "|u1" | "<u1" => primitive::<UInt8Type>(numbers(1)),
        "<i2" => primitive::<Int16Type>(numbers(2)),
        "<u2" => primitive::<UInt16Type>(numbers(2)),
        "<i4" => primitive::<Int32Type>(numbers(4)),
        "<u4" => primitive::<UInt32Type>(numbers(4)),
        "<i8" => primitive::<Int64Type>(numbers(8)),
        "<u8" => primitive::<UInt64Type>(numbers(8)),
        "<f4" => primitive::<Float32Type>(numbers(4)),
        "<f8" => primitive::<Float64Type>(numbers(8)),
        other => {
            let expected = "numbers of 1 to 8 bytes, booleans or strings";
            return Err(usage(py, format!("attribute {name:?} of {other}; expected {expected}")));
        }
    })
}
