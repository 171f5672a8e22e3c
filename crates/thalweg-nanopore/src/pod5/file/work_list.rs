//! The lists that the look-ahead thread gives to the workers: the record of each read, and the
//! places of its samples.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::extent::Extent;
use thalweg_io::{Error, Fault, InFile, Result};

use super::tables::{SignalRowPlace, Tables};
use crate::pod5::{SignalDecoder, StoredRow};
use crate::record::Record;

/// Reads with consecutive ordinals.
#[derive(Debug, Default)]
pub(super) struct WorkList {
    /// The ordinal of the first read.
    pub(super) first: u64,
    pub(super) entries: Vec<WorkEntry>,
    pub(super) pieces: Vec<SignalRowPlace>,
    /// Read ids as text, and auxiliary bytes, of all entries.
    pub(super) bytes: Vec<u8>,
    /// Errors by the index of the entry that could not be made. Each is returned once.
    pub(super) failures: Mutex<Vec<(usize, Error)>>,
    /// The number of entries that workers have taken.
    pub(super) taken: AtomicUsize,
}

/// A read of a list. The ranges are of the list's `bytes` and `pieces`.
#[derive(Debug, Clone)]
pub(super) struct WorkEntry {
    pub(super) read_group: u32,
    pub(super) digitisation: f64,
    pub(super) offset: f64,
    pub(super) range: f64,
    pub(super) sampling_rate: f64,
    pub(super) id: Range<usize>,
    pub(super) aux: Range<usize>,
    /// The number of samples.
    pub(super) samples: u64,
    pub(super) pieces: Range<usize>,
    /// The number of pieces, from the first, that lie in the read's extent.
    pub(super) near: usize,
}

/// The lists of a run, from the look-ahead thread to the workers.
#[derive(Debug, Default)]
pub(crate) struct WorkQueue(Mutex<VecDeque<Arc<WorkList>>>);

impl WorkQueue {
    pub(super) fn put(&self, list: Arc<WorkList>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(list);
    }

    /// Removes all lists. Returns the first failure in them as an error.
    pub(crate) fn pass(&self) -> Result<()> {
        let lists = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = lists.iter().flat_map(|list| {
            std::mem::take(&mut *list.failures.lock().unwrap_or_else(PoisonError::into_inner))
        });
        failures.next().map_or(Ok(()), |(_, error)| Err(error))
    }

    fn find(&self, ordinal: u64) -> Option<Arc<WorkList>> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.iter().find(|list| list.index(ordinal).is_some()).cloned()
    }

    fn drop_taken(&self) {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|list| list.taken.load(Ordering::Relaxed) < list.entries.len());
    }
}

impl WorkList {
    /// Adds a read with this number of samples. Its pieces start at `pieces_from`; the first
    /// `near` of them lie in its extent.
    pub(super) fn push(
        &mut self,
        record: &Record<'_>,
        samples: u64,
        pieces_from: usize,
        near: usize,
    ) {
        let id = self.bytes.len()..self.bytes.len() + record.read_id.len();
        self.bytes.extend_from_slice(record.read_id.as_bytes());
        let aux = self.bytes.len()..self.bytes.len() + record.aux.len();
        self.bytes.extend_from_slice(record.aux);
        self.entries.push(WorkEntry {
            read_group: record.read_group,
            digitisation: record.digitisation,
            offset: record.offset,
            range: record.range,
            sampling_rate: record.sampling_rate,
            id,
            aux,
            samples,
            pieces: pieces_from..self.pieces.len(),
            near,
        });
    }

