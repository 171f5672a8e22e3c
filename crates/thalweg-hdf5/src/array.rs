//! Datasets of elements of one size: their shape, the type of their elements, and where these lie.

use std::sync::Arc;

use crate::convert::Conversion;
use crate::dtype::Dtype;
use crate::filter::Pipeline;
use crate::mapping::Mapping;
use crate::types::Chunk;

/// The most dimensions that HDF5 allows (`H5S_MAX_RANK`).
pub(crate) const MOST_RANK: usize = 32;

/// A dataset of elements of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The length of each dimension; none for a single element.
    pub shape: Vec<u64>,
    /// The type of an element. The dimensions of an array type are part of `shape`, behind those of
    /// the dataset.
    pub dtype: Dtype,
    /// The value, in stored form, of elements that are not stored; empty for zeros. If the parts of
    /// an array type differ, these are its parts; the values of all elements repeat them.
    pub fill: Vec<u8>,
    /// Where the elements lie.
    pub place: ElementPlace,
    /// The filters of its chunks.
    pub pipeline: Pipeline,
}

/// Where elements lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementPlace {
    /// In the dataset's header. The bytes are the elements as stored.
    Inline(Vec<u8>),
    /// In one run from this offset on; `None` if nothing was written.
    Contiguous(Option<u64>),
    /// In chunks of this shape. A chunk's `first` is its number in the grid of chunks, in C order;
    /// no number appears twice.
    Chunked(Vec<u64>, Vec<Chunk>),
    /// In other datasets.
    Virtual(Arc<[Mapping]>),
}

impl Array {
    /// How many elements there are.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether it is read row by row, and not by the offsets of its elements.
    pub fn is_by_rows(&self) -> bool {
        matches!(self.place, ElementPlace::Virtual(_))
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.len() * self.dtype.size() as u64
    }
}

/// The longest run of elements of `size` bytes that has at most about `most` bytes, in an array of
/// this shape without zeros, as its length in each dimension.
pub(crate) fn longest_run(shape: &[u64], size: u64, most: u64) -> Vec<u64> {
    let mut run = vec![1; shape.len()];
    let mut bytes = size;
    for (run, &length) in run.iter_mut().zip(shape).rev() {
        *run = (most / bytes).clamp(1, length);
        if *run < length {
            break;
        }
        bytes *= length;
    }
    run
}

/// What a dataset holds.
#[derive(Debug, Clone)]
pub enum Found {
    /// Elements of one size.
    Array(Arc<Array>),
    /// Something else, in words.
    Other(String),
}

/// The type of elements as they are read.
pub(crate) struct ElementType {
    pub(crate) dtype: Dtype,
    /// Dimensions of an array type.
    pub(crate) inner: Vec<u64>,
    /// How the elements are converted, if they are.
    pub(crate) converted: Option<Conversion>,
}

/// A dataset of elements of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The length of each dimension; none for a single element.
    pub shape: Vec<u64>,
    /// The type of the elements of a list; `None` for strings.
    pub item: Option<Dtype>,
    /// The references to the strings or lists, as they are stored.
    pub(crate) references: Arc<Array>,
}

impl Variable {
    /// How many elements there are.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}
