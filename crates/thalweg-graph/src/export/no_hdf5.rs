//! A stub of the SONATA writer, for builds without the feature `hdf5`.

use std::ops::Range;
use std::path::Path;

use thalweg_io::Result;
use thalweg_io::condition::Condition;

use crate::no_hdf5::unsupported;
use crate::read::network::Network;
use crate::read::rows::EdgeSelection;

/// Refuses to tell a size.
///
/// # Errors
/// Always [`Error::Unsupported`].
pub fn sonata_bytes(network: &Network, _: Range<usize>, _: Range<usize>) -> Result<u64> {
    Err(unsupported(Path::new(&*network.name())))
}

/// A stub without values: [`SonataWriter::create`] always fails.
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
    /// None: a `SonataWriter` never exists.
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
    /// None: a `SonataWriter` never exists.
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
    /// None: a `SonataWriter` never exists.
    pub fn finish(self) -> Result<Vec<String>> {
        match self {}
    }
}
