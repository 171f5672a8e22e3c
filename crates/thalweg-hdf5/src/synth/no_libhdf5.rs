//! The NeXus writer of a build without libhdf5; creating a file always fails.

use std::marker::PhantomData;
use std::path::Path;

use thalweg_io::{Error, Result};

use super::{DatasetPiece, EncodedPiece, SynthRun};

/// A file of events that cannot be written.
#[derive(Debug)]
pub struct NexusWriter<'a> {
    never: std::convert::Infallible,
    run: PhantomData<&'a SynthRun>,
}

impl<'a> NexusWriter<'a> {
    /// Refuses to start a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn create(path: &Path, _: &'a SynthRun) -> Result<Self> {
        Err(Error::Unsupported {
            file: path.to_string_lossy().into(),
            what: "writing NeXus files".into(),
            advice: "build thalweg with its feature hdf5".into(),
        })
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn push(&mut self, _: DatasetPiece, _: &EncodedPiece) -> Result<()> {
        match self.never {}
    }

    /// Completes the file.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn finish(self) -> Result<()> {
        match self.never {}
    }

    /// Refuses to write a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn write(path: &Path, run: &'a SynthRun) -> Result<()> {
        Self::create(path, run)?.finish()
    }
}
