//! The layout of an open FAST5 file: its header in the model of SLOW5, and where each read's signal
//! lies.

use std::ops::Range;
use std::sync::Arc;

use thalweg_hdf5::filter::{Contexts, Pipeline};
use thalweg_hdf5::types::{Chunk, SampleDataset, Storage};
use thalweg_io::extent::Extent;
use thalweg_io::plan::is_one_extent;
use thalweg_io::store::Store;
use thalweg_io::{Error, Fault, InFile, Result};

use super::fields::{Calibration, Fields};
use crate::record::{
    AuxField, Encoding, Entry, Header, Index, Record, RecordPress, SignalPress, Version,
};

/// Bytes of a sample.
const SAMPLE: usize = 2;

/// A file's header and reads.
#[derive(Debug)]
pub struct Fast5Layout {
    pub(super) header: Arc<Header>,
    pub(super) reads: Vec<Fast5Row>,
    /// Descriptions of what the model of a read cannot hold, each once.
    pub(super) left_out: Vec<String>,
    pub(super) requests: u64,
}

/// One read: its fields, and the place of its signal.
#[derive(Debug)]
pub struct Fast5Row {
    pub(super) read_id: Box<str>,
    pub(super) read_group: u32,
    pub(super) calibration: Calibration,
    /// The values of the first `known` auxiliary fields, as a record stores them.
    pub(super) aux: Box<[u8]>,
    pub(super) known: usize,
    pub(super) signal: Signal,
}

/// The place of a read's samples.
#[derive(Debug)]
pub(super) struct Signal {
    pub(super) len: u64,
    pub(super) fill: i16,
    pub(super) storage: Storage,
    pub(super) pipeline: Arc<Pipeline>,
}

impl Signal {
    pub(super) fn new(dataset: SampleDataset, known: &mut Vec<Arc<Pipeline>>) -> Self {
        let SampleDataset { len, fill, storage, pipeline } = dataset;
        let shared =
            known.iter().find(|known| ***known == pipeline).cloned().unwrap_or_else(|| {
                known.push(Arc::new(pipeline));
                known[known.len() - 1].clone()
            });
        Self { len, fill, storage, pipeline: shared }
    }

    /// The memory of the read besides that of its fields.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.storage {
            Storage::Inline(samples) => size_of_val(&samples[..]),
            Storage::Contiguous(_) => 0,
            Storage::Chunked(_, chunks) => size_of_val(&chunks[..]),
        }
    }

    /// The bytes to fetch for it. If its chunks lie far apart, these are only the first; the worker
    /// fetches the others.
    fn extent(&self) -> Range<u64> {
        match &self.storage {
            Storage::Inline(_) | Storage::Contiguous(None) => 0..0,
            Storage::Contiguous(Some(offset)) => {
                *offset..offset.saturating_add(self.len.saturating_mul(SAMPLE as u64))
            }
            Storage::Chunked(_, chunks) => {
                let Some(first) = chunks.first() else { return 0..0 };
                let start = chunks.iter().map(|chunk| chunk.offset).min().unwrap_or(first.offset);
                let end = chunks
                    .iter()
                    .map(|chunk| chunk.offset + chunk.size)
                    .max()
                    .unwrap_or(first.offset);
                let own: u64 = chunks.iter().fold(0, |sum, chunk| sum.saturating_add(chunk.size));
                if is_one_extent(own, end - start) {
                    start..end
                } else {
                    first.offset..first.offset + first.size
                }
            }
        }
    }
}

/// The reads of a run: all, or these.
#[derive(Debug, Clone)]
pub struct WantedRows(Option<Arc<Vec<u32>>>);

impl WantedRows {
    /// Every read.
    pub const ALL: Self = Self(None);

    /// The number of the read at this place.
    pub fn number(&self, ordinal: u64) -> Option<usize> {
        let ordinal = usize::try_from(ordinal).ok()?;
        match &self.0 {
            None => Some(ordinal),
            Some(numbers) => Some(*numbers.get(ordinal)? as usize),
        }
    }

    /// The reads with these numbers.
    pub fn some(numbers: Vec<u32>) -> Self {
        Self(Some(Arc::new(numbers)))
    }
}

impl Fast5Row {
    /// The read's id.
    pub fn read_id(&self) -> &str {
        &self.read_id
    }
}

impl Fast5Layout {
    /// The header that the file presents.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// The number of requests that opening the file took.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Descriptions of what the model of a read cannot hold.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// How many reads there are.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// An index of the reads. The offset of an entry is the number of the read.
    ///
    /// # Errors
    /// For two reads with one id.
    pub fn index(&self, file: &Arc<str>) -> Result<Index> {
        let mut index = Index::new(self.header.version);
        for (number, row) in self.reads.iter().enumerate() {
            let entry = Entry { offset: number as u64, size: 0 };
            index.push(&row.read_id, entry).map_err(|fault| fault.in_file(file, 0, "read ids"))?;
        }
        Ok(index)
    }

