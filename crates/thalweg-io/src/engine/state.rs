//! The state that the threads of a run share: one lock, held briefly, and a condition variable for
//! each thing that they wait for.

mod deliver;

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::clock::Clocks;
use super::depth::Depth;
use super::input::{Arrived, EngineInput, FrameContext, NO_ROOM, NextWanted, WantedRequest};
use super::signal::Signal;
use super::{Control, Decoder, Delivery, POLL, Shape, StopOnPanic, blocks_alive};
use crate::error::{Error, Result};
use crate::extent::{Block, Data, Group, Place, Source};
use crate::store::{AlignedBuf, Next, PAGE, Request, Store};
use crate::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Shared<D: Decoder> {
    pub(super) store: Arc<dyn Store>,
    pub(super) decoder: D,
    pub(super) shape: Shape,
    control: Control,
    state: Mutex<RunState<D::Batch>>,
    can_fetch: Signal,
    /// A group has arrived.
    can_decode: Signal,
    /// There may be a batch to decode into.
    can_fill: Signal,
    can_deliver: Signal,
}

/// The most groups that a worker takes as one.
const MOST_GATHERED: usize = 8;

/// Time of a decode worker, and the bytes that it decoded.
pub(super) type Spent = (Duration, u64);

/// A group to decode, its place in the order, and a batch to decode it into.
pub(super) struct Taken<B> {
    pub(super) seq: u64,
    pub(super) group: Group,
    pub(super) batch: B,
}

pub(super) struct RunState<B> {
    input: EngineInput,
    buffers: Vec<AlignedBuf>,
    /// Pooled buffers that are handed out. For stores with [`Store::bytes`], requests without a
    /// buffer are counted instead.
    buffers_out: usize,
    in_flight: usize,
    bytes_in_flight: usize,
    depth: Depth,
    /// Size of a pooled buffer in bytes. It grows with the longest request so far, because a run
    /// may read less than a block.
    pooled: usize,
    /// The greatest size of a pooled buffer. Buffers that are longer hold one extent each.
    most_pooled: usize,
    ready: VecDeque<Group>,
    spare: Vec<Vec<Place>>,
    next_group: u64,
    decoding: usize,
    /// Groups whose first extent has this ordinal, or a greater one, are not taken yet.
    horizon: u64,
    /// Empty batches for reuse.
    batches: Vec<B>,
    /// The number of batches at workers, in the outbox, or with the consumer.
    batches_out: usize,
    outbox: VecDeque<Slot<B>>,
    /// Group number of the first slot of the outbox.
    head: u64,
    /// The error of the input. It is reported after all earlier batches were delivered.
    failed: Option<Error>,
    stopped: bool,
    /// A thread of the run panicked: what lies after the last batch was not read.
    panicked: bool,
    clocks: Clocks,
    oversize: u64,
    started: Instant,
}

/// The decoded parts of one group.
struct Slot<B> {
    parts: VecDeque<Result<B>>,
    complete: bool,
}

impl<B> Default for Slot<B> {
    fn default() -> Self {
        Self { parts: VecDeque::new(), complete: false }
    }
}

impl<B> RunState<B> {
    /// Whether no group is left to decode and none will come.
    fn drained(&self) -> bool {
        self.ready.is_empty()
            && self.decoding == 0
            && (self.input.is_done() || self.failed.is_some())
    }

    /// Whether the next group must wait until the caller extends the horizon.
    fn is_beyond_horizon(&self) -> bool {
        let first = self.ready.front().and_then(|group| group.places.first());
        first.is_some_and(|place| place.ordinal >= self.horizon)
    }

    /// Counts the time of a decode worker.
    fn tick(&mut self, (busy, bytes): Spent) {
        self.clocks.decode.busy += busy;
        self.clocks.decode.bytes += bytes;
        self.clocks.wall = self.started.elapsed();
    }

