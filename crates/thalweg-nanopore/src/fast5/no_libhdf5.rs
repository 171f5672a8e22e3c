//! Replaces the code over libhdf5 in a build without it: nothing is written.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::{Error, Result};

use super::{Compression, EncodedRead};
use crate::record::{AuxField, Header};

fn unsupported(file: &Arc<str>, what: &'static str) -> Error {
    Error::Unsupported {
        file: file.clone(),
        what: what.into(),
        advice: "build thalweg with its feature hdf5".into(),
    }
}

/// What FAST5 cannot hold of a header. No file is written, so nothing is lost.
pub fn lost(_: &Header) -> Vec<String> {
    Vec::new()
}

/// Whether FAST5 has a place for a field.
pub fn holds(_: &AuxField) -> bool {
    false
}

/// A file writer that cannot exist.
#[derive(Debug)]
pub enum FileWriter {}

impl FileWriter {
    /// Refuses to start a file.
    ///
    /// # Errors
    /// Always [`Error::Unsupported`].
    pub fn create(_: &Path, name: &Arc<str>, _: &Header, _: Compression) -> Result<Self> {
        Err(unsupported(name, "writing FAST5"))
    }

    /// Appends a read.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn push(&mut self, _: &EncodedRead) -> Result<()> {
        match *self {}
    }

    /// Closes the file.
    ///
    /// # Errors
    /// None: there is no such file.
    pub fn finish(self) -> Result<()> {
        match self {}
    }
}
