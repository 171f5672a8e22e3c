//! Small reads outside of the engine, many at a time to hide the store's latency.

use std::ops::Range;
use std::time::Instant;

use super::{AlignedBuf, Feed, Next, Request, SMALL, Store};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::pool;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The least number of small requests in flight. They reach the device in groups, which a device
/// without much latency answers quicker than one after the other.
const SMALL_DEPTH: usize = 64;
/// The least number of small requests for which a store may set up a ring.
const LEAST_SMALL: usize = 16;

/// Reads the bytes of `range`, which must lie within the store.
pub fn read(store: &dyn Store, range: &Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = room(store, range)?;
    store.read_at(range.start, &mut bytes)?;
    Ok(bytes)
}

/// Room for the bytes of `range`.
fn room(store: &dyn Store, range: &Range<u64>) -> Result<Vec<u8>> {
    /// The most bytes that are taken without asking whether there is so much memory.
    const FEW: usize = 1 << 20;
    let len = (range.end - range.start) as usize;
    if len <= FEW {
        // The system's zeros need no clearing.
        return Ok(vec![0; len]);
    }
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(len).is_err() {
        let doing = "making room for a part of a table";
        let kind = std::io::ErrorKind::OutOfMemory;
        return Err(Error::io_at(store.name(), doing, range.start, kind));
    }
    bytes.resize(len, 0);
    Ok(bytes)
}

/// Reads the bytes of each of `ranges`, with up to `depth` requests in flight.
///
/// # Errors
/// [`Error::Cancelled`] if `control` was cancelled. For a range that cannot be read, the returned
/// list holds its error.
pub fn read_many(
    store: &dyn Store,
    ranges: &[Range<u64>],
    depth: usize,
    control: &Control,
) -> Result<Vec<Result<Vec<u8>>>> {
    // One thread needs no ring. A store that wants aligned requests reads these ranges through
    // buffers of its own.
    if depth.min(ranges.len()) < 2 || store.alignment() > 1 {
        return pool::try_map(depth, ranges, |range| {
            control.check()?;
            Ok(read(store, range))
        });
    }
    let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let usual = (bytes / ranges.len() as u64) as usize;
    let is_small = usual < SMALL && ranges.len() >= LEAST_SMALL;
    let depth = if is_small { depth.max(SMALL_DEPTH) } else { depth };
    let usual = is_small.then_some(usual);
    let outcomes = Mutex::new(ranges.iter().map(|_| None).collect());
    let reads = Reads { store, ranges, usual, control, next: AtomicUsize::new(0), outcomes };
    store.serve(depth, &reads);
    let outcomes = reads.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    control.check()?;
    // A store that gave up early has not answered all requests.
    let outcomes = ranges.iter().zip(outcomes);
    Ok(outcomes.map(|(range, outcome)| outcome.unwrap_or_else(|| read(store, range))).collect())
}

/// The reads of [`read_many`], as a feed for the store.
struct Reads<'a> {
    store: &'a dyn Store,
    ranges: &'a [Range<u64>],
    usual: Option<usize>,
    control: &'a Control,
    /// The index of the range that is asked for next.
    next: AtomicUsize,
    outcomes: Mutex<Vec<Option<Result<Vec<u8>>>>>,
}

impl Reads<'_> {
    fn outcomes(&self) -> MutexGuard<'_, Vec<Option<Result<Vec<u8>>>>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed for Reads<'_> {
    fn next(&self, _wait: bool) -> Next {
        while !self.control.is_cancelled() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = self.ranges.get(index) else { break };
            match room(self.store, range) {
                Ok(bytes) => {
                    return Next::Read(Request {
                        offset: range.start,
                        len: bytes.len(),
                        buf: Some(AlignedBuf::unaligned(bytes)),
                        at: 0,
                        tag: index as u64,
                        issued: Instant::now(),
                    });
                }
                Err(error) => self.outcomes()[index] = Some(Err(error)),
            }
        }
        Next::End
    }

    fn put(&self, request: Request, outcome: Result<()>) {
        let bytes = request.buf.map(AlignedBuf::into_vec).unwrap_or_default();
        if let Some(place) = self.outcomes().get_mut(request.tag as usize) {
            *place = Some(outcome.map(|()| bytes));
        }
    }

    fn usual(&self) -> Option<usize> {
        self.usual
    }
}
