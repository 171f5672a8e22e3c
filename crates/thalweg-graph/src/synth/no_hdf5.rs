//! A stub of the writer of neuroglial files, for builds without the feature `hdf5`.

use std::path::Path;

use thalweg_io::Result;

use super::{SynthNetwork, SynthPart};
use crate::no_hdf5::unsupported;

/// A stub without values: [`NeuroglialWriter::create`] always fails.
#[derive(Debug)]
pub enum NeuroglialWriter {}

impl NeuroglialWriter {
    /// Refuses to start a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn create(path: &Path, _: &SynthNetwork) -> Result<Self> {
        Err(unsupported(path))
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// None: a `NeuroglialWriter` never exists.
    pub fn push(&mut self, _: &SynthPart) -> Result<()> {
        match *self {}
    }

    /// Ends the file.
    ///
    /// # Errors
    /// None: a `NeuroglialWriter` never exists.
    pub fn finish(self) -> Result<()> {
        match self {}
    }

    /// Refuses to write a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn write(path: &Path, _: &SynthNetwork) -> Result<()> {
        Err(unsupported(path))
    }
}
