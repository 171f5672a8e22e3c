//! Datasets whose elements have any length: strings, and lists of elements of one size.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_char, c_void};

use crate::dtype::Dtype;
use hdf5_metno_sys::h5d::{H5Dget_space, H5Dget_type, H5Dread};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{
    H5S_class_t, H5S_seloper_t, H5Screate_simple, H5Sget_simple_extent_dims,
    H5Sget_simple_extent_ndims, H5Sget_simple_extent_type, H5Sselect_hyperslab,
};
use hdf5_metno_sys::h5t::{
    H5T_class_t, H5Tget_class, H5Tget_super, H5Tis_variable_str, H5Treclaim,
};
use thalweg_io::Result;

use super::array::{MOST_RANK, kind};
use super::dataset::DatasetError;
use super::handle::{Id, LibraryRefusal, status};
use super::object::Node;

/// A dataset of elements of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The length of each dimension; none for a single element.
    pub shape: Vec<u64>,
    /// The type of the elements of a list; `None` for strings.
    pub item: Option<Dtype>,
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

/// `hvl_t`: a list in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct VariableList {
    pub(super) len: usize,
    pub(super) items: *const c_void,
}

impl Node {
    /// The shape and the item type of a dataset of elements of any length; `None` for any other
    /// dataset.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses.
    pub fn variable(&self) -> Result<Option<Variable>> {
        self.shared.locked(
            || self.variable_locked(),
            |trouble| match trouble {
                DatasetError::Unsupported(_) => Ok(None),
                DatasetError::Refused(refused) => Err(self.refused(refused)),
                DatasetError::Malformed(at, found, expected) => {
                    Err(self.shared.malformed(&self.path, at, found, expected))
                }
            },
        )
    }

    fn variable_locked(&self) -> Result<Option<Variable>, DatasetError> {
        // SAFETY: under the lock, with identifiers that are open; the buffer has room for all
        // dimensions.
        unsafe {
            if H5Iget_type(self.id.raw()) != H5I_type_t::H5I_DATASET {
                return Ok(None);
            }
            let (stored, space) =
                (Id::new(H5Dget_type(self.id.raw()))?, Id::new(H5Dget_space(self.id.raw()))?);
            if H5Sget_simple_extent_type(space.raw()) == H5S_class_t::H5S_NULL {
                return Ok(None);
            }
            let item = match H5Tget_class(stored.raw()) {
                H5T_class_t::H5T_STRING if status(H5Tis_variable_str(stored.raw()))? > 0 => None,
                H5T_class_t::H5T_VLEN => {
                    let item = kind(&Id::new(H5Tget_super(stored.raw()))?, 0)?;
                    if item.converted.is_some() || !item.inner.is_empty() {
                        return Ok(None);
                    }
                    Some(item.dtype)
                }
                _ => return Ok(None),
            };
            let mut shape = [0; MOST_RANK];
            let rank = status(H5Sget_simple_extent_ndims(space.raw()))?;
            status(H5Sget_simple_extent_dims(
                space.raw(),
                shape.as_mut_ptr(),
                std::ptr::null_mut(),
            ))?;
            let shape = shape[..(rank.max(0) as usize).min(MOST_RANK)].to_vec();
            if shape
                .iter()
                .try_fold(size_of::<VariableList>() as u64, |bytes, &n| bytes.checked_mul(n))
                .is_none()
            {
                return Err(DatasetError::Malformed(
                    0,
                    format!("{shape:?} elements"),
                    "as many as can be counted".into(),
                ));
            }
            Ok(Some(Variable { shape, item }))
        }
    }

    /// Calls `f` with each element of `rows` rows, from the row `from` on, in C order. Strings come
    /// without the NUL at their end; lists come as the bytes of their elements, little-endian. A
    /// dataset of a single element has one row.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) with what libhdf5 says; an error from
    /// `f`.
    pub fn each_variable(
        &self,
        variable: &Variable,
        from: u64,
        rows: u64,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.check_values()?;
        let mut shape = variable.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = rows;
        }
        let count = shape.iter().product::<u64>() as usize;
        let mut elements: Vec<Vec<u8>> = Vec::new();
        let read = || self.variable_rows(variable, from, &shape, count, &mut elements);
        self.shared.locked(read, |refused| Err(self.refused(refused)))?;
        elements.iter().try_for_each(|element| f(element))
    }

    fn variable_rows(
        &self,
        variable: &Variable,
        from: u64,
        shape: &[u64],
        count: usize,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), LibraryRefusal> {
        // SAFETY: under the lock, with identifiers that are open; the buffer holds the selected
        // elements in the library's form in memory; they are copied before they are given back.
        unsafe {
            let (stored, space) =
                (Id::new(H5Dget_type(self.id.raw()))?, Id::new(H5Dget_space(self.id.raw()))?);
            let here =
                Id::new(H5Screate_simple(shape.len() as i32, shape.as_ptr(), std::ptr::null()))?;
            if !shape.is_empty() {
                let mut start = [0; MOST_RANK];
                start[0] = from;
                let set = H5S_seloper_t::H5S_SELECT_SET;
                let null = std::ptr::null();
                let start = start.as_ptr();
                status(H5Sselect_hyperslab(space.raw(), set, start, null, shape.as_ptr(), null))?;
            }
            let mut strings =
                vec![std::ptr::null::<c_char>(); if variable.item.is_none() { count } else { 0 }];
            let mut lists =
                vec![VariableList { len: 0, items: std::ptr::null() }; count - strings.len()];
            let buffer: *mut c_void = if variable.item.is_none() {
                strings.as_mut_ptr().cast()
            } else {
                lists.as_mut_ptr().cast()
            };
            let read = status(H5Dread(
                self.id.raw(),
                stored.raw(),
                here.raw(),
                space.raw(),
                H5P_DEFAULT,
                buffer,
            ));
            if read.is_ok() {
                out.extend(strings.iter().map(|&text| {
                    if text.is_null() {
                        Vec::new()
                    } else {
                        CStr::from_ptr(text).to_bytes().to_vec()
                    }
                }));
                out.extend(lists.iter().map(|list| {
                    let Some(item) =
                        variable.item.as_ref().filter(|_| list.len > 0 && !list.items.is_null())
                    else {
                        return Vec::new();
                    };
                    let bytes =
                        std::slice::from_raw_parts(list.items.cast::<u8>(), list.len * item.size());
                    let mut bytes = bytes.to_vec();
                    item.to_little_endian(&mut bytes);
                    bytes
                }));
            }
            status(H5Treclaim(stored.raw(), here.raw(), H5P_DEFAULT, buffer))?;
            read.map(drop)
        }
    }
}
