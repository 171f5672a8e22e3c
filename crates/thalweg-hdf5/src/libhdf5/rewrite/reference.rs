//! Sets references to the copies of the objects that they name.

use std::ffi::c_void;

use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5r::{
    H5R_ref_t, H5R_type_t, H5Rcreate, H5Rcreate_attr, H5Rcreate_object, H5Rcreate_region,
    H5Rdereference2, H5Rdestroy, H5Rget_attr_name, H5Rget_file_name, H5Rget_region, H5Rget_type,
    H5Ropen_object, H5Ropen_region,
};
use hdf5_metno_sys::h5t::{
    H5T_STD_REF, H5T_STD_REF_DSETREG, H5T_STD_REF_OBJ, H5T_class_t, H5Tequal, H5Tget_class,
    H5Tget_member_offset, H5Tget_member_type, H5Tget_nmembers, H5Tget_size, H5Tget_super,
};

use super::datatype::StoredSequence;
use super::{MOST_TYPE_LEVELS, Rewrite, info};
use crate::libhdf5::driver::open_name;
use crate::libhdf5::file::address;
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::metadata::NOWHERE;

/// Bytes in memory of references to objects, to regions, and of any kind.
const OBJECT: usize = 8;
const REGION: usize = 12;
const ANY: usize = size_of::<H5R_ref_t>();

/// The longest name of an attribute that a reference names, in bytes.
const MOST_NAME: usize = 1 << 16;

