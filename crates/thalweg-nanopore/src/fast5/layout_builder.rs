//! Builds a file's layout from reads that are parsed without libhdf5, one after the other.

use std::sync::Arc;

use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::ByteSource;
use thalweg_io::Result;

use super::layout::{Fast5Layout, Fast5Row};
use super::merge::{KnownFields, Merge};
use super::read_groups::{FoundRead, Root};
use crate::record::Header;

/// A layout in the making.
pub struct LayoutBuilder(Merge);

impl std::fmt::Debug for LayoutBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LayoutBuilder").finish_non_exhaustive()
    }
}

impl LayoutBuilder {
    /// Nothing yet, of the file with this root. What is known of its reads may take `memory` bytes.
    pub fn new(name: &Arc<str>, root: &Root, memory: usize) -> Self {
        Self(Merge::new(root.known(name), memory))
    }

    /// Takes in the next read.
    ///
    /// # Errors
    /// [`Refused`](meta::Refused): what is wrong with a group that it shares with others, and what
    /// does not fit the reads before it.
    pub fn read<S: ByteSource + ?Sized>(
        &mut self,
        source: &S,
        found: FoundRead,
    ) -> meta::Result<()> {
        self.0.read(found, &mut |_, at| Root::attributes_at(source, at))
    }

    /// The layout, once all reads were taken in; finding them took so many requests.
    ///
    /// # Errors
    /// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for a file that has no reads.
    pub fn finish(self, requests: u64) -> Result<Fast5Layout> {
        self.0.finish(requests)
    }
}

impl Root {
    /// What is known of the file's reads before any was seen; `name` is what errors call the file.
    pub fn known(&self, name: &Arc<str>) -> KnownFields {
        let mut known = KnownFields::new(name, self.attributes.clone());
        self.others.iter().for_each(|what| known.leave_out(what.clone()));
        known
    }
}

/// What is known of some reads of a file, and the header that goes with it.
#[derive(Debug, Clone)]
pub struct KnownReads {
    known: KnownFields,
    header: Arc<Header>,
    left_out: Vec<String>,
}

impl KnownReads {
    /// The state after reads that were taken in.
    pub fn new(known: KnownFields) -> Self {
        Self { header: Arc::new(known.header()), left_out: known.left_out(), known }
    }

    /// The header that rows go with.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// What the file has and a read has no place for, in words.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// What is known.
    pub fn known(&self) -> &KnownFields {
        &self.known
    }
}

impl KnownFields {
    /// A read's row. What was not known before is known from then on; the other outcome is whether
    /// something was not.
    ///
    /// # Errors
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
