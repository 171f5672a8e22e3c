//! Datasets of one dimension, written part by part.

use std::ffi::c_uint;

use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dwrite, H5Dwrite_chunk};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_CREATE, H5P_DEFAULT, H5Pset_chunk, H5Pset_filter};
use hdf5_metno_sys::h5s::{
    H5S_ALL, H5S_UNLIMITED, H5S_seloper_t, H5Screate_simple, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5z::H5Z_FLAG_OPTIONAL;
use thalweg_io::{Error, Result};

use super::{Hdf5Writer, NewGroup, StoredNumber, string_of, untimed};
use crate::libhdf5::handle::{Id, LibraryRefusal, locked, status};

/// A dataset of one dimension of a file that is being written.
#[derive(Debug)]
pub struct Vector {
    id: Id,
    space: Id,
    kind: StoredNumber,
}

impl Vector {
    /// The dataset itself.
    pub(super) fn id(&self) -> &Id {
        &self.id
    }
}

/// The type, length and storage of a [`Vector`].
#[derive(Debug, Clone, Copy)]
pub struct VectorSpec<'a> {
    /// The type of its elements.
    pub kind: StoredNumber,
    /// The number of elements.
    pub len: u64,
    /// The elements of a chunk. A dataset with chunks can grow; without chunks it is contiguous.
    pub chunk: Option<u64>,
    /// Numbers and client data of the chunks' filters, in the order of writing.
    pub filters: &'a [(i32, &'a [u32])],
}

impl Hdf5Writer {
    /// Makes a dataset, without its values.
    ///
    /// # Errors
    /// [`Error::Io`], also if the name exists already.
    pub fn vector(&self, parent: &NewGroup, name: &str, of: VectorSpec<'_>) -> Result<Vector> {
        let name = self.c_string(name)?;
        let made = locked(|| {
            // SAFETY: under the lock, with open objects; one dimension, so one number each.
            unsafe {
                let most = if of.chunk.is_some() { H5S_UNLIMITED } else { of.len };
                let space = Id::new(H5Screate_simple(1, &raw const of.len, &raw const most))?;
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                if let Some(chunk) = of.chunk {
                    status(H5Pset_chunk(make.raw(), 1, &raw const chunk))?;
                }
                for (filter, values) in of.filters {
                    // Optional, because the library itself may not have the filter.
                    let optional: c_uint = H5Z_FLAG_OPTIONAL;
                    status(H5Pset_filter(
                        make.raw(),
                        *filter,
                        optional,
                        values.len(),
                        values.as_ptr(),
                    ))?;
                }
                let parent = parent.0.raw();
                let kind = of.kind.id();
                let plain = H5P_DEFAULT;
                let make = make.raw();
                let id = Id::new(H5Dcreate2(
                    parent,
                    name.as_ptr(),
                    kind,
                    space.raw(),
                    plain,
                    make,
                    plain,
                ))?;
                Ok(Vector { id, space, kind: of.kind })
            }
        });
        made.map_err(|refused| self.failed(refused))
    }

    /// Writes a chunk in its stored form, after its filters were applied. A bit of `mask` says that
    /// a filter was skipped. The chunk comes next in the file, unless it was written before.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn chunk(&self, vector: &Vector, first: u64, bytes: &[u8], mask: u32) -> Result<()> {
        let written = locked(|| {
            // SAFETY: under the lock, an open dataset of one dimension, and as many bytes as the
            // call is given.
            status(unsafe {
                H5Dwrite_chunk(
                    vector.id.raw(),
                    H5P_DEFAULT,
                    mask,
                    &raw const first,
                    bytes.len(),
                    bytes.as_ptr().cast(),
                )
            })
        });
        written.map(drop).map_err(|refused| self.failed(refused))
    }

    /// Writes elements from `first` on, little-endian, into a dataset without chunks.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] if the bytes are not whole elements.
    pub fn values(&self, vector: &Vector, first: u64, bytes: &[u8]) -> Result<()> {
        let size = vector.kind.bytes();
        if !bytes.len().is_multiple_of(size) {
            let what = format!("{}: {} bytes for elements of {size}", self.name, bytes.len());
            return Err(Error::Usage(what.into()));
        }
        let count = (bytes.len() / size) as u64;
        if count == 0 {
            return Ok(());
        }
        let written = locked(|| {
            // SAFETY: under the lock, open objects of one dimension; the memory's space has as many
            // elements as there are bytes for, and the library checks that the selection lies
            // within the dataset.
            unsafe {
                let memory = Id::new(H5Screate_simple(1, &raw const count, std::ptr::null()))?;
                let set = H5S_seloper_t::H5S_SELECT_SET;
                let none = std::ptr::null();
                status(H5Sselect_hyperslab(
                    vector.space.raw(),
                    set,
                    &raw const first,
                    none,
                    &raw const count,
                    none,
                ))?;
                let (id, kind, to) = (vector.id.raw(), vector.kind.id(), vector.space.raw());
                status(H5Dwrite(id, kind, memory.raw(), to, H5P_DEFAULT, bytes.as_ptr().cast()))
            }
        });
        written.map(drop).map_err(|refused: LibraryRefusal| self.failed(refused))
    }

    /// Writes a string attribute of a dataset.
    ///
    /// # Errors
    /// As [`Hdf5Writer::text`].
    pub fn describe(&self, vector: &Vector, name: &str, text: &str) -> Result<()> {
        self.text_at(vector.id.raw(), name, text)
    }

    /// Writes a dataset of one element, a string.
    ///
    /// # Errors
    /// As [`Hdf5Writer::text`].
    pub fn string(&self, parent: &NewGroup, name: &str, text: &str) -> Result<()> {
        let name = self.c_string(name)?;
        let text = self.c_string(text)?;
        let bytes = text.as_bytes_with_nul();
        let one = 1;
        let made = locked(|| {
            // SAFETY: under the lock, with an open group; one element, and as many bytes as its
            // type takes.
            unsafe {
                let kind = string_of(bytes.len())?;
                let space = Id::new(H5Screate_simple(1, &raw const one, std::ptr::null()))?;
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                let plain = H5P_DEFAULT;
                let parent = parent.0.raw();
                let to = space.raw();
                let id = Id::new(H5Dcreate2(
                    parent,
                    name.as_ptr(),
                    kind.raw(),
                    to,
                    plain,
                    make.raw(),
                    plain,
                ))?;
                let all: hid_t = H5S_ALL;
                status(H5Dwrite(id.raw(), kind.raw(), all, all, plain, bytes.as_ptr().cast()))
            }
        });
        made.map(drop).map_err(|refused| self.failed(refused))
    }
}
