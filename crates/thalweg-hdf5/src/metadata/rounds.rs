//! Fetches metadata breadth-first.
//!
//! A parser is an `async` function. It suspends where it needs bytes that are not in memory.
//! [`Rounds::run`] runs many parsers at once, for example one for each object of a group. When all
//! of them are suspended, it fetches everything that they wait for in one set of requests, which is
//! called a round, and resumes them. So the time of finding is the number of dependent rounds, not
//! the number of objects. There is no reactor and no timer: a suspended parser waits for bytes of
//! the file and for nothing else.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use thalweg_io::control::Control;
use thalweg_io::extent::Wanted;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{self, GapRule, side_depth};
use thalweg_io::pool;
use thalweg_io::store::Store;
use thalweg_io::store::many::read_many;
use thalweg_io::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use thalweg_io::{Error, Result};

use super::ByteSource;
use crate::extents::SavedMetadata;

/// The least and the most bytes of a block. Blocks are the unit of fetching and keeping.
const BLOCKS: [u64; 2] = [1 << 10, 64 << 10];
/// A file in the page cache. A byte costs more here than the engine pays for it: it comes into
/// memory that was not used before.
const CACHED: StoreModel = StoreModel { bandwidth: 2e9, ..StoreModel::MEMORY };
/// Around each block that a round wants, so many bytes are fetched at most, if the transfer of all
/// takes no more than this part of the latency. What is found next is often near: on a store that
/// answers late, that saves whole rounds.
const NEAR: u64 = 1 << 20;
const NEAR_SHARE: f64 = 0.25;
/// The most requests in flight.
const MOST_DEPTH: usize = 64;
/// A thread is started for so many parsers.
const PARSERS_PER_THREAD: usize = 16;
/// The most parsers that have begun and are not done. Where rounds cost little, there are fewer of
/// them, so that they stay in the processor's cache.
const MOST_PARSERS: usize = 1 << 14;
const MOST_CACHED_PARSERS: usize = 1 << 9;

/// What finding has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rounds of requests, one after the other.
    pub rounds: u64,
    /// Requests in all rounds.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: u64,
}

/// The metadata of a file, fetched in rounds.
#[derive(Debug)]
pub struct Rounds {
    store: Arc<dyn Store>,
    control: Control,
    model: StoreModel,
    threads: usize,
    /// The most parsers that have begun and are not done.
    most_parsers: usize,
    /// Bytes of a block.
    block: u64,
    /// The most bytes of blocks that are kept or asked for in a round.
    most: u64,
    state: Mutex<State>,
    /// Metadata that was saved earlier.
    saved: OnceLock<SavedMetadata>,
    /// What parsers have read, if that is recorded.
    recorded: Option<Mutex<Vec<Range<u64>>>>,
    /// Held during a run, so that the blocks of its parsers are not dropped by another run.
    running: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    blocks: HashMap<u64, Block>,
    kept: u64,
    /// The numbers of the blocks that suspended parsers wait for, or that [`now`](super::now) did
    /// not find.
    wanted: BTreeSet<u64>,
    /// The numbers of the blocks that will probably be wanted.
    hinted: BTreeSet<u64>,
    cost: Cost,
}

#[derive(Debug)]
struct Block {
    /// The bytes of the request that it came with.
    request: Arc<Vec<u8>>,
    /// Its own bytes of these.
    range: Range<usize>,
    /// The round in which it was last used.
    used: u64,
}

impl Block {
    fn bytes(&self) -> &[u8] {
        self.request.get(self.range.clone()).unwrap_or_default()
    }

    /// Gives up the other bytes of the request.
    fn detach(&mut self) {
        if self.range.len() < self.request.len() {
            self.request = Arc::new(self.bytes().to_vec());
            self.range = 0..self.request.len();
        }
    }
}

/// A parser, and what it makes in the end.
type Parser<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The state of a parser after its turn.
enum Turn<'a, T> {
    Done(T),
    /// It waits for bytes, or did not have its turn yet.
    Waits(Parser<'a, T>),
}

impl Rounds {
    /// The metadata of the file in `store`. Keeps about `most` bytes of it in memory.
    pub fn new(
        store: Arc<dyn Store>,
        control: &Control,
        model: StoreModel,
        threads: usize,
        most: u64,
    ) -> Self {
        // Where the bytes are in memory, a request costs less than the bytes that it copies.
        // The start of the file was read to find its format.
        let is_cached = [2, 3].iter().all(|part| store.is_at_hand(store.size() / part));
        let model = if is_cached { CACHED } else { model };
        // A block of the break-even length costs as much as another request. Nodes are shorter, and
        // what is near them is often not wanted: a quarter was quickest for a live file.
        let [least, longest] = BLOCKS;
        let block = (GapRule::new(&model).break_even() / 4).next_power_of_two();
        let block = block.clamp(least, longest);
        Self {
            store,
            control: control.clone(),
            model,
            threads,
            most_parsers: if is_cached { MOST_CACHED_PARSERS } else { MOST_PARSERS },
            block,
            most: most.max(block),
            state: Mutex::default(),
            saved: OnceLock::new(),
            recorded: None,
            running: Mutex::default(),
        }
    }

