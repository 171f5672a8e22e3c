//! Small requests beside the engine's: many at a time, because a store may take its time over each.

use std::ops::Range;

use super::Store;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::pool;

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

/// The bytes of each of `ranges`, with up to `depth` requests in flight.
///
/// # Errors
/// [`Error::Cancelled`]. A range that cannot be read has its error in its place.
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
