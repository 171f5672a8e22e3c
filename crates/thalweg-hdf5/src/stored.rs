//! How a dataset is stored, and how its copy is to be stored.

use thalweg_io::{Fault, Result};

use crate::encode::Coder;
use crate::filter::Pipeline;
use crate::metadata::dataset::{DatasetHeader, FilterMessage, Layout};
use crate::metadata::dataspace::Dataspace;
use crate::metadata::datatype::{Class, Datatype};
use crate::metadata::{MetadataFile, NOWHERE, Refused};
use crate::types::Chunk;

/// For up to this many chunks, an index with places for all of them has at most 16 MiB.
const MANY_CHUNKS: u64 = 1 << 20;

/// How a dataset is stored.
#[derive(Debug)]
pub(crate) struct DatasetForm {
    /// Its path in the file.
    pub path: String,
    /// The length of each dimension.
    pub shape: Vec<u64>,
    /// The greatest length of each dimension; `None` for any length.
    pub most: Vec<Option<u64>>,
    /// Bytes of an element.
    pub element: usize,
    /// Whether elements are numbers.
    pub numbers: bool,
    /// The value, in stored form, of elements that are not stored; empty for zeros.
    pub fill: Vec<u8>,
    /// Where the values lie.
    pub storage: ValueStorage,
    /// The filters of its chunks.
    pub pipeline: Pipeline,
    /// The filters as encoders; `None` if this crate cannot apply one of them.
    pub coders: Option<Vec<Coder>>,
}

/// Where the values of a dataset lie.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ValueStorage {
    /// In one run from this offset on; `None` where nothing was written.
    Contiguous(Option<u64>),
    /// In chunks of this shape; each has a number in the grid of chunks, in C order.
    Chunked(Vec<u64>, Vec<Chunk>),
    /// Where their bytes cannot be copied as they are: in heaps, in the header, in other files.
    Elsewhere {
        /// The reason, in words.
        why: &'static str,
        /// Whether libhdf5 writes them. Otherwise nothing is stored, or not in this file.
        is_written: bool,
    },
}

/// How the copy of a dataset is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetStorage {
    /// As the original, with its chunks beside each other.
    Keep,
    /// In one run.
    Contiguous,
    /// In chunks.
    Chunked {
        /// The shape of a chunk.
        chunk: Vec<u64>,
        /// The encoders that are applied to the chunks.
        coders: Vec<Coder>,
        /// The numbers of the chunks to store, in C order of the grid. Without encoders all chunks
        /// have the same size, and their places are found at once.
        numbers: Vec<u64>,
    },
}

impl DatasetForm {
    /// Bytes of all elements.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.element as u64
    }

    /// Whether the dataset has a limit of size that allows many chunks of this shape, far more than
    /// it has now. From version 1.10 on, libhdf5 takes space and time for all of them at once.
    pub(crate) fn may_become_far_more(&self, target: &TargetStorage, chunk: &[u64]) -> bool {
        let cells = |lengths: &mut dyn Iterator<Item = u64>| {
            lengths
                .zip(chunk)
                .map(|(length, chunk)| length.div_ceil((*chunk).max(1)))
                .fold(1, u64::saturating_mul)
        };
        let there = match (target, &self.storage) {
            (TargetStorage::Chunked { numbers, .. }, _) => numbers.len() as u64,
            (_, ValueStorage::Chunked(_, chunks)) => chunks.len() as u64,
            _ => cells(&mut self.shape.iter().copied()),
        };
        let most = cells(&mut self.most.iter().map(|most| most.unwrap_or(0)));
        most > MANY_CHUNKS.max(there.saturating_mul(8))
    }

    /// The form of the dataset with this header. Errors call it `path`.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub(crate) fn read(file: &MetadataFile, header: &DatasetHeader, path: &str) -> Result<Self> {
        let element = header.datatype.size;
        let (shape, most) = match &header.space {
            Dataspace::Simple { shape, most } => (shape.clone(), most.clone()),
            Dataspace::Null => Default::default(),
        };
        let bytes = shape.iter().try_fold(element as u64, |bytes, &n| bytes.checked_mul(n));
        let Some(bytes) = bytes.filter(|&bytes| bytes <= i64::MAX as u64) else {
            let found = format!("{shape:?} elements of {element} bytes");
            let fault = Fault::new(0, found, "a dataset that a machine can address");
            return Err(file.error(Refused::Damaged(fault), path));
        };
        let base = file.superblock().base;
        let outside = |why| ValueStorage::Elsewhere { why, is_written: false };
        let why = if holds(&header.datatype, &is_pointer) {
            Some("lists or strings of any length")
        } else if holds(&header.datatype, &is_reference) {
            Some("references")
        } else {
            None
        };
        let storage = match (&header.layout, why) {
            _ if header.space == Dataspace::Null => outside("a dataset without values"),
            (Layout::Virtual(_), _) => outside("a virtual dataset"),
            _ if !header.external.is_empty() => outside("values in another file"),
            (&Layout::Contiguous(at), Some(why)) => {
                ValueStorage::Elsewhere { why, is_written: at != NOWHERE && bytes > 0 }
            }
            (Layout::Chunked(_), Some(why)) => ValueStorage::Elsewhere { why, is_written: true },
            (Layout::Compact(_), why) => {
                ValueStorage::Elsewhere { why: why.unwrap_or("in its header"), is_written: true }
            }
            (&Layout::Contiguous(at), None) => {
                let is_stored = at != NOWHERE && bytes > 0;
                ValueStorage::Contiguous(is_stored.then(|| at.saturating_add(base)))
            }
            (Layout::Chunked(grid), None) => {
                ValueStorage::Chunked(grid.chunk.clone(), file.chunks(header, path)?)
            }
        };
        let fill = header.fill_value();
        let pipeline = match &storage {
            ValueStorage::Chunked(_, chunks) => {
                header.pipeline().of_chunks(chunks.iter().map(|chunk| chunk.mask))
            }
            _ => header.pipeline(),
        };
        let is_zero = fill.iter().all(|&byte| byte == 0);
        let is_elsewhere = matches!(storage, ValueStorage::Elsewhere { .. });
        Ok(Self {
            path: path.to_owned(),
            shape,
            most: most
                .into_iter()
                .map(|most| Some(most).filter(|&most| most != u64::MAX))
                .collect(),
            element,
            numbers: matches!(
                header.datatype.class,
                Class::Integer { .. }
                    | Class::Float { .. }
                    | Class::Enumeration { .. }
                    | Class::BitField { .. }
            ),
            fill: if is_zero || is_elsewhere { Vec::new() } else { fill.to_vec() },
            storage,
            pipeline,
            coders: header.filters.iter().map(FilterMessage::coder).collect(),
        })
    }
}

pub(crate) fn is_pointer(class: &Class) -> bool {
    matches!(class, Class::LongText { .. } | Class::List { .. })
}

pub(crate) fn is_reference(class: &Class) -> bool {
    matches!(class, Class::Reference(_))
}

/// Whether elements of a type are of a class, or have parts that are.
pub(crate) fn holds(datatype: &Datatype, is: &dyn Fn(&Class) -> bool) -> bool {
    is(&datatype.class)
        || match &datatype.class {
            Class::List { base } | Class::Array { base, .. } => holds(base, is),
            Class::Compound { members } => members.iter().any(|member| holds(&member.datatype, is)),
            _ => false,
        }
}

impl FilterMessage {
    /// The filter as an encoder; `None` if this crate cannot apply it.
    fn coder(&self) -> Option<Coder> {
        Coder::of(self.number.into(), &self.values)
    }
}
