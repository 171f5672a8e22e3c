//! Builds the layout of a file from reads that are parsed one after the other.

use std::sync::Arc;

use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::ByteSource;
use thalweg_io::Result;

use super::layout::{Fast5Layout, Fast5Row};
use super::merge::{KnownFields, Merge};
use super::read_groups::{FoundRead, Root};
use crate::record::Header;

/// A layout that grows read by read.
pub struct LayoutBuilder(Merge);

impl std::fmt::Debug for LayoutBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayoutBuilder").finish_non_exhaustive()
    }
}

impl LayoutBuilder {
    /// An empty layout of the file with this root. The list of its reads may take `memory` bytes.
    pub fn new(name: &Arc<str>, root: &Root, memory: usize) -> Self {
        Self(Merge::new(root.known(name), memory))
    }

    /// Adds the next read.
    ///
    /// # Errors
    /// [`Refused`](meta::Refused): a defect of a group that it shares with others, or a field that
    /// contradicts those of the reads before it.
    pub fn read(&mut self, source: &dyn ByteSource, found: FoundRead) -> meta::Result<()> {
        let superblock = self.0.superblock().clone();
        self.0.read(found, &mut |at| Root::attributes_at(source, &superblock, at))
    }

    /// The finished layout. `requests` is the number of requests that finding the reads took.
    ///
    /// # Errors
    /// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for a file without reads.
    pub fn finish(self, requests: u64) -> Result<Fast5Layout> {
        self.0.finish(requests)
    }
}

impl Root {
    /// The state before the first read; errors name the file `name`.
    pub fn known(&self, name: &Arc<str>) -> KnownFields {
        let mut known = KnownFields::new(name, self.attributes.clone());
        known.superblock = self.superblock.clone();
        self.others.iter().for_each(|what| known.leave_out(what.clone()));
        known
    }
}

/// The known fields of some reads of a file, and the header of these fields.
#[derive(Debug, Clone)]
pub struct KnownReads {
    known: KnownFields,
    header: Arc<Header>,
    left_out: Vec<String>,
}

impl KnownReads {
    /// The state after some reads.
    pub fn new(known: KnownFields) -> Self {
        Self { header: Arc::new(known.header()), left_out: known.left_out(), known }
    }

    /// The header of the rows.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// Descriptions of what the model of a read cannot hold.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The known fields.
    pub fn known(&self) -> &KnownFields {
        &self.known
    }
}

impl KnownFields {
    /// The row of a read, and whether the read has fields that were not known before. They are
    /// known from then on.
    ///
    /// # Errors
    /// [`Refused`](meta::Refused).
    pub fn take(
        &mut self,
        source: &dyn ByteSource,
        found: FoundRead,
    ) -> meta::Result<(Fast5Row, bool)> {
        let before = self.extent();
        let superblock = self.superblock.clone();
        let row = self.row(found, &mut |at| Root::attributes_at(source, &superblock, at))?;
        Ok((row, self.extent() != before))
    }
}
