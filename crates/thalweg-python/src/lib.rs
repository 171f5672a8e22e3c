//! The module `thalweg._thalweg`: what the Python package thalweg takes from the crate `thalweg`.
//!
//! It knows no format. The classes that users see are Python's, in `python/thalweg`; those here
//! give them buffers and Arrow data without copies.

mod arrays;
mod arrow;
mod buffer;
mod errors;
mod network;
mod open;
mod options;
mod reads;
mod run;

#[pyo3::pymodule]
mod _thalweg {
    #[pymodule_export]
    use crate::arrays::{ArrayFile, Dataset};
    #[pymodule_export]
    use crate::arrow::{Batch, BatchStream};
    #[pymodule_export]
    use crate::buffer::Buffer;
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::open::open;
    #[pymodule_export]
    use crate::reads::ReadSet;
}
