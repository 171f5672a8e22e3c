//! Fetches metadata breadth-first.
//!
//! A parser is an `async` function. It suspends where it needs bytes that are not in memory.
//! [`Rounds::run`] runs many parsers at once, for example one for each object of a group. When all
//! of them are suspended, it fetches everything that they wait for in one set of requests, which is
//! called a round, and resumes them. So the time of finding is the number of dependent rounds, not
//! the number of objects. There is no reactor and no timer: a suspended parser waits for bytes of
//! the file and for nothing else. Bytes that are in the page cache are read at once, and no parser
//! waits for them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::{Range, RangeInclusive};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::extent::Wanted;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{self, GapRule, SIDE_FACTOR, side_depth};
use thalweg_io::pool;
use thalweg_io::store::Store;
use thalweg_io::store::many::read_many;
use thalweg_io::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::ByteSource;
use crate::extents::SavedMetadata;

/// The least and the most bytes of a block. Blocks are the unit of fetching and keeping.
const BLOCKS: [u64; 2] = [1 << 10, 64 << 10];
/// Bytes of a block of a file in the page cache.
const CACHED_BLOCK: u64 = 4 << 10;
/// Around each block that a round wants, so many bytes are fetched at most, if the transfer of all
/// takes no more than this part of the latency. What is found next is often near: on a store that
/// answers late, that saves whole rounds.
const NEAR: u64 = 1 << 20;
const NEAR_SHARE: f64 = 0.25;
/// The most requests in flight: what [`side_depth`] gives for S3. Each takes a thread and a
/// connection, so that a model of more depth gets no more.
const MOST_DEPTH: usize = SIDE_FACTOR * StoreModel::S3.depth;
/// A thread is started for so many parsers.
const PARSERS_PER_THREAD: usize = 16;
/// The most parsers that have begun and are not done.
const MOST_PARSERS: usize = 1 << 14;

/// How metadata are fetched.
#[derive(Debug, Clone, Copy)]
pub struct FetchOptions {
    /// The model of the store.
    pub model: StoreModel,
    /// The threads that parse.
    pub threads: usize,
    /// About the most bytes of metadata that are kept.
    pub memory: u64,
    /// Whether they are fetched in rounds even if the file is in the page cache: to learn what
    /// finding costs where it is not.
    pub in_rounds: bool,
}

/// What finding has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rounds of requests, one after the other. There are none for a file in the page cache, unless
    /// [`FetchOptions::in_rounds`] is set.
    pub rounds: u64,
    /// All requests.
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
    /// Whether the file seems to be in the page cache. Then blocks are read when they are needed.
    is_cached: bool,
    /// Bytes of a block.
    block: u64,
    /// The most bytes of blocks that are kept or asked for in a round.
    most: u64,
    blocks: RwLock<Blocks>,
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
    /// The numbers of the blocks that suspended parsers wait for, or that [`now`](super::now) did
    /// not find.
    wanted: BTreeSet<u64>,
    /// The numbers of the blocks that will probably be wanted.
    hinted: BTreeSet<u64>,
    cost: Cost,
}

/// The blocks that are kept, by their numbers.
#[derive(Debug, Default)]
struct Blocks {
    by_number: HashMap<u64, Block>,
    bytes: u64,
    /// The number of calls of [`Blocks::tick`].
    clock: u64,
}

#[derive(Debug)]
struct Block {
    /// The bytes of the request that it came with.
    request: Arc<Vec<u8>>,
    /// Its own bytes of these.
    range: Range<usize>,
    /// When it was last used, by the clock of [`Blocks`].
    used: AtomicU64,
}

impl Block {
    fn bytes(&self) -> &[u8] {
        self.request.get(self.range.clone()).unwrap_or_default()
    }

    /// Gives up the other bytes of the request, if most of them belong to no block any more.
    fn detach(&mut self) {
        if self.range.len() * Arc::strong_count(&self.request) < self.request.len() / 2 {
            self.request = Arc::new(self.bytes().to_vec());
            self.range = 0..self.request.len();
        }
    }
}

