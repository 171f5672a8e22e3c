//! What each format adds to a read: where its extents come from, and how one becomes a read.
//! Nothing else in `reads` knows which formats there are.
//!
//! A [`Layout`] is a file's, a [`Coding`] a run's, an [`Unpacker`] a worker's.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::engine::Shape;
use thalweg_io::extent::{Extent, Framer, Source};
use thalweg_io::store::Store;
use thalweg_io::{Fault, InFile, Result};

use super::collect::{LIKELY_RATIO, label, unframe};
use super::fast5::{self, Fast5};
use super::framer::FileFramer;
use super::pod5::{Aim, Board, Pod5, Tables, Unpack};
use super::{ReadFile, Selection};
use crate::fast5::Rows;
use crate::record::StoredRow;
use crate::record::{Entry, Header, Record};
use crate::slow5;

/// What is known of a file beyond the header that it presents.
#[derive(Debug)]
pub(super) enum Layout {
    /// SLOW5 and BLOW5: records one after the other, each all of a read.
    Slow5,
    /// FAST5: a group for each read.
    Fast5(Fast5),
    /// POD5: signal in one table, what it belongs to in others.
    Pod5(Pod5),
}

/// What turns the extents of one run into reads.
#[derive(Debug, Clone)]
pub(super) enum Coding {
    Slow5,
    Fast5(Fast5, Rows, Arc<dyn Store>),
    Pod5(Arc<Tables>, Arc<Board>),
}

/// What one worker keeps from read to read: codec contexts, scratch.
pub(super) enum Unpacker {
    Slow5(slow5::Decoder),
    Fast5(Box<fast5::Unpack>),
    Pod5(Unpack),
}

impl ReadFile {
    /// The extents of the selected reads, and what decodes them. Without `signal`, those that hold
    /// their fields.
    pub(super) fn source(
        &self,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<(Source, Coding)> {
        match &self.layout {
            Layout::Slow5 => {
                let source = match self.places(selection)? {
                    None => self.stream()?,
                    Some(places) => Source::Planned(Box::new(self.gather(places, shape))),
                };
                Ok((source, Coding::Slow5))
            }
            Layout::Fast5(file) => {
                let rows = self.fast5_rows(selection)?;
                let source =
                    Source::Planned(Box::new(self.gather(file.extents(&rows, signal), shape)));
                Ok((source, Coding::Fast5(file.clone(), rows, self.store.clone())))
            }
            Layout::Pod5(file) => {
                let aim = if signal { Aim::Samples } else { Aim::Fields };
                let (source, board) = self.pod5_source(file, selection, shape, aim)?;
                Ok((source, Coding::Pod5(file.tables.clone(), board)))
            }
        }
    }

    /// What decodes any one read of the file, of which [`ReadFile::place`] says where it is.
    pub(super) fn coding(&self) -> Coding {
        match &self.layout {
            Layout::Slow5 => Coding::Slow5,
            Layout::Fast5(file) => Coding::Fast5(file.clone(), Rows::ALL, self.store.clone()),
            Layout::Pod5(file) => Coding::Pod5(file.tables.clone(), Arc::default()),
        }
    }

    /// Where the stored bytes of a read lie that the index has, and the ordinal of its extent.
    pub(super) fn place(&self, entry: Entry) -> (Range<u64>, u64) {
        match &self.layout {
            Layout::Slow5 => (entry.offset..entry.offset + entry.size, 0),
            Layout::Fast5(file) => (file.extent(entry.offset), entry.offset),
            Layout::Pod5(_) => (entry.offset..entry.offset + entry.size, 0),
        }
    }

    /// Every record, found while the file streams by.
    pub(super) fn stream(&self) -> Result<Source> {
        let range: Range<u64> = self.header.data_offset..self.store.size();
        let mut framer =
            FileFramer::new(self.store.name().clone(), self.store.size(), &self.header);
        if range.is_empty() {
            // The engine fetches nothing where nothing is, and the end marker would not be missed.
            framer.frame(range.start, &[], true, &mut Vec::new())?;
        }
        Ok(Source::Framed { range, framer: Box::new(framer) })
    }
}

impl Coding {
    /// For a worker that may decode a read to `limit` bytes.
    pub(super) fn unpacker(&self, limit: usize) -> Unpacker {
        match self {
            Self::Slow5 => Unpacker::Slow5(slow5::Decoder::new(limit)),
            Self::Fast5(file, rows, store) => Unpacker::Fast5(Box::new(file.unpack(rows, store))),
            Self::Pod5(tables, board) => Unpacker::Pod5(Unpack::new(tables.clone(), board.clone())),
        }
    }
}

impl Unpacker {
    /// The header that the read of an extent goes with, where it may be another than the file's.
    pub(super) fn header(&mut self, extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        match self {
            Self::Slow5(_) | Self::Pod5(_) => Ok(None),
            Self::Fast5(unpacker) => unpacker.header(extent),
        }
    }

    /// Decodes the read that an extent holds, and appends its samples to `samples`. It may decode
    /// to `limit` bytes, or to as many as its stored bytes make likely. Where the format is POD5,
    /// `each` sees every row of the signal as it is stored.
    pub(super) fn read<'a>(
        &'a mut self,
        file: &Arc<str>,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        each: impl FnMut(StoredRow<'_>),
    ) -> Result<Record<'a>> {
        match self {
            Self::Slow5(contexts) => {
                contexts.set_limit(limit.max(extent.bytes.len().saturating_mul(LIKELY_RATIO)));
                let at = |fault: Fault| fault.in_file(file, extent.offset, label(header, extent));
                let (start, stored) = unframe(header, extent).map_err(at)?;
                contexts.record(header, stored, samples).map_err(|fault| at(fault.shifted(start)))
            }
            Self::Fast5(unpacker) => unpacker.read(
                extent,
                limit.max(extent.bytes.len().saturating_mul(LIKELY_RATIO)),
                samples,
            ),
            Self::Pod5(unpack) => unpack.read_with(extent, limit, samples, each),
        }
    }

    /// The same with its signal as it is stored, where the format is POD5; how many samples the
    /// read has.
    pub(super) fn stored<'a>(
        &'a mut self,
        file: &Arc<str>,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        match self {
            Self::Pod5(unpack) => unpack.stored(extent, limit, rows),
            other => other.fields(file, header, extent, limit),
        }
    }

    /// The same without its signal: the read's fields, and how many samples it has.
    pub(super) fn fields<'a>(
        &'a mut self,
        file: &Arc<str>,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        match self {
            Self::Slow5(contexts) => {
                contexts.set_limit(limit.max(extent.bytes.len().saturating_mul(LIKELY_RATIO)));
                let at = |fault: Fault| fault.in_file(file, extent.offset, label(header, extent));
                let (start, stored) = unframe(header, extent).map_err(at)?;
                contexts.fields(header, stored).map_err(|fault| at(fault.shifted(start)))
            }
            Self::Fast5(unpacker) => unpacker.fields(extent),
            Self::Pod5(unpack) => unpack.fields(extent),
        }
    }

    /// Gives back scratch memory beyond `keep` bytes a buffer.
    pub(super) fn trim(&mut self, keep: usize) {
        match self {
            Self::Slow5(contexts) => contexts.trim(keep),
            Self::Fast5(unpacker) => unpacker.trim(keep),
            Self::Pod5(unpack) => unpack.trim(keep),
        }
    }
}
