//! Decoding groups of records, and passing the reads to a visitor or a collector.

use std::sync::Arc;

use thalweg_io::engine::Decoder;
use thalweg_io::extent::{Extent, Group};
use thalweg_io::plan::Budget;
use thalweg_io::{Error, Result};

use super::Read;
use crate::file::{NewUnpacker, UnpackReads, check_id};
use crate::format::Unpacker;
use crate::record::Header;

/// Visits reads on the worker that decoded them.
pub trait Visitor: Send + 'static {
    /// Visits one read. Its samples are valid only during the call.
    ///
    /// # Errors
    /// Any error that should end the run.
    fn visit(&mut self, read: &Read<'_>) -> Result<()>;
}

/// Collects decoded reads.
pub(super) trait Collect: Send + Sync + 'static {
    type State: Send + 'static;
    type Batch: Send + 'static;

    /// Whether the collector uses samples. If not, a read is decoded only as far as its fields and
    /// its number of samples require, and a format that stores signal separately does not fetch it.
    fn wants_signal(&self) -> bool {
        true
    }
    /// Whether the collector uses stored signal in place of samples.
    fn wants_stored(&self) -> bool {
        false
    }
    fn state(&self) -> Self::State;
    fn batch(&self) -> Self::Batch;
    /// The vector to append the next read's samples to; `None` for scratch memory of the worker.
    fn lend(&self, _batch: &mut Self::Batch) -> Option<Vec<i16>> {
        None
    }
    /// Takes back the vector from [`Collect::lend`], after the read was decoded.
    fn restore(&self, _batch: &mut Self::Batch, _samples: Vec<i16>) {}
    /// Whether the batch should take another record of `stored` bytes. An empty batch takes any
    /// record.
    fn has_room(&self, _batch: &Self::Batch, _stored: usize) -> bool {
        true
    }
    /// Takes one read. Returns whether the batch has room for more.
    fn take(
        &self,
        state: &mut Self::State,
        batch: &mut Self::Batch,
        read: &Read<'_>,
    ) -> Result<bool>;
    fn clear(&self, batch: &mut Self::Batch);
}

/// Decodes records and collects them.
pub(super) struct ReadDecoder<C> {
    name: Arc<str>,
    header: Arc<Header>,
    unpacker: NewUnpacker<Unpacker>,
    /// The selected ids, by ordinal.
    wanted: Option<Arc<Vec<String>>>,
    /// Most bytes that a record may decode to, unless its stored bytes times
    /// [`LIKELY_RATIO`](crate::file::LIKELY_RATIO) are more.
    limit: usize,
    /// Bytes of scratch memory that each buffer of a worker keeps between groups.
    keep: usize,
    /// Decoded bytes after which a batch is handed over. This bounds the memory for records that
    /// decode to many bytes, and the time until a worker notices cancellation.
    full: usize,
    collect: C,
}

/// Scratch buffers of a worker, approximately. All of them share a quarter of the memory budget.
const SCRATCH_BUFFERS: usize = 4;

/// Bytes of a scratch buffer that are always kept. Most reads need no more, and it would take time
/// to allocate the memory again for each read.
const LEAST_KEEP: usize = 512 << 10;

/// Samples that a stored byte likely has, as a fraction: few readers have files with more.
const LIKELY: (usize, usize) = (5, 4);

/// A worker's batch may take its share of the memory budget divided by this number. A quarter of
/// the budget is for batches, and a worker may fill a few of them.
const BATCH_SHARE: usize = 16;

pub(super) struct ReadWorker<S> {
    pub(super) state: S,
    pub(super) reads: u64,
    pub(super) samples: u64,
    unpacker: Unpacker,
    scratch: Vec<i16>,
    /// The defect of the next read. It is reported after the reads before it are delivered.
    defect: Option<Error>,
}

impl<C> ReadDecoder<C> {
    pub(super) fn new(
        name: Arc<str>,
        header: Arc<Header>,
        unpacker: NewUnpacker<Unpacker>,
        wanted: Option<Arc<Vec<String>>>,
        budget: Budget,
        collect: C,
    ) -> Self {
        let keep = (budget.memory / 4 / budget.threads.max(1) / SCRATCH_BUFFERS).max(LEAST_KEEP);
        let full = budget.memory / BATCH_SHARE / budget.threads.max(1);
        Self { name, header, unpacker, wanted, limit: budget.memory, keep, full, collect }
    }

    fn check_wanted(&self, ordinal: u64, offset: u64, read_id: &str) -> Result<()> {
        let Some(wanted) = self.wanted.as_ref().and_then(|ids| ids.get(ordinal as usize)) else {
            return Ok(());
        };
        check_id(&self.name, offset, wanted, read_id)
    }
}

