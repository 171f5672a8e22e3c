//! The Reads and Signal tables, batch by batch.

use std::ops::Range;
use std::sync::Arc;

use thalweg_codec::splitmix::mix;
use thalweg_io::arrow_ipc::Head;
use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{self, is_far};
use thalweg_io::store::Store;
use thalweg_io::store::many::{read, read_many};
use thalweg_io::{Error, Fault, InFile, Result};

use super::cache::{Cache, InFlight};
use super::index::{IndexInUse, Pod5Index};
use crate::pod5::{IpcBlock, ReadsTable, RowCoding, SignalLayout, TableBatch, UUID_BYTES};

/// The schemas and batch places of both tables. The batches are read on demand.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) store: Arc<dyn Store>,
    pub(crate) reads: ReadsTable,
    pub(super) reads_at: u64,
    pub(super) reads_blocks: Vec<IpcBlock>,
    pub(super) layout: SignalLayout,
    pub(super) signal_at: u64,
    pub(super) signal_blocks: Vec<IpcBlock>,
    /// Rows of every Signal batch except the last.
    pub(super) rows_per_batch: u64,
    /// Bytes of a Signal batch before its signal and after it.
    pub(super) batch_margins: (u64, u64),
    pub(super) model: StoreModel,
    /// The largest allowed size of a batch of the Reads table, in bytes.
    pub(super) most_batch: usize,
    /// Whether the file ends within the Reads table.
    pub(super) is_cut: bool,
    pub(super) reads_cache: Cache<ReadsBatch>,
    pub(super) signal_cache: Cache<SignalBatch>,
    pub(super) signal_in_flight: InFlight,
    /// The index by read id.
    pub(super) index: IndexInUse,
}

/// A batch of the Reads table.
#[derive(Debug)]
pub(crate) struct ReadsBatch {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// The offset of the batch in the file, for messages.
    pub(super) offset: u64,
}

impl ReadsBatch {
    pub(super) fn batch(&self) -> TableBatch<'_> {
        TableBatch { head: &self.head, body: &self.body }
    }

    pub(super) fn rows(&self) -> usize {
        self.head.rows as usize
    }
}

/// The place of a signal row in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignalRowPlace {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) samples: u32,
    /// [`owner`] of the read id that the Signal table has for this row; 0 if it has none.
    pub(super) owner: u32,
}

/// A hash of a read id that takes less memory than the id; never 0.
pub(super) fn owner(id: &[u8; UUID_BYTES]) -> u32 {
    let bits = u128::from_le_bytes(*id);
    ((mix(bits as u64) ^ (bits >> 64) as u64) >> 32) as u32 | 1
}

/// The rows of a batch of the Signal table.
#[derive(Debug)]
pub(super) struct SignalBatch {
    pub(super) pieces: Vec<SignalRowPlace>,
}

/// Metadata of neighbouring Signal batches is fetched in one request if at most this many bytes lie
/// between.
const MOST_GAP: u64 = 64 << 10;

/// Longest request that combines metadata of several Signal batches.
const LONGEST: u64 = 1 << 20;

/// Heads of batches fetched at a time.
const HEADS: usize = 256;

/// Most small requests in flight.
const MOST_DEPTH: usize = 32;

impl Tables {
    pub(super) fn name(&self) -> &Arc<str> {
        self.store.name()
    }

    pub(crate) fn coding(&self) -> RowCoding {
        self.layout.coding
    }

    /// The number of small requests to keep in flight.
    pub(super) fn depth(&self) -> usize {
        plan::side_depth(&self.model, MOST_DEPTH)
    }

    fn reads_fault(&self, index: usize, fault: Fault) -> Error {
        let block = &self.reads_blocks[index];
        fault.in_file(
            self.name(),
            self.reads_at + block.offset,
            format!("batch {index} of the Reads table"),
        )
    }

    fn signal_fault(&self, index: usize, fault: Fault) -> Error {
        let block = &self.signal_blocks[index];
        fault.in_file(
            self.name(),
            self.signal_at + block.offset,
            format!("batch {index} of the Signal table"),
        )
    }

    /// Ranges of consecutive batches of the Reads table to fetch together. A range has at most
    /// `ahead` batches and, unless it is a single batch, at most `most_batch` bytes.
    pub(super) fn strides(&self, ahead: usize) -> impl Iterator<Item = Range<usize>> {
        self.strides_of(ahead, |block| block.range().end - block.offset)
    }

