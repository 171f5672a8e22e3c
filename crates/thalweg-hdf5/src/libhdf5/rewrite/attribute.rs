//! Copies attributes of any type.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t};
use hdf5_metno_sys::h5a::{
    H5A_info_t, H5Acreate2, H5Aget_create_plist, H5Aget_space, H5Aget_type, H5Aiterate2,
    H5Aopen_by_idx, H5Aread, H5Awrite,
};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::H5Sget_simple_extent_npoints;
use hdf5_metno_sys::h5t::{H5Tget_size, H5Treclaim};

use super::datatype::contents;
use super::{Rewrite, RewriteError};
use crate::libhdf5::handle::{Id, status};

impl Rewrite<'_> {
    /// Copies the attributes of an object. The lock is held.
    pub(super) fn attributes(&mut self, from: &Id, to: &Id) -> Result<(), RewriteError> {
        for (number, name) in names(from)? {
            self.attribute(from, to, number, &name)?;
            self.step()?;
        }
        Ok(())
    }

    fn attribute(
        &mut self,
        from: &Id,
        to: &Id,
        number: u64,
        name: &CString,
    ) -> Result<(), RewriteError> {
        // SAFETY: under the lock, with identifiers that are open; the buffer has room for all
        // elements, whose size in memory is that of the type.
        unsafe {
            // The attribute is opened by its number. By name, the library does not find some
            // attributes whose names have the same hash, because of the order in which some writers
            // store them.
            let (by, order, none) =
                (H5_index_t::H5_INDEX_NAME, H5_iter_order_t::H5_ITER_INC, H5P_DEFAULT);
            let attribute =
                Id::new(H5Aopen_by_idx(from.raw(), c".".as_ptr(), by, order, number, none, none))?;
            let (stored, space) =
                (Id::new(H5Aget_type(attribute.raw()))?, Id::new(H5Aget_space(attribute.raw()))?);
            let make = Id::new(H5Aget_create_plist(attribute.raw()))?;
            let kind = self.kind(&stored, &name.to_string_lossy())?;
            let made = Id::new(H5Acreate2(
                to.raw(),
                name.as_ptr(),
                kind.raw(),
                space.raw(),
                make.raw(),
                H5P_DEFAULT,
            ))?;
            let count = status(H5Sget_simple_extent_npoints(space.raw()))?.cast_unsigned();
            if count == 0 {
                return Ok(());
            }
            let size = count.checked_mul(H5Tget_size(stored.raw()) as u64);
            // Lists and references may take more bytes in memory than in the file, but not this
            // many.
            let most = self.from.size().saturating_mul(8);
            let Some(size) = size.filter(|&size| size <= most) else {
                let name = name.to_string_lossy();
                return Err(self.malformed(
                    &name,
                    format!("an attribute of {count} elements"),
                    "fewer".into(),
                ));
            };
            let mut values = vec![0_u64; (size as usize).div_ceil(8)];
            let at = values.as_mut_ptr().cast::<c_void>();
            status(H5Aread(attribute.raw(), stored.raw(), at))?;
            let held = contents(&stored, 0)?;
            let set = if held.references {
                self.set(&stored, at.cast(), count as usize, 0)
            } else {
                Ok(())
            };
            let written = set.and_then(|()| status(H5Awrite(made.raw(), stored.raw(), at)));
            if held.pointers || held.references {
                status(H5Treclaim(stored.raw(), space.raw(), H5P_DEFAULT, at))?;
            }
            written?;
        }
        Ok(())
    }
}

/// The names of an object's attributes, each with its number in the order of names. They are in the
/// order of creation if it is known. The lock is held.
fn names(object: &Id) -> Result<Vec<(u64, CString)>, RewriteError> {
    unsafe extern "C" fn visit(
        _: hid_t,
        name: *const c_char,
        info: *const H5A_info_t,
        out: *mut c_void,
    ) -> c_int {
        // SAFETY: `out` is the vector below; the library passes a name that ends with NUL and a
        // filled structure.
        unsafe {
            let order = ((*info).corder_valid != 0).then_some((*info).corder);
            (*out.cast::<Vec<(Option<u32>, CString)>>())
                .push((order, CStr::from_ptr(name).to_owned()));
        }
        0
    }
    let mut found: Vec<(Option<u32>, CString)> = Vec::new();
    // SAFETY: under the lock; the vector outlives the call.
    status(unsafe {
        let by = H5_index_t::H5_INDEX_NAME;
        let order = H5_iter_order_t::H5_ITER_INC;
        H5Aiterate2(
            object.raw(),
            by,
            order,
            std::ptr::null_mut(),
            Some(visit),
            (&raw mut found).cast(),
        )
    })?;
    let mut numbered: Vec<(Option<u32>, (u64, CString))> =
        (0..).zip(found).map(|(number, (order, name))| (order, (number, name))).collect();
    if numbered.iter().all(|(order, _)| order.is_some()) {
        numbered.sort_by_key(|(order, _)| *order);
    }
    Ok(numbered.into_iter().map(|(_, name)| name).collect())
}
