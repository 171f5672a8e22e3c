//! Small reads outside of the engine, many at a time to hide the store's latency.

use std::ops::Range;

use super::Store;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::pool;

/// Reads the bytes of `range`, which must lie within the store.
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
    pool::try_map(depth, ranges, |range| {
        if control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Ok(read(store, range))
    })
}