    fn free(&mut self, block: Block) {
        match block.data {
            Data::Buf(buf) => {
                self.buffers_out -= 1;
                if buf.len() > self.most_pooled {
                    self.oversize -= buf.len() as u64;
                } else if buf.len() == self.pooled {
                    self.buffers.push(buf);
                }
            }
            Data::View(_) => self.buffers_out -= 1,
            Data::Whole(vec) => self.oversize -= vec.capacity() as u64,
        }
    }
}

impl<D: Decoder> Shared<D> {
    pub(super) fn new(
        store: Arc<dyn Store>,
        source: Source,
        decoder: D,
        shape: Shape,
        control: Control,
        horizon: u64,
    ) -> Self {
        let state = RunState {
            input: EngineInput::new(source),
            buffers: Vec::with_capacity(shape.buffers),
            buffers_out: 0,
            in_flight: 0,
            bytes_in_flight: 0,
            depth: Depth::new(shape.depth, shape.max_depth),
            pooled: shape.headroom,
            most_pooled: shape.headroom + shape.block,
            ready: VecDeque::new(),
            spare: Vec::new(),
            next_group: 0,
            decoding: 0,
            horizon,
            batches: Vec::with_capacity(shape.batches),
            batches_out: 0,
            outbox: VecDeque::new(),
            head: 0,
            failed: None,
            stopped: false,
            panicked: false,
            clocks: Clocks::default(),
            oversize: 0,
            started: Instant::now(),
        };
        Self {
            store,
            decoder,
            shape,
            control,
            state: Mutex::new(state),
            can_fetch: Signal::default(),
            can_decode: Signal::default(),
            can_fill: Signal::default(),
            can_deliver: Signal::default(),
        }
    }

