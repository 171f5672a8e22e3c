//! Writes datasets of strings and lists of any length, for tests.

use std::ffi::{c_char, c_void};

use hdf5_metno_sys::h5d::{H5Dcreate2, H5Dwrite};
use hdf5_metno_sys::h5p::{H5P_CLS_DATASET_CREATE, H5P_DEFAULT};
use hdf5_metno_sys::h5s::{H5S_ALL, H5Screate_simple};
use hdf5_metno_sys::h5t::{H5T_C_S1, H5T_VARIABLE, H5Tcopy, H5Tset_size, H5Tvlen_create};
use thalweg_io::Result;

use super::{Hdf5Writer, NewGroup, StoredNumber, untimed};
use crate::libhdf5::handle::{Id, locked, status};

/// `hvl_t`: a list in memory.
#[repr(C)]
#[derive(Clone, Copy)]
struct VariableList {
    len: usize,
    items: *const c_void,
}

impl Hdf5Writer {
    /// Writes a dataset of strings, or of lists of `item`. There is one of `elements` for each
    /// element of the shape; with `None`, nothing is written.
    pub(crate) fn variable(
        &self,
        parent: &NewGroup,
        name: &str,
        shape: &[u64],
        item: Option<StoredNumber>,
        elements: Option<&[Vec<u8>]>,
    ) -> Result<()> {
        let name = self.c_string(name)?;
        let ended = |bytes: &Vec<u8>| [&bytes[..], &[0]].concat();
        let texts: Vec<Vec<u8>> = elements.unwrap_or_default().iter().map(ended).collect();
        let made = locked(|| {
            // SAFETY: under the lock, with an open group; each element is as long as its type says,
            // and outlives the call.
            unsafe {
                let kind = match item {
                    Some(item) => Id::new(H5Tvlen_create(item.id()))?,
                    None => Id::new(H5Tcopy(*H5T_C_S1))?,
                };
                if item.is_none() {
                    status(H5Tset_size(kind.raw(), H5T_VARIABLE))?;
                }
                let space = Id::new(H5Screate_simple(
                    shape.len() as i32,
                    shape.as_ptr(),
                    std::ptr::null(),
                ))?;
                let make = untimed(*H5P_CLS_DATASET_CREATE)?;
                let plain = H5P_DEFAULT;
                let to = space.raw();
                let make = make.raw();
                let id = Id::new(H5Dcreate2(
                    parent.0.raw(),
                    name.as_ptr(),
                    kind.raw(),
                    to,
                    plain,
                    make,
                    plain,
                ))?;
                let Some(elements) = elements else { return Ok(()) };
                let strings: Vec<*const c_char> =
                    texts.iter().map(|text| text.as_ptr().cast()).collect();
                let list = |bytes: &Vec<u8>| VariableList {
                    len: item.map_or(0, |item| bytes.len() / item.bytes()),
                    items: bytes.as_ptr().cast(),
                };
                let lists: Vec<VariableList> = elements.iter().map(list).collect();
                let buffer =
                    if item.is_none() { strings.as_ptr().cast() } else { lists.as_ptr().cast() };
                status(H5Dwrite(id.raw(), kind.raw(), H5S_ALL, H5S_ALL, plain, buffer)).map(drop)
            }
        });
        made.map_err(|refused| self.failed(refused))
    }
}
