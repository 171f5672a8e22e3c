//! Files of nanopore reads.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use thalweg::Result;
use thalweg::control::Control;
use thalweg::reads::{self, BatchOptions, Order, Selection, Strings};

use crate::arrow::{BatchStream, Batches};
use crate::run::run;

/// Files of reads as one data set.
#[pyclass(frozen, module = "thalweg._thalweg")]
pub(crate) struct ReadSet {
    pub(crate) set: reads::ReadSet,
    pub(crate) control: Control,
}

#[pymethods]
impl ReadSet {
    /// The files, in the order of reading.
    #[getter]
    fn paths(&self) -> Vec<PathBuf> {
        self.set.paths().map(PathBuf::from).collect()
    }

    /// How many reads there are. SLOW5 and BLOW5 say it in their index, which is made if there is
    /// none.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, &self.control, || {
            let count = |index| -> Result<u64> {
                let file = self.set.file(index)?;
                match file.known_reads()? {
                    Some(count) => Ok(count),
                    None => Ok(file.read_ids()?.len() as u64),
                }
            };
            (0..self.set.paths().len()).map(count).sum::<Result<u64>>()
        })
        .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// All read ids, in the order of the files.
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        run(py, &self.control, || {
            let of = |index| self.set.file(index)?.read_ids();
            Ok((0..self.set.paths().len()).map(of).collect::<Result<Vec<_>>>()?.concat())
        })
    }

    /// The selected reads as batches. Without `signal`, the number of samples is in its place.
    #[pyo3(signature = (ids=None, *, signal=true, in_order=true))]
    fn batches(
        &self,
        py: Python<'_>,
        ids: Option<Vec<String>>,
        signal: bool,
        in_order: bool,
    ) -> PyResult<BatchStream> {
        let order = if in_order { Order::Selection } else { Order::AsTheyCome };
        let options = BatchOptions { order, strings: Strings::default() };
        let selection = ids.map_or(Selection::All, |ids| Selection::Ids(Arc::new(ids)));
        run(py, &self.control, || {
            let (set, strings) = (&self.set, options.strings);
            let (schema, batches): (_, Batches) = if signal {
                (set.schema(strings)?, Box::new(set.batches_with(&selection, options)?))
            } else {
                (set.scan_schema(strings)?, Box::new(set.fields(&selection, options)?))
            };
            Ok(BatchStream::new(schema, self.control.clone(), batches))
        })
    }
}
