//! Arrays of HDF5 files.

use std::ffi::c_char;

use thalweg::arrays::{ArrayFile, ArrayRequest, Dataset, Selection, Slab};
use thalweg::hdf5::array::{Array, Found};
use thalweg::{Error, Options, Result};

use crate::status::wrong;
use crate::types::{MOST_DIMENSIONS, TYPE_NAME, thw_array};

/// The arrays of a file.
pub(crate) struct Arrays {
    file: ArrayFile,
}

/// What is read of an array: where it starts in each dimension, and how many elements it has there.
pub(crate) type Part<'a> = Option<(&'a [u64], &'a [u64])>;

fn array(dataset: &Dataset) -> Result<&Array> {
    match &dataset.found {
        Found::Array(array) => Ok(array),
        Found::Other(what) => Err(Error::Unsupported {
            file: dataset.path().into(),
            what: what.clone().into(),
            advice: "read it with the command or from Python".into(),
        }),
    }
}

impl Arrays {
    pub(crate) fn open(path: &str, options: Options) -> Result<Self> {
        Ok(Self { file: ArrayFile::open(path.as_ref(), options)? })
    }

    fn dataset(&self, path: &str) -> Result<Dataset> {
        let node = self.file.node(path)?;
        let dataset = node.map_or(Ok(None), |node| self.file.dataset(&node))?;
        dataset.ok_or_else(|| Error::NotFound {
            file: self.file.store().name().clone(),
            what: format!("a dataset {path:?}").into(),
            advice: "`thalweg info` lists them".into(),
        })
    }

    /// How many dimensions an array has.
    pub(crate) fn rank(&self, path: &str) -> Result<usize> {
        Ok(array(&self.dataset(path)?)?.shape.len())
    }

    pub(crate) fn info(&self, path: &str) -> Result<thw_array> {
        let dataset = self.dataset(path)?;
        let array = array(&dataset)?;
        let mut shape = [0; MOST_DIMENSIONS];
        let rank = array.shape.len();
        let places = shape.get_mut(..rank).ok_or_else(|| wrong(format!("{rank} dimensions")))?;
        places.copy_from_slice(&array.shape);
        let mut name = [0; TYPE_NAME];
        let of = array.dtype.to_string();
        // The last byte stays zero.
        name.iter_mut().take(TYPE_NAME - 1).zip(of.bytes()).for_each(|(to, byte)| {
            *to = byte as c_char;
        });
        let element_size = array.dtype.size() as u64;
        let elements = array.shape.iter().try_fold(1_u64, |all, one| all.checked_mul(*one));
        let bytes = elements.and_then(|elements| elements.checked_mul(element_size));
        let bytes = bytes.ok_or_else(|| wrong(format!("{path}: more bytes than 2^64")))?;
        Ok(thw_array { rank: rank as u32, shape, element_size, bytes, r#type: name })
    }

    pub(crate) fn read(&self, path: &str, part: Part<'_>, out: &mut [u8]) -> Result<()> {
        let dataset = self.dataset(path)?;
        let array = array(&dataset)?;
        let selection = match part {
            None => Selection::All,
            Some((start, count)) => {
                let slab = |(start, count): (&u64, &u64)| {
                    let end = start.checked_add(*count);
                    let end = end.ok_or_else(|| wrong(format!("{path}: {start} + {count}")))?;
                    Ok(Slab::from(*start..end))
                };
                Selection::Slab(start.iter().zip(count).map(slab).collect::<Result<_>>()?)
            }
        };
        let count = selection.count(&array.shape).map_err(|e| wrong(format!("{path}: {e}")))?;
        let bytes = count.saturating_mul(array.dtype.size() as u64);
        if bytes != out.len() as u64 {
            let found = out.len();
            return Err(wrong(format!("{path}: found memory of {found} bytes, expected {bytes}")));
        }
        let request = ArrayRequest { dataset: &dataset, selection, out };
        self.file.read(&mut [request]).map(drop)
    }
}
