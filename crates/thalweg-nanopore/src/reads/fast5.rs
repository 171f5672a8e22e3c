//! FAST5 files behind the face of a [`ReadFile`].

mod open;
mod pages;
mod stream;
#[cfg(all(test, feature = "hdf5"))]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::extent::Extent;
use thalweg_io::model::StoreModel;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::layout::Layout;
use super::{Options, ReadFile, Selection};
use crate::fast5;
use crate::fast5::Rows;
use crate::slow5::{Header, Index, Record};
use open::Opened;
use stream::{Stream, StreamUnpacker};

/// What is known of all reads may take this part of the memory budget.
const TABLE_SHARE: usize = 2;

/// A FAST5 file, open.
#[derive(Debug, Clone)]
pub(super) enum Fast5 {
    /// Its reads are parsed on the way.
    Stream(Arc<Stream>),
    /// All of its reads are known.
    Table(Arc<fast5::Layout>),
}

/// Finds the reads of a file.
pub(super) fn layout(
    store: &Arc<dyn Store>,
    options: &Options,
) -> Result<(Layout, Arc<Header>, u64)> {
    let model = options.model.unwrap_or(StoreModel::MEMORY);
    let memory = options.budget.memory / TABLE_SHARE;
    let opened = open::open(open::Means { store, control: &options.control, model, memory })?;
    Ok(match opened {
        Opened::Stream(stream) => {
            let (header, requests) = (stream.first_header().clone(), stream.requests());
            (Layout::Fast5(Fast5::Stream(stream)), header, requests)
        }
        Opened::Table(layout) => {
            let (header, requests) = (layout.header().clone(), layout.requests());
            (Layout::Fast5(Fast5::Table(Arc::new(layout))), header, requests)
        }
    })
}

impl Fast5 {
    /// The header of all reads, where it is another than that of the first ones, and what has no
    /// place in a read.
    pub(super) fn whole(&self) -> Result<(&Arc<Header>, &[String])> {
        match self {
            Self::Stream(stream) => stream.whole_header(),
            Self::Table(layout) => Ok((layout.header(), layout.left_out())),
        }
    }

    /// An index of the reads: an entry's offset is the read's number.
    pub(super) fn index(&self, file: &Arc<str>) -> Result<Index> {
        match self {
            Self::Stream(stream) => stream.index(),
            Self::Table(layout) => layout.index(file),
        }
    }

    /// Where the bytes lie that hold the read with a number.
    pub(super) fn extent(&self, number: u64) -> Range<u64> {
        match self {
            Self::Stream(stream) => {
                stream.extent(usize::try_from(number).unwrap_or(usize::MAX), true)
            }
            Self::Table(layout) => layout.extent(number),
        }
    }

    /// Where the bytes lie that hold the reads, in order; without `signal`, their fields.
    pub(super) fn extents(
        &self,
        rows: &Rows,
        signal: bool,
    ) -> Box<dyn Iterator<Item = Range<u64>> + Send> {
        match self {
            Self::Stream(stream) => {
                let (stream, rows) = (stream.clone(), rows.clone());
                let number = move |ordinal| {
                    rows.number(ordinal)
                        .filter(|&number| number < stream.len())
                        .map(|number| stream.extent(number, signal))
                };
                Box::new((0..).map_while(number))
            }
            // The fields are in memory already.
            Self::Table(layout) => {
                Box::new(layout.extents(rows).map(move |extent| if signal { extent } else { 0..0 }))
            }
        }
    }

    /// For a worker that decodes these reads.
    pub(super) fn unpack(&self, rows: &Rows, store: &Arc<dyn Store>) -> Unpack {
        match self {
            Self::Stream(stream) => {
                Unpack::Stream(Box::new(StreamUnpacker::new(stream.clone(), rows.clone())))
            }
            Self::Table(layout) => Unpack::Table(Box::new(fast5::Unpacker::new(
                layout.clone(),
                rows.clone(),
                store.clone(),
            ))),
        }
    }
}

/// What a worker keeps.
pub(super) enum Unpack {
    Stream(Box<StreamUnpacker>),
    Table(Box<fast5::Unpacker>),
}

impl Unpack {
    /// The header that the read of an extent goes with, where it may be another than the file's.
    pub(super) fn header(&mut self, extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        match self {
            Self::Stream(unpacker) => unpacker.header(extent).map(Some),
            Self::Table(_) => Ok(None),
        }
    }

    /// Decodes the read of an extent, and appends its samples to `samples`. They may be `limit`
    /// bytes.
    pub(super) fn read(
        &mut self,
        extent: &Extent<'_>,
        limit: usize,
        samples: &mut Vec<i16>,
    ) -> Result<Record<'_>> {
        match self {
            Self::Stream(unpacker) => {
                unpacker.read(extent, Some((limit, samples))).map(|(record, _)| record)
            }
            Self::Table(unpacker) => unpacker.read(extent, limit, samples),
        }
    }

    /// The same without its samples, of which it tells the number.
    pub(super) fn fields(&mut self, extent: &Extent<'_>) -> Result<(Record<'_>, u64)> {
        match self {
            Self::Stream(unpacker) => unpacker.read(extent, None),
            Self::Table(unpacker) => unpacker.fields(extent.ordinal),
        }
    }

    pub(super) fn trim(&mut self, keep: usize) {
        match self {
            Self::Stream(unpacker) => unpacker.trim(keep),
            Self::Table(unpacker) => unpacker.trim(keep),
        }
    }
}

impl ReadFile {
    pub(super) fn fast5_rows(&self, selection: &Selection) -> Result<Rows> {
        let Some(places) = self.places(selection)? else { return Ok(Rows::ALL) };
        let number = |place: Range<u64>| {
            u32::try_from(place.start).map_err(|_| Error::Usage("more than 2^32 reads".into()))
        };
        Ok(Rows::some(places.into_iter().map(number).collect::<Result<_>>()?))
    }
}
