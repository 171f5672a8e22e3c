//! The error of everything that needs HDF5, in a build without the feature `hdf5`.

use std::path::Path;

use thalweg_io::Error;

pub(crate) fn unsupported(path: &Path) -> Error {
    Error::Unsupported {
        file: path.to_string_lossy().into(),
        what: "HDF5".into(),
        advice: "build thalweg with its feature hdf5".into(),
    }
}
