//! Reading a file: pieces that were fetched ahead, and pieces that a read waits for.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use crate::fetcher::{Fetched, Fetcher, Piece};
use crate::memory::Charge;
use crate::windows::Windows;

/// Pieces end at multiples of this: a cache has blocks of so many bytes.
const BLOCK: u64 = 64 << 10;
/// The least bytes of a piece that is fetched ahead, unless less is left of the file.
const LEAST_AHEAD: u64 = 1 << 20;
/// Pieces that are ahead of a reader who has just begun: many small ones, which arrive soon.
const PIECES_AHEAD: u64 = 16;

/// A file that is open.
pub(crate) struct Reading {
    store: Arc<dyn Store>,
    fetcher: Arc<Fetcher>,
    state: Mutex<State>,
    /// A piece has come, or has failed.
    changed: Condvar,
    last_read: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Pieces by their offsets. They do not overlap.
    pieces: BTreeMap<u64, Held>,
    windows: Windows,
}

struct Held {
    id: u64,
    len: u64,
    content: Content,
    /// Bytes that were read. A piece all of whose bytes were read is dropped: they are in the
    /// kernel's page cache, or nobody wants them again.
    read: u64,
    /// Reads that wait for it or copy from it.
    readers: usize,
}

#[derive(Clone)]
enum Content {
    Coming,
    Here(Arc<Buffer>),
    Failed(Error),
}

struct Buffer {
    bytes: Vec<u8>,
    charge: Charge,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.charge.keep(std::mem::take(&mut self.bytes));
    }
}

/// Bytes, and where they are in the file.
type Placed = (u64, Arc<Buffer>);

/// What to fetch for a read, and which pieces it waits for.
struct Wanted {
    waits_for: Vec<u64>,
    /// The pieces that the read has started.
    own: Vec<u64>,
}