    /// Uses metadata that was saved while the file was as it is now.
    pub(crate) fn know(&self, saved: SavedMetadata) {
        // What is in use stays.
        let _ = self.saved.set(saved);
    }

    /// Records which ranges parsers read from now on.
    pub(crate) fn record(&mut self) {
        self.recorded = Some(Mutex::default());
    }

    /// What parsers have read since [`Rounds::record`]; nothing if it is more than `most` bytes.
    pub(crate) fn recorded(&self, most: u64) -> Result<SavedMetadata> {
        let mut saved = SavedMetadata::default();
        let Some(recorded) = &self.recorded else { return Ok(saved) };
        let mut ranges = recorded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        if joined.iter().map(|range| range.end - range.start).sum::<u64>() > most {
            return Ok(saved);
        }
        let depth = side_depth(&self.model, MOST_DEPTH);
        let read = read_many(&*self.store, &joined, depth, &self.control)?;
        for (range, bytes) in joined.iter().zip(read) {
            saved.push(range.start, &bytes?);
        }
        Ok(saved)
    }

    fn note(&self, ranges: &[Range<u64>]) {
        if let Some(recorded) = &self.recorded {
            let ranges = ranges.iter().filter(|range| !range.is_empty()).cloned();
            recorded.lock().unwrap_or_else(PoisonError::into_inner).extend(ranges);
        }
    }

    /// What finding has cost so far.
    pub fn cost(&self) -> Cost {
        self.state().cost
    }