impl Rewrite<'_> {
    /// Sets the references in `count` elements of a type in memory.
    ///
    /// # Safety
    /// The lock is held; `at` points to that many elements, which the library read.
    pub(super) unsafe fn set(
        &mut self,
        kind: &Id,
        at: *mut u8,
        count: usize,
        level: usize,
    ) -> Result<(), LibraryRefusal> {
        if level > MOST_TYPE_LEVELS {
            return Err(LibraryRefusal("types inside each other".into()));
        }
        // SAFETY: as the caller says; members and elements lie inside of what they are part of.
        unsafe {
            let size = H5Tget_size(kind.raw());
            match H5Tget_class(kind.raw()) {
                H5T_class_t::H5T_REFERENCE => {
                    (0..count).try_for_each(|i| self.set_one(kind, at.add(i * size), size))
                }
                H5T_class_t::H5T_ARRAY => {
                    let base = Id::new(H5Tget_super(kind.raw()))?;
                    self.set(&base, at, count * (size / H5Tget_size(base.raw()).max(1)), level + 1)
                }
                H5T_class_t::H5T_VLEN => {
                    let base = Id::new(H5Tget_super(kind.raw()))?;
                    (0..count).try_for_each(|i| {
                        let list = at.add(i * size).cast::<StoredSequence>().read_unaligned();
                        if list.elements.is_null() {
                            return Ok(());
                        }
                        self.set(&base, list.elements.cast(), list.len, level + 1)
                    })
                }
                H5T_class_t::H5T_COMPOUND => {
                    for member in 0..status(H5Tget_nmembers(kind.raw()))?.cast_unsigned() {
                        let part = Id::new(H5Tget_member_type(kind.raw(), member))?;
                        if !super::datatype::contents(&part, level + 1)?.references {
                            continue;
                        }
                        let offset = H5Tget_member_offset(kind.raw(), member);
                        (0..count).try_for_each(|i| {
                            self.set(&part, at.add(i * size + offset), 1, level + 1)
                        })?;
                    }
                    Ok(())
                }
                _ => Ok(()),
            }
        }
    }

    /// Sets one reference.
    ///
    /// # Safety
    /// As [`Rewrite::set`], for one reference.
    unsafe fn set_one(
        &mut self,
        kind: &Id,
        at: *mut u8,
        size: usize,
    ) -> Result<(), LibraryRefusal> {
        // SAFETY: as the caller says; each reference is copied to aligned memory, and back.
        unsafe {
            if size == OBJECT && status(H5Tequal(kind.raw(), *H5T_STD_REF_OBJ))? > 0 {
                let from = at.cast::<u64>().read_unaligned();
                if from != 0 && from != NOWHERE {
                    let to = self.copy_of(from).unwrap_or(0);
                    at.cast::<u64>().write_unaligned(to);
                }
                return Ok(());
            }
            if size == REGION && status(H5Tequal(kind.raw(), *H5T_STD_REF_DSETREG))? > 0 {
                let mut reference = at.cast::<[u8; REGION]>().read();
                if reference != [0; REGION] {
                    self.set_region(&mut reference)?;
                    at.cast::<[u8; REGION]>().write(reference);
                }
                return Ok(());
            }
            if size == ANY && status(H5Tequal(kind.raw(), *H5T_STD_REF))? > 0 {
                let mut reference = at.cast::<H5R_ref_t>().read_unaligned();
                self.set_any(&mut reference)?;
                at.cast::<H5R_ref_t>().write_unaligned(reference);
                return Ok(());
            }
            Err(LibraryRefusal(format!("references of {size} bytes")))
        }
    }

    /// The address of the copy of an object; counts a cleared reference if there is none.
    fn copy_of(&mut self, from: u64) -> Option<u64> {
        let copied = self.copies.get(&from).copied();
        self.cleared += u64::from(copied.is_none());
        copied
    }

    /// Sets a reference to a region of a dataset.
    ///
    /// # Safety
    /// The lock is held; the library read the reference.
    unsafe fn set_region(&mut self, reference: &mut [u8; REGION]) -> Result<(), LibraryRefusal> {
        let (at, class) =
            (reference.as_mut_ptr().cast::<c_void>(), H5R_type_t::H5R_DATASET_REGION1);
        // SAFETY: as the caller says; the name ends with NUL.
        unsafe {
            let object = Id::new(H5Rdereference2(self.from.id.raw(), H5P_DEFAULT, class, at))?;
            let region = Id::new(H5Rget_region(self.from.id.raw(), class, at))?;
            let Some(copied) = self.copy_of(address(&info(object.raw())?.token)) else {
                *reference = [0; REGION];
                return Ok(());
            };
            let copied = self.open_to(copied)?;
            status(H5Rcreate(at, copied.raw(), c".".as_ptr(), class, region.raw())).map(drop)
        }
    }

    /// Whether a reference names something in the original, and not in another file.
    ///
    /// # Safety
    /// The lock is held; the library read the reference.
    unsafe fn is_own(&self, reference: &H5R_ref_t) -> bool {
        let mut name = vec![0_u8; MOST_NAME];
        // SAFETY: as the caller says; the buffer has the size that the call is given.
        let len = unsafe {
            H5Rget_file_name(&raw const *reference, name.as_mut_ptr().cast(), name.len())
        };
        let len = usize::try_from(len).ok();
        len.and_then(|len| name.get(..len)) == Some(open_name().to_bytes())
    }

    /// Sets a reference of the kind that names an object, a region or an attribute.
    ///
    /// # Safety
    /// The lock is held; the library read the reference, whose memory is given back.
    unsafe fn set_any(&mut self, reference: &mut H5R_ref_t) -> Result<(), LibraryRefusal> {
        // SAFETY: as the caller says; names end with NUL.
        unsafe {
            let class = H5Rget_type(&raw const *reference);
            if !matches!(
                class,
                H5R_type_t::H5R_OBJECT2 | H5R_type_t::H5R_DATASET_REGION2 | H5R_type_t::H5R_ATTR
            ) {
                // The reference is null.
                return Ok(());
            }
            if !self.is_own(reference) {
                // libhdf5 would open the other file, for writing even.
                return Err(LibraryRefusal("a reference into another file is not copied".into()));
            }
            let object = Id::new(H5Ropen_object(&raw const *reference, H5P_DEFAULT, H5P_DEFAULT))?;
            let mut made = H5R_ref_t::default();
            if let Some(copied) = self.copy_of(address(&info(object.raw())?.token)) {
                let copied = self.open_to(copied)?;
                let (at, here, set) = (copied.raw(), c".".as_ptr(), &raw mut made);
                status(match class {
                    H5R_type_t::H5R_ATTR => {
                        let mut name = vec![0_u8; MOST_NAME];
                        let len = H5Rget_attr_name(
                            &raw const *reference,
                            name.as_mut_ptr().cast(),
                            name.len(),
                        );
                        status(len as i64)?;
                        H5Rcreate_attr(at, here, name.as_ptr().cast(), H5P_DEFAULT, set)
                    }
                    H5R_type_t::H5R_DATASET_REGION2 => {
                        let region = Id::new(H5Ropen_region(
                            &raw const *reference,
                            H5P_DEFAULT,
                            H5P_DEFAULT,
                        ))?;
                        H5Rcreate_region(at, here, region.raw(), H5P_DEFAULT, set)
                    }
                    _ => H5Rcreate_object(at, here, H5P_DEFAULT, set),
                })?;
            }
            status(H5Rdestroy(&raw mut *reference))?;
            *reference = made;
        }
        Ok(())
    }
}