    fn row(&self, rows: &WantedRows, ordinal: u64) -> Option<&Fast5Row> {
        self.reads.get(rows.number(ordinal)?)
    }

    /// The row of the read with this number.
    pub fn number(&self, number: usize) -> Option<&Fast5Row> {
        self.reads.get(number)
    }

    /// The bytes that hold the signal of the read with this number.
    pub fn extent(&self, number: u64) -> Range<u64> {
        self.row(&WantedRows::ALL, number).map_or(0..0, |row| row.signal.extent())
    }

    /// The bytes that hold the signals of the reads, in order.
    pub fn extents(
        self: &Arc<Self>,
        rows: &WantedRows,
    ) -> impl Iterator<Item = Range<u64>> + Send + 'static {
        let layout = self.clone();
        let rows = rows.clone();
        (0..).map_while(move |ordinal| Some(layout.row(&rows, ordinal)?.signal.extent()))
    }

    pub(super) fn header_of(
        aux: Vec<AuxField>,
        attributes: Vec<crate::slow5::Attribute>,
        groups: usize,
    ) -> Header {
        Header {
            version: Version::V1_0_0,
            encoding: Encoding::Binary,
            record_press: RecordPress::None,
            signal_press: SignalPress::None,
            read_groups: u32::try_from(groups).unwrap_or(u32::MAX).max(1),
            attributes,
            aux,
            data_offset: 0,
        }
    }
}

/// Decodes the reads of a layout on one worker.
#[derive(Debug)]
pub struct RowUnpacker {
    layout: Arc<Fast5Layout>,
    rows: WantedRows,
    decoder: Fast5RowDecoder,
}

impl RowUnpacker {
    /// A decoder for the reads of `rows`.
    pub fn new(layout: Arc<Fast5Layout>, rows: WantedRows, store: Arc<dyn Store>) -> Self {
        Self { layout, rows, decoder: Fast5RowDecoder::new(store) }
    }

    /// Decodes the read of an extent, and appends its samples to `out`. They may take at most
    /// `limit` bytes.
    ///
    /// # Errors
    /// If there is no such read, or if its stored bytes are damaged.
    pub fn read(
        &mut self,
        extent: &Extent<'_>,
        limit: usize,
        out: &mut Vec<i16>,
    ) -> Result<Record<'_>> {
        let row =
            self.decoder.known(self.layout.row(&self.rows, extent.ordinal), extent.ordinal)?;
        self.decoder.samples(row, extent, limit, out)?;
        Ok(self.decoder.fields(row, &self.layout.header).0)
    }

    /// The read of an extent without its samples, and the number of samples.
    ///
    /// # Errors
    /// For a read that does not exist.
    pub fn fields(&mut self, ordinal: u64) -> Result<(Record<'_>, u64)> {
        let row = self.decoder.known(self.layout.row(&self.rows, ordinal), ordinal)?;
        Ok(self.decoder.fields(row, &self.layout.header))
    }

    /// Frees scratch memory beyond `keep` bytes per buffer.
    pub fn trim(&mut self, keep: usize) {
        self.decoder.trim(keep);
    }
}

/// Decodes reads whose rows are known.
#[derive(Debug)]
pub struct Fast5RowDecoder {
    store: Arc<dyn Store>,
    contexts: Contexts,
    aux: Vec<u8>,
    fetched: Vec<u8>,
    chunk: Vec<i16>,
}

impl Fast5RowDecoder {
    /// A decoder of reads in a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            contexts: Contexts::default(),
            aux: Vec::new(),
            fetched: Vec::new(),
            chunk: Vec::new(),
        }
    }

    fn known<'r>(&self, row: Option<&'r Fast5Row>, ordinal: u64) -> Result<&'r Fast5Row> {
        row.ok_or_else(|| {
            Error::Usage(format!("{}: no read number {ordinal}", self.store.name()).into())
        })
    }

    /// Appends the samples of a read, at most `limit` bytes, to `out`. Bytes outside of the extent
    /// are fetched.
    ///
    /// # Errors
    /// If the stored bytes are damaged, or cannot be fetched.
    pub fn samples(
        &mut self,
        row: &Fast5Row,
        extent: &Extent<'_>,
        limit: usize,
        out: &mut Vec<i16>,
    ) -> Result<()> {
        let before = out.len();
        let Self { store, contexts, fetched, chunk, .. } = self;
        let outcome =
            Decode { store: &**store, row, extent, limit, contexts, fetched, chunk }.signal(out);
        if outcome.is_err() {
            out.truncate(before);
        }
        outcome
    }

    /// A read without its samples, as a record of a file with this header, and the number of its
    /// samples.
    pub fn fields<'a>(&'a mut self, row: &'a Fast5Row, header: &Header) -> (Record<'a>, u64) {
        let aux: &[u8] = if row.known == header.aux.len() {
            &row.aux
        } else {
            self.aux.clear();
            self.aux.extend_from_slice(&row.aux);
            Fields::complete(&header.aux, row.known, &mut self.aux);
            &self.aux
        };
        let Calibration { digitisation, offset, range, sampling_rate } = row.calibration;
        let read_group = row.read_group;
        let record = Record {
            read_id: &row.read_id,
            read_group,
            digitisation,
            offset,
            range,
            sampling_rate,
            signal: &[],
            aux,
        };
        (record, row.signal.len)
    }

    /// Frees scratch memory beyond `keep` bytes per buffer.
    pub fn trim(&mut self, keep: usize) {
        self.contexts.trim(keep);
        self.fetched.clear();
        self.fetched.shrink_to(keep);
        self.chunk.clear();
        self.chunk.shrink_to(keep / SAMPLE);
    }
}