impl Reading {
    pub(crate) fn new(store: Arc<dyn Store>, fetcher: &Arc<Fetcher>) -> Arc<Self> {
        let last_read = AtomicU64::new(fetcher.now());
        let (state, changed) = Default::default();
        let reading = Arc::new(Self { store, fetcher: fetcher.clone(), state, changed, last_read });
        let fetched: Arc<dyn Fetched> = reading.clone();
        fetcher.add(Arc::downgrade(&fetched));
        reading
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what was fetched ahead, and forgets how it was read.
    pub(crate) fn close(&self) {
        *self.lock() = State::default();
    }

    /// Begins to fetch all of the file, if it has few bytes, for a read that will come.
    pub(crate) fn expect(self: &Arc<Self>) {
        let size = self.store.size();
        let mut state = self.lock();
        if state.pieces.is_empty() && size > 0 && self.is_missing(&(0..size)) {
            self.start_ahead(&mut state, 0..size, size);
        }
    }

    fn is_missing(&self, range: &Range<u64>) -> bool {
        !self.store.missing(range.clone()).is_empty()
    }

    /// Gives the bytes of a range, up to the end of the file, to `take`.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn read<T>(
        self: &Arc<Self>,
        range: Range<u64>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T> {
        let end = range.end.min(self.store.size());
        let range = range.start.min(end)..end;
        self.last_read.store(self.fetcher.now(), Ordering::Relaxed);
        if range.is_empty() {
            return Ok(take(&[]));
        }
        let mut is_first = true;
        loop {
            let ahead = is_first.then(|| self.note(&range));
            is_first = false;
            match self.wanted(&range, ahead.unwrap_or(0))? {
                Some(wanted) => match self.wait(&range, wanted)? {
                    Some(buffers) => return Ok(give(&range, &buffers, take)),
                    // What was fetched ahead has failed: it is fetched again, for this read.
                    None => continue,
                },
                // Everything is in the cache.
                None => {
                    let mut bytes = vec![0; (range.end - range.start) as usize];
                    self.store.read_at(range.start, &mut bytes)?;
                    return Ok(take(&bytes));
                }
            }
        }
    }

    /// Notes a read in its window. Returns how many bytes to fetch ahead of it.
    fn note(&self, range: &Range<u64>) -> u64 {
        let most = self.fetcher.shape.ahead.min(self.fetcher.memory.limit() / 2);
        self.lock().windows.read(range.clone(), most)
    }

    /// Starts to fetch what a read waits for and what is ahead of it. `None` if everything is in
    /// the cache.
    fn wanted(self: &Arc<Self>, range: &Range<u64>, ahead: u64) -> Result<Option<Wanted>> {
        let end = range.end.saturating_add(ahead).min(self.store.size());
        let least = LEAST_AHEAD.min(self.fetcher.shape.piece);
        let piece = (ahead / PIECES_AHEAD).clamp(least, self.fetcher.shape.piece.max(least));
        let mut own = Vec::new();
        loop {
            let mut state = self.lock();
            let Some(gap) = state.first_gap(range.clone()) else {
                let waits_for = state.hold(range);
                waits_for.iter().for_each(|at| state.hurry(*at, &self.fetcher));
                self.start_ahead(&mut state, range.end..end, piece);
                return Ok(Some(Wanted { waits_for, own }));
            };
            if own.is_empty() && !self.is_missing(range) {
                return Ok(None);
            }
            // With what is ahead of it, it is one request.
            let most =
                if ahead > 0 { (gap.start + piece).next_multiple_of(BLOCK).min(end) } else { 0 };
            let gap = state.first_gap(gap.start..most.max(gap.end)).unwrap_or(gap);
            let len = gap.end - gap.start;
            let Some(charge) = self.fetcher.memory.take_now(len) else {
                drop(state);
                self.fetcher.make_room(len);
                continue;
            };
            own.push(self.start(&mut state, gap, charge, true)?);
        }
    }

    /// Starts to fetch the gaps in a range, as far as there is memory. At the end of the range, a
    /// gap waits until it has the length of a piece.
    fn start_ahead(self: &Arc<Self>, state: &mut State, range: Range<u64>, piece: u64) {
        let mut at = range.start;
        while let Some(gap) = state.first_gap(at..range.end) {
            let end = (gap.start + piece).next_multiple_of(BLOCK).min(gap.end);
            if end == range.end && end < self.store.size() && end - gap.start < piece {
                return;
            }
            let Some(charge) = self.fetcher.memory.take_ahead(end - gap.start) else {
                self.fetcher.counters.not_ahead();
                return;
            };
            if self.start(state, gap.start..end, charge, false).is_err() {
                return;
            }
            at = end;
        }
    }

    fn start(
        self: &Arc<Self>,
        state: &mut State,
        range: Range<u64>,
        charge: Charge,
        is_wanted: bool,
    ) -> Result<u64> {
        let id = self.fetcher.now();
        let (at, len) = (range.start, range.end - range.start);
        let piece = Piece { at, id, charge };
        self.fetcher.start(self.clone(), piece, is_wanted)?;
        let held = Held { id, len, content: Content::Coming, read: 0, readers: 0 };
        state.pieces.insert(at, held);
        Ok(id)
    }

    /// Waits for pieces. `None` if one that was fetched ahead has failed.
    fn wait(&self, range: &Range<u64>, wanted: Wanted) -> Result<Option<Vec<Placed>>> {
        let mut state = self.lock();
        let is_coming = |state: &State| {
            wanted.waits_for.iter().any(|at| matches!(state.content(*at), Some(Content::Coming)))
        };
        let was_here = !is_coming(&state);
        while is_coming(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.fetcher.counters.waited(was_here);
        let mut buffers = Vec::with_capacity(wanted.waits_for.len());
        let mut failure = None;
        for at in wanted.waits_for {
            match state.content(at) {
                Some(Content::Here(buffer)) => {
                    state.note_read(at, range);
                    buffers.push((at, buffer));
                }
                Some(Content::Failed(error)) => {
                    let failed = state.pieces.remove(&at);
                    let is_own = failed.is_some_and(|piece| wanted.own.contains(&piece.id));
                    failure = Some(is_own.then_some(error));
                }
                // Another read that waited for it has taken it away, because it has failed.
                Some(Content::Coming) | None => failure = Some(None),
            }
        }
        match failure {
            Some(Some(error)) => Err(error),
            Some(None) => Ok(None),
            None => Ok(Some(buffers)),
        }
    }
}

/// Gives the bytes of a range to `take`. Without a copy if one buffer has all of them.
fn give<T>(range: &Range<u64>, buffers: &[Placed], take: impl FnOnce(&[u8]) -> T) -> T {
    let part = |at: u64, buffer: &Buffer| {
        let end = at + buffer.bytes.len() as u64;
        let from = range.start.max(at) - at;
        let to = range.end.min(end) - at;
        from as usize..to as usize
    };
    if let [(at, buffer)] = buffers {
        return take(&buffer.bytes[part(*at, buffer)]);
    }
    let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
    for (at, buffer) in buffers {
        bytes.extend_from_slice(&buffer.bytes[part(*at, buffer)]);
    }
    take(&bytes)
}

impl State {
    fn content(&self, at: u64) -> Option<Content> {
        self.pieces.get(&at).map(|piece| piece.content.clone())
    }

    /// The first part of a range that is in no piece.
    fn first_gap(&self, range: Range<u64>) -> Option<Range<u64>> {
        let mut at = range.start;
        let before = self.pieces.range(..=at).next_back();
        if let Some((start, piece)) = before {
            at = at.max(start + piece.len);
        }
        for (start, piece) in self.pieces.range(at..range.end.max(at)) {
            if *start > at {
                return Some(at..*start);
            }
            at = start + piece.len;
        }
        (at < range.end).then_some(at..range.end)
    }

    /// Keeps the pieces of a range, which has no gap. Returns where they are.
    fn hold(&mut self, range: &Range<u64>) -> Vec<u64> {
        let first =
            self.pieces.range(..=range.start).next_back().map_or(range.start, |(at, _)| *at);
        let mut held = Vec::new();
        for (at, piece) in self.pieces.range_mut(first..range.end) {
            piece.readers += 1;
            held.push(*at);
        }
        held
    }

    /// Has a piece fetched soon.
    fn hurry(&self, at: u64, fetcher: &Fetcher) {
        if let Some(Held { id, content: Content::Coming, .. }) = self.pieces.get(&at) {
            fetcher.hurry(*id);
        }
    }

    /// Notes that a part of a piece was read, and drops it after the last one.
    fn note_read(&mut self, at: u64, range: &Range<u64>) {
        let Some(piece) = self.pieces.get_mut(&at) else { return };
        piece.readers -= 1;
        piece.read += range.end.min(at + piece.len) - range.start.max(at);
        if piece.readers == 0 && piece.read >= piece.len {
            self.pieces.remove(&at);
        }
    }
}

impl Fetched for Reading {
    fn fetch(&self, piece: Piece) {
        let Piece { at, id, charge } = piece;
        let is_wanted = |state: &State| state.pieces.get(&at).is_some_and(|piece| piece.id == id);
        if !is_wanted(&self.lock()) {
            return;
        }
        let mut bytes = charge.buffer();
        let content = match self.store.read_at(at, &mut bytes) {
            Ok(()) => Content::Here(Arc::new(Buffer { bytes, charge })),
            Err(error) => Content::Failed(error),
        };
        let mut state = self.lock();
        if let Some(piece) = state.pieces.get_mut(&at).filter(|piece| piece.id == id) {
            piece.content = content;
        }
        drop(state);
        self.changed.notify_all();
    }

    fn evict(&self, bytes: u64) -> u64 {
        let mut state = self.lock();
        let mut freed = 0;
        // What is farthest ahead is read last.
        while freed < bytes {
            let is_free =
                |piece: &Held| piece.readers == 0 && matches!(piece.content, Content::Here(_));
            let found = state.pieces.iter().rev().find(|(_, piece)| is_free(piece));
            let Some((at, len)) = found.map(|(at, piece)| (*at, piece.len)) else { break };
            state.pieces.remove(&at);
            freed += len;
            self.fetcher.counters.dropped();
        }
        freed
    }

    fn last_read(&self) -> u64 {
        self.last_read.load(Ordering::Relaxed)
    }
}
