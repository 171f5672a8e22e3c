//! The module `thalweg._thalweg`: what the Python package thalweg takes from the crate `thalweg`.
//!
//! It knows no format. The classes that users see are Python's, in `python/thalweg`; those here
//! give them buffers and Arrow data without copies.

mod arrays;
mod arrow;
mod buffer;
mod convert;
mod errors;
mod events;
mod fastq;
mod network;
mod open;
mod options;
mod plan;
mod progress;
mod reads;
mod run;
mod store;
mod stream;

#[pyo3::pymodule]
mod _thalweg {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::arrays::{ArrayFile, Object, open_arrays};
    #[pymodule_export]
    use crate::arrow::Batch;
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::convert::{choose, convert};
    #[pymodule_export]
    use crate::events::Events;
    #[pymodule_export]
    use crate::fastq::Fastq;
    #[pymodule_export]
    use crate::network::change::{Transaction, create_network, import_network};
    #[pymodule_export]
    use crate::network::lists::Lists;
    #[pymodule_export]
    use crate::network::{Network, open_network};
    #[pymodule_export]
    use crate::open::{open, open_file};
    #[pymodule_export]
    use crate::plan::{doctor, plan};
    #[pymodule_export]
    use crate::progress::fetched;
    #[pymodule_export]
    use crate::reads::ReadSet;
    #[pymodule_export]
    use crate::stream::BatchStream;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let end = pyo3::wrap_pyfunction!(crate::store::end_calls, module)?;
        module.py().import("atexit")?.call_method1("register", (end,)).map(drop)
    }
}
