//! A stub of the readers of HDF5 files, for builds without the feature `hdf5`.

use std::path::Path;

use thalweg_io::Result;

use super::{Input, InputOptions};
use crate::no_hdf5::unsupported;

/// Refuses to read a file.
///
/// # Errors
/// Always [`Error::Unsupported`].
pub fn open(path: &Path, _: &InputOptions) -> Result<Input> {
    Err(unsupported(path))
}
