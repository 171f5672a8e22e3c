//! Checking a file by decoding every read. Damage is counted and does not end the pass. This serves
//! formats whose reads can be located without decoding them.

use std::ops::Range;
use std::sync::Arc;

use thalweg_io::engine::{Decoder, Delivery};
use thalweg_io::extent::{Extent, Group, Source};
use thalweg_io::{Error, Fault, InFile, Result};

use super::{CheckReport, NewUnpacker, OpenFile, UnpackReads};
use crate::losses::Losses;
use crate::record::{Header, Record, StoredRow};

/// Converts intact reads on the worker that decoded them.
pub trait KeepIntact: Send + Sync + 'static {
    /// The result for a read.
    type Kept: Send + 'static;

    /// Whether [`KeepIntact::keep`] uses stored rows.
    fn wants_rows(&self) -> bool;

    /// Converts a read and the stored rows of its signal.
    ///
    /// # Errors
    /// When the read cannot be converted. It then counts as damaged.
    fn keep(&self, record: &Record<'_>, rows: &[StoredRow<'_>]) -> Result<Self::Kept, Fault>;
}

/// Counts intact reads and keeps nothing of them.
#[derive(Debug, Clone, Copy)]
pub struct CountIntact;

impl KeepIntact for CountIntact {
    type Kept = ();

    fn wants_rows(&self) -> bool {
        false
    }

    fn keep(&self, _record: &Record<'_>, _rows: &[StoredRow<'_>]) -> Result<(), Fault> {
        Ok(())
    }
}

/// Decodes reads, and collects the outcome for each.
struct CheckDecoder<U, K> {
    name: Arc<str>,
    header: Arc<Header>,
    unpacker: NewUnpacker<U>,
    limit: usize,
    keep: K,
}

/// Scratch memory that is kept between groups.
const SCRATCH: usize = 1 << 20;

/// The number of samples of an intact read, and its converted value.
type Intact<T> = (u64, T);

/// The range of a read's extent, and the outcome.
type CheckedExtent<T> = (Range<u64>, Result<Intact<T>>);

struct CheckWorker<U> {
    unpacker: U,
    samples: Vec<i16>,
    bytes: u64,
}

impl<U: UnpackReads, K: KeepIntact> CheckDecoder<U, K> {
    fn read(&self, worker: &mut CheckWorker<U>, extent: &Extent<'_>) -> Result<Intact<K::Kept>> {
        let CheckWorker { unpacker, samples, .. } = worker;
        let mut rows = Vec::new();
        let mut push = |row: StoredRow<'_>| {
            rows.push(StoredRow { samples: row.samples, bytes: row.bytes.into_owned().into() });
        };
        let each: Option<&mut dyn FnMut(StoredRow<'_>)> =
            if self.keep.wants_rows() { Some(&mut push) } else { None };
        let record = unpacker.read(&self.header, extent, self.limit, samples, each)?;
        let kept = self.keep.keep(&record, &rows).map_err(|fault| {
            fault.in_file(&self.name, extent.offset, format!("read {}", record.read_id))
        })?;
        Ok((samples.len() as u64, kept))
    }
}

impl<U: UnpackReads, K: KeepIntact> Decoder for CheckDecoder<U, K> {
    type Worker = CheckWorker<U>;
    type Batch = Vec<CheckedExtent<K::Kept>>;

    fn worker(&self) -> CheckWorker<U> {
        CheckWorker { unpacker: (self.unpacker)(self.limit), samples: Vec::new(), bytes: 0 }
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn decode(
        &self,
        worker: &mut CheckWorker<U>,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        batch.clear();
        while let Some(extent) = group.get(*next) {
            worker.samples.clear();
            let range = extent.offset..extent.offset + extent.bytes.len() as u64;
            match self.read(worker, &extent) {
                // A failure of the store or a cancellation concerns every read.
                Err(error @ (Error::Cancelled | Error::Io { .. })) => return Err(error),
                outcome => batch.push((range, outcome)),
            }
            worker.bytes += size_of_val(&worker.samples[..]) as u64;
            *next += 1;
        }
        worker.unpacker.trim(SCRATCH);
        worker.samples.clear();
        worker.samples.shrink_to(SCRATCH);
        Ok(())
    }

    fn decoded_bytes(worker: &CheckWorker<U>) -> u64 {
        worker.bytes
    }
}

/// Decodes the reads of a source, and adds the outcomes to `report`. `keep` converts intact reads.
/// `sink` takes the results in the order of the source, and returns the losses of each.
///
/// # Errors
/// [`Error::Io`] and [`Error::Truncated`] if bytes cannot be read; the first error of `sink`.
pub fn check_reads<U: UnpackReads, K: KeepIntact>(
    file: &OpenFile,
    (source, unpacker): (Source, NewUnpacker<U>),
    keep: K,
    mut sink: impl FnMut(K::Kept) -> Result<Losses>,
    report: &mut CheckReport,
) -> Result<()> {
    let decoder = CheckDecoder {
        name: file.name().clone(),
        header: file.header.clone(),
        unpacker,
        limit: file.options.budget.memory,
        keep,
    };
    let mut run = file.start(source, decoder, file.shape(Delivery::Ordered))?;
    while let Some(batch) = run.next() {
        let mut batch = batch?;
        for (range, outcome) in batch.drain(..) {
            match outcome {
                Ok((samples, kept)) => {
                    report.reads += 1;
                    report.samples += samples;
                    report.leave_out(sink(kept)?);
                }
                Err(error) => {
                    report.defect(error);
                    report.lose(range, Some(1));
                }
            }
        }
        run.recycle(batch);
    }
    Ok(())
}
