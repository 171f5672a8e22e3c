//! How an array lies in its file.

use crate::libhdf5::{Array, ElementPlace};

/// Chunks shorter than this cost more requests than bytes nearly everywhere.
pub(super) const SMALL: u64 = 64 << 10;

/// How an array lies in its file, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Where it is in the file.
    pub path: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Bytes of an element.
    pub element: u64,
    /// Bytes of all values.
    pub bytes: u64,
    /// Bytes stored for them.
    pub stored: u64,
    /// The shape of its chunks, if it has any.
    pub chunk: Option<Vec<u64>>,
    /// Chunks that are stored; 1 for one run.
    pub pieces: u64,
    /// Chunks that have one before them in the array.
    pub pairs: u64,
    /// Of these, chunks that begin where it ends, or up to a sector later.
    pub followed: u64,
    /// Stored bytes in chunks shorter than 64 KiB.
    pub small: u64,
    /// Filters, by name, in the order in which they were applied.
    pub filters: Vec<String>,
    /// Why libhdf5 alone can read it, if so.
    pub library: Option<String>,
}

/// Chunks a few bytes apart are read ahead as if they followed each other: a piece of an index may
/// stand between.
const NEAR: u64 = 4096;

impl ArrayLayout {
    /// How an array lies.
    pub fn of(path: &str, array: &Array) -> Self {
        let mut layout = Self {
            path: path.to_owned(),
            shape: array.shape.clone(),
            element: array.dtype.size() as u64,
            bytes: array.bytes(),
            stored: 0,
            chunk: None,
            pieces: 0,
            pairs: 0,
            followed: 0,
            small: 0,
            filters: array.pipeline.0.iter().map(ToString::to_string).collect(),
            library: array.library().map(str::to_owned),
        };
        match &array.place {
            ElementPlace::Contiguous(Some(_)) if layout.bytes > 0 => {
                (layout.stored, layout.pieces) = (layout.bytes, 1);
            }
            ElementPlace::Chunked(chunk, chunks) => {
                layout.chunk = Some(chunk.clone());
                layout.stored = chunks.iter().map(|chunk| chunk.size).sum();
                layout.pieces = chunks.len() as u64;
                layout.pairs = layout.pieces.saturating_sub(1);
                let follows =
                    |end: u64, next: u64| (end..=end.saturating_add(NEAR)).contains(&next);
                let pairs = chunks.windows(2).filter_map(|pair| match pair {
                    [one, two] => Some((one.offset + one.size, two.offset)),
                    _ => None,
                });
                layout.followed = pairs.filter(|&(end, next)| follows(end, next)).count() as u64;
                // A dataset that is one short chunk can have no longer one.
                let small = chunks.iter().filter(|chunk| chunk.size < SMALL);
                layout.small =
                    if layout.pieces > 1 { small.map(|chunk| chunk.size).sum() } else { 0 };
            }
            ElementPlace::Contiguous(_) | ElementPlace::Inline(_) | ElementPlace::Library(_) => {}
        }
        layout
    }

    /// Decoded bytes of a chunk.
    pub fn chunk_bytes(&self) -> Option<u64> {
        let chunk = self.chunk.as_ref()?;
        Some(chunk.iter().product::<u64>() * self.element)
    }

    /// Whether it went through a compressor.
    pub fn is_compressed(&self) -> bool {
        self.filters
            .iter()
            .any(|filter| !matches!(filter.as_str(), "shuffle" | "fletcher32" | "bitshuffle"))
    }
}
