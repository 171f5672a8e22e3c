//! How many requests a run makes, and how many bytes they transfer.

use thalweg_io::engine::Shape;
use thalweg_io::extent::Fetch;

use super::OpenFile;

/// The requests of a run, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestTotals {
    /// Requests to the store.
    pub requests: u64,
    /// Bytes that they transfer.
    pub fetched_bytes: u64,
    /// Of these, bytes that were asked for.
    pub wanted_bytes: u64,
}

impl RequestTotals {
    /// Those of a plan.
    pub fn of(file: &OpenFile, fetches: impl Iterator<Item = Fetch>) -> Self {
        let mut totals = Self::default();
        fetches.for_each(|fetch| totals.add(file, &fetch));
        totals
    }

    /// Those of a run that streams over the whole file.
    pub(crate) fn of_whole_file(file: &OpenFile, shape: &Shape) -> Self {
        let size = file.store.size();
        let data = file.header.data_offset;
        if data >= size {
            return Self::default();
        }
        let block = shape.block as u64;
        let align = file.store.alignment() as u64;
        let start = data / align * align;
        Self {
            requests: size.div_ceil(block) - start / block,
            fetched_bytes: size - start,
            wanted_bytes: size - data,
        }
    }

    /// Adds a request.
    pub fn add(&mut self, file: &OpenFile, fetch: &Fetch) {
        let align = file.store.alignment() as u64;
        // The engine asks from the aligned offset on, too.
        let start = fetch.range.start / align * align;
        let mut end = start;
        for extent in &fetch.extents {
            self.wanted_bytes += extent.range.end.saturating_sub(extent.range.start.max(end));
            end = end.max(extent.range.end);
        }
        self.requests += 1;
        self.fetched_bytes += fetch.range.end - start;
    }
}
