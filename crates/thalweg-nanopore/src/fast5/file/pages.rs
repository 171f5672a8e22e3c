//! Reads metadata through a store in windows, because related metadata lie close together.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use thalweg_hdf5::metadata::{ByteSource, Views};
use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::extent::Wanted;
use thalweg_io::plan::{self, GapRule};
use thalweg_io::store::Store;
use thalweg_io::store::many::read_many;

/// Bytes of a window, and how many windows are kept.
pub(super) const WINDOW: u64 = 6 << 10;
const KEPT: usize = 8;

/// Bytes fetched ahead at a time.
const AHEAD: u64 = 32 << 20;

/// A store as a source of metadata.
pub(super) struct Pages {
    store: Arc<dyn Store>,
    control: Control,
    /// The rule for gaps between expected ranges.
    rule: GapRule,
    /// Requests in flight while expected ranges are fetched.
    depth: usize,
    /// The windows in the order of their use: offset and bytes.
    windows: Mutex<VecDeque<(u64, Vec<u8>)>>,
    /// The expected bytes, by offset.
    ahead: Mutex<Vec<(u64, Vec<u8>)>>,
    requests: AtomicU64,
}

impl Pages {
    pub(super) fn new(
        store: &Arc<dyn Store>,
        control: &Control,
        rule: GapRule,
        depth: usize,
    ) -> Self {
        Self {
            store: store.clone(),
            control: control.clone(),
            rule,
            depth,
            windows: Mutex::default(),
            ahead: Mutex::default(),
            requests: AtomicU64::new(0),
        }
    }

    /// Successive requests so far. Those for expected ranges count as one.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn known(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let inside = |(start, bytes): &(u64, Vec<u8>)| {
            let from = usize::try_from(at.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(len)?).map(<[u8]>::to_vec)
        };
        if let Some(found) = lock(&self.windows).iter().rev().find_map(inside) {
            return Some(found);
        }
        let ahead = lock(&self.ahead);
        let before = ahead.partition_point(|(start, _)| *start <= at);
        inside(ahead.get(before.checked_sub(1)?)?)
    }

    /// The `len` bytes from `at` on, which lie inside the file.
    pub(super) fn get(&self, at: u64, len: usize) -> Result<Cow<'_, [u8]>> {
        if let Some(known) = self.known(at, len) {
            return Ok(Cow::Owned(known));
        }
        self.control.check()?;
        if let Some(bytes) = self.store.bytes() {
            self.store.touch(at, len)?;
            let start = usize::try_from(at).unwrap_or(usize::MAX);
            return Ok(Cow::Borrowed(
                bytes.get(start..start.saturating_add(len)).unwrap_or_default(),
            ));
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        if len as u64 > WINDOW {
            let mut bytes = vec![0; len];
            self.store.read_at(at, &mut bytes)?;
            return Ok(Cow::Owned(bytes));
        }
        let mut windows = lock(&self.windows);
        let mut bytes = if windows.len() < KEPT {
            Vec::new()
        } else {
            windows.pop_front().unwrap_or_default().1
        };
        bytes.resize(WINDOW.min(self.store.size() - at) as usize, 0);
        self.store.read_at(at, &mut bytes)?;
        let wanted = bytes.get(..len).unwrap_or_default().to_vec();
        windows.push_back((at, bytes));
        Ok(Cow::Owned(wanted))
    }

    /// Fetches ranges that will be asked for soon.
    pub(super) fn expect(&self, ranges: Vec<Range<u64>>) -> Result<()> {
        if self.store.bytes().is_some() {
            return Ok(());
        }
        let wanted = (0..).zip(ranges).map(|(ordinal, range)| Wanted { range, ordinal }).collect();
        let block = self.rule.model().block;
        let mut merged: Vec<Range<u64>> =
            plan::in_order(wanted, &self.rule, block).map(|fetch| fetch.range).collect();
        // Ranges that do not fit are fetched when they are asked for.
        let mut room = AHEAD;
        merged.retain(|range| match room.checked_sub(range.end - range.start) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
        self.requests.fetch_add(1, Ordering::Relaxed);
        let fetched = read_many(&*self.store, &merged, self.depth, &self.control)?;
        let mut ahead = lock(&self.ahead);
        ahead.clear();
        for (range, bytes) in merged.into_iter().zip(fetched) {
            ahead.push((range.start, bytes?));
        }
        Ok(())
    }
}

impl ByteSource for Pages {
    fn size(&self) -> u64 {
        self.store.size()
    }

    fn poll(&self, ranges: &[Range<u64>]) -> Poll<Result<Views<'_>>> {
        let get = |range: &Range<u64>| self.get(range.start, (range.end - range.start) as usize);
        Poll::Ready(ranges.iter().map(get).collect())
    }

    fn hint(&self, ranges: &[Range<u64>]) {
        // A single range is read at once anyway. Errors come back when the bytes are asked for.
        if ranges.len() > 1 {
            drop(self.expect(ranges.to_vec()));
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
