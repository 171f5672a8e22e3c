//! Batches of rows, and what Python takes from them: columns for numpy, and Arrow data by the Arrow
//! C data interface ("The Arrow PyCapsule Interface").

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::types::{Int16Type, UInt8Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int16Array, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use thalweg::{Error, Result, reads};

use crate::buffer::Buffer;
use crate::errors::{raised, usage};

/// The memory of a batch. A run waits until batches that it lends come back, so only the last ones
/// are lent. Older ones leave the run's budget, and are freed when Python drops them.
#[derive(Debug)]
pub(crate) enum Rows {
    /// The batch, and the columns of it that are shown. They are dropped first, so that the run can
    /// use their memory again.
    Lent(RecordBatch, reads::Batch),
    Kept(RecordBatch),
}

impl Rows {
    /// The columns in `places`, or all of a batch.
    pub(crate) fn lent(batch: reads::Batch, places: Option<&[usize]>) -> Result<Self, ArrowError> {
        let shown = match places {
            Some(places) => batch.project(places)?,
            None => batch.clone(),
        };
        Ok(Self::Lent(shown, batch))
    }

    pub(crate) fn record(&self) -> &RecordBatch {
        match self {
            Self::Lent(record, _) | Self::Kept(record) => record,
        }
    }

    pub(crate) fn into_record(self) -> RecordBatch {
        match self {
            Self::Lent(record, batch) => {
                batch.into_inner();
                record
            }
            Self::Kept(record) => record,
        }
    }

    pub(crate) fn keep(&mut self) {
        let empty = Self::Kept(RecordBatch::new_empty(self.record().schema()));
        *self = Self::Kept(std::mem::replace(self, empty).into_record());
    }
}

pub(crate) type SharedRows = Arc<Mutex<Rows>>;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Some rows of a table.
#[pyclass(frozen, module = "thalweg._thalweg")]
#[derive(Debug)]
pub(crate) struct Batch {
    rows: SharedRows,
    /// The number of the file or bank that they are of.
    #[pyo3(get)]
    file: usize,
}

impl Batch {
    pub(crate) fn new(rows: SharedRows, file: usize) -> Self {
        Self { rows, file }
    }

    pub(crate) fn kept(record: RecordBatch, file: usize) -> Self {
        Self::new(Arc::new(Mutex::new(Rows::Kept(record))), file)
    }

    pub(crate) fn record(&self) -> RecordBatch {
        lock(&self.rows).record().clone()
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        lock(&self.rows).record().num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        let schema = lock(&self.rows).record().schema();
        schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column: a list of strings or bytes; or a pair of values and whether each is there; or for
    /// lists, offsets, values and whether each list is there.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let record = self.record();
        let column = record
            .column_by_name(name)
            .ok_or_else(|| PyKeyError::new_err(format!("no column {name:?}")))?;
        shown(py, column.as_ref())
    }

    /// The samples of a row in picoampere.
    fn picoampere(&self, py: Python<'_>, row: usize) -> PyResult<Buffer> {
        let values = py.detach(|| reads::picoampere_of(&self.record(), row));
        let values = values.map_err(|error| raised(py, &error))?;
        Ok(Buffer::own(values.into(), "<f4", 4))
    }

    /// The rows with some of the columns only. The memory of the others is not kept.
    fn select(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Self> {
        let record = self.record();
        let places = places(&record.schema(), &names, &[]).map_err(|error| raised(py, &error))?;
        let record = record.project(&places).map_err(|error| refused(py, &error))?;
        Ok(Self::kept(record, self.file))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // As the interface allows, the data comes as it is.
        let _ = requested_schema;
        // The consumer may keep it.
        lock(&self.rows).keep();
        let record = signed(self.record()).map_err(|error| refused(py, &error))?;
        capsules(py, &StructArray::from(record))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &signed_schema(&lock(&self.rows).record().schema()))
    }
}

/// The places of columns in a schema. The message about a name that it lacks has `others`, too.
pub(crate) fn places(schema: &Schema, names: &[String], others: &[&str]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        schema.index_of(name).map_err(|_| {
            let mut known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            known.extend(others.iter().filter(|name| schema.index_of(name).is_err()));
            Error::Usage(format!("no column {name:?}; columns are {}", known.join(", ")).into())
        })
    };
    names.iter().map(place).collect()
}

pub(crate) fn capsule<'py, T: Send + 'static>(
    py: Python<'py>,
    value: T,
    name: &'static std::ffi::CStr,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, value, name)
}

/// The type and the values of an array.
pub(crate) fn capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let values = FFI_ArrowArray::new(&array.to_data());
    Ok((type_capsule(py, array.data_type())?, capsule(py, values, c"arrow_array")?))
}

