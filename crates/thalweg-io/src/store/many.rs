//! Small requests beside the engine's: many at a time, because a store may take its time over each.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Store;
use crate::control::Control;
use crate::error::{Error, Result};

/// The bytes of `range`, which lies within the store.
pub fn read(store: &dyn Store, range: &Range<u64>) -> Result<Vec<u8>> {
    let len = (range.end - range.start) as usize;
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(len).is_err() {
        let doing = "making room for a part of a table";
        return Err(Error::io_at(
            store.name(),
            doing,
            range.start,
            std::io::ErrorKind::OutOfMemory,
        ));
    }
    bytes.resize(len, 0);
    store.read_at(range.start, &mut bytes)?;
    Ok(bytes)
}

/// The bytes of all `ranges`, up to `depth` requests in flight.
pub fn read_many(
    store: &dyn Store,
    ranges: &[Range<u64>],
    depth: usize,
    control: &Control,
) -> Result<Vec<Result<Vec<u8>>>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while !control.is_cancelled() {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = ranges.get(i) else { break };
            done.push((i, read(store, range)));
        }
        done
    };
    let all = Mutex::new(Vec::with_capacity(ranges.len()));
    let keep = |done| all.lock().unwrap_or_else(PoisonError::into_inner).extend::<Vec<_>>(done);
    std::thread::scope(|scope| {
        for _ in 1..depth.min(ranges.len()) {
            scope.spawn(|| keep(work()));
        }
        keep(work());
    });
    if control.is_cancelled() {
        return Err(Error::Cancelled);
    }
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_unstable_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, bytes)| bytes).collect())
}
