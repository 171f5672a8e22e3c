//! Overlapped fetching and decoding in bounded memory.
//!
//! A [`Run`] is one pass over a [`Source`]: the store keeps requests in flight, decode workers take
//! whole groups of extents as soon as the bytes have arrived, and the caller gets batches in order,
//! as they come, or not at all (the decoder may hand values to a visitor on the worker, while they
//! are in the processor's cache). All buffers are pooled.
//!
//! Three bounds limit the memory: block buffers ([`Shape::buffers`]), batches ([`Shape::batches`]),
//! and a horizon ([`Run::start_below`]), for decoders that fill memory which outlives a batch. The
//! horizon is an ordinal: extents with this ordinal or a greater one are not decoded until the
//! caller has used the values before it. Array readers decode many groups into one window of values
//! this way and keep two windows in memory. The ordinals of such a source grow from window to
//! window. No fetch belongs to two windows, because only the first extent of a group is compared
//! with the horizon.
//!
//! Deadlock is impossible by construction: requests and groups are taken in order, a block's buffer
//! is freed once its groups are decoded, and the first undelivered group may always make a batch
//! beyond the pool's bound.

mod clock;
mod depth;
mod input;
mod recycle;
#[cfg(all(test, feature = "schedules"))]
mod schedules;
mod signal;
mod state;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::extent::{Group, Source};
use crate::store::{Feed, Next, Request, Store};
use crate::sync::spawn;
use crate::sync::thread::JoinHandle;
use state::{Shared, Taken};

pub use clock::{Clocks, Stage};
pub use recycle::Recycler;

/// How often a waiting thread checks whether the run was cancelled.
const POLL: Duration = Duration::from_millis(100);

/// Turns groups of extents into batches. It is the only format-specific code that the engine's
/// decode threads call.
pub trait Decoder: Send + Sync + 'static {
    /// The state that one worker keeps between groups: codec contexts, scratch memory, a visitor.
    type Worker: Send + 'static;
    /// The output of decoding.
    type Batch: Send + 'static;

    /// A new worker's state.
    fn worker(&self) -> Self::Worker;

    /// An empty batch.
    fn batch(&self) -> Self::Batch;

    /// Decodes extents of `group` from index `*next` on into an empty or recycled `batch`, and
    /// moves `*next` past them. It may stop early when the batch is full; the engine then calls it
    /// again with another batch.
    ///
    /// # Errors
    /// The defect of the extent at `*next`. The run ends there, and what is in the batch is lost: a
    /// decoder that has a batch of extents before the defect stops at it, and fails when it is
    /// called again.
    fn decode(
        &self,
        worker: &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()>;

    /// Bytes that `worker` has processed so far, as the decoder counts them, for the clocks.
    fn decoded_bytes(worker: &Self::Worker) -> u64;
}

/// The order in which batches reach the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In the order of the source.
    Ordered,
    /// As soon as they are decoded.
    AsTheyCome,
    /// Never: the decoder has already used the values on the worker.
    Worker,
}

/// The sizes of a run. [`crate::plan::shape`] derives them from the store model, the threads and
/// the memory budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Decode workers.
    pub threads: usize,
    /// Requests in flight at the start; a run adapts the number to its measurements.
    pub depth: usize,
    /// The most requests in flight.
    pub max_depth: usize,
    /// The most bytes per request.
    pub block: usize,
    /// While fewer bytes than this are in flight, more requests than the depth are made, up to
    /// [`Shape::flight_requests`]: what fills the line to the store.
    pub flight_bytes: usize,
    /// The most requests that are made for [`Shape::flight_bytes`].
    pub flight_requests: usize,
    /// Bytes of a typical request, if that is known.
    pub usual: Option<usize>,
    /// Bytes of room before the data of each block. If an extent begins in one block and ends in
    /// the next, its beginning is copied into this room, and the rest is not copied.
    pub headroom: usize,
    /// Pooled block buffers.
    pub buffers: usize,
    /// Stored bytes per group, which a worker takes at a time.
    pub group: usize,
    /// Pooled batches.
    pub batches: usize,
    /// Order of delivery.
    pub delivery: Delivery,
}

/// One pass over a source.
pub struct Run<D: Decoder> {
    shared: Arc<Shared<D>>,
    workers: Vec<JoinHandle<D::Worker>>,
    fetcher: Option<JoinHandle<()>>,
}

impl<D: Decoder> std::fmt::Debug for Run<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("shape", &self.shared.shape).finish_non_exhaustive()
    }
}

/// The results of a finished run.
#[derive(Debug)]
pub struct Finished<W> {
    /// The workers' states.
    pub workers: Vec<W>,
    /// Where the time went.
    pub clocks: Clocks,
}

impl<D: Decoder> Run<D> {
    /// Starts fetching and decoding.
    ///
    /// # Errors
    /// [`Error::Io`] if the system cannot start a thread.
    pub fn start(
        store: Arc<dyn Store>,
        source: Source,
        decoder: D,
        shape: Shape,
        control: Control,
    ) -> Result<Self> {
        Self::start_below(store, source, decoder, shape, control, u64::MAX)
    }