    fn strides_of(
        &self,
        ahead: usize,
        size: impl Fn(&IpcBlock) -> u64,
    ) -> impl Iterator<Item = Range<usize>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let from = next;
            let mut bytes = 0;
            while let Some(block) = self.reads_blocks.get(next).filter(|_| next - from < ahead) {
                bytes += size(block);
                if bytes > self.most_batch as u64 && next > from {
                    break;
                }
                next += 1;
            }
            (next > from).then_some(from..next)
        })
    }

    /// The number of rows of each batch of the Reads table, from the heads of the batches. The
    /// bodies are not read.
    pub(crate) fn rows(&self, control: &Control) -> Result<Vec<Result<u64>>> {
        let mut rows = Vec::with_capacity(self.reads_blocks.len());
        for stride in self.strides_of(HEADS, |block| block.head.into()) {
            let blocks = &self.reads_blocks[stride];
            let head = |block: &IpcBlock| {
                let start = self.reads_at + block.offset;
                start..start + u64::from(block.head)
            };
            let ranges: Vec<_> = blocks.iter().map(head).collect();
            for (block, bytes) in
                blocks.iter().zip(read_many(&*self.store, &ranges, self.depth(), control)?)
            {
                let index = rows.len();
                rows.push(bytes.and_then(|bytes| {
                    let at = |fault| self.reads_fault(index, fault);
                    let head = Head::parse(&bytes, block.body).map_err(at)?;
                    // Each row has an id.
                    let most = block.body / UUID_BYTES as u64;
                    if head.rows <= most {
                        return Ok(head.rows);
                    }
                    Err(at(Fault::new(
                        0,
                        format!("a batch of {} rows", head.rows),
                        format!("at most {most}"),
                    )))
                }));
            }
        }
        Ok(rows)
    }

    /// Batches of the Reads table, in the order of `indices`.
    pub(super) fn reads_batches(
        &self,
        indices: &[usize],
        control: &Control,
    ) -> Result<Vec<Result<Arc<ReadsBatch>>>> {
        let mut found: Vec<_> = indices.iter().map(|&index| self.reads_cache.get(index)).collect();
        let mut absent: Vec<usize> = Vec::new();
        let mut ranges = Vec::new();
        for (i, &index) in indices.iter().enumerate() {
            let range = self.reads_blocks[index].range_in_file(self.reads_at);
            if found[i].is_none() && range.end - range.start <= self.most_batch as u64 {
                absent.push(i);
                ranges.push(range);
            }
        }
        let fetched = read_many(&*self.store, &ranges, self.depth(), control)?;
        let mut failed = Vec::new();
        for (i, bytes) in absent.into_iter().zip(fetched) {
            match bytes.and_then(|bytes| self.reads_batch(indices[i], bytes)) {
                Ok(batch) => found[i] = Some(batch),
                Err(error) => failed.push((i, error)),
            }
        }
        let mut failed = failed.into_iter().peekable();
        let result = found.into_iter().enumerate().map(|(i, batch)| match batch {
            Some(batch) => Ok(batch),
            None => Err(match failed.next_if(|(at, _)| *at == i) {
                Some((_, error)) => error,
                None => self.too_large(indices[i]),
            }),
        });
        Ok(result.collect())
    }

    /// Keeps the batches of the Reads table whose bytes are known. One that is damaged is fetched
    /// again, and fails, when it is needed.
    pub(super) fn keep_reads_batches<'a>(&self, known: impl Fn(&Range<u64>) -> Option<&'a [u8]>) {
        for (index, block) in self.reads_blocks.iter().enumerate() {
            let range = block.range_in_file(self.reads_at);
            if range.end - range.start <= self.most_batch as u64
                && let Some(bytes) = known(&range)
            {
                let _ = self.reads_batch(index, bytes.to_vec());
            }
        }
    }

    fn too_large(&self, index: usize) -> Error {
        let range = self.reads_blocks[index].range();
        Error::Unsupported {
            file: self.name().clone(),
            what: format!("a batch of {} bytes in the Reads table", range.end - range.start).into(),
            advice: format!(
                "within this memory budget batches may have {} bytes: give more memory",
                self.most_batch
            )
            .into(),
        }
    }

    fn reads_batch(&self, index: usize, bytes: Vec<u8>) -> Result<Arc<ReadsBatch>> {
        let block = self.reads_blocks[index];
        let at = |fault| self.reads_fault(index, fault);
        let head = Head::parse(&bytes[..block.head as usize], block.body).map_err(at)?;
        let mut body = bytes;
        body.drain(..block.head as usize);
        let size = body.len();
        let batch = ReadsBatch { head, body, offset: self.reads_at + block.offset };
        // Fails unless there are as many ids as rows, so that the number of rows can be trusted.
        self.reads.read_ids(&batch.batch()).map_err(at)?;
        let batch = Arc::new(batch);
        self.reads_cache.put(index, batch.clone(), size);
        Ok(batch)
    }

    /// The batch of the Signal table that contains a row, and the row within that batch.
    pub(super) fn signal_batch_of(&self, row: u64) -> Option<(usize, usize)> {
        let index = row.checked_div(self.rows_per_batch)?;
        let index =
            usize::try_from(index).ok().filter(|&index| index < self.signal_blocks.len())?;
        Some((index, (row % self.rows_per_batch) as usize))
    }

    /// The number of signal rows if each batch has as many as the first; 0 if the file is too small
    /// for so many.
    pub(super) fn signal_rows(&self) -> u64 {
        let rows = self.rows_per_batch.saturating_mul(self.signal_blocks.len() as u64);
        // Each row has an id and a place.
        if rows <= self.store.size() / UUID_BYTES as u64 { rows } else { 0 }
    }

    /// Seconds that fetching the places of all signal rows takes.
    pub(super) fn signal_places_s(&self) -> f64 {
        let requests = self.signal_blocks.len() as u64 * 2;
        plan::in_turn(requests, &self.model) / self.depth() as f64
    }

    /// [`Tables::signal_batches`], from the index where it has them.
    pub(super) fn indexed_signal_batches(
        &self,
        indices: &[usize],
        control: &Control,
    ) -> Result<Vec<Result<Arc<SignalBatch>>>> {
        let Some(saved) = self.index.get() else { return self.signal_batches(indices, control) };
        let found: Vec<_> =
            indices.iter().map(|&index| self.saved_signal_batch(&saved, index, control)).collect();
        let absent = indices.iter().zip(&found).filter(|(_, found)| found.is_none());
        let absent: Vec<usize> = absent.map(|(&index, _)| index).collect();
        let mut fetched = self.signal_batches(&absent, control)?.into_iter();
        let all = found.into_iter().map(|found| found.map(Ok).or_else(|| fetched.next()));
        Ok(all.flatten().collect())
    }

    /// A batch of the Signal table from an index. What is wrong with the index is no reason not to
    /// read the file.
    fn saved_signal_batch(
        &self,
        saved: &Pod5Index,
        index: usize,
        control: &Control,
    ) -> Option<Arc<SignalBatch>> {
        let first = self.rows_per_batch.checked_mul(index as u64)?;
        let rows = first..first.checked_add(self.rows_per_batch)?;
        let inside = self.signal_blocks.get(index)?.range_in_file(self.signal_at);
        let batch = saved.signal_batch(rows, &inside).unwrap_or_else(|error| {
            self.index.warn(
                control,
                &format!("{error}: the file is read in its place; `thalweg index` makes a new one"),
            );
            None
        });
        batch.map(Arc::new)
    }

    /// Batches of the Signal table; `indices` are ascending and distinct.
    pub(super) fn signal_batches(
        &self,
        indices: &[usize],
        control: &Control,
    ) -> Result<Vec<Result<Arc<SignalBatch>>>> {
        let mut found: Vec<Option<Result<Arc<SignalBatch>>>> =
            indices.iter().map(|_| None).collect();
        let take_kept = |found: &mut [Option<_>]| {
            let mut absent = Vec::new();
            for (found, &index) in found.iter_mut().zip(indices) {
                if found.is_none() {
                    *found = self.signal_cache.get(index).map(Ok);
                }
                if found.is_none() {
                    absent.push(index);
                }
            }
            absent
        };
        while let Some(claimed) = self.signal_in_flight.claim(|| take_kept(&mut found)) {
            let fetched = self.fetch_signal_batches(claimed.indices(), control)?;
            for (index, batch) in claimed.indices().iter().zip(fetched) {
                if let Ok(at) = indices.binary_search(index) {
                    found[at] = Some(batch);
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// Fetches batches of the Signal table, and keeps them; `indices` are ascending and distinct.
    fn fetch_signal_batches(
        &self,
        indices: &[usize],
        control: &Control,
    ) -> Result<Vec<Result<Arc<SignalBatch>>>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &index in indices {
            let Range { start, end } = self.signal_blocks[index].range_in_file(self.signal_at);
            let head = start..start.saturating_add(self.batch_margins.0).min(end);
            let tail = end.saturating_sub(self.batch_margins.1).max(start)..end;
            for part in [head, tail] {
                match ranges.last_mut() {
                    Some(last)
                        if part.start >= last.start
                            && part.start <= last.end.saturating_add(MOST_GAP)
                            && part.end.max(last.end) - last.start <= LONGEST =>
                    {
                        last.end = last.end.max(part.end);
                    }
                    _ => ranges.push(part),
                }
            }
        }
        let fetched = read_many(&*self.store, &ranges, self.depth(), control)?;
        let mut parts = Vec::with_capacity(ranges.len());
        for (range, bytes) in ranges.into_iter().zip(fetched) {
            // A part of a local file that cannot be read is requested again below in smaller parts:
            // a bad sector makes few of them unreadable. A store that is far away answers no better
            // to them, and each waits for its time-out.
            parts.push(match bytes {
                Err(_) if !is_far(&self.model) => continue,
                bytes => (range, bytes),
            });
        }
        parts.sort_unstable_by_key(|(range, _)| range.start);
        let parts = Parts { tables: self, parts };
        let batch = |&index: &usize| {
            let batch = self.signal_batch(index, &parts);
            if let Ok(batch) = &batch {
                let size = batch.pieces.len() * size_of::<SignalRowPlace>();
                self.signal_cache.put(index, batch.clone(), size);
            }
            batch
        };
        Ok(indices.iter().map(batch).collect())
    }

    fn signal_batch(&self, index: usize, parts: &Parts<'_>) -> Result<Arc<SignalBatch>> {
        let block = self.signal_blocks[index];
        let at = |fault| self.signal_fault(index, fault);
        let head = parts.get(block.offset..block.offset + u64::from(block.head))?;
        let head = Head::parse(&head, block.body).map_err(at)?;
        let places = self.layout.places(&block, &head).map_err(at)?;
        let is_last = index + 1 == self.signal_blocks.len();
        if places.rows > self.rows_per_batch || (places.rows < self.rows_per_batch && !is_last) {
            let expected =
                format!("{}, as the first has, or fewer in the last one", self.rows_per_batch);
            return Err(at(Fault::new(0, format!("a batch of {} rows", places.rows), expected)));
        }
        if places.rows == 0 {
            return Ok(Arc::new(SignalBatch { pieces: Vec::new() }));
        }
        let rows = 0..places.rows;
        let offsets = parts.get(self.layout.offsets_of(&places, &rows))?;
        let samples = parts.get(self.layout.samples_of(&places, &rows))?;
        let ids = parts.get(self.layout.ids_of(&places))?;
        let (ids, _) = ids.as_chunks::<UUID_BYTES>();
        let piece = |row| {
            let piece = self.layout.piece(&places, &offsets, &samples, row).map_err(at)?;
            let offset = self.signal_at + piece.range.start;
            let owner = ids.get(row).map_or(0, owner);
            Ok(SignalRowPlace {
                offset,
                len: piece.range.end - piece.range.start,
                samples: piece.samples,
                owner,
            })
        };
        let pieces = (0..places.rows as usize).map(piece).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(SignalBatch { pieces }))
    }
}

/// Fetched parts of the Signal table.
struct Parts<'a> {
    tables: &'a Tables,
    parts: Vec<(Range<u64>, Result<Vec<u8>>)>,
}

impl Parts<'_> {
    /// The bytes of a range of the table. A range that is not within a fetched part is read from
    /// the file.
    fn get(&self, range: Range<u64>) -> Result<std::borrow::Cow<'_, [u8]>> {
        let at = self.tables.signal_at;
        let range = at + range.start..at + range.end;
        let i = self.parts.partition_point(|(part, _)| part.start <= range.start);
        if let Some((part, bytes)) = i.checked_sub(1).and_then(|i| self.parts.get(i))
            && let Some(from) = range.start.checked_sub(part.start)
            && range.end <= part.end
        {
            let of_part = from as usize..(range.end - part.start) as usize;
            return match bytes {
                Ok(bytes) => Ok(bytes[of_part].into()),
                Err(error) => Err(error.clone()),
            };
        }
        read(&*self.tables.store, &range).map(Into::into)
    }
}