impl Blocks {
    /// Adds the blocks that are at `bytes` of a request. The first has this number. Blocks in gaps
    /// between those that are wanted may be useful later.
    fn insert(&mut self, first: u64, size: u64, request: &Arc<Vec<u8>>, bytes: Range<usize>) {
        for (number, start) in (first..).zip(bytes.clone().step_by(size as usize)) {
            let range = start..bytes.end.min(start + size as usize);
            self.bytes += range.len() as u64;
            let block = Block { request: request.clone(), range, used: self.clock.into() };
            if let Some(before) = self.by_number.insert(number, block) {
                self.bytes -= before.range.len() as u64;
            }
        }
    }

    /// Lets the clock go on. If more than `most` bytes are kept, drops the blocks that were not
    /// used since it went on last. A suspended parser has used its blocks in the round before; one
    /// that was put off may have to fetch its blocks again.
    fn tick(&mut self, most: u64) {
        self.clock += 1;
        if self.bytes > most {
            let now = self.clock;
            self.by_number.retain(|_, block| block.used.load(Ordering::Relaxed) + 1 >= now);
            self.by_number.values_mut().for_each(Block::detach);
            self.bytes = self.by_number.values().map(|block| block.range.len() as u64).sum();
        }
    }

    /// The block with this number, if it is kept. Notes that it is in use.
    fn get(&self, number: u64) -> Option<&Block> {
        let block = self.by_number.get(&number)?;
        block.used.store(self.clock, Ordering::Relaxed);
        Some(block)
    }

    /// The bytes of a range; `None` if some of its blocks are not kept.
    fn copy(&self, range: &Range<u64>, size: u64) -> Option<Vec<u8>> {
        let mut copied = Vec::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        while at < range.end {
            let block = self.get(at / size)?;
            let from = (at % size) as usize;
            let len = (range.end - at).min(size - from as u64) as usize;
            copied.extend_from_slice(block.bytes().get(from..from + len)?);
            at += len as u64;
        }
        Some(copied)
    }
}

/// A parser, and what it makes in the end.
type Parser<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An item, or the parser of it.
enum Task<'a, I, T> {
    /// Its parser has not begun.
    Item(I),
    /// Its parser is suspended.
    Suspended(Parser<'a, T>),
}

/// The state of a task after its turn.
enum Turn<'a, I, T> {
    Done(T),
    /// It waits for bytes, or did not have its turn yet.
    Waits(Task<'a, I, T>),
}

