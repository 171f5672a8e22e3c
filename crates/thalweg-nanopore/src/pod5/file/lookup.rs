//! Looking up rows of the Reads table: the record of a read and the places of its signal rows.

use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::plan::GapRule;
use thalweg_io::{Error, Fault, InFile, Result};

use super::tables::{ReadsBatch, SignalBatch, SignalRowPlace, Tables, owner};
use super::work_list::WorkList;
use crate::pod5::RecordScratch;

/// Most batches of the Signal table whose places are looked up at a time.
pub(super) const MOST_BATCHES: usize = 256;

/// Most batches that contain signal rows of one read. A million samples per batch would be hours
/// of signal.
const MOST_OF_READ: usize = 1 << 14;

/// Looks up rows of the Reads table.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) tables: Arc<Tables>,
    pub(super) control: Control,
    /// Decides which gaps between signal rows are read along.
    pub(super) gaps: GapRule,
    /// In a pass over all reads, the signal rows of a read that lie within this many bytes are
    /// fetched together.
    pub(super) block: u64,
    /// Whether this is a pass over all reads in the order of the Reads table.
    pub(super) in_order: bool,
    /// Whether to look up the places of the signal.
    pub(super) signal: bool,
    /// Whether to check that the Signal table assigns its rows to the same reads as the Reads
    /// table.
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

    /// The places of a read's signal rows, as batch and row. The batches are added to `needed`.
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

    /// Fetches the needed batches. Sorts `needed`; the result has the same order.
    pub(super) fn places(&self, needed: &mut Needed) -> Result<Vec<Result<Arc<SignalBatch>>>> {
        needed.batches.sort_unstable();
        needed.batches.dedup();
        let mut found = Vec::with_capacity(needed.batches.len());
        for indices in needed.batches.chunks(MOST_BATCHES) {
            // A pass over all reads has no index to wait for, and a check must not believe one.
            found.extend(if self.in_order || self.owners {
                self.tables.signal_batches(indices, &self.control)?
            } else {
                self.tables.indexed_signal_batches(indices, &self.control)?
            });
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
        let owner = self.owners.then(|| owner(&id));
        let pieces_from = list.pieces.len();
        let batches = SignalBatches { tables: &self.tables, needed, found };
        let mut samples =
            batches.push_pieces(listed, record.read_id, owner, &at, &mut list.pieces)?;
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

/// The fetched batches of the Signal table, to look up signal rows in.
struct SignalBatches<'a> {
    tables: &'a Tables,
    needed: &'a Needed,
    /// One result for each of the `needed` batches.
    found: &'a [Result<Arc<SignalBatch>>],
}

impl SignalBatches<'_> {
    /// Appends the places of a read's signal rows to `pieces`; returns their number of samples. If
    /// `owner` is given, the Signal table may not assign a row to another read.
    fn push_pieces(
        &self,
        listed: &ReadRows,
        read_id: &str,
        owner: Option<u32>,
        at: &impl Fn(Fault) -> Error,
        pieces: &mut Vec<SignalRowPlace>,
    ) -> Result<u64> {
        let pieces_from = pieces.len();
        let mut samples = 0;
        for &(index, row) in &listed.rows {
            let number = || index as u64 * self.tables.rows_per_batch + row as u64;
            let place = self.needed.batches.binary_search(&index).ok();
            let batch = match place.and_then(|i| self.found.get(i)) {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Err(error.clone()),
                None => return Err(Error::Cancelled),
            };
            let piece = batch.pieces.get(row).copied();
            let piece = piece.ok_or_else(|| at(no_row(self.tables, number())))?;
            if owner.is_some_and(|owner| piece.owner != 0 && piece.owner != owner) {
                pieces.truncate(pieces_from);
                return Err(at(Fault::new(
                    0,
                    format!("signal of another read among that of read {read_id}"),
                    format!("its own id in row {} of the Signal table", number()),
                )));
            }
            samples += u64::from(piece.samples);
            pieces.push(piece);
        }
        Ok(samples)
    }
}

/// The number of pieces, from the first, that are fetched together: pieces with gaps of at most
/// `most_gap` bytes between them. A pass over all reads fetches the bytes between them for other
/// reads anyway. It therefore also takes pieces that end within `most_block` bytes of the start of
/// the first piece.
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
    /// Batch of the Signal table, and row in the batch.
    rows: Vec<(usize, usize)>,
    /// The number of samples that the Reads table has for the read, if it has one.
    samples: Option<u64>,
}

impl ReadRows {
    /// Whether a row is listed more than once.
    fn has_row_twice(&self) -> bool {
        let mut rows = self.rows.clone();
        rows.sort_unstable();
        rows.windows(2).any(|pair| pair[0] == pair[1])
    }
}

/// Indices of the batches of the Signal table that a lookup needs.
#[derive(Debug, Default)]
pub(super) struct Needed {
    pub(super) batches: Vec<usize>,
}
