//! Every read of a POD5 file decoded: damage is counted and does not end the pass, and what is intact may be written to
//! a file of its own.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::open::footer_defects;
use super::slate::{Board, Unpack};
use super::tables::{Piece, Tables};
use super::{Aim, Pod5};
use crate::engine::{Decoder, Delivery, Run};
use crate::error::{Error, Result};
use crate::extent::{Extent, Group};
use crate::format::pod5::write::{self, Layout};
use crate::format::pod5::{SignalCoding, StoredRow};
use crate::reads::check::IndexState;
use crate::reads::{LostReads, ReadFile, Report, Selection};
use crate::write::{Coding, Encoded, ReadSink, Target};

/// Decodes reads and keeps what became of each.
struct CheckDecoder {
    tables: Arc<Tables>,
    board: Arc<Board>,
    limit: usize,
    /// What to make of intact reads.
    target: Option<Target>,
}

/// Scratch for samples that is kept between groups.
const KEEP: usize = 1 << 20;

/// Where a read's signal is, how many samples it has, and what is to be written of it.
type Verdict = (Range<u64>, Result<(u64, Option<Encoded>)>);

struct Worker {
    unpack: Unpack,
    samples: Vec<i16>,
    bytes: u64,
}

impl CheckDecoder {
    fn read(&self, worker: &mut Worker, extent: &Extent<'_>) -> Result<(u64, Option<Encoded>)> {
        let Worker { unpack, samples, .. } = worker;
        let mut rows = Vec::new();
        let keep = |piece: &Piece, bytes: &[u8]| {
            if self.target.is_some() {
                rows.push(StoredRow { samples: piece.samples, bytes: bytes.to_vec().into() });
            }
        };
        let record = unpack.read_with(extent, self.limit, samples, keep)?;
        let encoded = self.target.as_ref().map(|target| Encoded::stored(target, &record, &rows));
        let encoded = encoded
            .transpose()
            .map_err(|fault| fault.in_file(self.tables.name(), extent.offset, format!("read {}", record.read_id)))?;
        Ok((samples.len() as u64, encoded))
    }
}

impl Decoder for CheckDecoder {
    type Worker = Worker;
    type Batch = Vec<Verdict>;

    fn worker(&self) -> Worker {
        Worker { unpack: Unpack::new(self.tables.clone(), self.board.clone()), samples: Vec::new(), bytes: 0 }
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(&self, worker: &mut Worker, group: &Group, next: &mut usize, batch: &mut Self::Batch) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            worker.samples.clear();
            let range = extent.offset..extent.offset + extent.bytes.len() as u64;
            match self.read(worker, &extent) {
                // What is wrong with the store or with this process is wrong with every read.
                Err(error @ (Error::Cancelled | Error::Io { .. })) => return Err(error),
                outcome => batch.push((range, outcome)),
            }
            worker.bytes += worker.samples.len() as u64 * 2;
            *next += 1;
        }
        worker.unpack.trim(KEEP);
        worker.samples.clear();
        worker.samples.shrink_to(KEEP);
        Ok(())
    }

    fn decoded_bytes(worker: &Worker) -> u64 {
        worker.bytes
    }
}

impl ReadFile {
    /// Decodes all reads; what is wrong with them, and with the index.
    pub(in crate::reads) fn pod5_check(&self, file: &Pod5) -> Result<Report> {
        self.pod5_pass(file, None)
    }

    /// The same; intact reads go to a new file, their signal as it is stored.
    pub(in crate::reads) fn pod5_salvage(&self, file: &Pod5, out: &Path) -> Result<Report> {
        let coding = match file.tables.coding() {
            SignalCoding::Vbz => write::SignalCoding::default(),
            SignalCoding::Plain => write::SignalCoding::Plain,
        };
        let layout = Layout { coding, ..Layout::default() };
        let target = Target::new(Coding::Pod5(layout), &self.header).map_err(|fault| {
            Error::Usage(format!("{}: {}, expected {}", out.display(), fault.found, fault.expected).into())
        })?;
        let sink = target.create(out)?;
        self.pod5_pass(file, Some((target, sink)))
    }

    fn pod5_pass(&self, file: &Pod5, salvage: Option<(Target, ReadSink)>) -> Result<Report> {
        let shape = self.shape(Delivery::Ordered);
        let control = &self.options.control;
        let (source, board) = self.pod5_source(file, &Selection::All, &shape, Aim::Defects)?;
        let (target, mut sink) = salvage.unzip();
        let mut report = Report::default();
        if let Some(target) = &target {
            report.left_out = file.left_out.iter().chain(target.lost()).cloned().collect();
        }
        if file.is_recovered {
            footer_defects(&*self.store, self.options.budget)?.into_iter().for_each(|error| report.defect(error));
        }
        let decoder = CheckDecoder { tables: file.tables.clone(), board, limit: self.options.budget.memory, target };
        let mut run = Run::start(self.store.clone(), source, decoder, shape, control.clone())?;
        while let Some(batch) = run.next() {
            let mut batch = batch?;
            for (range, outcome) in batch.drain(..) {
                match outcome {
                    Ok((samples, encoded)) => {
                        report.reads += 1;
                        report.samples += samples;
                        if let Some((sink, encoded)) = sink.as_mut().zip(encoded) {
                            let losses = sink.push(encoded)?;
                            report.leave_out(losses);
                        }
                    }
                    Err(error) => {
                        report.defect(error);
                        report.lose(range, Some(1));
                    }
                }
            }
            run.recycle(batch);
        }
        report.lost_reads = self.pod5_lost(file, report.reads)?;
        if let Some(sink) = sink {
            report.salvaged = sink.finish()?.reads;
        }
        match file.saved_index(self) {
            Ok(None) => {}
            Ok(Some(index)) => match index.verify() {
                Ok(()) => report.index = IndexState::Consistent,
                Err(error) => {
                    report.index = IndexState::Wrong;
                    report.defect(error);
                }
            },
            Err(error) => {
                report.index = IndexState::Wrong;
                report.defect(error);
            }
        }
        Ok(report)
    }

    /// How many reads the file has beside so many intact ones. A batch of which not even the head is left has at least one.
    fn pod5_lost(&self, file: &Pod5, intact: u64) -> Result<LostReads> {
        let rows = file.tables.rows(&self.options.control)?;
        let headless = rows.iter().filter(|rows| rows.is_err()).count() as u64 + u64::from(file.tables.is_cut);
        let lost = rows.iter().flatten().sum::<u64>().saturating_sub(intact);
        Ok(if headless == 0 { LostReads::Known(lost) } else { LostReads::AtLeast(lost + headless) })
    }
}
