//! Reads FAST5 files through the engine. Workers parse the reads as they decode them, or all reads
//! are listed before.

mod open;
mod pages;
mod stream;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::engine::Shape;
use thalweg_io::extent::{Extent, Source};
use thalweg_io::model::StoreModel;
use thalweg_io::open::Options;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use super::{Fast5Layout, RowUnpacker, WantedRows};
use crate::file;
use crate::file::{
    CheckReport, FormatFile, IndexOrigin, LIKELY_RATIO, NewUnpacker, OpenFile, RequestTotals,
    Selection, UnpackReads,
};
use crate::record::{Entry, Header, Index, Record, StoredRow};
use open::OpenedFast5;
use stream::{Stream, StreamUnpacker};

/// The list of all reads may take the memory budget divided by this.
const TABLE_SHARE: usize = 2;

/// A FAST5 file, open.
#[derive(Debug, Clone)]
pub(crate) enum Fast5File {
    /// Workers parse the reads as they decode them.
    Stream(Arc<Stream>),
    /// All reads are listed.
    Table(Arc<Fast5Layout>),
}

/// Opens a FAST5 file and finds its reads.
pub(crate) fn open(
    store: &Arc<dyn Store>,
    options: &Options,
) -> Result<file::OpenedFormat<Fast5File>> {
    let model = options.model.unwrap_or(StoreModel::MEMORY);
    let memory = options.budget.memory / TABLE_SHARE;
    let opened = open::open(open::OpenContext { store, control: &options.control, model, memory })?;
    let (file, header, requests) = match opened {
        OpenedFast5::Stream(stream) => {
            let header = stream.first_header().clone();
            let requests = stream.requests();
            (Fast5File::Stream(stream), header, requests)
        }
        OpenedFast5::Table(layout) => {
            let header = layout.header().clone();
            let requests = layout.requests();
            (Fast5File::Table(Arc::new(layout)), header, requests)
        }
    };
    // One more request found the format.
    Ok(file::OpenedFormat { file, header, requests: 1 + requests })
}

impl Fast5File {
    /// The header of all reads, if it differs from that of the first ones, and what the model of a
    /// read cannot hold.
    fn whole(&self) -> Result<(&Arc<Header>, &[String])> {
        match self {
            Self::Stream(stream) => stream.whole_header(),
            Self::Table(layout) => Ok((layout.header(), layout.left_out())),
        }
    }

    /// An index of the reads: an entry's offset is the read's number.
    fn numbered_index(&self, file: &Arc<str>) -> Result<Index> {
        match self {
            Self::Stream(stream) => stream.index(),
            Self::Table(layout) => layout.index(file),
        }
    }

    /// The range of the bytes that hold the read with this number.
    fn extent(&self, number: u64) -> Range<u64> {
        match self {
            Self::Stream(stream) => {
                stream.extent(usize::try_from(number).unwrap_or(usize::MAX), true)
            }
            Self::Table(layout) => layout.extent(number),
        }
    }

    /// The ranges of the bytes that hold the reads, in order; without `signal`, their fields.
    fn extents(
        &self,
        rows: &WantedRows,
        signal: bool,
    ) -> Box<dyn Iterator<Item = Range<u64>> + Send> {
        match self {
            Self::Stream(stream) => {
                let stream = stream.clone();
                let rows = rows.clone();
                let number = move |ordinal| {
                    rows.number(ordinal)
                        .filter(|&number| number < stream.len())
                        .map(|number| stream.extent(number, signal))
                };
                Box::new((0..).map_while(number))
            }
            // The fields are already in memory, so nothing is fetched for them.
            Self::Table(layout) => {
                Box::new(layout.extents(rows).map(move |extent| if signal { extent } else { 0..0 }))
            }
        }
    }

    /// An unpacker for a worker that decodes these reads.
    fn unpack(&self, rows: &WantedRows, store: &Arc<dyn Store>) -> Fast5Unpacker {
        match self {
            Self::Stream(stream) => {
                Fast5Unpacker::Stream(Box::new(StreamUnpacker::new(stream.clone(), rows.clone())))
            }
            Self::Table(layout) => Fast5Unpacker::Table(Box::new(RowUnpacker::new(
                layout.clone(),
                rows.clone(),
                store.clone(),
            ))),
        }
    }
}

