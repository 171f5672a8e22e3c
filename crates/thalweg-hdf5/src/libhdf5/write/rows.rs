//! Datasets that grow by rows, for callers that do not know the number of rows beforehand.

use std::ffi::{c_char, c_void};

use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dget_space, H5Dset_extent, H5Dwrite};
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_CREATE, H5P_DEFAULT, H5Pset_chunk, H5Pset_fill_value};
use hdf5_metno_sys::h5s::{H5S_UNLIMITED, H5S_seloper_t, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{H5T_C_S1, H5T_VARIABLE, H5T_cset_t, H5Tcopy, H5Tset_cset, H5Tset_size};
use thalweg_io::{Error, Result};

use super::{Hdf5Writer, NewGroup, StoredNumber, untimed};
use crate::libhdf5::handle::{Id, LibraryRefusal, locked, status};

/// A growing dataset of numbers or strings of a file that is being written.
#[derive(Debug)]
pub struct RowsWriter {
    id: Id,
    kind: Id,
    /// Bytes of a row in memory.
    size: usize,
    /// The columns of a row; `None` if the dataset has one dimension, so that a row is one element.
    columns: Option<u64>,
    len: u64,
}

/// The shape of the dataset of a [`RowsWriter`].
#[derive(Debug, Clone, Copy)]
pub struct RowsSpec {
    /// The columns of a dataset of two dimensions; `None` for one dimension.
    pub columns: Option<u64>,
    /// Rows of a chunk.
    pub chunk: u64,
}

impl RowsWriter {
    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the dataset has no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn shape(&self, rows: u64) -> Vec<u64> {
        shape(rows, self.columns)
    }

    /// Appends rows. If `from` is null, they have the fill value. The lock is held.
    ///
    /// # Safety
    /// `from` is null or points to all elements of these rows, in the dataset's type in memory.
    unsafe fn grow(&mut self, count: u64, from: *const c_void) -> Result<(), LibraryRefusal> {
        let whole = self.shape(self.len + count);
        // SAFETY: under the lock, an open dataset of as many dimensions as the shapes have; the
        // memory is as the caller says.
        unsafe {
            status(H5Dset_extent(self.id.raw(), whole.as_ptr()))?;
            if !from.is_null() && count > 0 {
                let first = shape(self.len, self.columns.map(|_| 0));
                let part = self.shape(count);
                let memory =
                    Id::new(H5Screate_simple(part.len() as i32, part.as_ptr(), std::ptr::null()))?;
                let space = Id::new(H5Dget_space(self.id.raw()))?;
                let set = H5S_seloper_t::H5S_SELECT_SET;
                let none = std::ptr::null();
                status(H5Sselect_hyperslab(
                    space.raw(),
                    set,
                    first.as_ptr(),
                    none,
                    part.as_ptr(),
                    none,
                ))?;
                status(H5Dwrite(
                    self.id.raw(),
                    self.kind.raw(),
                    memory.raw(),
                    space.raw(),
                    H5P_DEFAULT,
                    from,
                ))?;
            }
        }
        self.len += count;
        Ok(())
    }
}

fn shape(rows: u64, columns: Option<u64>) -> Vec<u64> {
    std::iter::once(rows).chain(columns).collect()
}

impl Hdf5Writer {
    /// Makes a dataset of numbers without rows. Rows that are not written have the value `fill`,
    /// the little-endian bytes of a number, or 0.
    ///
    /// # Errors
    /// [`Error::Io`]; a name that is there already.
    pub fn rows(
        &self,
        parent: &NewGroup,
        name: &str,
        kind: StoredNumber,
        fill: Option<&[u8]>,
        of: RowsSpec,
    ) -> Result<RowsWriter> {
        if fill.is_some_and(|fill| fill.len() != kind.bytes()) {
            return Err(Error::Usage(
                format!("{}: {name}: filled with another type", self.name).into(),
            ));
        }
        let size = kind.bytes() * of.columns.unwrap_or(1) as usize;
        // SAFETY: under the lock, the type is a constant of the library.
        self.growing(parent, name, size, fill, of, || Id::new(unsafe { H5Tcopy(kind.id()) }))
    }

    /// Makes a dataset of strings of any length without rows.
    ///
    /// # Errors
    /// As [`Hdf5Writer::rows`].
    pub fn texts(&self, parent: &NewGroup, name: &str, chunk: u64) -> Result<RowsWriter> {
        let of = RowsSpec { columns: None, chunk };
        self.growing(parent, name, size_of::<*const c_char>(), None, of, || {
            // SAFETY: under the lock, a type that is ours.
            unsafe {
                let kind = Id::new(H5Tcopy(*H5T_C_S1))?;
                status(H5Tset_size(kind.raw(), H5T_VARIABLE))?;
                status(H5Tset_cset(kind.raw(), H5T_cset_t::H5T_CSET_UTF8))?;
                Ok(kind)
            }
        })
    }

    fn growing(
        &self,
        parent: &NewGroup,
        name: &str,
        size: usize,
        fill: Option<&[u8]>,
        of: RowsSpec,
        kind: impl FnOnce() -> Result<Id, LibraryRefusal>,
    ) -> Result<RowsWriter> {
        let name = self.c_string(name)?;
        let none = shape(0, of.columns);
        let most = shape(H5S_UNLIMITED, of.columns);
        let chunk = shape(of.chunk.max(1), of.columns);
        let made = locked(|| {
            // SAFETY: under the lock, with open objects; the shapes have a number for each
            // dimension, and the fill value is one element.
            unsafe {
                let kind = kind()?;
                let dimensions = none.len() as i32;
                let space = Id::new(H5Screate_simple(dimensions, none.as_ptr(), most.as_ptr()))?;
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                status(H5Pset_chunk(make.raw(), dimensions, chunk.as_ptr()))?;
                if let Some(fill) = fill {
                    status(H5Pset_fill_value(make.raw(), kind.raw(), fill.as_ptr().cast()))?;
                }
                let parent = parent.0.raw();
                let plain = H5P_DEFAULT;
                let name = name.as_ptr();
                let to = space.raw();
                let id =
                    Id::new(H5Dcreate2(parent, name, kind.raw(), to, plain, make.raw(), plain))?;
                Ok(RowsWriter { id, kind, size, columns: of.columns, len: 0 })
            }
        });
        made.map_err(|refused: LibraryRefusal| self.failed(refused))
    }

    /// Appends rows of numbers, little-endian.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk; [`Error::Usage`] if the bytes are not whole rows.
    pub fn push(&self, rows: &mut RowsWriter, bytes: &[u8]) -> Result<()> {
        if !bytes.len().is_multiple_of(rows.size) {
            let what = format!("{}: {} bytes for rows of {}", self.name, bytes.len(), rows.size);
            return Err(Error::Usage(what.into()));
        }
        let count = (bytes.len() / rows.size) as u64;
        // SAFETY: under the lock; there are as many bytes as these rows take.
        let grown = locked(|| unsafe { rows.grow(count, bytes.as_ptr().cast()) });
        grown.map_err(|refused| self.failed(refused))
    }

    /// Appends rows that have the fill value. They take no space.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn push_filled(&self, rows: &mut RowsWriter, count: u64) -> Result<()> {
        // SAFETY: under the lock; nothing is taken from memory.
        locked(|| unsafe { rows.grow(count, std::ptr::null()) })
            .map_err(|refused| self.failed(refused))
    }

    /// Appends strings.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk; [`Error::Usage`] for a string with a NUL in it.
    pub fn push_texts<'a>(
        &self,
        rows: &mut RowsWriter,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        let mut starts = Vec::new();
        for text in texts {
            starts.push(bytes.len());
            bytes.extend_from_slice(self.c_string(text)?.as_bytes_with_nul());
        }
        let pointers: Vec<*const c_char> =
            starts.iter().map(|start| bytes[*start..].as_ptr().cast()).collect();
        // SAFETY: under the lock; as many pointers as rows, to strings that end with NUL and
        // outlive the call.
        let grown =
            locked(|| unsafe { rows.grow(pointers.len() as u64, pointers.as_ptr().cast()) });
        grown.map_err(|refused| self.failed(refused))
    }

    /// Writes a string attribute of a dataset.
    ///
    /// # Errors
    /// As [`Hdf5Writer::text`].
    pub fn describe_rows(&self, rows: &RowsWriter, name: &str, text: &str) -> Result<()> {
        self.text_at(rows.id.raw(), name, text)
    }
}