impl Rounds {
    /// What cancels its reads.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The metadata of the file in `store`.
    pub fn new(store: Arc<dyn Store>, control: &Control, options: FetchOptions) -> Self {
        let FetchOptions { model, threads, memory, in_rounds } = options;
        // The start of the file was read to find its format.
        let is_at_hand = |part| store.is_at_hand(store.size() / part);
        let is_cached = !in_rounds && [2, 3].into_iter().all(is_at_hand);
        // A block of the break-even length costs as much as another request. Nodes are shorter, and
        // what is near them is often not wanted: a quarter was quickest for a live file.
        let [least, longest] = BLOCKS;
        let block = (GapRule::new(&model).break_even() / 4).next_power_of_two();
        let block = if is_cached { CACHED_BLOCK } else { block.clamp(least, longest) };
        Self {
            store,
            control: control.clone(),
            model,
            threads,
            is_cached,
            block,
            most: memory.max(block),
            blocks: RwLock::default(),
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
    /// in no particular order.
    ///
    /// # Errors
    /// [`Error::Cancelled`](thalweg_io::Error::Cancelled); the errors of the store.
    pub fn run<'a, I, T, F>(
        &'a self,
        items: Vec<I>,
        parse: impl Fn(I) -> F + Sync,
    ) -> Result<Vec<T>>
    where
        I: Send,
        T: Send,
        F: Future<Output = (T, Vec<I>)> + Send + 'a,
    {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = Vec::new();
        let mut suspended = Vec::new();
        let mut left = VecDeque::from(items);
        loop {
            let mut tasks: Vec<_> = suspended.drain(..).map(Task::Suspended).collect();
            let mut put_off = Vec::new();
            while put_off.is_empty() {
                let room = MOST_PARSERS.saturating_sub(suspended.len() + tasks.len());
                tasks.extend(left.drain(..room.min(left.len())).map(Task::Item));
                if tasks.is_empty() {
                    break;
                }
                for turn in self.turns(std::mem::take(&mut tasks), suspended.len(), &parse) {
                    match turn {
                        Turn::Done((result, more)) => {
                            done.push(result);
                            left.extend(more);
                        }
                        Turn::Waits(Task::Suspended(parser)) => suspended.push(parser),
                        Turn::Waits(Task::Item(item)) => put_off.push(item),
                    }
                }
            }
            put_off.into_iter().rev().for_each(|item| left.push_front(item));
            if suspended.is_empty() {
                return Ok(done);
            }
            self.fetch()?;
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
            match poll(&mut parser) {
                Poll::Ready(result) => return Ok(result),
                Poll::Pending => self.fetch()?,
            }
        }
    }

    /// Gives each task a turn, until they wait for as many bytes as a round may fetch. `suspended`
    /// more parsers are suspended.
    fn turns<'a, I, T, F>(
        &self,
        tasks: Vec<Task<'a, I, T>>,
        suspended: usize,
        parse: &(impl Fn(I) -> F + Sync),
    ) -> Vec<Turn<'a, I, T>>
    where
        I: Send,
        T: Send,
        F: Future<Output = T> + Send + 'a,
    {
        let threads = self.threads.min(tasks.len().div_ceil(PARSERS_PER_THREAD));
        let suspended = AtomicUsize::new(suspended);
        pool::map(threads, tasks, |task| {
            let mut parser = match task {
                task if suspended.load(Ordering::Relaxed) >= MOST_PARSERS => {
                    return Turn::Waits(task);
                }
                Task::Item(item) => Box::pin(parse(item)),
                Task::Suspended(parser) => parser,
            };
            if let Poll::Ready(result) = poll(&mut parser) {
                return Turn::Done(result);
            }
            let asked = self.state().wanted.len() as u64 * self.block;
            // Enough bytes for a round are as good as enough parsers.
            let weight = if asked >= self.most { MOST_PARSERS } else { 1 };
            suspended.fetch_add(weight, Ordering::Relaxed);
            Turn::Waits(Task::Suspended(parser))
        })
    }

    /// Fetches the blocks that parsers wait for: a round.
    fn fetch(&self) -> Result<()> {
        self.control.check()?;
        let mut state = self.state();
        let mut wanted = std::mem::take(&mut state.wanted);
        wanted.append(&mut state.hinted);
        drop(state);
        self.widen(&mut wanted);
        let want = |(ordinal, number): (u64, &u64)| Wanted { range: self.range(*number), ordinal };
        let wanted: Vec<Wanted> = (0..).zip(&wanted).map(want).collect();
        let rule = GapRule::new(&self.model);
        let requests: Vec<Range<u64>> =
            plan::in_order(wanted, &rule, self.model.block).map(|fetch| fetch.range).collect();
        let depth = side_depth(&self.model, MOST_DEPTH);
        let fetched = read_many(&*self.store, &requests, depth, &self.control)?;
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = 0;
        for (request, fetched) in requests.iter().zip(fetched) {
            bytes += request.end - request.start;
            let fetched = Arc::new(fetched?);
            blocks.insert(request.start / self.block, self.block, &fetched, 0..fetched.len());
        }
        blocks.tick(self.most);
        drop(blocks);
        self.count(Cost { rounds: 1, requests: requests.len() as u64, bytes });
        Ok(())
    }

