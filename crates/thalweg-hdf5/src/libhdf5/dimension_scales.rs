//! Dimension scales: datasets that describe the dimensions of another dataset.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::c_void;

use hdf5_metno_sys::h5a::{H5Aexists, H5Aget_space, H5Aget_type, H5Aopen, H5Aread};
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::H5Sget_simple_extent_npoints;
use hdf5_metno_sys::h5t::{
    H5T_STD_REF_OBJ, H5T_class_t, H5Tequal, H5Tget_class, H5Tget_super, H5Treclaim,
};
use thalweg_io::Result;

use super::array::MOST_RANK;
use super::handle::{Id, LibraryRefusal, status};
use super::object::Node;
use super::variable::VariableList;

impl Node {
    /// The address of the header of each dimension's first scale (HDF5 dimension scale
    /// specification, `DIMENSION_LIST`). It is `None` for a dimension without a scale. The list is
    /// empty for a dataset without scales.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses.
    pub(crate) fn dimension_scales(&self) -> Result<Vec<Option<u64>>> {
        self.shared.locked(|| self.scales_locked(), |refused| Err(self.refused(refused)))
    }

    fn scales_locked(&self) -> Result<Vec<Option<u64>>, LibraryRefusal> {
        let name = c"DIMENSION_LIST".as_ptr();
        // SAFETY: under the lock, with identifiers that are open; the lists have room for all
        // elements, and are read before they are given back; a reference to an object is its
        // address.
        unsafe {
            if status(H5Aexists(self.id.raw(), name))? == 0 {
                return Ok(Vec::new());
            }
            let attribute = Id::new(H5Aopen(self.id.raw(), name, H5P_DEFAULT))?;
            let (space, kind) =
                (Id::new(H5Aget_space(attribute.raw()))?, Id::new(H5Aget_type(attribute.raw()))?);
            let count = status(H5Sget_simple_extent_npoints(space.raw()))?;
            if count > MOST_RANK as i64 || H5Tget_class(kind.raw()) != H5T_class_t::H5T_VLEN {
                return Ok(Vec::new());
            }
            let item = Id::new(H5Tget_super(kind.raw()))?;
            if status(H5Tequal(item.raw(), *H5T_STD_REF_OBJ))? == 0 {
                return Ok(Vec::new());
            }
            let mut lists = vec![
                VariableList { len: 0, items: std::ptr::null() };
                count.cast_unsigned() as usize
            ];
            let buffer: *mut c_void = lists.as_mut_ptr().cast();
            let read = status(H5Aread(attribute.raw(), kind.raw(), buffer));
            let first = |list: &VariableList| {
                (list.len > 0 && !list.items.is_null())
                    .then(|| list.items.cast::<u64>().read_unaligned())
            };
            let scales = if read.is_ok() { lists.iter().map(first).collect() } else { Vec::new() };
            status(H5Treclaim(kind.raw(), space.raw(), H5P_DEFAULT, buffer))?;
            read.map(|_| scales)
        }
    }
}
