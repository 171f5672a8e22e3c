//! Builds the layout of a file from reads that are parsed one after the other without libhdf5.

use std::sync::Arc;

use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::ByteSource;
use thalweg_io::Result;

use super::layout::{Fast5Layout, Fast5Row};
use super::merge::{KnownFields, Merge};
use super::read_groups::{FoundRead, Root};
use crate::record::Header;

/// A layout that is being built.
pub struct LayoutBuilder(Merge);

impl std::fmt::Debug for LayoutBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayoutBuilder").finish_non_exhaustive()
    }
}

impl LayoutBuilder {
    /// An empty layout of the file with this root. The rows of its reads may take `memory` bytes.
    pub fn new(name: &Arc<str>, root: &Root, memory: usize) -> Self {
        Self(Merge::new(root.known(name), memory))
    }

    /// Adds the next read.
    ///
    /// # Errors
    /// [`Refused`](meta::Refused) if a group that it shares with others is damaged, or if the read
    /// does not fit the reads before it.
    pub fn read<S: ByteSource + ?Sized>(
        &mut self,
        source: &S,
        found: FoundRead,
    ) -> meta::Result<()> {
        self.0.read(found, &mut |_, at| Root::attributes_at(source, at))
    }

    /// The layout of all reads that were added. `requests` is the number of requests that finding
    /// them took.
    ///
    /// # Errors
    /// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for a file without reads.
    pub fn finish(self, requests: u64) -> Result<Fast5Layout> {
        self.0.finish(requests)
    }
}

impl Root {
    /// The read groups and fields before any read was added. `name` is the file's name in errors.
    pub fn known(&self, name: &Arc<str>) -> KnownFields {
        let mut known = KnownFields::new(name, self.attributes.clone());
        self.others.iter().for_each(|what| known.leave_out(what.clone()));
        known
    }
}

/// The read groups and fields of some reads of a file, and the header that follows from them.
#[derive(Debug, Clone)]
pub struct KnownReads {
    known: KnownFields,
    header: Arc<Header>,
    left_out: Vec<String>,
}

impl KnownReads {
    /// The state after the reads that were added to `known`.
    pub fn new(known: KnownFields) -> Self {
        Self { header: Arc::new(known.header()), left_out: known.left_out(), known }
    }

    /// The header that rows of these reads belong to.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// The contents of the file that no read can hold, in words.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// The read groups and fields.
    pub fn known(&self) -> &KnownFields {
        &self.known
    }
}

impl KnownFields {
    /// Makes the row of a read. New read groups, fields and labels are added to the known ones.
    /// Also returns whether there were any.
    ///
    /// # Errors
    /// [`Refused`](meta::Refused).
    /// [`Refused`](meta::Refused).
    pub fn take<S: ByteSource + ?Sized>(
        &mut self,
        source: &S,
        found: FoundRead,
    ) -> meta::Result<(Fast5Row, bool)> {
        let before = self.extent();
        let row = self.row(found, &mut |_, at| Root::attributes_at(source, at))?;
        Ok((row, self.extent() != before))
    }
}
