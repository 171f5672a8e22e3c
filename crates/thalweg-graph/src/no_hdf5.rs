//! The error of the functions that need HDF5, in builds without the feature `hdf5`.

use std::path::Path;

use thalweg_io::Error;

pub(crate) fn unsupported(path: &Path) -> Error {
    Error::Unsupported {
        file: path.to_string_lossy().into(),
        what: "HDF5".into(),
        advice: "build thalweg with its feature hdf5".into(),
    }
}
