//! From a row of the Reads table to what a worker needs of it.

use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::plan::GapRule;
use thalweg_io::{Error, Fault, InFile, Result};

use super::tables::{ReadsBatch, SignalBatch, SignalRowPlace, Tables, owner};
use super::work_list::WorkList;
use crate::pod5::RecordScratch;

/// Batches of the Signal table whose places are looked up at a time.
pub(super) const MOST_BATCHES: usize = 256;

/// No read has rows in more batches: a million samples each would make hours of signal.
const MOST_OF_READ: usize = 1 << 14;

/// Looks up rows.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) tables: Arc<Tables>,
    pub(super) control: Control,
    /// Which gaps between signal rows are read.
    pub(super) gaps: GapRule,
    /// In a pass over all reads, those of one read up to this many bytes are, too.
    pub(super) block: u64,
    pub(super) in_order: bool,
    /// Whether the places of the signal are wanted.
    pub(super) signal: bool,
    /// Whether the Signal table must give its rows to the same reads as the Reads table does.
    pub(super) owners: bool,
    pub(super) scratch: RecordScratch,
}

impl Lookup {
    pub(super) fn new(tables: Arc<Tables>, control: Control) -> Self {
        let gaps = GapRule::new(&tables.model);
        Self {
            tables,
            control,
            gaps,
            block: 0,
            in_order: false,
            signal: true,
            owners: false,
            scratch: RecordScratch::default(),
        }
    }

    fn at(&self, batch: &ReadsBatch, row: usize) -> impl Fn(Fault) -> Error + use<> {
        let name = self.tables.name().clone();
        let offset = batch.offset;
        move |fault| {
            fault.in_file(&name, offset, format!("row {row} of a batch of the Reads table"))
        }
    }

    /// The places of a read's signal rows, as batch and row; the batches are noted in `needed`.
    pub(super) fn listed(
        &self,
        batch: &ReadsBatch,
        row: usize,
        needed: &mut Needed,
    ) -> Result<ReadRows> {
        let at = self.at(batch, row);
        let view = batch.batch();
        let signal = self.tables.reads.signal(&view, row).map_err(&at)?;
        let numbers = self.tables.reads.signal_rows(&view).map_err(&at)?;
        if !self.signal && signal.samples.is_some() {
            return Ok(ReadRows { rows: Vec::new(), samples: signal.samples });
        }
        let mut rows = Vec::with_capacity(signal.span.len());
        let mut of_read = 0;
        for i in signal.span {
            let number = numbers.fixed(i).map(u64::from_le_bytes).map_err(&at)?;
            let place = self
                .tables
                .signal_batch_of(number)
                .ok_or_else(|| no_row(&self.tables, number))
                .map_err(&at)?;
            if needed.batches.last() != Some(&place.0) {
                needed.batches.push(place.0);
                of_read += 1;
            }
            rows.push(place);
        }
        if of_read > MOST_OF_READ {
            return Err(at(Fault::new(
                0,
                format!("signal in {of_read} batches"),
                format!("at most {MOST_OF_READ}"),
            )));
        }
        Ok(ReadRows { rows, samples: signal.samples })
    }

    /// The batches that are needed; `needed` is put in order.
    pub(super) fn places(&self, needed: &mut Needed) -> Result<Vec<Result<Arc<SignalBatch>>>> {
        needed.batches.sort_unstable();
        needed.batches.dedup();
        let mut found = Vec::with_capacity(needed.batches.len());
        for indices in needed.batches.chunks(MOST_BATCHES) {
            found.extend(self.tables.signal_batches(indices, &self.control)?);
        }
        Ok(found)
    }

