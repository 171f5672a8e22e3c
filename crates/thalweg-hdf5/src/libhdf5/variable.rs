//! Datasets whose elements have any length: strings, and lists of elements of one size.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CStr, c_char, c_void};

use crate::array::Variable;
use hdf5_metno_sys::h5d::{H5Dget_space, H5Dget_type, H5Dread};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_seloper_t, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::H5Treclaim;
use thalweg_io::Result;

use super::array::MOST_RANK;
use super::handle::{Id, LibraryRefusal, status};
use super::object::Node;

/// `hvl_t`: a list in memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct VariableList {
    pub(super) len: usize,
    pub(super) items: *const c_void,
}

impl Node {
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
