//! What the processor takes.

use super::Layout;
use crate::plan::Load;

/// What the processor takes for the steps of a read: bytes a second of one thread, and seconds. The defaults are guesses of what a
/// processor of these years does; they are no measurement of this one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Bytes a second from the page cache to a buffer.
    pub fetch: f64,
    /// Seconds for a request of thalweg's.
    pub request_s: f64,
    /// Seconds for a chunk that thalweg puts where it belongs.
    pub chunk_s: f64,
    /// Bytes a second to put values where they belong and to look at them.
    pub deliver: f64,
    /// Seconds for a chunk in libhdf5: its index, its cache, its lock.
    pub library_chunk_s: f64,
    /// Decoded bytes a second of a filter, against those of the table.
    pub decode: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { fetch: 3.5e9, request_s: 6e-6, chunk_s: 0.6e-6, deliver: 3e9, library_chunk_s: 5e-6, decode: 1.0 }
    }
}

/// Decoded bytes a second that one thread undoes of a filter: here, and in libhdf5 with its usual plugins.
pub fn decode_rate(filter: &str) -> (f64, f64) {
    match filter.split_once(" with ").map_or(filter, |(_, inner)| inner) {
        "deflate" => (0.8e9, 0.35e9),
        "shuffle" => (6e9, 2.5e9),
        "fletcher32" => (2.5e9, 1.5e9),
        "zstd" => (1.1e9, 1.0e9),
        "lz4" => (2.2e9, 2.0e9),
        "lzf" => (0.8e9, 0.6e9),
        "bitshuffle" => (4e9, 3e9),
        "blosc" => (1.5e9, 1.5e9),
        "vbz" => (1.2e9, 0.8e9),
        _ => (0.2e9, 0.2e9),
    }
}

impl Costs {
    /// Processor seconds of thalweg.
    pub(super) fn thalweg(&self, layouts: &[Layout], load: Load) -> f64 {
        let fetch = load.bytes as f64 / self.fetch + load.requests as f64 * self.request_s;
        let each = |layout: &Layout| {
            let bytes = layout.bytes as f64;
            let decode: f64 = layout.filters.iter().map(|filter| bytes / decode_rate(filter).0).sum();
            layout.pieces as f64 * self.chunk_s + bytes / self.deliver + decode / self.decode
        };
        fetch + layouts.iter().map(each).sum::<f64>()
    }

    /// Processor seconds of a reader through libhdf5.
    pub(super) fn libhdf5(&self, layouts: &[Layout]) -> f64 {
        let each = |layout: &Layout| {
            let bytes = layout.bytes as f64;
            let decode: f64 = layout.filters.iter().map(|filter| bytes / decode_rate(filter).1).sum();
            layout.stored as f64 / self.fetch
                + layout.pieces as f64 * self.library_chunk_s
                + bytes / self.deliver
                + decode / self.decode
        };
        layouts.iter().map(each).sum()
    }
}
