//! Values of attributes and storage of datasets, for both parsers of metadata.

use std::sync::Arc;

use thalweg_io::Fault;

use crate::filter::Pipeline;

/// Bytes per sample.
const SAMPLE: u64 = 2;

/// The value of a scalar attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A signed integer, and its size in bytes.
    Signed(i64, usize),
    /// An unsigned integer, and its size in bytes.
    Unsigned(u64, usize),
    /// A floating-point number, and its size in bytes.
    Float(f64, usize),
    /// A string.
    Text(String),
    /// A code, and the names of all codes.
    Enum(i64, Arc<Vec<(i64, String)>>),
    /// A description of any other value.
    Other(&'static str),
}

impl Value {
    /// A value whose number of elements is not one.
    pub(super) const ARRAY: Self = Self::Other("an array");
    /// A value of another class.
    pub(super) const STRANGE: Self = Self::Other("a value that is neither a number nor a string");
    /// An enumeration whose codes have more than eight bytes.
    pub(super) const LONG_CODES: Self = Self::Other("an enumeration of long integers");
    /// The longest text that is read, in bytes.
    pub(super) const MOST_TEXT: usize = 1 << 20;
}

/// A dataset of 16-bit samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleDataset {
    /// The number of samples.
    pub len: u64,
    /// The value of elements that are not stored.
    pub fill: i16,
    /// Where the samples are stored.
    pub storage: Storage,
    /// The filters of its chunks.
    pub pipeline: Pipeline,
}

/// The storage of a dataset's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In the dataset's object header. Holds the elements.
    Inline(Vec<i16>),
    /// Contiguous from this offset on; `None` if nothing was written.
    Contiguous(Option<u64>),
    /// In chunks: the elements per chunk, and the stored chunks.
    Chunked(u64, Vec<Chunk>),
}

/// A stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Index of its first element in the dataset.
    pub first: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Stored size in bytes.
    pub size: u64,
    /// A set bit for each filter that was skipped.
    pub mask: u32,
}

impl SampleDataset {
    /// The number of elements with stored bytes. Stored chunks count whole.
    pub(super) fn stored(len: u64, storage: &Storage) -> u64 {
        match storage {
            Storage::Chunked(chunk, chunks) => (chunks.len() as u64).saturating_mul(*chunk),
            Storage::Contiguous(None) => 0,
            _ => len,
        }
    }

    /// Checks that all stored bytes lie inside a file of `size` bytes.
    pub(super) fn check_inside(&self, size: u64) -> Result<(), Fault> {
        let inside = |offset: u64, len: Option<u64>| {
            if len.and_then(|len| offset.checked_add(len)).is_some_and(|end| end <= size) {
                return Ok(());
            }
            let found = format!("data from byte {offset} on that do not fit");
            let at = usize::try_from(offset.min(size)).unwrap_or(usize::MAX);
            Err(Fault::new(at, found, format!("data inside the {size} bytes of the file")))
        };
        match &self.storage {
            Storage::Inline(_) | Storage::Contiguous(None) => Ok(()),
            Storage::Contiguous(Some(offset)) => inside(*offset, self.len.checked_mul(SAMPLE)),
            Storage::Chunked(_, chunks) => {
                chunks.iter().try_for_each(|chunk| inside(chunk.offset, Some(chunk.size)))
            }
        }
    }
}
