//! Every read of a file decoded whose reads can be told apart without their bytes: damage is
//! counted and does not end the pass.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::engine::{Decoder, Delivery};
use thalweg_io::extent::{Extent, Group, Source};
use thalweg_io::{Error, InFile, Result};

use super::layout::{Coding, Unpacker};
use super::{ReadFile, Report};
use crate::record::Header;
use crate::record::StoredRow;
use crate::write::{Encoded, ReadSink, Target};

/// Decodes reads and keeps what became of each.
struct Examiner {
    name: Arc<str>,
    header: Arc<Header>,
    coding: Coding,
    limit: usize,
    /// What to make of intact reads.
    target: Option<Target>,
}

/// Scratch for samples that is kept between groups.
const KEEP: usize = 1 << 20;

/// How many samples a read has, and what is to be written of it.
type Whole = (u64, Option<Encoded>);

/// Where a read's signal is, and what became of it.
type Verdict = (Range<u64>, Result<Whole>);

struct Worker {
    unpacker: Unpacker,
    samples: Vec<i16>,
    bytes: u64,
}

impl Examiner {
    fn read(&self, worker: &mut Worker, extent: &Extent<'_>) -> Result<Whole> {
        let Worker { unpacker, samples, .. } = worker;
        let mut rows = Vec::new();
        let keep = |row: StoredRow<'_>| {
            if self.target.is_some() {
                rows.push(StoredRow { samples: row.samples, bytes: row.bytes.into_owned().into() });
            }
        };
        let record = unpacker.read(&self.name, &self.header, extent, self.limit, samples, keep)?;
        let encoded = self.target.as_ref().map(|target| Encoded::stored(target, &record, &rows));
        let encoded = encoded.transpose().map_err(|fault| {
            fault.in_file(&self.name, extent.offset, format!("read {}", record.read_id))
        })?;
        Ok((samples.len() as u64, encoded))
    }
}

impl Decoder for Examiner {
    type Worker = Worker;
    type Batch = Vec<Verdict>;

    fn worker(&self) -> Worker {
        Worker { unpacker: self.coding.unpacker(self.limit), samples: Vec::new(), bytes: 0 }
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        worker: &mut Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            worker.samples.clear();
            let range = extent.offset..extent.offset + extent.bytes.len() as u64;
            match self.read(worker, &extent) {
                // What is wrong with the store or with this process is wrong with every read.
                Err(error @ (Error::Cancelled | Error::Io { .. })) => return Err(error),
                outcome => batch.push((range, outcome)),
            }
            worker.bytes += size_of_val(&worker.samples[..]) as u64;
            *next += 1;
        }
        worker.unpacker.trim(KEEP);
        worker.samples.clear();
        worker.samples.shrink_to(KEEP);
        Ok(())
    }

    fn decoded_bytes(worker: &Worker) -> u64 {
        worker.bytes
    }
}

impl ReadFile {
    /// Decodes the reads of `source`, and adds what becomes of them to `report`. Intact ones go to
    /// the sink, with their signal as it is stored: both files are POD5.
    pub(super) fn examine(
        &self,
        (source, coding): (Source, Coding),
        salvage: Option<(Target, ReadSink)>,
        report: &mut Report,
    ) -> Result<()> {
        let (target, mut sink) = salvage.unzip();
        let (name, header) = (self.store.name().clone(), self.header.clone());
        let decoder = Examiner { name, header, coding, limit: self.options.budget.memory, target };
        let mut run = self.start(source, decoder, self.shape(Delivery::Ordered))?;
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
        if let Some(sink) = sink {
            report.salvaged = sink.finish()?.reads;
        }
        Ok(())
    }
}
