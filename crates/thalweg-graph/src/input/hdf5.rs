//! Opening an HDF5 file for import.

use std::path::Path;
use std::sync::Arc;

use thalweg_hdf5::arrays::ArrayFile;
use thalweg_io::Result;

use super::ngv::{NgvContents, unknown};
use super::{Input, InputOptions, sonata};

/// Opens an HDF5 file for import: SONATA edges and nodes, or connectivity of neurons, glia and
/// blood vessels ([`ngv`](super::ngv)).
///
/// # Errors
/// [`Error::Io`](thalweg_io::Error::Io) if the file cannot be opened;
/// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for HDF5 of another kind; the first
/// defect.
pub fn open(path: &Path, options: &InputOptions) -> Result<Input> {
    let file = Arc::new(ArrayFile::open(path, options.read.clone())?);
    if let Some(input) = sonata::input(&file, options)? {
        return Ok(input);
    }
    match NgvContents::of(&file)? {
        Some(contents) => contents.input(options),
        None => Err(unknown(&file)),
    }
}
