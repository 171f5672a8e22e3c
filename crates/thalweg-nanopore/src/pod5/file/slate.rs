//! What the scout tells the workers: the record of each read, and where its samples are.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::extent::Extent;
use thalweg_io::{Error, Fault, InFile, Result};

use super::tables::{Piece, Tables};
use crate::pod5::{SignalDecoder, StoredRow};
use crate::record::Record;

/// Reads with consecutive ordinals.
#[derive(Debug, Default)]
pub(super) struct Slate {
    /// The first one's ordinal.
    pub(super) first: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) pieces: Vec<Piece>,
    /// Read ids as text, and auxiliary bytes.
    pub(super) bytes: Vec<u8>,
    /// Why entries with neither could not be made; each is told once.
    pub(super) failures: Mutex<Vec<(usize, Error)>>,
    pub(super) taken: AtomicUsize,
}

/// A read.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) read_group: u32,
    pub(super) digitisation: f64,
    pub(super) offset: f64,
    pub(super) range: f64,
    pub(super) sampling_rate: f64,
    pub(super) id: Range<usize>,
    pub(super) aux: Range<usize>,
    /// How many samples it has.
    pub(super) samples: u64,
    pub(super) pieces: Range<usize>,
    /// How many of the pieces lie in the read's extent.
    pub(super) near: usize,
}

/// The slates of a run, from the scout to the workers.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<VecDeque<Arc<Slate>>>);

impl Board {
    pub(super) fn put(&self, slate: Arc<Slate>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(slate);
    }

    /// Takes all slates away; the first failure on them.
    pub(crate) fn pass(&self) -> Result<()> {
        let slates = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut failures = slates.iter().flat_map(|slate| {
            std::mem::take(&mut *slate.failures.lock().unwrap_or_else(PoisonError::into_inner))
        });
        failures.next().map_or(Ok(()), |(_, error)| Err(error))
    }

    fn find(&self, ordinal: u64) -> Option<Arc<Slate>> {
        let slates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slates.iter().find(|slate| slate.index(ordinal).is_some()).cloned()
    }

    fn drop_taken(&self) {
        let mut slates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slates.retain(|slate| slate.taken.load(Ordering::Relaxed) < slate.entries.len());
    }
}

impl Slate {
    /// Forgets all reads.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.pieces.clear();
        self.bytes.clear();
    }

    /// The pieces of the read that was added last.
    pub(super) fn last_pieces(&self) -> &[Piece] {
        let last = self.entries.last().and_then(|entry| self.pieces.get(entry.pieces.clone()));
        last.unwrap_or_default()
    }

    /// Those of them that lie together.
    pub(super) fn last_near(&self) -> &[Piece] {
        let near = self.entries.last().map_or(0, |entry| entry.near);
        self.last_pieces().get(..near).unwrap_or_default()
    }

    /// A read without its samples.
    fn record(&self, index: usize) -> Record<'_> {
        let entry = &self.entries[index];
        let text = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        Record {
            // The scout formatted it.
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

/// A worker's side: slates to reads.
pub(crate) struct Pod5Unpacker {
    tables: Arc<Tables>,
    board: Arc<Board>,
    current: Option<Arc<Slate>>,
    rows: Rows,
}

/// Samples may take this many bytes for each byte of signal row, even beyond the memory budget: as
/// for other formats.
const LIKELY_RATIO: u64 = 64;

impl Pod5Unpacker {
    pub(crate) fn new(tables: Arc<Tables>, board: Arc<Board>) -> Self {
        Self { tables, board, current: None, rows: Rows::default() }
    }

    /// Decodes the read of an extent, and appends its samples to `samples`; `each` sees every row
    /// of its signal as it is stored.
    pub(crate) fn read_with<'a>(
        &'a mut self,
        extent: &Extent<'_>,
        limit: usize,
        samples: &mut Vec<i16>,
        each: impl FnMut(StoredRow<'_>),
    ) -> Result<Record<'a>> {
        let Self { tables, board, current, rows } = self;
        let (slate, index) = take(tables, board, current, extent)?;
        rows.read(tables, slate, index, extent, limit, samples, each)
    }

    /// The read of an extent, and the rows of its signal as they are stored; how many samples they
    /// say that they have.
    pub(crate) fn record_and_rows<'a>(
        &'a mut self,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        let Self { tables, board, current, .. } = self;
        let (slate, index) = take(tables, board, current, extent)?;
        let entry = &slate.entries[index];
        let pieces = slate.pieces.get(entry.pieces.clone()).unwrap_or_default();
        let record = slate.record(index);
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

    /// The read of an extent without its samples, and how many it has.
    pub(crate) fn record(&mut self, extent: &Extent<'_>) -> Result<(Record<'_>, u64)> {
        let Self { tables, board, current, .. } = self;
        let (slate, index) = take(tables, board, current, extent)?;
        Ok((slate.record(index), slate.entries[index].samples))
    }

    pub(crate) fn trim_buffers(&mut self, keep: usize) {
        self.rows.trim(keep);
    }
}

/// The slate that has a read, and which of its entries that is.
fn take<'a>(
    tables: &Tables,
    board: &Board,
    current: &'a mut Option<Arc<Slate>>,
    extent: &Extent<'_>,
) -> Result<(&'a Slate, usize)> {
    if current.as_ref().is_none_or(|slate| slate.index(extent.ordinal).is_none()) {
        *current = board.find(extent.ordinal);
    }
    let found = current.as_deref().and_then(|slate| Some((slate, slate.index(extent.ordinal)?)));
    let (slate, index) = found.ok_or_else(|| {
        let fault = Fault::new(0, format!("read {} twice", extent.ordinal), "each once");
        fault.in_file(tables.name(), extent.offset, "plan")
    })?;
    if slate.taken.fetch_add(1, Ordering::Relaxed) + 1 == slate.entries.len() {
        board.drop_taken();
    }
    slate.failure(index).map_or(Ok((slate, index)), Err)
}

/// From signal rows to samples.
#[derive(Debug, Default)]
pub(super) struct Rows {
    decoder: SignalDecoder,
    far: Vec<u8>,
}

impl Rows {
    /// Decodes an entry, appends its samples to `samples`, and shows `each` piece as it is stored.
    /// Pieces that are not in the extent are fetched.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller each for reads and for copies of them"
    )]
    pub(super) fn read<'a>(
        &mut self,
        tables: &Tables,
        slate: &'a Slate,
        index: usize,
        extent: &Extent<'_>,
        limit: usize,
        samples: &mut Vec<i16>,
        mut each: impl FnMut(StoredRow<'_>),
    ) -> Result<Record<'a>> {
        let entry = &slate.entries[index];
        let pieces = slate.pieces.get(entry.pieces.clone()).unwrap_or_default();
        let record = slate.record(index);
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
fn near<'a>(entry: &Entry, extent: &Extent<'a>, i: usize, piece: &Piece) -> Option<&'a [u8]> {
    let from = piece.offset.wrapping_sub(extent.offset) as usize;
    extent.bytes.get(from..from.saturating_add(piece.len as usize)).filter(|_| i < entry.near)
}

/// Those of one that is not.
fn far(tables: &Tables, piece: &Piece) -> Result<Vec<u8>> {
    thalweg_io::store::many::read(&*tables.store, &(piece.offset..piece.offset + piece.len))
}

fn check_size(
    tables: &Tables,
    extent: &Extent<'_>,
    pieces: &[Piece],
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
