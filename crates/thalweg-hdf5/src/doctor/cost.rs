//! What the processor takes.

use thalweg_io::plan::Load;

use super::ArrayLayout;

/// What the processor takes for the steps of a read: bytes a second of one thread, and seconds. The
/// defaults were measured with a release build on one server's processor (docs/doctor.md); they are
/// no measurement of this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Bytes a second from the device through the page cache to a buffer, pages made on the way.
    pub fetch: f64,
    /// Seconds for a request of thalweg's.
    pub request_s: f64,
    /// Seconds for a chunk that thalweg puts where it belongs.
    pub chunk_s: f64,
    /// Bytes a second to put values where they belong and to look at them.
    pub deliver: f64,
    /// Seconds for a chunk in libhdf5: its index, its cache, its lock.
    pub library_chunk_s: f64,
    /// How fast filters are undone, against the table.
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

/// How fast one thread undoes a filter. What deflate takes goes by the bytes that it reads, what
/// others take by those that they make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodingCost {
    /// Decoded bytes a second.
    pub decoded: f64,
    /// Stored bytes a second; what both take adds up.
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

/// How fast one thread undoes a filter: here, and in libhdf5 with its usual plugins.
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
    /// Processor seconds of thalweg.
    pub(super) fn thalweg(&self, layouts: &[ArrayLayout], load: Load) -> f64 {
        let fetch = load.bytes as f64 / self.fetch + load.requests as f64 * self.request_s;
        let each = |layout: &ArrayLayout| {
            let bytes = layout.bytes as f64;
            let decode: f64 =
                layout.filters.iter().map(|filter| decoding_costs(filter).0.seconds(layout)).sum();
            layout.pieces as f64 * self.chunk_s + bytes / self.deliver + decode / self.decode
        };
        fetch + layouts.iter().map(each).sum::<f64>()
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