    /// Reads those of the blocks with these numbers that are in the page cache. Returns the others.
    fn read_cached(&self, numbers: BTreeSet<u64>) -> Result<BTreeSet<u64>> {
        self.control.check()?;
        // Blocks next to each other are one request.
        let mut runs: Vec<Range<u64>> = Vec::new();
        for &number in &numbers {
            match runs.last_mut() {
                Some(run) if run.end == number => run.end += 1,
                _ => runs.push(number..number + 1),
            }
        }
        // One buffer for all: threads would get memory a page at a time.
        let mut bytes = vec![0; numbers.len() * self.block as usize];
        let mut read = Vec::new();
        let mut others = BTreeSet::new();
        let mut end = 0;
        for run in runs {
            let start = run.start * self.block;
            let place = end..end + (self.range(run.end - 1).end - start) as usize;
            end = place.end;
            if let Some(room) = bytes.get_mut(place.clone())
                && self.store.read_at_hand(start, room)
            {
                read.push((run, place));
            } else {
                others.extend(run);
            }
        }
        let bytes = Arc::new(bytes);
        let mut cost = Cost { requests: read.len() as u64, ..Cost::default() };
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        if blocks.bytes > self.most {
            blocks.tick(self.most);
        }
        for (run, place) in read {
            cost.bytes += place.len() as u64;
            blocks.insert(run.start, self.block, &bytes, place);
        }
        drop(blocks);
        self.count(cost);
        Ok(others)
    }

    fn count(&self, more: Cost) {
        let cost = &mut self.state().cost;
        cost.rounds += more.rounds;
        cost.requests += more.requests;
        cost.bytes += more.bytes;
    }

    /// Adds the blocks around those that are wanted, as far as they hardly delay the answer.
    fn widen(&self, wanted: &mut BTreeSet<u64>) {
        let room = self.model.latency_s * NEAR_SHARE * self.model.bandwidth;
        let room = (room as u64).min(self.most / 2) / (wanted.len() as u64).max(1);
        let near = room.min(NEAR) / self.block;
        // For less, the rounds of a local device would become longer.
        if near < 16 {
            return;
        }
        let all = self.store.size().div_ceil(self.block);
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        for first in wanted.iter().map(|number| number / near * near).collect::<BTreeSet<u64>>() {
            let more = first..(first + near).min(all);
            wanted.extend(more.filter(|number| !blocks.by_number.contains_key(number)));
        }
    }

    /// The range of a block.
    fn range(&self, number: u64) -> Range<u64> {
        let start = number * self.block;
        start..start.saturating_add(self.block).min(self.store.size())
    }

    /// The numbers of the blocks that hold a range with bytes.
    fn numbers(&self, range: &Range<u64>) -> RangeInclusive<u64> {
        range.start / self.block..=(range.end - 1) / self.block
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets a parser go on until it is done, or waits for bytes.
fn poll<T>(parser: &mut Parser<'_, T>) -> Poll<T> {
    parser.as_mut().poll(&mut Context::from_waker(Waker::noop()))
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
        loop {
            let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
            let copy = |range: &Range<u64>| match known(range) {
                Some(known) => Some(Cow::Borrowed(known)),
                None => blocks.copy(range, self.block).map(Cow::Owned),
            };
            if let Some(copies) = ranges.iter().map(copy).collect() {
                self.note(ranges);
                return Poll::Ready(Ok(copies));
            }
            let unknown = |range: &&Range<u64>| !range.is_empty() && known(range).is_none();
            let numbers = ranges.iter().filter(unknown).flat_map(|range| self.numbers(range));
            // The blocks that are kept have to stay until the others are there.
            let is_missing = |number: &u64| blocks.get(*number).is_none();
            let mut missing: BTreeSet<u64> = numbers.filter(is_missing).collect();
            drop(blocks);
            if missing.is_empty() {
                // A range ends beyond the file. The reader says so about views that are too short.
                return Poll::Ready(Ok(ranges.iter().map(|_| Cow::default()).collect()));
            }
            if self.is_cached {
                missing = self.read_cached(missing)?;
            }
            if !missing.is_empty() {
                self.state().wanted.append(&mut missing);
                return Poll::Pending;
            }
        }
    }

    fn hint(&self, ranges: &[Range<u64>]) {
        if self.is_cached || self.store.bytes().is_some() {
            return;
        }
        let saved = self.saved.get();
        let known = |range: &&Range<u64>| saved.is_some_and(|saved| saved.get(range).is_some());
        let unknown = |range: &&Range<u64>| !range.is_empty() && !known(range);
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        for number in ranges.iter().filter(unknown).flat_map(|range| self.numbers(range)) {
            let asked = (state.wanted.len() + state.hinted.len()) as u64 * self.block;
            if asked < self.most && !blocks.by_number.contains_key(&number) {
                state.hinted.insert(number);
            }
        }
    }
}