    /// Removes all reads.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.pieces.clear();
        self.bytes.clear();
    }

    /// The pieces of the last added read.
    pub(super) fn last_pieces(&self) -> &[SignalRowPlace] {
        let last = self.entries.last().and_then(|entry| self.pieces.get(entry.pieces.clone()));
        last.unwrap_or_default()
    }

    /// The pieces of the last added read that are fetched together.
    pub(super) fn last_near(&self) -> &[SignalRowPlace] {
        let near = self.entries.last().map_or(0, |entry| entry.near);
        self.last_pieces().get(..near).unwrap_or_default()
    }

    /// A read without its samples.
    fn record(&self, index: usize) -> Record<'_> {
        let entry = &self.entries[index];
        let text = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        Record {
            // The id is valid UTF-8, because the look-ahead thread formatted it.
            read_id: std::str::from_utf8(text(&entry.id)).unwrap_or_default(),
            read_group: entry.read_group,
            digitisation: entry.digitisation,
            offset: entry.offset,
            range: entry.range,
            sampling_rate: entry.sampling_rate,
            signal: &[],
            aux: text(&entry.aux),
        }
    }

    fn index(&self, ordinal: u64) -> Option<usize> {
        let index = ordinal.checked_sub(self.first)? as usize;
        (index < self.entries.len()).then_some(index)
    }

    fn failure(&self, index: usize) -> Option<Error> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let at = failures.iter().position(|(i, _)| *i == index)?;
        Some(failures.swap_remove(at).1)
    }
}

/// The worker's side: it decodes the reads of the lists.
pub(crate) struct Pod5Unpacker {
    tables: Arc<Tables>,
    queue: Arc<WorkQueue>,
    current: Option<Arc<WorkList>>,
    rows: RowDecoder,
}

/// The bytes of samples that are allowed for each byte of stored signal, even beyond the memory
/// budget. Other formats have the same limit.
const LIKELY_RATIO: u64 = 64;

impl Pod5Unpacker {
    pub(crate) fn new(tables: Arc<Tables>, queue: Arc<WorkQueue>) -> Self {
        Self { tables, queue, current: None, rows: RowDecoder::default() }
    }

    /// Decodes the read of an extent and appends its samples to `samples`. Calls `each` with every
    /// stored row of the read's signal.
    pub(crate) fn read_with<'a>(
        &'a mut self,
        extent: &Extent<'_>,
        limit: usize,
        samples: &mut Vec<i16>,
        each: impl FnMut(StoredRow<'_>),
    ) -> Result<Record<'a>> {
        let Self { tables, queue, current, rows } = self;
        let (list, index) = take(tables, queue, current, extent)?;
        rows.read(tables, list, index, extent, limit, samples, each)
    }

    /// The record of an extent's read, and the number of samples that its signal rows declare.
    /// Appends the stored rows of the signal to `rows`.
    pub(crate) fn record_and_rows<'a>(
        &'a mut self,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        let Self { tables, queue, current, .. } = self;
        let (list, index) = take(tables, queue, current, extent)?;
        let entry = &list.entries[index];
        let pieces = &list.pieces[entry.pieces.clone()];
        let record = list.record(index);
        check_size(tables, extent, pieces, limit, record.read_id)?;
        for (i, piece) in pieces.iter().enumerate() {
            let bytes = match near(entry, extent, i, piece) {
                Some(bytes) => Cow::Borrowed(bytes),
                None => Cow::Owned(far(tables, piece)?),
            };
            rows.push(StoredRow { samples: piece.samples, bytes });
        }
        Ok((record, entry.samples))
    }

    /// The record of an extent's read, and its number of samples.
    pub(crate) fn record(&mut self, extent: &Extent<'_>) -> Result<(Record<'_>, u64)> {
        let Self { tables, queue, current, .. } = self;
        let (list, index) = take(tables, queue, current, extent)?;
        Ok((list.record(index), list.entries[index].samples))
    }

    pub(crate) fn trim_buffers(&mut self, keep: usize) {
        self.rows.trim(keep);
    }
}

