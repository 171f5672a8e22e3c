//! Datasets of two dimensions, and attributes that are lists of strings, as h5py writes them.

use std::ffi::{CString, c_char};

use hdf5_metno_sys::h5a::{H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dwrite};
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_CREATE, H5P_DEFAULT};
use hdf5_metno_sys::h5s::{H5S_ALL, H5Screate_simple};
use hdf5_metno_sys::h5t::{H5T_C_S1, H5T_VARIABLE, H5T_cset_t, H5Tcopy, H5Tset_cset, H5Tset_size};
use thalweg_io::{Error, Result};

use super::{Hdf5Writer, NewGroup, StoredNumber, Vector, untimed};
use crate::libhdf5::handle::{Id, locked, status};

impl Hdf5Writer {
    /// Writes a dataset of rows with these columns. Its attribute `column_names` names them.
    /// `bytes` are little-endian.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] if the bytes are not whole rows.
    pub fn table(
        &self,
        parent: &NewGroup,
        name: &str,
        kind: StoredNumber,
        columns: &[&str],
        bytes: &[u8],
    ) -> Result<()> {
        let row = kind.bytes() * columns.len();
        if row == 0 || !bytes.len().is_multiple_of(row) {
            let what = format!("{}: {name}: {} bytes for rows of {row}", self.name, bytes.len());
            return Err(Error::Usage(what.into()));
        }
        let shape = [(bytes.len() / row) as u64, columns.len() as u64];
        let c_name = self.c_string(name)?;
        let made = locked(|| {
            // SAFETY: under the lock, with open objects; two dimensions, and as many bytes as these
            // have elements.
            unsafe {
                let space = Id::new(H5Screate_simple(2, shape.as_ptr(), std::ptr::null()))?;
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                let plain = H5P_DEFAULT;
                let parent = parent.0.raw();
                let kind = kind.id();
                let to = space.raw();
                let id = Id::new(H5Dcreate2(
                    parent,
                    c_name.as_ptr(),
                    kind,
                    to,
                    plain,
                    make.raw(),
                    plain,
                ))?;
                status(H5Dwrite(id.raw(), kind, H5S_ALL, H5S_ALL, plain, bytes.as_ptr().cast()))?;
                Ok(id)
            }
        });
        let id = made.map_err(|refused| self.failed(refused))?;
        self.texts_at(&id, "column_names", columns)
    }

    /// Names a dataset's columns in its attribute `column_names`.
    ///
    /// # Errors
    /// As [`Hdf5Writer::text`].
    pub fn name_columns(&self, vector: &Vector, columns: &[&str]) -> Result<()> {
        self.texts_at(vector.id(), "column_names", columns)
    }

    fn texts_at(&self, at: &Id, name: &str, texts: &[&str]) -> Result<()> {
        let texts: Vec<CString> =
            texts.iter().map(|text| self.c_string(text)).collect::<Result<_>>()?;
        let name = self.c_string(name)?;
        let count = texts.len() as u64;
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let made = locked(|| {
            // SAFETY: under the lock, an open object; one dimension, so one number, and as many
            // strings, which outlive the call.
            unsafe {
                let kind = Id::new(H5Tcopy(*H5T_C_S1))?;
                status(H5Tset_size(kind.raw(), H5T_VARIABLE))?;
                status(H5Tset_cset(kind.raw(), H5T_cset_t::H5T_CSET_UTF8))?;
                let space = Id::new(H5Screate_simple(1, &raw const count, std::ptr::null()))?;
                let kind = kind.raw();
                let plain = H5P_DEFAULT;
                let made =
                    Id::new(H5Acreate2(at.raw(), name.as_ptr(), kind, space.raw(), plain, plain))?;
                status(H5Awrite(made.raw(), kind, pointers.as_ptr().cast()))
            }
        });
        made.map(drop).map_err(|refused| self.failed(refused))
    }
}
