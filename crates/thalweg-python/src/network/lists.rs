//! Ids as bytes of numpy arrays, and lists of ids.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, LargeListArray};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use thalweg::graph::Neighbours;

use crate::arrow;
use crate::buffer::Buffer;

/// The ids in the bytes of an array of `<u8`.
pub(super) fn ids(bytes: &[u8]) -> Vec<u64> {
    let (ids, _) = bytes.as_chunks();
    ids.iter().map(|id| u64::from_le_bytes(*id)).collect()
}

/// The pairs in the bytes of an array of `<u8` with two columns.
pub(super) fn pairs(bytes: &[u8]) -> Vec<(u64, u64)> {
    let (pairs, _) = bytes.as_chunks::<16>();
    let id = |bytes: &[u8]| bytes.iter().rev().fold(0, |id, byte| id << 8 | u64::from(*byte));
    pairs.iter().map(|pair| (id(&pair[..8]), id(&pair[8..]))).collect()
}

/// Ids that ascend, each once, and where each id of a question is among them.
pub(super) struct Ascending {
    pub(super) ids: Vec<u64>,
    /// `None` if the question has them in this order.
    places: Option<Vec<usize>>,
}

impl Ascending {
    pub(super) fn of(asked: &[u64]) -> Self {
        if asked.is_sorted_by(|one, next| one < next) {
            return Self { ids: asked.to_vec(), places: None };
        }
        let mut ids = asked.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let place = |id: &u64| ids.partition_point(|known| known < id);
        Self { places: Some(asked.iter().map(place).collect()), ids }
    }

    /// What was found for the ids, in the order of the question.
    pub(super) fn in_order<T: Copy>(&self, found: &[T]) -> Vec<T> {
        match &self.places {
            Some(places) => places.iter().map(|place| found[*place]).collect(),
            None => found.to_vec(),
        }
    }

    /// Lists that were found for the ids, in the order of the question.
    pub(super) fn lists_in_order(&self, found: Neighbours) -> Neighbours {
        let Some(places) = &self.places else { return found };
        let mut ordered = Neighbours { offsets: vec![0], ..Neighbours::default() };
        for place in places {
            ordered.ids.extend_from_slice(found.of(*place));
            ordered.offsets.push(ordered.ids.len() as u64);
        }
        ordered
    }
}

/// Lists of ids.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct Lists(pub(super) LargeListArray);

#[pymethods]
impl Lists {
    /// Where each list begins, and where the last one ends.
    #[getter]
    fn offsets(&self) -> Buffer {
        Buffer::shared(self.0.offsets().inner().inner().clone(), "<i8", 8)
    }

    /// All lists, one after the other.
    #[getter]
    fn ids(&self) -> Buffer {
        let ids = self.0.values().as_primitive::<UInt64Type>();
        Buffer::shared(ids.values().inner().clone(), "<u8", 8)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // As the interface allows, the data comes as it is.
        let _ = requested_schema;
        arrow::capsules(py, &self.0)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::type_capsule(py, self.0.data_type())
    }
}
