//! Costs of the processor.

use thalweg_io::plan::Load;

use super::{ArrayLayout, layouts};
use crate::arrays::Dataset;

/// The processor costs of the steps of a read: bytes per second of one thread, and seconds. The
/// defaults were measured with a release build on the processor of one server (docs/doctor.md), not
/// on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Bytes per second from the device through the page cache to a buffer, including the
    /// allocation of pages.
    pub fetch: f64,
    /// Seconds per request of thalweg.
    pub request_s: f64,
    /// Seconds per chunk that thalweg copies to its place.
    pub chunk_s: f64,
    /// Bytes per second for copying values to their places and using them.
    pub deliver: f64,
    /// Seconds per chunk in libhdf5: for its index, its cache and its lock.
    pub library_chunk_s: f64,
    /// The speed of decoding relative to the built-in table of filter speeds.
    pub decode: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            fetch: 2.4e9,
            request_s: 6e-6,
            chunk_s: 0.65e-6,
            deliver: 1.85e9,
            library_chunk_s: 5e-6,
            decode: 1.0,
        }
    }
}

/// The decoding speed of a filter on one thread. The time of deflate depends on the bytes that it
/// reads; the time of other filters depends on the bytes that they produce.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodingCost {
    /// Decoded bytes per second.
    pub decoded: f64,
    /// Stored bytes per second. The times of decoded and stored bytes add up.
    pub stored: f64,
}

impl DecodingCost {
    const fn of(decoded: f64) -> Self {
        Self { decoded, stored: f64::INFINITY }
    }

    fn seconds(self, layout: &ArrayLayout) -> f64 {
        layout.bytes as f64 / self.decoded + layout.stored as f64 / self.stored
    }
}

/// The decoding speed of a filter on one thread: in this crate, and in libhdf5 with its usual
/// plugins.
pub(crate) fn decoding_costs(filter: &str) -> (DecodingCost, DecodingCost) {
    let both = |here, library| (DecodingCost::of(here), DecodingCost::of(library));
    match filter
        .split_once(" with ")
        .map_or(filter, |(_, inner)| inner)
        .split(':')
        .next()
        .unwrap_or(filter)
    {
        "deflate" => (
            DecodingCost { decoded: 8e9, stored: 0.24e9 },
            DecodingCost { decoded: 8e9, stored: 0.105e9 },
        ),
        "shuffle" => both(8e9, 2.5e9),
        "fletcher32" => both(1.1e9, 1.1e9),
        "zstd" => both(0.8e9, 0.8e9),
        "lz4" => both(1.7e9, 1.7e9),
        "lzf" => both(0.8e9, 0.6e9),
        "bitshuffle" => both(4e9, 3e9),
        "blosc" => both(1.5e9, 1.5e9),
        "vbz" => both(1.2e9, 0.8e9),
        _ => both(0.2e9, 0.2e9),
    }
}

impl Costs {
    /// Processor seconds of a read of `wanted` stored bytes of some datasets.
    pub fn of_read(&self, datasets: &[&Dataset], load: Load, wanted: u64) -> f64 {
        let layouts = layouts(datasets);
        let stored: u64 = layouts.iter().map(|layout| layout.stored).sum();
        let share = wanted as f64 / stored.max(1) as f64;
        self.fetching(load) + self.decoding(&layouts) * share.min(1.0)
    }

    /// Processor seconds of thalweg.
    pub(super) fn thalweg(&self, layouts: &[ArrayLayout], load: Load) -> f64 {
        self.fetching(load) + self.decoding(layouts)
    }

    fn fetching(&self, load: Load) -> f64 {
        load.bytes as f64 / self.fetch + load.requests as f64 * self.request_s
    }

    fn decoding(&self, layouts: &[ArrayLayout]) -> f64 {
        let each = |layout: &ArrayLayout| {
            let bytes = layout.bytes as f64;
            let decode: f64 =
                layout.filters.iter().map(|filter| decoding_costs(filter).0.seconds(layout)).sum();
            layout.pieces as f64 * self.chunk_s + bytes / self.deliver + decode / self.decode
        };
        layouts.iter().map(each).sum()
    }

    /// Processor seconds of a reader through libhdf5.
    pub(super) fn libhdf5(&self, layouts: &[ArrayLayout]) -> f64 {
        let each = |layout: &ArrayLayout| {
            let bytes = layout.bytes as f64;
            let decode: f64 =
                layout.filters.iter().map(|filter| decoding_costs(filter).1.seconds(layout)).sum();
            layout.stored as f64 / self.fetch
                + layout.pieces as f64 * self.library_chunk_s
                + bytes / self.deliver
                + decode / self.decode
        };
        layouts.iter().map(each).sum()
    }
}
