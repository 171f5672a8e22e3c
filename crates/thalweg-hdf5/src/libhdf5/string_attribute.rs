//! Attributes that are arrays of strings, such as the column names that h5py writes.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_char};

use hdf5_metno_sys::h5a::{H5Aexists, H5Aget_space, H5Aget_type, H5Aopen, H5Aread};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_class_t, H5Sget_simple_extent_npoints, H5Sget_simple_extent_type};
use hdf5_metno_sys::h5t::{H5T_class_t, H5Tget_class, H5Tget_size, H5Tis_variable_str, H5Treclaim};
use thalweg_io::Result;

use super::handle::{Id, LibraryRefusal, locked, status};
use super::object::Node;
use crate::types::Value;

impl Node {
    /// The strings of one of its attributes; `None` if no attribute has that name, or if it is of
    /// another type or too large.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses.
    pub fn texts(&self, name: &CStr) -> Result<Option<Vec<String>>> {
        locked(|| self.texts_locked(name)).map_err(|refused| self.refused(refused))
    }

    fn texts_locked(&self, name: &CStr) -> Result<Option<Vec<String>>, LibraryRefusal> {
        // SAFETY: under the lock, with identifiers that are open; the buffer holds all elements in
        // the type that is read; the strings of the library are copied before they are given back.
        unsafe {
            if status(H5Aexists(self.id.raw(), name.as_ptr()))? == 0 {
                return Ok(None);
            }
            let attribute = Id::new(H5Aopen(self.id.raw(), name.as_ptr(), H5P_DEFAULT))?;
            let (space, kind) =
                (Id::new(H5Aget_space(attribute.raw()))?, Id::new(H5Aget_type(attribute.raw()))?);
            let is_null = H5Sget_simple_extent_type(space.raw()) == H5S_class_t::H5S_NULL;
            if is_null || H5Tget_class(kind.raw()) != H5T_class_t::H5T_STRING {
                return Ok(None);
            }
            let count = status(H5Sget_simple_extent_npoints(space.raw()))?.cast_unsigned() as usize;
            let size = H5Tget_size(kind.raw());
            if size == 0 || count > Value::MOST_TEXT / size {
                return Ok(None);
            }
            if status(H5Tis_variable_str(kind.raw()))? > 0 {
                let mut texts = vec![std::ptr::null::<c_char>(); count];
                status(H5Aread(attribute.raw(), kind.raw(), texts.as_mut_ptr().cast()))?;
                let of = |text: &*const c_char| match text.is_null() {
                    true => String::new(),
                    false => CStr::from_ptr(*text).to_string_lossy().into_owned(),
                };
                let found = texts.iter().map(of).collect();
                status(H5Treclaim(
                    kind.raw(),
                    space.raw(),
                    H5P_DEFAULT,
                    texts.as_mut_ptr().cast(),
                ))?;
                return Ok(Some(found));
            }
            let mut bytes = vec![0u8; count * size];
            status(H5Aread(attribute.raw(), kind.raw(), bytes.as_mut_ptr().cast()))?;
            let of = |text: &[u8]| {
                let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                String::from_utf8_lossy(&text[..end]).trim_end().to_owned()
            };
            Ok(Some(bytes.chunks_exact(size).map(of).collect()))
        }
    }
}
