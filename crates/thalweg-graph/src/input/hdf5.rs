//! From a path to what the file brings.

use std::path::Path;
use std::sync::Arc;

use thalweg_hdf5::arrays::ArrayFile;
use thalweg_io::{Error, Result};

use super::ngv::Contents;
use super::{Input, Options, sonata};

/// What an HDF5 file brings: SONATA's edges and nodes, or connectivity of neurons, glia and blood
/// vessels ([`ngv`](super::ngv)).
///
/// # Errors
/// [`Error::Io`] about the path; [`Error::Unsupported`] for HDF5 of another kind; the first defect.
pub fn open(path: &Path, options: &Options) -> Result<Input> {
    let file = Arc::new(ArrayFile::open(path, options.read.clone())?);
    if let Some(input) = sonata::input(&file, options)? {
        return Ok(input);
    }
    match Contents::of(&file)? {
        Some(contents) => contents.input(options),
        None => Err(unknown(&file)),
    }
}

/// A file in which there is nothing of a network.
pub(super) fn unknown(file: &ArrayFile) -> Error {
    Error::Unsupported {
        file: file.store().name().clone(),
        what: "HDF5 without edges or vertices that are known".into(),
        advice: "SONATA has them in /edges and /nodes, NGV connectivity in groups with offsets"
            .into(),
    }
}