    /// Runs `parse` of each of `items`, and of the items that it returns. Returns the other results
    /// in an order that depends on the file only.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; the errors of the store.
    pub fn run<'a, I, T, F>(&'a self, items: Vec<I>, parse: impl Fn(I) -> F) -> Result<Vec<T>>
    where
        I: Send,
        T: Send,
        F: Future<Output = (T, Vec<I>)> + Send + 'a,
    {
        let begin = |item| -> Parser<'a, (T, Vec<I>)> { Box::pin(parse(item)) };
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = Vec::new();
        let mut waiting = Vec::new();
        let mut ready = Vec::new();
        let mut left = VecDeque::from(items);
        loop {
            while !ready.is_empty() || (waiting.len() < self.most_parsers && !left.is_empty()) {
                let room = self.most_parsers.saturating_sub(waiting.len() + ready.len());
                ready.extend(left.drain(..room.min(left.len())).map(begin));
                for turn in self.turns(std::mem::take(&mut ready)) {
                    match turn {
                        Turn::Done((result, more)) => {
                            done.push(result);
                            left.extend(more);
                        }
                        Turn::Waits(parser) => waiting.push(parser),
                    }
                }
            }
            if waiting.is_empty() {
                return Ok(done);
            }
            self.fetch()?;
            std::mem::swap(&mut ready, &mut waiting);
        }
    }

    /// Runs one parser.
    ///
    /// # Errors
    /// As [`Rounds::run`].
    pub fn one<'a, T: Send>(&'a self, parser: impl Future<Output = T> + Send + 'a) -> Result<T> {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parser: Parser<'a, T> = Box::pin(parser);
        loop {
            match turn(parser) {
                Turn::Done(result) => return Ok(result),
                Turn::Waits(suspended) => parser = suspended,
            }
            self.fetch()?;
        }
    }

    /// Gives each parser a turn, until they wait for as many bytes as a round may fetch.
    fn turns<'a, T: Send>(&self, parsers: Vec<Parser<'a, T>>) -> Vec<Turn<'a, T>> {
        let threads = self.threads.min(parsers.len().div_ceil(PARSERS_PER_THREAD));
        let is_full = AtomicBool::new(false);
        pool::map(threads, parsers, |parser| {
            if is_full.load(Ordering::Relaxed) {
                return Turn::Waits(parser);
            }
            let turn = turn(parser);
            if matches!(turn, Turn::Waits(_)) {
                let asked = self.state().wanted.len() as u64 * self.block;
                is_full.store(asked >= self.most, Ordering::Relaxed);
            }
            turn
        })
    }

    /// Fetches the blocks that parsers wait for: a round.
    fn fetch(&self) -> Result<()> {
        if self.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let mut state = self.state();
        let mut wanted = std::mem::take(&mut state.wanted);
        wanted.append(&mut state.hinted);
        self.widen(&mut wanted, &state.blocks);
        drop(state);
        let want = |(ordinal, number): (u64, &u64)| Wanted { range: self.range(*number), ordinal };
        let wanted: Vec<Wanted> = (0..).zip(&wanted).map(want).collect();
        let rule = GapRule::new(&self.model);
        let requests: Vec<Range<u64>> =
            plan::in_order(wanted, &rule, self.model.block).map(|fetch| fetch.range).collect();
        let depth = side_depth(&self.model, MOST_DEPTH);
        let fetched = read_many(&*self.store, &requests, depth, &self.control)?;
        let mut state = self.state();
        state.cost.rounds += 1;
        state.cost.requests += requests.len() as u64;
        let round = state.cost.rounds;
        for (request, bytes) in requests.iter().zip(fetched) {
            let bytes = Arc::new(bytes?);
            state.cost.bytes += bytes.len() as u64;
            let first = request.start / self.block;
            for (number, start) in (first..).zip((0..bytes.len()).step_by(self.block as usize)) {
                // Blocks in gaps may be useful later.
                let range = start..bytes.len().min(start + self.block as usize);
                state.kept += range.len() as u64;
                let block = Block { request: bytes.clone(), range, used: round };
                if let Some(before) = state.blocks.insert(number, block) {
                    state.kept -= before.range.len() as u64;
                }
            }
        }
        if state.kept > self.most {
            // A suspended parser has used the blocks that it needs in the round before.
            state.blocks.retain(|_, block| block.used + 1 >= round);
            state.blocks.values_mut().for_each(Block::detach);
            state.kept = state.blocks.values().map(|block| block.range.len() as u64).sum();
        }
        Ok(())
    }

    /// Adds the blocks around those that are wanted, as far as they hardly delay the answer.
    fn widen(&self, wanted: &mut BTreeSet<u64>, kept: &HashMap<u64, Block>) {
        let room = self.model.latency_s * NEAR_SHARE * self.model.bandwidth;
        let room = (room as u64).min(self.most / 2) / (wanted.len() as u64).max(1);
        let near = room.min(NEAR) / self.block;
        // For less, the rounds of a local device would become longer.
        if near < 16 {
            return;
        }
        let all = self.store.size().div_ceil(self.block);
        for first in wanted.iter().map(|number| number / near * near).collect::<BTreeSet<u64>>() {
            let more = first..(first + near).min(all);
            wanted.extend(more.filter(|number| !kept.contains_key(number)));
        }
    }

    /// The range of a block.
    fn range(&self, number: u64) -> Range<u64> {
        let start = number * self.block;
        start..start.saturating_add(self.block).min(self.store.size())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a parser go on until it is done, or waits for bytes.
fn turn<T>(mut parser: Parser<'_, T>) -> Turn<'_, T> {
    match parser.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Turn::Done(result),
        Poll::Pending => Turn::Waits(parser),
    }
}

impl ByteSource for Rounds {
    fn size(&self) -> u64 {
        self.store.size()
    }

    fn poll(&self, ranges: &[Range<u64>]) -> Poll<Result<Vec<Cow<'_, [u8]>>>> {
        let saved = self.saved.get();
        let known = |range: &Range<u64>| saved.and_then(|saved| saved.get(range));
        if let Some(bytes) = self.store.bytes() {
            self.note(ranges);
            let view = |range: &Range<u64>| {
                // These bytes need not be fetched.
                if let Some(known) = known(range) {
                    return Ok(Cow::Borrowed(known));
                }
                self.store.touch(range.start, (range.end - range.start) as usize)?;
                let view = bytes.get(range.start as usize..range.end as usize);
                Ok(Cow::Borrowed(view.unwrap_or_default()))
            };
            return Poll::Ready(ranges.iter().map(view).collect());
        }
        let mut state = self.state();
        let state = &mut *state;
        let round = state.cost.rounds;
        let mut is_complete = true;
        for range in ranges.iter().filter(|range| !range.is_empty() && known(range).is_none()) {
            for number in range.start / self.block..=(range.end - 1) / self.block {
                match state.blocks.get_mut(&number) {
                    Some(block) => block.used = round,
                    None => {
                        state.wanted.insert(number);
                        is_complete = false;
                    }
                }
            }
        }
        if !is_complete {
            return Poll::Pending;
        }
        self.note(ranges);
        let copy = |range: &Range<u64>| {
            if let Some(known) = known(range) {
                return Cow::Borrowed(known);
            }
            let mut copied = Vec::with_capacity((range.end - range.start) as usize);
            while (copied.len() as u64) < range.end - range.start {
                let at = range.start + copied.len() as u64;
                let Some(block) = state.blocks.get(&(at / self.block)) else { break };
                let from = (at % self.block) as usize;
                let len = (range.end - at).min(self.block - from as u64) as usize;
                let Some(bytes) = block.bytes().get(from..from + len) else { break };
                copied.extend_from_slice(bytes);
            }
            Cow::Owned(copied)
        };
        Poll::Ready(Ok(ranges.iter().map(copy).collect()))
    }

    fn hint(&self, ranges: &[Range<u64>]) {
        if self.store.bytes().is_some() {
            return;
        }
        let saved = self.saved.get();
        let known = |range: &&Range<u64>| saved.is_some_and(|saved| saved.get(range).is_some());
        let mut state = self.state();
        for range in ranges.iter().filter(|range| !range.is_empty() && !known(range)) {
            for number in range.start / self.block..=(range.end - 1) / self.block {
                let asked = (state.wanted.len() + state.hinted.len()) as u64 * self.block;
                if asked < self.most && !state.blocks.contains_key(&number) {
                    state.hinted.insert(number);
                }
            }
        }
    }
}