pub(crate) fn type_capsule<'py>(py: Python<'py>, of: &DataType) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(of).map_err(|e| refused(py, &e))?;
    capsule(py, schema, c"arrow_schema")
}

pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema).map_err(|e| refused(py, &e))?;
    capsule(py, schema, c"arrow_schema")
}

/// The type of a column as it is given away. pandas takes no unsigned codes of labels.
fn signed_type(of: &DataType) -> DataType {
    match of {
        DataType::Dictionary(codes, labels) if **codes == DataType::UInt8 => {
            DataType::Dictionary(Box::new(DataType::Int16), labels.clone())
        }
        other => other.clone(),
    }
}

pub(crate) fn signed_schema(schema: &Schema) -> SchemaRef {
    let signed = |field: &FieldRef| {
        let data_type = signed_type(field.data_type());
        Field::clone(field).with_data_type(data_type)
    };
    let fields: Fields = schema.fields().iter().map(signed).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

pub(crate) fn signed(record: RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
    let column = |column: &ArrayRef| -> std::result::Result<ArrayRef, ArrowError> {
        let Some(codes) = column.as_any().downcast_ref::<DictionaryArray<UInt8Type>>() else {
            return Ok(column.clone());
        };
        let signed: Int16Array = codes.keys().unary(i16::from);
        Ok(Arc::new(DictionaryArray::<Int16Type>::try_new(signed, codes.values().clone())?))
    };
    let columns = record.columns().iter().map(column).collect::<std::result::Result<_, _>>()?;
    RecordBatch::try_new(signed_schema(&record.schema()), columns)
}

fn refused(py: Python<'_>, error: &ArrowError) -> PyErr {
    usage(py, error.to_string())
}

/// The type of a primitive column: numpy's name, and bytes.
pub(crate) fn primitive(of: &DataType) -> Option<(&'static str, usize)> {
    Some(match of {
        DataType::Int8 => ("<i1", 1),
        DataType::UInt8 => ("<u1", 1),
        DataType::Int16 => ("<i2", 2),
        DataType::UInt16 => ("<u2", 2),
        DataType::Int32 => ("<i4", 4),
        DataType::UInt32 => ("<u4", 4),
        DataType::Int64 => ("<i8", 8),
        DataType::UInt64 => ("<u8", 8),
        DataType::Float16 => ("<f2", 2),
        DataType::Float32 => ("<f4", 4),
        DataType::Float64 => ("<f8", 8),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => ("<M8[ns]", 8),
        _ => return None,
    })
}

/// Whether each value is there; `None` if all are.
fn present(column: &dyn Array) -> Option<Vec<bool>> {
    let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.iter().collect())
}

fn values(column: &dyn Array) -> Option<Buffer> {
    let (typestr, size) = primitive(column.data_type())?;
    let data = column.to_data();
    let bytes = data.buffers().first()?.slice_with_length(data.offset() * size, data.len() * size);
    Some(Buffer::shared(bytes, typestr, size))
}

fn shown(py: Python<'_>, column: &dyn Array) -> PyResult<Py<PyAny>> {
    if let Some(values) = values(column) {
        return Ok((values, present(column)).into_pyobject(py)?.into_any().unbind());
    }
    let list = match column.data_type() {
        DataType::Boolean => {
            // A byte each, as numpy has them.
            let truths = column.as_boolean().values().iter().map(u8::from);
            let values = Buffer::shared(truths.collect::<Vec<u8>>().into(), "|b1", 1);
            return Ok((values, present(column)).into_pyobject(py)?.into_any().unbind());
        }
        DataType::Utf8 => PyList::new(py, column.as_string::<i32>().iter())?,
        DataType::Binary => PyList::new(py, column.as_binary::<i32>().iter())?,
        DataType::Dictionary(_, labels) if **labels == DataType::Utf8 => {
            let column = column.as_any_dictionary();
            let labels = column.values().as_string::<i32>();
            let keys = column.normalized_keys();
            let label = |row| column.is_valid(row).then(|| labels.value(keys[row]));
            PyList::new(py, (0..column.len()).map(label))?
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            if let Some(values) = values(lists.values()) {
                let offsets = Buffer::shared(lists.offsets().inner().inner().clone(), "<i4", 4);
                let parts = (offsets, values, present(column));
                return Ok(parts.into_pyobject(py)?.into_any().unbind());
            }
            let each = lists.iter().map(|list| list.map(|list| shown(py, &*list)).transpose());
            PyList::new(py, each.collect::<PyResult<Vec<_>>>()?)?
        }
        _ => return Err(unknown(py, column)),
    };
    Ok(list.into_any().unbind())
}

fn unknown(py: Python<'_>, column: &dyn Array) -> PyErr {
    usage(py, format!("a column of {} has no form in numpy: take it as Arrow", column.data_type()))
}