/// The state of decoding one read.
struct Decode<'a> {
    store: &'a dyn Store,
    row: &'a Fast5Row,
    extent: &'a Extent<'a>,
    limit: usize,
    contexts: &'a mut Contexts,
    fetched: &'a mut Vec<u8>,
    chunk: &'a mut Vec<i16>,
}

impl<'a> Decode<'a> {
    fn signal(&mut self, out: &mut Vec<i16>) -> Result<()> {
        let row: &'a Fast5Row = self.row;
        let Signal { len, storage, .. } = &row.signal;
        let len = self.fits(*len, self.extent.offset)?;
        match storage {
            Storage::Inline(samples) => out.extend_from_slice(samples),
            Storage::Contiguous(None) => out.resize(out.len() + len, self.row.signal.fill),
            Storage::Contiguous(Some(offset)) => {
                let stored = self.stored(*offset, (len * SAMPLE) as u64)?;
                out.extend(
                    stored.chunks_exact(SAMPLE).map(|pair| i16::from_le_bytes([pair[0], pair[1]])),
                );
            }
            Storage::Chunked(size, chunks) => self.chunks(len, *size, chunks, out)?,
        }
        Ok(())
    }

    /// The number of samples, if their memory is within the limit.
    fn fits(&self, samples: u64, offset: u64) -> Result<usize> {
        let fits = usize::try_from(samples)
            .ok()
            .filter(|s| s.checked_mul(SAMPLE).is_some_and(|bytes| bytes <= self.limit));
        fits.ok_or_else(|| {
            let fault = Fault::new(
                0,
                format!("{samples} samples"),
                format!("at most {} bytes of them", self.limit),
            );
            fault.in_file(self.store.name(), offset, self.label())
        })
    }

    fn label(&self) -> String {
        format!("read {}", self.row.read_id)
    }

    fn chunks(
        &mut self,
        len: usize,
        size: u64,
        chunks: &[Chunk],
        out: &mut Vec<i16>,
    ) -> Result<()> {
        let row: &'a Fast5Row = self.row;
        let Signal { fill, pipeline, .. } = &row.signal;
        let start = out.len();
        for chunk in chunks {
            let first = usize::try_from(chunk.first).unwrap_or(usize::MAX).min(len);
            out.resize(start + first, *fill);
            let size = self.fits(size, chunk.offset)?;
            let stored = match self.inside(chunk.offset, chunk.size) {
                Some(stored) => stored,
                None => fetch(self.store, self.fetched, chunk.offset, chunk.size)?,
            };
            let whole = size <= len - first;
            let target: &mut Vec<i16> = if whole { &mut *out } else { &mut *self.chunk };
            if !whole {
                target.clear();
            }
            let needed = size.min(len - first);
            let sizes = (needed * SAMPLE, size * SAMPLE);
            let decoded = self.contexts.samples(pipeline, chunk.mask, stored, sizes, target);
            decoded.map_err(|fault| {
                fault.in_file(self.store.name(), chunk.offset, format!("read {}", self.row.read_id))
            })?;
            if !whole {
                out.extend(self.chunk.iter().take(len - first));
            }
        }
        out.resize(start + len, *fill);
        Ok(())
    }

    /// Bytes of the file, if they are in the extent.
    fn inside(&self, offset: u64, size: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(offset.checked_sub(self.extent.offset)?).ok()?;
        self.extent.bytes.get(start..start.checked_add(usize::try_from(size).ok()?)?)
    }

    /// Bytes of the file, fetched if they are not in the extent.
    fn stored(&mut self, offset: u64, size: u64) -> Result<&[u8]> {
        match self.inside(offset, size) {
            Some(stored) => Ok(stored),
            None => fetch(self.store, self.fetched, offset, size),
        }
    }
}

/// Fetches bytes into a buffer. The layout was checked against the size of the file, so the buffer
/// is never larger than the file.
fn fetch<'b>(
    store: &dyn Store,
    buffer: &'b mut Vec<u8>,
    offset: u64,
    size: u64,
) -> Result<&'b [u8]> {
    buffer.resize(size as usize, 0);
    store.read_at(offset, buffer)?;
    Ok(buffer)
}
