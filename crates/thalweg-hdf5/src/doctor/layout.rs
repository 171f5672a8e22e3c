//! The layout of an array in its file.

use crate::array::{Array, ElementPlace};

/// In bytes. On nearly all stores, requests for shorter chunks cost more time than the transfer of
/// their bytes.
pub(super) const SMALL: u64 = 64 << 10;

/// The layout of an array in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLayout {
    /// The path of the dataset.
    pub path: String,
    /// The shape of the array.
    pub shape: Vec<u64>,
    /// Bytes of an element.
    pub element: u64,
    /// Bytes of all values.
    pub bytes: u64,
    /// Bytes of all values as stored.
    pub stored: u64,
    /// The shape of its chunks; `None` for a contiguous array.
    pub chunk: Option<Vec<u64>>,
    /// The number of stored chunks; 1 for a contiguous array.
    pub pieces: u64,
    /// Chunks that have a previous chunk in the array.
    pub pairs: u64,
    /// How many of these begin where the previous chunk ends, or up to 4 KiB later.
    pub followed: u64,
    /// Stored bytes in chunks shorter than 64 KiB.
    pub small: u64,
    /// Filters, by name, in the order in which they were applied.
    pub filters: Vec<String>,
}

/// Chunks up to this many bytes apart count as adjacent, because read-ahead covers the gap. A piece
/// of a chunk index may lie between them.
const NEAR: u64 = 4096;

impl ArrayLayout {
    /// Computes the layout of an array.
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
                // A dataset with a single short chunk cannot have longer chunks.
                let small = chunks.iter().filter(|chunk| chunk.size < SMALL);
                layout.small =
                    if layout.pieces > 1 { small.map(|chunk| chunk.size).sum() } else { 0 };
            }
            ElementPlace::Contiguous(_) | ElementPlace::Inline(_) | ElementPlace::Virtual(_) => {}
        }
        layout
    }

    /// Decoded bytes of a chunk.
    pub fn chunk_bytes(&self) -> Option<u64> {
        let chunk = self.chunk.as_ref()?;
        Some(chunk.iter().product::<u64>() * self.element)
    }

    /// Whether a compressing filter was applied.
    pub fn is_compressed(&self) -> bool {
        self.filters
            .iter()
            .any(|filter| !matches!(filter.as_str(), "shuffle" | "fletcher32" | "bitshuffle"))
    }
}
