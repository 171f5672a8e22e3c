//! Copies types, and finds what their elements hold.

use std::ffi::c_void;

use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5t::{
    H5T_class_t, H5Tcommit_anon, H5Tcommitted, H5Tcopy, H5Tget_class, H5Tget_create_plist,
    H5Tget_member_type, H5Tget_nmembers, H5Tget_super, H5Tis_variable_str,
};

use super::{MOST_TYPE_LEVELS, Rewrite, RewriteError, info};
use crate::libhdf5::file::address;
use crate::libhdf5::handle::{Id, LibraryRefusal, status};

/// What elements hold besides plain bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ElementContents {
    /// Pointers to strings or lists that are stored elsewhere.
    pub(super) pointers: bool,
    pub(super) references: bool,
}

impl Rewrite<'_> {
    /// The type in the new file: the copy in the file of a type that has a name, else a copy in
    /// memory. The lock is held.
    pub(super) fn kind(&mut self, kind: &Id, path: &str) -> Result<Id, RewriteError> {
        // SAFETY: under the lock, an open type.
        unsafe {
            if status(H5Tcommitted(kind.raw()))? == 0 {
                return Ok(Id::new(H5Tcopy(kind.raw()))?);
            }
            let from = address(&info(kind.raw())?.token);
            if let Some(&copied) = self.copies.get(&from) {
                return Ok(self.open_to(copied)?);
            }
            let (copy, make) =
                (Id::new(H5Tcopy(kind.raw()))?, Id::new(H5Tget_create_plist(kind.raw()))?);
            // A link, or an object of this type, keeps it in the file.
            status(H5Tcommit_anon(self.to.raw(), copy.raw(), make.raw(), H5P_DEFAULT))?;
            self.record_copy(from, &copy, path)?;
            Ok(copy)
        }
    }
}

/// What elements of a type hold. The lock is held.
pub(super) fn contents(kind: &Id, level: usize) -> Result<ElementContents, LibraryRefusal> {
    if level > MOST_TYPE_LEVELS {
        return Err(LibraryRefusal("types inside each other".into()));
    }
    let plain = ElementContents::default();
    // SAFETY: under the lock, with types that are open; each number is that of a member.
    unsafe {
        Ok(match H5Tget_class(kind.raw()) {
            H5T_class_t::H5T_STRING => {
                ElementContents { pointers: status(H5Tis_variable_str(kind.raw()))? > 0, ..plain }
            }
            H5T_class_t::H5T_REFERENCE => ElementContents { references: true, ..plain },
            H5T_class_t::H5T_VLEN => ElementContents {
                pointers: true,
                ..contents(&Id::new(H5Tget_super(kind.raw()))?, level + 1)?
            },
            H5T_class_t::H5T_ARRAY => contents(&Id::new(H5Tget_super(kind.raw()))?, level + 1)?,
            H5T_class_t::H5T_COMPOUND => {
                let mut all = plain;
                for member in 0..status(H5Tget_nmembers(kind.raw()))?.cast_unsigned() {
                    let here =
                        contents(&Id::new(H5Tget_member_type(kind.raw(), member))?, level + 1)?;
                    all.pointers |= here.pointers;
                    all.references |= here.references;
                }
                all
            }
            _ => plain,
        })
    }
}

/// A list of any length, as it is in memory (`hvl_t`).
#[repr(C)]
pub(super) struct StoredSequence {
    pub(super) len: usize,
    pub(super) elements: *mut c_void,
}