impl<C: Collect> ReadDecoder<C> {
    /// Decodes one record, appends its samples to `samples`, and collects it. Returns whether the
    /// batch has room for more.
    fn read(
        &self,
        worker: &mut ReadWorker<C::State>,
        extent: &Extent<'_>,
        batch: &mut C::Batch,
        samples: &mut Vec<i16>,
    ) -> Result<bool> {
        let before = samples.len();
        let own = worker.unpacker.header(extent)?;
        let header = own.as_deref().unwrap_or(&self.header);
        let mut stored = Vec::new();
        let (record, sample_count) = if self.collect.wants_stored() {
            worker.unpacker.stored(header, extent, self.limit, &mut stored)?
        } else if self.collect.wants_signal() {
            let record = worker.unpacker.read(header, extent, self.limit, samples, None)?;
            (record, (samples.len() - before) as u64)
        } else {
            worker.unpacker.fields(header, extent, self.limit)?
        };
        self.check_wanted(extent.ordinal, extent.offset, record.read_id)?;
        let read = Read {
            ordinal: extent.ordinal,
            offset: extent.offset,
            record: &record,
            samples: samples.get(before..).unwrap_or_default(),
            stored: &stored,
            sample_count,
            header,
        };
        let more = self.collect.take(&mut worker.state, batch, &read)?;
        worker.reads += 1;
        worker.samples += read.samples.len() as u64;
        Ok(more)
    }
}

impl<C: Collect> Decoder for ReadDecoder<C> {
    type Worker = ReadWorker<C::State>;
    type Batch = C::Batch;

    fn worker(&self) -> Self::Worker {
        ReadWorker {
            state: self.collect.state(),
            reads: 0,
            samples: 0,
            unpacker: (self.unpacker)(self.limit),
            scratch: Vec::new(),
            defect: None,
        }
    }

    fn batch(&self) -> Self::Batch {
        self.collect.batch()
    }

    fn decode(
        &self,
        worker: &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        if let Some(defect) = worker.defect.take() {
            return Err(defect);
        }
        self.collect.clear(batch);
        let first = *next;
        let mut held = 0;
        while let Some(extent) = group.get(*next) {
            if *next > first && !self.collect.has_room(batch, extent.bytes.len()) {
                break;
            }
            let mut lent = self.collect.lend(batch);
            if let Some(samples) = lent.as_mut().filter(|_| *next == first) {
                // A vector that grows is copied each time.
                samples.reserve(group.bytes_from(first) * LIKELY.0 / LIKELY.1);
            }
            let own = lent.is_none();
            let mut samples = lent.unwrap_or_else(|| {
                let mut scratch = std::mem::take(&mut worker.scratch);
                scratch.clear();
                scratch
            });
            let before = samples.len();
            let outcome = self.read(worker, &extent, batch, &mut samples);
            if outcome.is_err() {
                samples.truncate(before);
            }
            if own {
                worker.scratch = samples;
            } else {
                self.collect.restore(batch, samples);
            }
            let more = match outcome {
                Err(error) if *next > first => {
                    worker.defect = Some(error);
                    break;
                }
                outcome => outcome?,
            };
            *next += 1;
            held += worker.scratch.len() * size_of::<i16>();
            if !more || held >= self.full {
                break;
            }
        }
        // Frees the memory that a record of unusual size took.
        worker.unpacker.trim(self.keep);
        worker.scratch.clear();
        worker.scratch.shrink_to(self.keep / size_of::<i16>());
        Ok(())
    }

    fn decoded_bytes(worker: &Self::Worker) -> u64 {
        worker.samples * size_of::<i16>() as u64
    }
}

/// Passes reads to one visitor per worker, and makes no batches.
pub(super) struct Visitors<F>(pub(super) F);

impl<V: Visitor, F: Fn() -> V + Send + Sync + 'static> Collect for Visitors<F> {
    type State = V;
    type Batch = ();

    fn state(&self) -> V {
        (self.0)()
    }

    fn batch(&self) {}

    fn take(&self, visitor: &mut V, (): &mut (), read: &Read<'_>) -> Result<bool> {
        visitor.visit(read)?;
        Ok(true)
    }

    fn clear(&self, (): &mut ()) {}
}

/// Collects one value per read.
pub(super) struct Mapper<I, F> {
    /// Whether reads have stored signal in place of samples.
    pub(super) stored: bool,
    pub(super) init: I,
    pub(super) f: F,
}

impl<S, T, I, F> Collect for Mapper<I, F>
where
    S: Send + 'static,
    T: Send + 'static,
    I: Fn() -> S + Send + Sync + 'static,
    F: Fn(&mut S, &Read<'_>) -> T + Send + Sync + 'static,
{
    type State = S;
    type Batch = Vec<(u64, T)>;

    fn wants_stored(&self) -> bool {
        self.stored
    }

    fn state(&self) -> S {
        (self.init)()
    }

    fn batch(&self) -> Self::Batch {
        Vec::new()
    }

    fn take(&self, state: &mut S, batch: &mut Self::Batch, read: &Read<'_>) -> Result<bool> {
        batch.push((read.ordinal, (self.f)(state, read)));
        Ok(true)
    }

    fn clear(&self, batch: &mut Self::Batch) {
        batch.clear();
    }
}
