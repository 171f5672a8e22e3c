//! What stands in for HDF5 in a build without it: it refuses to import, to export, and to make
//! synthetic files.

use std::path::Path;

use thalweg_io::condition::Condition;
use thalweg_io::{Error, Result};

use crate::input::{Input, Options};
use crate::synth;
use crate::{EdgeSelection, Network};

fn unsupported(path: &Path) -> Error {
    Error::Unsupported {
        file: path.to_string_lossy().into(),
        what: "HDF5".into(),
        advice: "build thalweg with its feature hdf5".into(),
    }
}

/// Refuses to read a file.
///
/// # Errors
/// Always [`Error::Unsupported`].
pub fn open(path: &Path, _: &Options) -> Result<Input> {
    Err(unsupported(path))
}

/// A SONATA file that cannot be written.
#[derive(Debug)]
pub enum SonataWriter {}

impl SonataWriter {
    /// Refuses to start a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn create(path: &Path) -> Result<Self> {
        Err(unsupported(path))
    }

    /// Writes vertices.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn nodes(
        &mut self,
        _: &Network,
        _: usize,
        _: Option<&Condition>,
        _: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        match *self {}
    }

    /// Writes edges.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn edges(
        &mut self,
        _: &Network,
        _: usize,
        _: EdgeSelection<'_>,
        _: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        match *self {}
    }

    /// Ends the file.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn finish(self) -> Result<Vec<String>> {
        match self {}
    }
}

/// A file of synthetic connectivity that cannot be written.
#[derive(Debug)]
pub enum NeuroglialWriter {}

impl NeuroglialWriter {
    /// Refuses to start a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn create(path: &Path, _: &synth::Network) -> Result<Self> {
        Err(unsupported(path))
    }

    /// Writes a piece.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn push(&mut self, _: &synth::Piece) -> Result<()> {
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
    pub fn write(path: &Path, _: &synth::Network) -> Result<()> {
        Err(unsupported(path))
    }
}