/// Decodes reads for one worker.
pub(crate) enum Fast5Unpacker {
    Stream(Box<StreamUnpacker>),
    Table(Box<RowUnpacker>),
}

impl UnpackReads for Fast5Unpacker {
    fn header(&mut self, extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        match self {
            Self::Stream(unpacker) => unpacker.header(extent).map(Some),
            Self::Table(_) => Ok(None),
        }
    }

    fn read<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        _rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>> {
        let limit = limit.max(extent.bytes.len().saturating_mul(LIKELY_RATIO));
        match self {
            Self::Stream(unpacker) => {
                unpacker.read(extent, Some((limit, samples))).map(|(record, _)| record)
            }
            Self::Table(unpacker) => unpacker.read(extent, limit, samples),
        }
    }

    fn fields<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        _limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        match self {
            Self::Stream(unpacker) => unpacker.read(extent, None),
            Self::Table(unpacker) => unpacker.fields(extent.ordinal),
        }
    }

    fn trim(&mut self, keep: usize) {
        match self {
            Self::Stream(unpacker) => unpacker.trim(keep),
            Self::Table(unpacker) => unpacker.trim(keep),
        }
    }
}

impl FormatFile for Fast5File {
    type Unpacker = Fast5Unpacker;

    fn whole_header<'a>(&'a self, file: &'a OpenFile) -> &'a Arc<Header> {
        // If the header cannot be read now, the run that needs it fails.
        self.whole().map_or(&file.header, |(header, _)| header)
    }

    fn left_out(&self) -> &[String] {
        self.whole().map(|(_, left_out)| left_out).unwrap_or_default()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<(Source, NewUnpacker<Fast5Unpacker>)> {
        let rows = self.rows(file, selection)?;
        let source = Source::Planned(Box::new(file.gather(self.extents(&rows, signal), shape)));
        let reads = self.clone();
        let store = file.store.clone();
        Ok((source, Arc::new(move |_| reads.unpack(&rows, &store))))
    }

    fn single_unpacker(&self, file: &OpenFile) -> Fast5Unpacker {
        self.unpack(&WantedRows::ALL, &file.store)
    }

    /// The range of a read; the offset of its entry is its number.
    fn place(&self, entry: Entry) -> (Range<u64>, u64) {
        (self.extent(entry.offset), entry.offset)
    }

    fn requests(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<RequestTotals> {
        let rows = self.rows(file, selection)?;
        Ok(RequestTotals::of(file, file.gather(self.extents(&rows, signal), shape)))
    }

    fn load(&self, file: &OpenFile, _path: &Path) -> Result<Option<Index>> {
        self.numbered_index(file.name()).map(Some)
    }

    fn load_or_build(&self, file: &OpenFile) -> Result<(Index, IndexOrigin)> {
        Ok((self.numbered_index(file.name())?, IndexOrigin::Unsaved))
    }

    /// FAST5 has no index file: such a file would hold offsets and sizes of records, which FAST5
    /// does not have.
    fn build_index(&self, file: &OpenFile) -> Result<Index> {
        Err(Error::Unsupported {
            file: file.name().clone(),
            what: "an index file for FAST5".into(),
            advice: "none is needed: the file itself lists its reads".into(),
        })
    }

    fn salvage(&self, file: &OpenFile, _out: &Path) -> Result<CheckReport> {
        Err(Error::Unsupported {
            file: file.name().clone(),
            what: "salvaging a FAST5 file record by record".into(),
            advice: "`thalweg check` says which reads are whole, and `thalweg convert` with their \
                     ids writes them"
                .into(),
        })
    }
}

impl Fast5File {
    /// The numbers of the selected reads.
    fn rows(&self, file: &OpenFile, selection: &Selection) -> Result<WantedRows> {
        let Some(places) = self.places(file, selection)? else { return Ok(WantedRows::ALL) };
        let number = |place: Range<u64>| {
            u32::try_from(place.start).map_err(|_| Error::Usage("more than 2^32 reads".into()))
        };
        Ok(WantedRows::some(places.into_iter().map(number).collect::<Result<_>>()?))
    }
}
