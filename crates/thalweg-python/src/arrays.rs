//! Arrays of HDF5 files.

use std::sync::Arc;

use pyo3::prelude::*;
use thalweg::Error;
use thalweg::arrays::{self, ArrayRequest, Memory, Selection, Slab};
use thalweg::control::Control;
use thalweg::hdf5::array::{Array, ElementPlace, Found};
use thalweg::hdf5::types::Value;

use crate::buffer::Buffer;
use crate::errors::raised;
use crate::run::run;

/// A file of arrays.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct ArrayFile {
    pub(crate) file: arrays::ArrayFile,
    pub(crate) control: Control,
}

/// A dataset.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Dataset(Arc<arrays::Dataset>);

impl Dataset {
    fn array(&self) -> Option<&Array> {
        match &self.0.found {
            Found::Array(array) => Some(array),
            Found::Other(_) => None,
        }
    }
}

#[pymethods]
impl Dataset {
    #[getter]
    fn path(&self) -> &str {
        self.0.path()
    }

    /// The length of each dimension; `None` if it is no array.
    #[getter]
    fn shape(&self) -> Option<Vec<u64>> {
        Some(self.array()?.shape.clone())
    }

    /// numpy's name of the type of an element.
    #[getter]
    fn dtype(&self) -> Option<String> {
        Some(self.array()?.dtype.to_string())
    }

    /// The shape of a chunk.
    #[getter]
    fn chunks(&self) -> Option<Vec<u64>> {
        match &self.array()?.place {
            ElementPlace::Chunked(shape, _) => Some(shape.clone()),
            _ => None,
        }
    }

    /// Why it cannot be read, if it cannot.
    #[getter]
    fn not_read(&self) -> Option<&str> {
        self.0.not_read()
    }
}

/// Elements of a dataset: for each dimension the first one, how many, and the step between them.
/// `None` for all.
type Wanted<'py> = (Bound<'py, Dataset>, Option<Vec<(u64, u64, u64)>>);

#[pymethods]
impl ArrayFile {
    #[getter]
    fn name(&self) -> String {
        self.file.store().name().to_string()
    }

    /// The datasets at or below paths, in which `*` and `?` stand for letters, and what could not
    /// be read there, or leads to other files.
    fn datasets(
        &self,
        py: Python<'_>,
        patterns: Vec<String>,
    ) -> PyResult<(Vec<Dataset>, Vec<String>)> {
        let found = run(py, &self.control, || self.file.survey(&patterns))?;
        let datasets = found.datasets.into_iter().map(|dataset| Dataset(Arc::new(dataset)));
        let unreadable = found.unreadable.iter().map(ToString::to_string);
        Ok((datasets.collect(), unreadable.chain(found.external).collect()))
    }

    /// Elements of datasets, all in one pass, in the order of the file.
    fn read(&self, py: Python<'_>, wanted: Vec<Wanted<'_>>) -> PyResult<Vec<Buffer>> {
        let mut asked = Vec::with_capacity(wanted.len());
        for (dataset, slabs) in wanted {
            let dataset = dataset.get();
            let Some(array) = dataset.array() else {
                let why = dataset.0.not_read().unwrap_or("no array");
                return Err(unsupported(py, &self.file, format!("{}: {why}", dataset.path())));
            };
            let slab = |(start, count, step)| Slab { start, count, step, block: 1 };
            let selection = slabs.map_or(Selection::All, |slabs| {
                Selection::Slab(slabs.into_iter().map(slab).collect())
            });
            let shape = match &selection {
                Selection::Slab(slabs) => slabs.iter().map(Slab::len).collect(),
                _ => array.shape.clone(),
            };
            asked.push((dataset.0.clone(), selection, shape, array.dtype.clone()));
        }
        run(py, &self.control, || {
            let mut memories = Vec::with_capacity(asked.len());
            for (dataset, _, shape, dtype) in &asked {
                let bytes = shape.iter().try_fold(dtype.size() as u64, |n, d| n.checked_mul(*d));
                let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
                let bytes = bytes.ok_or_else(|| too_large(dataset))?;
                memories.push(Memory::new(bytes)?);
            }
            let mut requests: Vec<ArrayRequest<'_>> = asked
                .iter()
                .zip(&mut memories)
                .map(|((dataset, selection, ..), memory)| ArrayRequest {
                    dataset,
                    selection: selection.clone(),
                    out: memory,
                })
                .collect();
            self.file.read(&mut requests)?;
            let shown = asked.into_iter().zip(memories);
            Ok(shown
                .map(|((_, _, shape, dtype), memory)| {
                    Buffer::owned(memory, dtype.to_string(), shape)
                })
                .collect())
        })
    }

    /// The attributes of a dataset. `None` for values that are not numbers or text.
    fn attributes(&self, py: Python<'_>, dataset: &Dataset) -> PyResult<Vec<(String, Py<PyAny>)>> {
        let found = run(py, &self.control, || dataset.0.attributes())?;
        found.into_iter().map(|(name, value)| Ok((name, shown(py, value)?))).collect()
    }
}

fn unsupported(py: Python<'_>, file: &arrays::ArrayFile, what: String) -> PyErr {
    let file = file.store().name().clone();
    raised(py, &Error::Unsupported { file, what: what.into(), advice: "read other arrays".into() })
}

fn too_large(dataset: &arrays::Dataset) -> Error {
    Error::Usage(format!("{}: more bytes than this machine can address", dataset.path()).into())
}

fn shown(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Signed(number, _) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Unsigned(number, _) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Float(number, _) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Text(text) => text.into_pyobject(py)?.into_any().unbind(),
        Value::Enum(code, names) => {
            let name = names.iter().find(|(of, _)| *of == code).map(|(_, name)| name.clone());
            name.into_pyobject(py)?.into_any().unbind()
        }
        Value::Other(_) => py.None(),
    })
}
