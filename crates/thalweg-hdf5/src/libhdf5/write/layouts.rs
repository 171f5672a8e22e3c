//! Writes compact and virtual datasets, for tests.

use std::ffi::CString;

use hdf5_metno_sys::h5d::{H5D_layout_t, H5Dcreate2, H5Dwrite};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_CREATE, H5P_DEFAULT, H5Pset_layout, H5Pset_virtual};
use hdf5_metno_sys::h5s::{H5S_ALL, H5Screate_simple};
use hdf5_metno_sys::h5t::H5T_STD_U8LE;
use thalweg_io::Result;

use super::{Hdf5Writer, NewGroup, untimed};
use crate::libhdf5::handle::{Id, LibraryRefusal, locked, status};

impl Hdf5Writer {
    /// Writes bytes as a compact dataset.
    pub(crate) fn compact(&self, parent: &NewGroup, name: &str, bytes: &[u8]) -> Result<()> {
        let name = self.c_string(name)?;
        let made = locked(|| {
            // SAFETY: under the lock, with an open group; there are as many bytes as elements.
            unsafe {
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                status(H5Pset_layout(make.raw(), H5D_layout_t::H5D_COMPACT))?;
                let made = bytes_of(parent, &name, bytes.len(), &make)?;
                let (id, all, from): (_, hid_t, _) = (made.raw(), H5S_ALL, bytes.as_ptr().cast());
                status(H5Dwrite(id, *H5T_STD_U8LE, all, all, H5P_DEFAULT, from))
            }
        });
        made.map(drop).map_err(|refused| self.failed(refused))
    }

    /// Makes a virtual dataset of all `len` bytes of the dataset at the path `of`.
    pub(crate) fn virtual_bytes(
        &self,
        parent: &NewGroup,
        name: &str,
        of: &str,
        len: usize,
    ) -> Result<()> {
        let name = self.c_string(name)?;
        let of = self.c_string(of)?;
        let length = len as u64;
        let made = locked(|| {
            // SAFETY: under the lock, with an open group, and names that end with NUL. A dot stands
            // for the file itself.
            unsafe {
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                let space = Id::new(H5Screate_simple(1, &raw const length, std::ptr::null()))?;
                let here = space.raw();
                let there = space.raw();
                let file = c".".as_ptr();
                status(H5Pset_virtual(make.raw(), here, file, of.as_ptr(), there))?;
                bytes_of(parent, &name, len, &make)
            }
        });
        made.map(drop).map_err(|refused| self.failed(refused))
    }
}

/// Makes a dataset of `len` bytes. The lock is held.
unsafe fn bytes_of(
    parent: &NewGroup,
    name: &CString,
    len: usize,
    make: &Id,
) -> Result<Id, LibraryRefusal> {
    let len = len as u64;
    // SAFETY: under the lock, with open objects and a name that ends with NUL.
    unsafe {
        let space = Id::new(H5Screate_simple(1, &raw const len, std::ptr::null()))?;
        let kind = *H5T_STD_U8LE;
        let plain = H5P_DEFAULT;
        let parent = parent.0.raw();
        let space = space.raw();
        Id::new(H5Dcreate2(parent, name.as_ptr(), kind, space, plain, make.raw(), plain))
    }
}
