//! Writing the RunInfo table: one row per run.

use std::sync::Arc;

use arrow_array::builder::{MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{
    ArrayRef, Float64Array, Int16Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray, UInt16Array,
};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext};
use arrow_schema::{Field, Schema};
use thalweg_io::Fault;

use super::ipc::{IpcFile, options};
use super::reads::{push, refused};
use super::{Identity, schema};
use crate::pod5::fields::{RUN_INFO, RunStored};
use crate::pod5::{RunInfo, RunValue};

/// The type of a column.
#[derive(Clone, Copy)]
enum RunColumnKind {
    /// A type that POD5's own columns have.
    Known(RunStored),
    /// `int64`, only for columns that POD5 does not define.
    Integer,
    /// `double`, only for columns that POD5 does not define.
    Float,
}

/// The columns: POD5's own, then the other columns of the rows in the order of their first
/// appearance.
fn columns(rows: &[RunInfo]) -> Vec<(&str, RunColumnKind)> {
    let mut columns: Vec<(&str, RunColumnKind)> =
        RUN_INFO.iter().map(|&(name, stored)| (name, RunColumnKind::Known(stored))).collect();
    for (name, value) in rows.iter().flat_map(|row| &row.columns) {
        if columns.iter().all(|(known, _)| known != name) {
            columns.push((
                name,
                match value {
                    // A missing value does not determine a type; text is assumed.
                    RunValue::Missing | RunValue::Text(_) => RunColumnKind::Known(RunStored::Text),
                    RunValue::Millis(_) => RunColumnKind::Known(RunStored::Millis),
                    RunValue::Tags(_) => RunColumnKind::Known(RunStored::Tags),
                    RunValue::Integer(_) => RunColumnKind::Integer,
                    RunValue::Float(_) => RunColumnKind::Float,
                },
            ));
        }
    }
    columns
}

/// The values of a column. Where a run has no value, one of POD5's own columns gets an empty text
/// or map, or zero: the POD5 library finds no runs without an id, and writes no other missing
/// values.
///
/// # Errors
/// When a value has another type than the column.
fn column(rows: &[RunInfo], name: &str, kind: RunColumnKind) -> Result<ArrayRef, Fault> {
    fn values<'a, T: Default>(
        rows: &'a [RunInfo],
        name: &str,
        of: impl Fn(&'a RunValue) -> Option<T>,
    ) -> Result<Vec<Option<T>>, Fault> {
        let is_own = RUN_INFO.iter().any(|(own, _)| *own == name);
        let value = |row: &'a RunInfo| match row.get(name) {
            None | Some(RunValue::Missing) => Ok(is_own.then(T::default)),
            Some(value) => of(value).map(Some).ok_or_else(|| misfit(name, value)),
        };
        rows.iter().map(value).collect()
    }
    let integer = |value: &RunValue| if let RunValue::Integer(n) = value { Some(*n) } else { None };
    Ok(match kind {
        RunColumnKind::Known(RunStored::Text) => {
            fn of(value: &RunValue) -> Option<&str> {
                if let RunValue::Text(text) = value { Some(text) } else { None }
            }
            Arc::new(StringArray::from(values(rows, name, of)?))
        }
        RunColumnKind::Known(RunStored::Millis) => {
            let of =
                |value: &RunValue| if let RunValue::Millis(n) = value { Some(*n) } else { None };
            Arc::new(TimestampMillisecondArray::from(values(rows, name, of)?).with_timezone("UTC"))
        }
        RunColumnKind::Known(RunStored::I16) => {
            let of = |value: &RunValue| integer(value).and_then(|n| i16::try_from(n).ok());
            Arc::new(Int16Array::from(values(rows, name, of)?))
        }
        RunColumnKind::Known(RunStored::U16) => {
            let of = |value: &RunValue| integer(value).and_then(|n| u16::try_from(n).ok());
            Arc::new(UInt16Array::from(values(rows, name, of)?))
        }
        RunColumnKind::Integer => Arc::new(Int64Array::from(values(rows, name, integer)?)),
        RunColumnKind::Float => {
            let of =
                |value: &RunValue| if let RunValue::Float(n) = value { Some(*n) } else { None };
            Arc::new(Float64Array::from(values(rows, name, of)?))
        }
        RunColumnKind::Known(RunStored::Tags) => {
            fn of(value: &RunValue) -> Option<&[(String, String)]> {
                if let RunValue::Tags(tags) = value { Some(tags) } else { None }
            }
            let names =
                MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() };
            let mut map = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
            for row in values(rows, name, of)? {
                for (key, value) in row.into_iter().flatten() {
                    map.keys().append_value(key);
                    map.values().append_value(value);
                }
                map.append(row.is_some()).map_err(refused)?;
            }
            Arc::new(map.finish())
        }
    })
}

#[cold]
fn misfit(name: &str, value: &RunValue) -> Fault {
    Fault::new(
        0,
        format!("{value:?} in the column {name} of the run info"),
        "a value that the column can hold",
    )
}

/// Appends the whole table. Returns its length.
///
/// # Errors
/// When a column cannot hold a value.
pub(super) fn table(
    rows: &[RunInfo],
    identity: &Identity,
    software: &str,
    out: &mut Vec<u8>,
) -> Result<u64, Fault> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, kind) in columns(rows) {
        let array = column(rows, name, kind)?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Schema::new_with_metadata(fields, schema::metadata(identity, software));
    let mut tracker = DictionaryTracker::new(true);
    let mut file = IpcFile::start(schema.clone(), &mut tracker, out);
    if !rows.is_empty() {
        let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(refused)?;
        let mut context = IpcWriteContext::default();
        let (_, data) = IpcDataGenerator::default()
            .encode(&batch, &mut tracker, &options(), &mut context)
            .map_err(refused)?;
        file.batch(push(&data, out));
    }
    Ok(file.finish(out))
}