    /// Ignores poisoning: a thread that panicked under the lock may have left counts off by one,
    /// but it also stopped the run.
    pub(super) fn lock(&self) -> MutexGuard<'_, RunState<D::Batch>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        signal: &Signal,
        state: MutexGuard<'a, RunState<D::Batch>>,
    ) -> MutexGuard<'a, RunState<D::Batch>> {
        let mut state = signal.wait(state, POLL);
        self.heed_cancel(&mut state);
        state
    }

    /// Stops the run if it was cancelled. Threads that never wait must call this too.
    fn heed_cancel(&self, state: &mut RunState<D::Batch>) {
        if self.control.is_cancelled() && !state.stopped {
            state.failed = Some(Error::Cancelled);
            state.outbox.clear();
            self.stop_locked(state);
        }
    }

    fn stop_locked(&self, state: &mut RunState<D::Batch>) {
        state.stopped = true;
        state.input.end();
        self.can_fetch.notify_all();
        self.wake_all();
    }

    /// Wakes the workers and the consumer, who may wait for what does not come any more.
    fn wake_all(&self) {
        self.can_decode.notify_all();
        self.can_fill.notify_all();
        self.can_deliver.notify_all();
    }

    pub(super) fn stop(&self) {
        self.stop_locked(&mut self.lock());
    }

    /// Stops the run because one of its threads panics.
    pub(super) fn stop_panicked(&self) {
        let mut state = self.lock();
        state.panicked = true;
        self.stop_locked(&mut state);
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.lock().panicked
    }

    /// How many requests may be in flight now. A store far away is filled with small requests at
    /// once, because the depth adapts only after some of them were answered.
    fn permitted(&self, state: &RunState<D::Batch>) -> usize {
        let is_filled = state.bytes_in_flight >= self.shape.flight_bytes;
        let flight = if is_filled { 0 } else { self.shape.flight_requests };
        state.depth.target().max(flight.min(self.shape.max_depth))
    }

    fn may_fetch(&self, state: &RunState<D::Batch>) -> bool {
        let permitted = self.permitted(state);
        // Small buffers take no more of the processor's cache if there are more of them.
        let smaller = (state.most_pooled / state.pooled.max(1)).clamp(1, MOST_GATHERED);
        let room = (blocks_alive(permitted, self.shape.threads) * smaller).min(self.shape.buffers);
        state.in_flight < permitted && state.buffers_out < room
    }

    pub(super) fn next_request(&self, wait: bool) -> Next {
        let mut state = self.lock();
        loop {
            if state.stopped || state.failed.is_some() {
                return self.no_more_requests();
            }
            if self.may_fetch(&state) {
                let wanted = match state.input.next_request(&*self.store, &self.shape) {
                    NextWanted::Request(wanted) => wanted,
                    NextWanted::End => return self.no_more_requests(),
                    NextWanted::NotReady if !wait => return Next::Later,
                    NextWanted::NotReady => {
                        state = self.wait_for_plan(state);
                        continue;
                    }
                };
                state.buffers_out += 1;
                state.in_flight += 1;
                state.bytes_in_flight += wanted.len;
                state.clocks.requests += 1;
                state.clocks.max_depth = state.clocks.max_depth.max(state.in_flight);
                let issued = Instant::now();
                if self.may_fetch(&state) {
                    self.can_fetch.notify_one();
                }
                let WantedRequest { offset, len, tag } = wanted;
                let (buf, at) = if self.has_view(offset) {
                    (None, 0)
                } else {
                    let Some((buf, at)) = self.buffer_for(state, len) else {
                        return self.no_room(offset);
                    };
                    (Some(buf), at)
                };
                return Next::Read(Request { offset, len, buf, at, tag, issued });
            }
            if !wait {
                return Next::Later;
            }
            state = self.wait(&self.can_fetch, state);
        }
    }

    /// Waits without the lock until the plan has a request, or for a while: the run may have been
    /// stopped.
    fn wait_for_plan<'a>(
        &'a self,
        mut state: MutexGuard<'a, RunState<D::Batch>>,
    ) -> MutexGuard<'a, RunState<D::Batch>> {
        let Some(mut plan) = state.input.take_plan() else {
            return self.wait(&self.can_fetch, state);
        };
        drop(state);
        // A panic takes the plan with it, and the others would wait for it.
        let _guard = StopOnPanic(self);
        plan.wait(POLL);
        let mut state = self.lock();
        state.input.put_plan(plan);
        self.heed_cancel(&mut state);
        self.can_fetch.notify_all();
        state
    }

    /// Whether the bytes of a request at `offset` are addressable in the store.
    fn has_view(&self, offset: u64) -> bool {
        self.store.bytes().is_some_and(|bytes| offset < bytes.len() as u64)
    }

    /// A buffer for a request of `len` bytes, and where the bytes go in it. Takes it from the pool
    /// if a pooled one is long enough. `None` if there is no memory for it.
    fn buffer_for(
        &self,
        mut state: MutexGuard<'_, RunState<D::Batch>>,
        len: usize,
    ) -> Option<(AlignedBuf, usize)> {
        if len > self.shape.block {
            let size = len.max(state.most_pooled + 1).next_multiple_of(PAGE);
            state.oversize += size as u64;
            state.clocks.peak_oversize = state.clocks.peak_oversize.max(state.oversize);
            // Memory is allocated outside of the lock, because that takes a while.
            drop(state);
            return Some((AlignedBuf::try_new(size)?, 0));
        }
        let headroom = self.shape.headroom;
        if headroom + len > state.pooled {
            state.pooled = (headroom + len.next_power_of_two().max(PAGE)).min(state.most_pooled);
            state.buffers.clear();
        }
        let size = state.pooled;
        let pooled = state.buffers.pop();
        if pooled.is_none() {
            state.clocks.peak_buffers += size as u64;
        }
        drop(state);
        Some((pooled.unwrap_or_else(|| AlignedBuf::new(size)), headroom))
    }

    /// Wakes all threads that may wait for more requests, because none will follow.
    fn no_more_requests(&self) -> Next {
        self.can_fetch.notify_all();
        self.wake_all();
        Next::End
    }

    /// Ends the run: there is no memory for the bytes at `offset`.
    fn no_room(&self, offset: u64) -> Next {
        let error = Error::io_at(self.store.name(), NO_ROOM, offset, ErrorKind::OutOfMemory);
        let mut state = self.lock();
        state.failed.get_or_insert(error);
        state.input.end();
        self.no_more_requests()
    }

    /// Takes an answer. Who waits for it is not woken yet.
    pub(super) fn arrived(
        &self,
        request: Request,
        outcome: Result<()>,
    ) -> MutexGuard<'_, RunState<D::Batch>> {
        let took = request.issued.elapsed();
        let mut state = self.lock();
        state.clocks.fetch.busy += took;
        state.in_flight -= 1;
        state.bytes_in_flight -= request.len;
        let mut freed = Vec::new();
        let mut oversize = state.oversize;
        let RunState { input, ready, spare, clocks, failed, .. } = &mut *state;
        if let Err(error) = outcome {
            // The first error that arrived is kept.
            failed.get_or_insert(error);
            input.end();
        } else {
            clocks.fetch.bytes += request.len as u64;
            self.control.add_fetched(request.len as u64);
            let block = match request.buf {
                Some(buf) => Arrived::Buf(buf, request.at),
                None => Arrived::View,
            };
            let mut context = FrameContext {
                store: &self.store,
                shape: &self.shape,
                ready,
                in_order: self.shape.delivery == Delivery::Ordered,
                spare,
                freed: &mut freed,
                oversize: &mut oversize,
            };
            if let Err(error) = input.arrived(request.tag, block, &mut context) {
                failed.get_or_insert(error);
            }
        }
        state.oversize = oversize;
        state.clocks.peak_oversize = state.clocks.peak_oversize.max(oversize);
        for block in freed {
            state.free(block);
        }
        let waiting = state.ready.len();
        let now = state.started.elapsed();
        state.depth.answered(waiting, self.shape.threads, now);
        state.clocks.max_depth = state.clocks.max_depth.max(state.depth.target());
        state
    }

    /// Wakes who waits for what arrived. No other fetching thread is woken: the thread that was
    /// answered asks for the next request, and wakes another if more are permitted.
    pub(super) fn wake_for(&self, state: &RunState<D::Batch>) {
        if state.drained() {
            self.wake_all();
        } else if state.ready.len() > 1 {
            self.can_decode.notify_all();
        } else {
            self.can_decode.notify_one();
        }
    }

    /// The next group and a batch for it; `None` when the work is over.
    pub(super) fn take(&self) -> Option<Taken<D::Batch>> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let waiting = Instant::now();
            if state.ready.is_empty() {
                if state.drained() {
                    self.wake_all();
                    return None;
                }
                let in_flight = state.in_flight;
                state = self.wait(&self.can_decode, state);
                let waited = waiting.elapsed();
                state.depth.starved(in_flight, waited);
                state.clocks.fetch.exposed += waited;
                continue;
            }
            let is_beyond = state.is_beyond_horizon();
            let seq = state.next_group;
            let batch = if is_beyond { None } else { self.batch(&mut state, seq) };
            let Some(batch) = batch else {
                let signal = if is_beyond { &self.can_decode } else { &self.can_fill };
                state = self.wait(signal, state);
                state.clocks.deliver.exposed += waiting.elapsed();
                continue;
            };
            let Some(mut group) = state.ready.pop_front() else { continue };
            self.gather(&mut state, &mut group);
            state.next_group += 1;
            state.decoding += 1;
            if self.shape.delivery != Delivery::Worker {
                state.outbox.push_back(Slot::default());
            }
            drop(state);
            let batch = batch.unwrap_or_else(|| self.decoder.batch());
            return Some(Taken { seq, group, batch });
        }
    }

    /// Adds the small groups that follow, as far as there are as many for the other workers: to
    /// hand over a group takes as long as to decode some of it.
    fn gather(&self, state: &mut RunState<D::Batch>, group: &mut Group) {
        let share = (state.ready.len() / self.shape.threads.max(1)).min(MOST_GATHERED - 1);
        let mut bytes = group.bytes_from(0);
        for _ in 0..share {
            bytes += state.ready.front().map_or(0, |next| next.bytes_from(0));
            if bytes > self.shape.group || state.is_beyond_horizon() {
                break;
            }
            let Some(next) = state.ready.pop_front() else { break };
            let places = group.append(next);
            state.spare.push(places);
        }
    }

    /// A pooled batch, or `Some(None)` if the caller may make one. `None` if the caller must wait.
    fn batch(&self, state: &mut RunState<D::Batch>, seq: u64) -> Option<Option<D::Batch>> {
        // The first undelivered group always gets a batch, so that it can be delivered and other
        // batches freed. It gets no second batch before the consumer took the first; otherwise
        // batches would pile up behind a slow consumer.
        let head =
            seq == state.head && state.outbox.front().is_none_or(|slot| slot.parts.is_empty());
        if state.batches_out >= self.shape.batches
            && !head
            && self.shape.delivery != Delivery::Worker
        {
            return None;
        }
        state.batches_out += 1;
        Some(state.batches.pop())
    }

    /// Another batch for the rest of group `seq`.
    pub(super) fn another_batch(&self, seq: u64) -> Option<D::Batch> {
        let mut state = self.lock();
        self.heed_cancel(&mut state);
        loop {
            if state.stopped {
                state.decoding -= 1;
                return None;
            }
            if let Some(batch) = self.batch(&mut state, seq) {
                drop(state);
                return Some(batch.unwrap_or_else(|| self.decoder.batch()));
            }
            let waiting = Instant::now();
            state = self.wait(&self.can_fill, state);
            state.clocks.deliver.exposed += waiting.elapsed();
        }
    }

    /// Delivers a part of group `seq`, whose decoding took `spent`. `complete` is true for the last
    /// part.
    pub(super) fn give(&self, seq: u64, batch: D::Batch, complete: bool, spent: Spent) {
        let mut state = self.lock();
        state.tick(spent);
        if complete {
            state.decoding -= 1;
        }
        if self.shape.delivery == Delivery::Worker {
            state.batches_out -= 1;
            state.batches.push(batch);
            return;
        }
        let index = (seq - state.head) as usize;
        if let Some(slot) = state.outbox.get_mut(index) {
            slot.parts.push_back(Ok(batch));
            slot.complete |= complete;
        }
        // The consumer waits for the first group.
        if index == 0 || self.shape.delivery == Delivery::AsTheyCome {
            self.can_deliver.notify_all();
        }
    }

    /// Records that group `seq` cannot be decoded.
    pub(super) fn fail(&self, seq: u64, error: Error, spent: Spent) {
        let mut state = self.lock();
        state.tick(spent);
        state.decoding -= 1;
        if self.shape.delivery == Delivery::Worker {
            state.failed.get_or_insert(error);
            self.stop_locked(&mut state);
            return;
        }
        let index = (seq - state.head) as usize;
        if let Some(slot) = state.outbox.get_mut(index) {
            slot.parts.push_back(Err(error));
            slot.complete = true;
        }
        state.input.end();
        self.can_deliver.notify_all();
    }

    /// Takes back a group that a worker is done with.
    pub(super) fn release(&self, group: Group) {
        let Group { blocks, mut places } = group;
        places.clear();
        let mut state = self.lock();
        state.spare.push(places);
        for block in blocks.into_iter().filter_map(Arc::into_inner) {
            state.free(block);
            self.can_fetch.notify_one();
        }
        if state.drained() {
            self.wake_all();
        }
    }

    /// Raises the horizon. It never falls.
    pub(super) fn extend(&self, horizon: u64) {
        let mut state = self.lock();
        state.horizon = state.horizon.max(horizon);
        self.can_decode.notify_all();
    }

    pub(super) fn clocks(&self) -> Clocks {
        let mut clocks = self.lock().clocks;
        let workers = self.shape.threads.max(1) as u32;
        clocks.fetch.exposed /= workers;
        clocks.deliver.exposed /= workers;
        clocks
    }
}
