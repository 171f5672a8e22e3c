//! How far runs have come.

use pyo3::prelude::*;

use crate::arrays::ArrayFile;
use crate::reads::ReadSet;

/// What is open.
#[derive(FromPyObject)]
pub(crate) enum Open<'py> {
    Reads(PyRef<'py, ReadSet>),
    Arrays(PyRef<'py, ArrayFile>),
}

/// Bytes that all runs of it have fetched so far, and bytes of all its files, if they are known.
#[pyfunction]
pub(crate) fn fetched(of: Open<'_>) -> (u64, Option<u64>) {
    match of {
        Open::Reads(reads) => (reads.control.fetched(), Some(reads.set.bytes())),
        Open::Arrays(arrays) => (arrays.control.fetched(), None),
    }
}
