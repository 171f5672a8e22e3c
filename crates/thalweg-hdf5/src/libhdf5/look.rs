//! Looks at everything of an object that this crate may ask libhdf5 for, values of datasets
//! excepted, to see whether libhdf5 survives it.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{CString, c_char, c_int, c_void};

use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t};
use hdf5_metno_sys::h5a::{
    H5Aget_create_plist, H5Aget_space, H5Aget_type, H5Aopen_by_idx, H5Aread,
};
use hdf5_metno_sys::h5g::H5Gget_create_plist;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5l::{H5L_info2_t, H5L_type_t, H5Lget_val, H5Literate2};
use hdf5_metno_sys::h5o::H5Oget_comment;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::H5Sget_simple_extent_npoints;
use hdf5_metno_sys::h5t::{H5Tget_size, H5Treclaim};
use thalweg_io::{Error, Result};

use super::allowance;
use super::handle::{Id, LibraryRefusal, locked, status};
use super::object::{Link, Node};

/// The most bytes of a link's value or of a comment that are read.
const MOST_TEXT: usize = 1 << 16;

impl Node {
    /// Reads the object's attributes, comment and links, and the description of a dataset. A
    /// refusal of the library does not end it. Returns the hard links.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn look(&self) -> Result<Vec<Link>> {
        let _ = locked(|| self.comment());
        // The raw values come first: a damaged heap shows in them.
        let names = locked(|| self.look_at_attributes()).unwrap_or_default();
        unless_cancelled(self.attributes().map(drop))?;
        for name in &names {
            unless_cancelled(self.texts(name).map(drop))?;
            allowance::progress();
        }
        if !self.is_group() {
            unless_cancelled(self.dimension_scales().map(drop))?;
            unless_cancelled(self.array().map(drop))?;
            return Ok(Vec::new());
        }
        let _ = locked(|| self.look_at_links());
        match self.links() {
            Err(Error::Cancelled) => Err(Error::Cancelled),
            links => Ok(links.unwrap_or_else(|_| Vec::new())),
        }
    }

    /// Reads the comment of an object. The lock is held.
    fn comment(&self) -> Result<(), LibraryRefusal> {
        let mut text = vec![0_u8; MOST_TEXT];
        // SAFETY: under the lock, an open object; the buffer is as long as is said.
        status(unsafe {
            H5Oget_comment(self.id.raw(), text.as_mut_ptr().cast::<c_char>(), text.len())
        } as i64)
        .map(drop)
    }

    /// Reads the values of all attributes as they are stored, and returns the names. The lock is
    /// held.
    fn look_at_attributes(&self) -> Result<Vec<CString>, LibraryRefusal> {
        let names = self.attribute_names(H5_iter_order_t::H5_ITER_INC)?;
        for number in 0..names.len() as u64 {
            let _ = self.look_at_attribute(number);
            allowance::progress();
        }
        Ok(names)
    }

    /// Reads the value of an attribute as it is stored. The lock is held.
    fn look_at_attribute(&self, number: u64) -> Result<(), LibraryRefusal> {
        // SAFETY: under the lock, with identifiers that are open; the buffer has room for all
        // elements, whose size in memory is that of the type; what the library allocates for lists
        // goes back to it.
        unsafe {
            let (by, order) = (H5_index_t::H5_INDEX_NAME, H5_iter_order_t::H5_ITER_INC);
            let none = H5P_DEFAULT;
            let attribute =
                H5Aopen_by_idx(self.id.raw(), c".".as_ptr(), by, order, number, none, none);
            let attribute = Id::new(attribute)?;
            let stored = Id::new(H5Aget_type(attribute.raw()))?;
            let space = Id::new(H5Aget_space(attribute.raw()))?;
            drop(Id::new(H5Aget_create_plist(attribute.raw()))?);
            let count = status(H5Sget_simple_extent_npoints(space.raw()))?.cast_unsigned();
            let size = count.checked_mul(H5Tget_size(stored.raw()) as u64);
            // Nothing reads an attribute that claims more than this.
            let most = self.shared.size().saturating_mul(8);
            let Some(size) = size.filter(|&size| size > 0 && size <= most) else { return Ok(()) };
            let mut values = vec![0_u64; (size as usize).div_ceil(8)];
            let at = values.as_mut_ptr().cast::<c_void>();
            status(H5Aread(attribute.raw(), stored.raw(), at))?;
            status(H5Treclaim(stored.raw(), space.raw(), H5P_DEFAULT, at)).map(drop)
        }
    }

    /// Reads the creation properties of a group, and where its links lead. The lock is held.
    fn look_at_links(&self) -> Result<(), LibraryRefusal> {
        unsafe extern "C" fn visit(
            group: hid_t,
            name: *const c_char,
            info: *const H5L_info2_t,
            _: *mut c_void,
        ) -> c_int {
            let mut value = vec![0_u8; MOST_TEXT];
            // SAFETY: under the lock; the library passes an open group, a name that ends with NUL
            // and a filled structure; the buffer is as long as is said.
            unsafe {
                if (*info).type_ != H5L_type_t::H5L_TYPE_HARD {
                    let _ = status(H5Lget_val(
                        group,
                        name,
                        value.as_mut_ptr().cast(),
                        value.len(),
                        H5P_DEFAULT,
                    ));
                }
            }
            allowance::progress();
            0
        }
        // SAFETY: under the lock, with an open group.
        unsafe {
            drop(Id::new(H5Gget_create_plist(self.id.raw())));
            let (by, order) = (H5_index_t::H5_INDEX_NAME, H5_iter_order_t::H5_ITER_INC);
            let (start, out) = (std::ptr::null_mut(), std::ptr::null_mut());
            status(H5Literate2(self.id.raw(), by, order, start, Some(visit), out)).map(drop)
        }
    }
}

/// Passes on that the work was cancelled, and no other error.
pub(crate) fn unless_cancelled(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Error::Cancelled) => Err(Error::Cancelled),
        _ => Ok(()),
    }
}
