//! Stands in for the writer of neuroglial files in a build without the feature `hdf5`.

use std::path::Path;

use thalweg_io::Result;

use super::{SynthNetwork, SynthPart};
use crate::no_hdf5::unsupported;

/// A file of synthetic connectivity that cannot be written.
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
    /// None: there is no such file.
    pub fn push(&mut self, _: &SynthPart) -> Result<()> {
        match *self {}
    }

    /// Ends the file.
    ///
    /// # Errors
    /// None: there is no such file.
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