/// The list with the read of an extent, and the index of the read's entry.
fn take<'a>(
    tables: &Tables,
    queue: &WorkQueue,
    current: &'a mut Option<Arc<WorkList>>,
    extent: &Extent<'_>,
) -> Result<(&'a WorkList, usize)> {
    if current.as_ref().is_none_or(|list| list.index(extent.ordinal).is_none()) {
        *current = queue.find(extent.ordinal);
    }
    let found = current.as_deref().and_then(|list| Some((list, list.index(extent.ordinal)?)));
    let (list, index) = found.ok_or_else(|| {
        let fault = Fault::new(0, format!("read {} twice", extent.ordinal), "each once");
        fault.in_file(tables.name(), extent.offset, "plan")
    })?;
    if list.taken.fetch_add(1, Ordering::Relaxed) + 1 == list.entries.len() {
        queue.drop_taken();
    }
    list.failure(index).map_or(Ok((list, index)), Err)
}

/// Decodes signal rows to samples.
#[derive(Debug, Default)]
pub(super) struct RowDecoder {
    decoder: SignalDecoder,
    far: Vec<u8>,
}

impl RowDecoder {
    /// Decodes an entry and appends its samples to `samples`. Calls `each` with every stored piece.
    /// Pieces that are not in the extent are fetched.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller each for reads and for copies of them"
    )]
    pub(super) fn read<'a>(
        &mut self,
        tables: &Tables,
        list: &'a WorkList,
        index: usize,
        extent: &Extent<'_>,
        limit: usize,
        samples: &mut Vec<i16>,
        mut each: impl FnMut(StoredRow<'_>),
    ) -> Result<Record<'a>> {
        let entry = &list.entries[index];
        let pieces = &list.pieces[entry.pieces.clone()];
        let record = list.record(index);
        let read_id = record.read_id;
        check_size(tables, extent, pieces, limit, read_id)?;
        for (i, piece) in pieces.iter().enumerate() {
            let bytes = match near(entry, extent, i, piece) {
                Some(bytes) => bytes,
                None => {
                    self.far = far(tables, piece)?;
                    &self.far
                }
            };
            self.decoder.decode(tables.coding(), bytes, piece.samples, samples).map_err(
                |fault| {
                    fault.in_file(tables.name(), piece.offset, format!("signal of read {read_id}"))
                },
            )?;
            each(StoredRow { samples: piece.samples, bytes: bytes.into() });
        }
        Ok(record)
    }

    pub(super) fn trim(&mut self, keep: usize) {
        self.decoder.trim(keep);
        self.far = Vec::new();
    }
}

/// The bytes of the `i`-th piece, if they are in the extent.
fn near<'a>(
    entry: &WorkEntry,
    extent: &Extent<'a>,
    i: usize,
    piece: &SignalRowPlace,
) -> Option<&'a [u8]> {
    let from = piece.offset.wrapping_sub(extent.offset) as usize;
    extent.bytes.get(from..from.saturating_add(piece.len as usize)).filter(|_| i < entry.near)
}

/// The bytes of a piece that is not in the extent, fetched from the file.
fn far(tables: &Tables, piece: &SignalRowPlace) -> Result<Vec<u8>> {
    thalweg_io::store::many::read(&*tables.store, &(piece.offset..piece.offset + piece.len))
}

/// Fails if the samples of a read would be implausibly large for its stored bytes and the limit.
fn check_size(
    tables: &Tables,
    extent: &Extent<'_>,
    pieces: &[SignalRowPlace],
    limit: usize,
    read_id: &str,
) -> Result<()> {
    let decoded: u64 = pieces.iter().map(|piece| u64::from(piece.samples) * 2).sum();
    let stored: u64 = pieces.iter().map(|piece| piece.len).sum();
    // A row may be listed twice, but the file has its bytes once.
    let most = stored.min(tables.store.size()).saturating_mul(LIKELY_RATIO).max(limit as u64);
    if decoded <= most {
        return Ok(());
    }
    let found = format!("{decoded} bytes of samples from {stored} stored ones");
    let fault = Fault::new(0, found, format!("at most {most}"));
    Err(fault.in_file(tables.name(), extent.offset, format!("signal of read {read_id}")))
}
