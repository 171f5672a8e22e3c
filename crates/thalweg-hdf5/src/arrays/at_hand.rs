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

/// Stored bytes for each thread: starting one takes as long as copying part of them.
const BYTES_A_THREAD: u64 = 256 << 10;

/// Memory that a thread reuses.
#[derive(Default)]
struct Scratch {
    worker: WorkerState,
    bytes: Vec<u8>,
}

/// What became of a fetch.
enum Outcome {
    Filled,
    /// Its bytes would have to be waited for.
    NotAtHand,
    /// There is no memory for its bytes: the engine reads them.
    TooLong,
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
    /// have memory. Stops soon after the first entry that is not at hand, and leaves the rest to
    /// the engine.
    ///
    /// # Errors
    /// The first defect.
    pub(super) fn fill_at_hand(&self, window: &mut Window) -> Result<Clocks> {
        let begin = Instant::now();
        let threads = usize::try_from(window.stored() / BYTES_A_THREAD).unwrap_or(usize::MAX);
        let threads = self.options.budget.threads_within().min(1 + threads);
        // As much for stored bytes as the engine takes.
        let most = self.options.budget.memory / 4 * 3 / threads;
        let mut wanted = window.wanted(0);
        wanted.retain(|one| one.range.end <= self.store.size());
        wanted.sort_unstable_by_key(|one| Reverse((one.range.start, one.range.end, one.ordinal)));
        if wanted.last().is_none_or(|first| !self.store.is_at_hand(first.range.start)) {
            return Ok(Clocks::default());
        }
        let block = BLOCK.min(most as u64);
        let fetches = std::iter::from_fn(|| plan::merge(&mut wanted, GAP, block, usize::MAX));
        let idle = Mutex::new(Vec::<Scratch>::new());
        let is_over = AtomicBool::new(false);
        let (reading, decoding) = (Busy::default(), Busy::default());
        let of_window = &*window;
        let filled = pool::try_map(threads, fetches, |fetch| {
            self.options.control.check()?;
            if is_over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut scratch =
                idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
            let clocks = [&reading, &decoding];
            let outcome = self.fill_fetch(of_window, &fetch, most, &mut scratch, clocks)?;
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
            match outcome {
                Outcome::Filled => {
                    self.options.control.add_fetched(fetch.range.end - fetch.range.start);
                    return Ok(Some(fetch));
                }
                Outcome::NotAtHand => is_over.store(true, Ordering::Relaxed),
                Outcome::TooLong => {}
            }
            Ok(None)
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
        let idle = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Clocks {
            wall: begin.elapsed(),
            fetch: reading.stage(fetched),
            decode: decoding.stage(decoded),
            requests,
            peak_buffers: idle.iter().map(|scratch| scratch.bytes.len() as u64).sum(),
            ..Clocks::default()
        })
    }

    /// Fills the entries of a fetch, from at most so many stored bytes.
    fn fill_fetch(
        &self,
        window: &Window,
        fetch: &Fetch,
        most: usize,
        scratch: &mut Scratch,
        [reading, decoding]: [&Busy; 2],
    ) -> Result<Outcome> {
        let begin = Instant::now();
        let Scratch { worker, bytes } = scratch;
        if let [one] = &fetch.extents[..]
            && let Some(filled) = window.read_into(one.ordinal as usize, |out| {
                self.store.read_at_hand(one.range.start, out)
            })
        {
            reading.add(begin);
            return Ok(if filled { Outcome::Filled } else { Outcome::NotAtHand });
        }
        let len = (fetch.range.end - fetch.range.start) as usize;
        // A chunk may claim any size.
        if len > most {
            return Ok(Outcome::TooLong);
        }
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        if !self.store.read_at_hand(fetch.range.start, &mut bytes[..len]) {
            return Ok(Outcome::NotAtHand);
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
        Ok(Outcome::Filled)
    }
}
