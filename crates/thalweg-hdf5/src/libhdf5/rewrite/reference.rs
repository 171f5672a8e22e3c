//! Sets references to the copies of the objects that they name.

use std::ffi::c_void;

use hdf5_metno_sys::h5d::H5Dget_space;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5r::{
    H5R_ref_t, H5R_type_t, H5Rcreate, H5Rcreate_attr, H5Rcreate_object, H5Rcreate_region,
};

use super::selection::select;
use super::{Rewrite, RewriteError, malformed};
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::metadata::datatype::Referent;
use crate::metadata::selection::Selected;
use crate::metadata::stored_object::{REGION_REFERENCE, ReferencedPart, StoredReference};

impl Rewrite<'_> {
    /// Stored references in memory, and those that have to be destroyed afterwards. The lock is
    /// held.
    pub(super) fn references(
        &mut self,
        referent: Referent,
        path: &str,
        stored: Vec<u8>,
    ) -> Result<(Vec<u8>, Vec<H5R_ref_t>), RewriteError> {
        let found = self.from.references(path, referent, &stored)?;
        let mut out = Vec::with_capacity(stored.len());
        let mut made = Vec::new();
        for reference in found {
            if reference.as_ref().is_some_and(|found| found.part == ReferencedPart::InOtherFile) {
                let what = "a reference into another file is not copied";
                return Err(self.unsupported(path, what, "replace it by a path first"));
            }
            // An object without a copy has no link. The reference to it becomes null.
            let copied = reference.and_then(|reference| {
                let copied = self.copies.get(&reference.object).copied();
                self.cleared += u64::from(copied.is_none());
                Some((copied?, reference))
            });
            match (referent, copied) {
                (Referent::Object, copied) => {
                    out.extend(copied.map_or(0, |(copied, _)| copied).to_ne_bytes());
                }
                (Referent::Region, Some((copied, reference))) => {
                    out.extend(self.region_reference(copied, &reference, path)?);
                }
                (Referent::Region, None) => out.extend([0; REGION_REFERENCE]),
                (Referent::Any, copied) => {
                    let mut one = H5R_ref_t::default();
                    if let Some((copied, reference)) = copied {
                        one = self.any_reference(copied, &reference, path)?;
                        made.push(one);
                    }
                    // SAFETY: the structure is plain bytes, all of which are initialised.
                    out.extend(unsafe {
                        std::slice::from_raw_parts((&raw const one).cast(), size_of::<H5R_ref_t>())
                    });
                }
            }
        }
        Ok((out, made))
    }

    /// A reference to a region of a dataset of the new file.
    fn region_reference(
        &self,
        copied: u64,
        reference: &StoredReference,
        path: &str,
    ) -> Result<[u8; REGION_REFERENCE], RewriteError> {
        let ReferencedPart::Region(selected) = &reference.part else {
            return Err(
                malformed(self.store, path, "a reference of another kind", "a region").into()
            );
        };
        let copied = self.open_to(copied)?;
        let region = region(&copied, selected)?;
        let mut made = [0_u8; REGION_REFERENCE];
        // SAFETY: under the lock, with open identifiers and a name that ends with NUL; the
        // reference has as many bytes as the library writes.
        status(unsafe {
            let at = made.as_mut_ptr().cast::<c_void>();
            let kind = H5R_type_t::H5R_DATASET_REGION1;
            H5Rcreate(at, copied.raw(), c".".as_ptr(), kind, region.raw())
        })?;
        Ok(made)
    }

    /// A reference to an object of the new file, or to a part of it.
    fn any_reference(
        &self,
        copied: u64,
        reference: &StoredReference,
        path: &str,
    ) -> Result<H5R_ref_t, RewriteError> {
        let copied = self.open_to(copied)?;
        let mut made = H5R_ref_t::default();
        let at = copied.raw();
        let here = c".".as_ptr();
        let set = &raw mut made;
        // SAFETY: under the lock, with open identifiers and names that end with NUL.
        status(unsafe {
            match &reference.part {
                ReferencedPart::Whole | ReferencedPart::InOtherFile => {
                    H5Rcreate_object(at, here, H5P_DEFAULT, set)
                }
                ReferencedPart::Region(selected) => {
                    let region = region(&copied, selected)?;
                    H5Rcreate_region(at, here, region.raw(), H5P_DEFAULT, set)
                }
                ReferencedPart::Attribute(name) => {
                    let name = self.c_string(name.clone(), path)?;
                    H5Rcreate_attr(at, here, name.as_ptr(), H5P_DEFAULT, set)
                }
            }
        })?;
        Ok(made)
    }
}

/// The space of a dataset with the selected elements. The lock is held.
fn region(dataset: &Id, selected: &Selected) -> Result<Id, LibraryRefusal> {
    // SAFETY: under the lock, an open object; the library checks that it is a dataset.
    let space = Id::new(unsafe { H5Dget_space(dataset.raw()) })?;
    select(&space, selected)?;
    Ok(space)
}
