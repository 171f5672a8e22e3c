//! Every read of a POD5 file decoded: damage is counted and does not end the pass.

use std::ops::Range;
use std::sync::Arc;

use super::slate::{Board, Unpack};
use super::tables::Tables;
use super::{Aim, Pod5, Wish, start};
use crate::engine::{Decoder, Delivery, Run};
use crate::error::{Error, Result};
use crate::extent::Group;
use crate::reads::check::IndexState;
use crate::reads::{ReadFile, Report};

/// Decodes reads and keeps what became of each.
struct CheckDecoder {
    tables: Arc<Tables>,
    board: Arc<Board>,
    limit: usize,
}

/// Scratch for samples that is kept between groups.
const KEEP: usize = 1 << 20;

/// Where a read's signal is, and its samples.
type Verdict = (Range<u64>, Result<u64>);

impl Decoder for CheckDecoder {
    type Worker = (Unpack, Vec<i16>, u64);
    type Batch = Vec<Verdict>;

    fn worker(&self) -> Self::Worker {
        (Unpack::new(self.tables.clone(), self.board.clone()), Vec::new(), 0)
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        (unpack, samples, bytes): &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            samples.clear();
            let range = extent.offset..extent.offset + extent.bytes.len() as u64;
            match unpack.read(&extent, self.limit, samples) {
                // What is wrong with the store or with this process is wrong with every read.
                Err(error @ (Error::Cancelled | Error::Io { .. })) => return Err(error),
                outcome => batch.push((range, outcome.map(|_| samples.len() as u64))),
            }
            *bytes += samples.len() as u64 * 2;
            *next += 1;
        }
        unpack.trim(KEEP);
        samples.clear();
        samples.shrink_to(KEEP);
        Ok(())
    }

    fn decoded_bytes((.., bytes): &Self::Worker) -> u64 {
        *bytes
    }
}

impl ReadFile {
    /// Decodes all reads; what is wrong with them, and with the index.
    pub(in crate::reads) fn pod5_check(&self, file: &Pod5) -> Result<Report> {
        let shape = self.shape(Delivery::Ordered);
        let control = &self.options.control;
        let (source, board) = start(&file.tables, Wish::All, &shape, self.window(), control, Aim::Defects)?;
        let decoder = CheckDecoder { tables: file.tables.clone(), board, limit: self.options.budget.memory };
        let mut run = Run::start(self.store.clone(), source, decoder, shape, control.clone())?;
        let mut report = Report::default();
        while let Some(batch) = run.next() {
            let mut batch = batch?;
            for (range, outcome) in batch.drain(..) {
                match outcome {
                    Ok(samples) => {
                        report.reads += 1;
                        report.samples += samples;
                    }
                    Err(error) => {
                        report.defect(error);
                        report.lose(range, Some(1));
                    }
                }
            }
            run.recycle(batch);
        }
        if file.is_recovered {
            report.defect(Error::Malformed {
                file: self.store.name().clone(),
                what: "footer".into(),
                offset: self.store.size(),
                found: "no footer before the end, or a damaged one".into(),
                expected: "one, without which POD5's own programs open no file; `thalweg convert` makes it whole"
                    .into(),
            });
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
}
