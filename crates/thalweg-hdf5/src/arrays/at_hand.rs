//! Filling arrays from bytes that are at hand, such as those in the page cache. There is nothing to
//! wait for, so each thread reads what it decodes, without an engine.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_io::engine::{Clocks, Stage};
use thalweg_io::extent::{Extent, Fetch};
use thalweg_io::sync::{Mutex, PoisonError};
use thalweg_io::{Result, plan, pool};

use super::ArrayFile;
use super::window::{Window, WorkerState};

/// Gaps of so many bytes are read rather than skipped: a call takes as long as copying them.
const GAP: u64 = 4 << 10;

/// The most bytes that are read at once, unless a chunk is longer. They stay in the processor's
/// second cache until they are decoded.
const BLOCK: u64 = 128 << 10;

/// Bytes for which another thread is started. It takes as long as copying some of them.
const BYTES_A_THREAD: u64 = 256 << 10;

/// What a thread uses again.
#[derive(Default)]
struct Hand {
    worker: WorkerState,
    bytes: Vec<u8>,
}

/// Nanoseconds of all threads.
#[derive(Default)]
struct Busy(AtomicU64);

impl Busy {
    fn add(&self, since: Instant) -> Instant {
        let now = Instant::now();
        self.0.fetch_add((now - since).as_nanos() as u64, Ordering::Relaxed);
        now
    }

    fn stage(self, bytes: u64) -> Stage {
        let busy = Duration::from_nanos(self.0.into_inner());
        Stage { busy, bytes, ..Stage::default() }
    }
}

impl ArrayFile {
    /// Fills the entries of a window that are at hand, and removes them from it. All its targets
    /// have memory. Ends at about the first entry that is not at hand.
    ///
    /// # Errors
    /// The first defect.
    pub(super) fn fill_at_hand(&self, window: &mut Window) -> Result<Clocks> {
        let begin = Instant::now();
        let mut wanted = window.wanted(0);
        wanted.sort_unstable_by_key(|one| Reverse((one.range.start, one.range.end, one.ordinal)));
        if wanted.last().is_none_or(|first| !self.store.is_at_hand(first.range.start)) {
            return Ok(Clocks::default());
        }
        let threads = usize::try_from(window.stored() / BYTES_A_THREAD).unwrap_or(usize::MAX);
        let threads = self.options.budget.threads.min(1 + threads);
        let fetches = std::iter::from_fn(|| plan::merge(&mut wanted, GAP, BLOCK, usize::MAX));
        let idle = Mutex::new(Vec::<Hand>::new());
        let is_over = AtomicBool::new(false);
        let (reading, decoding) = (Busy::default(), Busy::default());
        let of_window = &*window;
        let filled = pool::try_map(threads, fetches, |fetch| {
            self.options.control.check()?;
            if is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut hand =
                idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
            let filled = self.fill_fetch(of_window, &fetch, &mut hand, [&reading, &decoding])?;
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(hand);
            if !filled {
                is_over.store(true, Ordering::Relaxed);
            }
            Ok(filled.then_some(fetch))
        })?;
        let mut left = vec![true; window.entries.len()];
        let (mut requests, mut fetched, mut decoded) = (0, 0, 0);
        for fetch in filled.into_iter().flatten() {
            requests += 1;
            fetched += fetch.range.end - fetch.range.start;
            for wanted in fetch.extents {
                decoded += wanted.range.end - wanted.range.start;
                left[wanted.ordinal as usize] = false;
            }
        }
        let mut left = left.into_iter();
        window.entries.retain(|_| left.next().unwrap_or(true));
        self.options.control.add_fetched(fetched);
        Ok(Clocks {
            wall: begin.elapsed(),
            fetch: reading.stage(fetched),
            decode: decoding.stage(decoded),
            requests,
            ..Clocks::default()
        })
    }

    /// Fills the entries of a fetch. Returns whether its bytes are at hand.
    fn fill_fetch(
        &self,
        window: &Window,
        fetch: &Fetch,
        hand: &mut Hand,
        [reading, decoding]: [&Busy; 2],
    ) -> Result<bool> {
        let begin = Instant::now();
        let Hand { worker, bytes } = hand;
        if let [one] = &fetch.extents[..]
            && let Some(filled) = window.read_into(one.ordinal as usize, |out| {
                self.store.read_at_hand(one.range.start, out)
            })
        {
            reading.add(begin);
            return Ok(filled);
        }
        // A chunk may claim any size. The engine takes those beyond the budget one at a time.
        let most = self.options.budget.memory / self.options.budget.threads.max(1);
        let len = (fetch.range.end - fetch.range.start) as usize;
        if len > most || fetch.range.end > self.store.size() {
            return Ok(false);
        }
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        if !self.store.read_at_hand(fetch.range.start, &mut bytes[..len]) {
            return Ok(false);
        }
        let begin = reading.add(begin);
        let limit = self.options.budget.memory;
        for wanted in &fetch.extents {
            let at = (wanted.range.start - fetch.range.start) as usize;
            let end = (wanted.range.end - fetch.range.start) as usize;
            let (offset, ordinal) = (wanted.range.start, wanted.ordinal);
            let extent = Extent { offset, ordinal, bytes: &bytes[at..end] };
            let target = window.target(ordinal as usize);
            if let Some(buffer) = target.buffer() {
                worker.fill(window, ordinal as usize, &extent, buffer, limit)?;
            }
        }
        decoding.add(begin);
        Ok(true)
    }
}