    /// Adds a read to a list.
    pub(super) fn entry(
        &mut self,
        batch: &ReadsBatch,
        row: usize,
        listed: &ReadRows,
        needed: &Needed,
        found: &[Result<Arc<SignalBatch>>],
        list: &mut WorkList,
    ) -> Result<()> {
        let at = self.at(batch, row);
        let record =
            self.tables.reads.record(&batch.batch(), row, &mut self.scratch).map_err(&at)?;
        if self.owners && listed.has_row_twice() {
            let found = format!("a signal row twice in read {}", record.read_id);
            return Err(at(Fault::new(0, found, "each once")));
        }
        let id = self.tables.reads.read_id(&batch.batch(), row).map_err(&at)?;
        let owner = owner(&id);
        let pieces_from = list.pieces.len();
        let mut samples = 0;
        for &(index, row) in &listed.rows {
            let signal = needed.batches.binary_search(&index).ok().and_then(|i| found.get(i));
            let signal = match signal {
                Some(Ok(signal)) => signal,
                // The error itself can be told only once: it is asked for again.
                _ => &self
                    .tables
                    .signal_batches(&[index], &self.control)?
                    .pop()
                    .ok_or(Error::Cancelled)??,
            };
            let piece = signal.pieces.get(row).copied();
            let piece = piece.ok_or_else(|| {
                let number = index as u64 * self.tables.rows_per_batch + row as u64;
                at(no_row(&self.tables, number))
            })?;
            if self.owners && piece.owner != 0 && piece.owner != owner {
                list.pieces.truncate(pieces_from);
                let found = format!("signal of another read among that of read {}", record.read_id);
                let number = index as u64 * self.tables.rows_per_batch + row as u64;
                return Err(at(Fault::new(
                    0,
                    found,
                    format!("its own id in row {number} of the Signal table"),
                )));
            }
            samples += u64::from(piece.samples);
            list.pieces.push(piece);
        }
        if !self.signal {
            list.pieces.truncate(pieces_from);
            samples = listed.samples.unwrap_or(samples);
        }
        if let Some(count) = listed.samples.filter(|&count| count != samples) {
            let found = format!("{count} samples of read {}", record.read_id);
            list.pieces.truncate(pieces_from);
            return Err(at(Fault::new(0, found, format!("{samples}, those of its signal rows"))));
        }
        let most_block = self.in_order.then_some(self.block);
        let near = near(&list.pieces[pieces_from..], self.gaps.break_even(), most_block);
        list.push(&record, samples, pieces_from, near);
        Ok(())
    }
}

/// How many pieces, from the first, are fetched together: those that follow one another by at most
/// `most_gap` bytes. A pass over all reads fetches what lies between for other reads anyway, so it
/// also takes those that end within `most_block` bytes of the first one's start.
fn near(pieces: &[SignalRowPlace], most_gap: u64, most_block: Option<u64>) -> usize {
    let Some(first) = pieces.first() else { return 0 };
    let follows = |pair: &[SignalRowPlace]| {
        let end = pair[0].offset + pair[0].len;
        let gap = pair[1].offset.checked_sub(end);
        gap.is_some_and(|gap| {
            gap <= most_gap
                || most_block
                    .is_some_and(|most| pair[1].offset + pair[1].len - first.offset <= most)
        })
    };
    1 + pieces.windows(2).take_while(|pair| follows(pair)).count()
}

fn no_row(tables: &Tables, number: u64) -> Fault {
    let most = tables.rows_per_batch.saturating_mul(tables.signal_blocks.len() as u64);
    Fault::new(
        0,
        format!("the number of a signal row {number}"),
        format!("a row that the Signal table has (below {most})"),
    )
}

/// A read's signal rows.
#[derive(Debug)]
pub(super) struct ReadRows {
    rows: Vec<(usize, usize)>,
    samples: Option<u64>,
}

impl ReadRows {
    /// Whether a row is named more than once.
    fn has_row_twice(&self) -> bool {
        let mut rows = self.rows.clone();
        rows.sort_unstable();
        rows.windows(2).any(|pair| pair[0] == pair[1])
    }
}

/// Batches of the Signal table.
#[derive(Debug, Default)]
pub(super) struct Needed {
    pub(super) batches: Vec<usize>,
}
