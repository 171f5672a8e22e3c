//! Every read of a FAST5 file decoded: damage is counted and does not end the pass.

use std::ops::Range;
use std::sync::Arc;

use crate::engine::{Decoder, Delivery};
use crate::error::{Error, Result};
use crate::extent::Group;
use crate::format::slow5::Header;
use crate::reads::layout::{Coding, Unpacker};
use crate::reads::{ReadFile, Report, Selection};

/// Decodes reads and keeps what became of each.
struct CheckDecoder {
    name: Arc<str>,
    header: Arc<Header>,
    coding: Coding,
    limit: usize,
}

/// Scratch for samples that is kept between groups.
const KEEP: usize = 1 << 20;

/// Where a read's signal is, and its samples.
type Verdict = (Range<u64>, Result<u64>);

impl Decoder for CheckDecoder {
    type Worker = (Unpacker, Vec<i16>, u64);
    type Batch = Vec<Verdict>;

    fn worker(&self) -> Self::Worker {
        (self.coding.unpacker(self.limit), Vec::new(), 0)
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        (unpacker, samples, bytes): &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            samples.clear();
            let range = extent.offset..extent.offset + extent.bytes.len() as u64;
            let outcome = unpacker.read(&self.name, &self.header, &extent, self.limit, samples).map(|_| ());
            match outcome {
                // What is wrong with the store or with this process is wrong with every read.
                Err(error @ (Error::Cancelled | Error::Io { .. })) => return Err(error),
                outcome => batch.push((range, outcome.map(|()| samples.len() as u64))),
            }
            *bytes += size_of_val(&samples[..]) as u64;
            *next += 1;
        }
        unpacker.trim(KEEP);
        samples.clear();
        samples.shrink_to(KEEP);
        Ok(())
    }

    fn decoded_bytes((.., bytes): &Self::Worker) -> u64 {
        *bytes
    }
}

impl ReadFile {
    /// Decodes all reads; what is wrong with them.
    pub(in crate::reads) fn fast5_check(&self) -> Result<Report> {
        let shape = self.shape(Delivery::Ordered);
        let (source, coding) = self.source(&Selection::All, &shape, true)?;
        let (name, header) = (self.store.name().clone(), self.header.clone());
        let decoder = CheckDecoder { name, header, coding, limit: self.options.budget.memory };
        let mut run = self.start(source, decoder, shape)?;
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
        Ok(report)
    }
}
