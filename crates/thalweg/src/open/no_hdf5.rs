//! Opens HDF5 files in builds without libhdf5: reads of FAST5, but no arrays.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::{Error, Result};
use thalweg_nanopore::reads::ReadFile;

use super::Opened;

/// A file of arrays. This build cannot open one.
#[derive(Debug)]
pub enum ArrayFile {}

/// Opens an HDF5 file as reads. A file without reads is refused.
pub(super) fn open(
    path: &Path,
    opened: OpenedStore,
    _is_trusted: bool,
    options: Options,
) -> Result<Opened> {
    match ReadFile::from_opened(path, opened, options) {
        Ok(file) => Ok(Opened::Reads(file)),
        Err(Error::Unsupported { file, .. }) => Err(Error::Unsupported {
            file,
            what: "an HDF5 file of arrays".into(),
            advice: "this thalweg reads no arrays: build it with the feature hdf5".into(),
        }),
        Err(other) => Err(other),
    }
}

pub(super) fn name(file: &ArrayFile) -> Arc<str> {
    match *file {}
}

pub(super) fn holds(file: &ArrayFile) -> Result<String> {
    match *file {}
}