    /// Starts fetching and decoding. Extents with ordinals from `horizon` on are fetched, but not
    /// decoded before [`Run::extend`] allows it.
    ///
    /// # Errors
    /// [`Error::Io`] if the system cannot start a thread.
    pub fn start_below(
        store: Arc<dyn Store>,
        source: Source,
        decoder: D,
        shape: Shape,
        control: Control,
        horizon: u64,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(store, source, decoder, shape, control, horizon));
        let mut run = Self {
            shared: shared.clone(),
            workers: Vec::with_capacity(shape.threads),
            fetcher: None,
        };
        let failed = |e| Error::io(run_name(&shared), "starting a thread for", e);
        let fetch = shared.clone();
        let fetcher = spawn("thalweg-fetch", move || {
            let _guard = StopOnPanic(&fetch);
            fetch.store.serve(fetch.shape.max_depth.max(1), &*fetch);
        });
        run.fetcher = Some(fetcher.map_err(failed)?);
        for _ in 0..shape.threads.max(1) {
            let work = shared.clone();
            let worker = spawn("thalweg-decode", move || work.work());
            run.workers.push(worker.map_err(failed)?);
        }
        Ok(run)
    }

    /// Allows extents with ordinals below `horizon` to be decoded. A horizon never moves back.
    pub fn extend(&self, horizon: u64) {
        self.shared.extend(horizon);
    }

    /// Gives a batch back for reuse.
    pub fn recycle(&self, batch: D::Batch) {
        self.shared.recycle(Some(batch), true);
    }

    /// A handle that gives batches back from other threads, or after the run was dropped.
    pub fn recycler(&self) -> Recycler<D::Batch> {
        Recycler::new(self.shared.clone())
    }

    /// Where the time went so far.
    pub fn clocks(&self) -> Clocks {
        self.shared.clocks()
    }

    /// Waits for the end of the run and discards the remaining batches.
    ///
    /// # Errors
    /// The first error of the run.
    pub fn finish(mut self) -> Result<Finished<D::Worker>> {
        while let Some(batch) = self.next() {
            self.shared.recycle(Some(batch?), true);
        }
        let workers = self.join()?;
        Ok(Finished { workers, clocks: self.shared.clocks() })
    }

    fn join(&mut self) -> Result<Vec<D::Worker>> {
        let fetcher = self.fetcher.take().map(JoinHandle::join);
        let workers: Vec<_> = self.workers.drain(..).map(JoinHandle::join).collect();
        let mut states = Vec::with_capacity(workers.len());
        for state in workers {
            match state {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        if let Some(Err(panic)) = fetcher {
            std::panic::resume_unwind(panic);
        }
        Ok(states)
    }
}

/// The batches, in the order of [`Shape::delivery`]. An error is the last item; with ordered
/// delivery, all batches before the defect come before it. A panic of one of the run's threads
/// continues in the caller, who would take the end of the batches for the end of the file.
impl<D: Decoder> Iterator for Run<D> {
    type Item = Result<D::Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.shared.next_batch();
        if next.is_none() && self.shared.has_panicked() {
            drop(self.join());
        }
        next
    }
}

fn run_name<D: Decoder>(shared: &Shared<D>) -> &Arc<str> {
    shared.store.name()
}

impl<D: Decoder> Drop for Run<D> {
    fn drop(&mut self) {
        self.shared.stop();
        // The panic hook has already reported a panic in a thread. Unwinding again from a drop
        // could abort the process.
        let _ = self.fetcher.take().map(JoinHandle::join);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

/// Stops the run if its thread panics, so that the other threads do not wait forever. `next` and
/// `join` pass the panic on to the caller.
struct StopOnPanic<'a, D: Decoder>(&'a Shared<D>);

impl<D: Decoder> Drop for StopOnPanic<'_, D> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop_panicked();
        }
    }
}

impl<D: Decoder> Shared<D> {
    /// The loop of a decode worker. Returns the worker's state at the end of the run.
    fn work(&self) -> D::Worker {
        let _guard = StopOnPanic(self);
        let mut worker = self.decoder.worker();
        while let Some(Taken { seq, group, mut batch }) = self.take() {
            let mut next = 0;
            loop {
                let before = (Instant::now(), D::decoded_bytes(&worker));
                let outcome = self.decoder.decode(&mut worker, &group, &mut next, &mut batch);
                let spent = (before.0.elapsed(), D::decoded_bytes(&worker) - before.1);
                if let Err(error) = outcome {
                    self.fail(seq, error, spent);
                    break;
                }
                let is_complete = next >= group.len();
                self.give(seq, batch, is_complete, spent);
                if is_complete {
                    break;
                }
                match self.another_batch(seq) {
                    Some(empty) => batch = empty,
                    None => break,
                }
            }
            self.release(group);
        }
        worker
    }
}

impl<D: Decoder> Feed for Shared<D> {
    fn next(&self, wait: bool) -> Next {
        self.next_request(wait)
    }

    fn done(&self, request: Request, outcome: Result<()>) {
        self.wake_for(&self.arrived(request, outcome));
    }

    fn put(&self, request: Request, outcome: Result<()>) {
        drop(self.arrived(request, outcome));
    }

    fn wake(&self) {
        self.wake_for(&self.lock());
    }

    fn usual(&self) -> Option<usize> {
        self.shape.usual
    }
}

/// The most blocks that are alive: `depth` in flight, another `depth` that arrived before their
/// turn, and one for each worker. Fetching further ahead would only push fetched bytes out of the
/// processor's cache.
pub(crate) fn blocks_alive(depth: usize, threads: usize) -> usize {
    depth * 2 + threads
}

/// The number of threads that this process can run at once, given its CPU affinity and cgroup
/// quota.
pub fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
