//! Counting the requests of a run and the bytes that they transfer.

use std::ops::Range;

use thalweg_io::engine::Shape;
use thalweg_io::extent::Fetch;
use thalweg_io::store::Store;

use super::OpenFile;

/// The totals of the requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestTotals {
    /// The number of requests to the store.
    pub requests: u64,
    /// Bytes that the requests transfer.
    pub fetched_bytes: u64,
    /// Transferred bytes that belong to selected reads.
    pub wanted_bytes: u64,
    /// What is asked of an object where a [cache](thalweg_io::object_cache) has some of it; without
    /// one, all requests.
    pub paid: PaidRequests,
}

/// Requests that are paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PaidRequests {
    /// The number of requests.
    pub requests: u64,
    /// Bytes that they transfer.
    pub bytes: u64,
}

impl PaidRequests {
    /// Adds a request for these bytes of a store, as far as it is one.
    fn add(&mut self, store: &dyn Store, range: Range<u64>) {
        let missing = store.missing(range);
        self.requests += u64::from(!missing.is_empty());
        self.bytes += missing.end.saturating_sub(missing.start);
    }
}

impl RequestTotals {
    /// The totals of a plan.
    pub fn of(file: &OpenFile, fetches: impl Iterator<Item = Fetch>) -> Self {
        let mut totals = Self::default();
        fetches.for_each(|fetch| totals.add(file, &fetch));
        totals
    }

    /// The totals of a run that streams over the whole file.
    pub(crate) fn of_whole_file(file: &OpenFile, shape: &Shape) -> Self {
        let size = file.store.size();
        let data = file.header.data_offset;
        if data >= size {
            return Self::default();
        }
        if size <= file.store.head() {
            return Self { wanted_bytes: size - data, ..Self::default() };
        }
        let block = shape.block as u64;
        let align = file.store.alignment() as u64;
        let start = data / align * align;
        let mut paid = PaidRequests::default();
        for number in start / block..size.div_ceil(block) {
            let range = (number * block).max(start)..((number + 1) * block).min(size);
            paid.add(&*file.store, range);
        }
        Self {
            requests: size.div_ceil(block) - start / block,
            fetched_bytes: size - start,
            wanted_bytes: size - data,
            paid,
        }
    }

    /// Adds a request, unless its bytes came when the file was opened.
    pub fn add(&mut self, file: &OpenFile, fetch: &Fetch) {
        let align = file.store.alignment() as u64;
        // The engine also starts requests at aligned offsets.
        let start = fetch.range.start / align * align;
        let mut end = start;
        for extent in &fetch.extents {
            self.wanted_bytes += extent.range.end.saturating_sub(extent.range.start.max(end));
            end = end.max(extent.range.end);
        }
        if fetch.range.end > file.store.head() {
            self.requests += 1;
            self.fetched_bytes += fetch.range.end - start;
            self.paid.add(&*file.store, start..fetch.range.end);
        }
    }
}
