//! Copies the links of groups: hard, soft and external ones.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use hdf5_metno_sys::h5::{H5_index_t, H5_iter_order_t};
use hdf5_metno_sys::h5i::{H5I_type_t, H5Iget_type, hid_t};
use hdf5_metno_sys::h5l::{
    H5L_info2_t, H5Lcreate_external, H5Lcreate_soft, H5Lget_val, H5Literate2, H5Lunpack_elink_val,
};
use hdf5_metno_sys::h5o::H5Olink;
use hdf5_metno_sys::h5p::{H5P_CLS_LINK_CREATE, H5P_DEFAULT, H5Pcreate, H5Pset_char_encoding};
use hdf5_metno_sys::h5t::H5T_cset_t;

use super::dataset::RewrittenDataset;
use super::{Plan, Rewrite, RewriteError};
use crate::libhdf5::file::address;
use crate::libhdf5::handle::{Id, status};

/// The classes `H5L_TYPE_HARD`, `_SOFT` and `_EXTERNAL`. Other classes are defined by users.
const HARD: c_int = 0;
const SOFT: c_int = 1;
const EXTERNAL: c_int = 64;

/// The most bytes of a link's value, which is one or two paths.
const MOST_VALUE: usize = 1 << 16;

/// A link of the original.
struct OriginalLink {
    name: CString,
    class: c_int,
    /// Its place in the order of creation, if that is known.
    order: Option<i64>,
    encoding: H5T_cset_t,
    /// The address of the object that a hard link leads to.
    address: u64,
    /// The size in bytes of the value of a link of another class.
    value: usize,
}

impl Rewrite<'_> {
    /// Makes the links of a group, and the objects that no earlier link led to. The lock is held.
    pub(super) fn links(
        &mut self,
        from: &Id,
        to: &Id,
        path: &str,
        plan: &mut Plan<'_>,
        datasets: &mut Vec<RewrittenDataset>,
    ) -> Result<(), RewriteError> {
        for link in links(from)? {
            let path = format!("{}/{}", path.trim_end_matches('/'), link.name.to_string_lossy());
            // SAFETY: under the lock, a list of ours.
            let named = unsafe {
                let named = Id::new(H5Pcreate(*H5P_CLS_LINK_CREATE))?;
                status(H5Pset_char_encoding(named.raw(), link.encoding))?;
                named
            };
            match link.class {
                HARD => self.hard(&link, to, &path, &named, plan, datasets)?,
                SOFT | EXTERNAL => self.elsewhere(&link, from, to, &path, &named)?,
                class => {
                    return Err(self.unsupported(
                        &path,
                        &format!("a link of class {class}"),
                        "remove it first",
                    ));
                }
            }
        }
        Ok(())
    }

    fn hard(
        &mut self,
        link: &OriginalLink,
        parent: &Id,
        path: &str,
        named: &Id,
        plan: &mut Plan<'_>,
        datasets: &mut Vec<RewrittenDataset>,
    ) -> Result<(), RewriteError> {
        let copied = if let Some(&copied) = self.copies.get(&link.address) {
            self.open_to(copied)?
        } else {
            self.step()?;
            let from = self.open_from(link.address)?;
            // SAFETY: under the lock, an open object.
            match unsafe { H5Iget_type(from.raw()) } {
                H5I_type_t::H5I_GROUP => {
                    let made = self.group(&from, parent, &link.name, named)?;
                    self.record_copy(link.address, &made, path)?;
                    return Ok(());
                }
                // The library deletes an object that is closed before a link leads to it.
                H5I_type_t::H5I_DATASET => {
                    let (made, copied) = self.dataset(&from, link.address, path, plan)?;
                    datasets.push(made);
                    copied
                }
                H5I_type_t::H5I_DATATYPE => self.kind(&from, path)?,
                _ => {
                    return Err(self.unsupported(
                        path,
                        "an object of a kind that is not known",
                        "remove it first",
                    ));
                }
            }
        };
        // SAFETY: under the lock, with objects that are open and a name that ends with NUL.
        status(unsafe {
            H5Olink(copied.raw(), parent.raw(), link.name.as_ptr(), named.raw(), H5P_DEFAULT)
        })?;
        Ok(())
    }

    /// Makes a soft or an external link: a link to a path, in this file or in another.
    fn elsewhere(
        &self,
        link: &OriginalLink,
        from: &Id,
        to: &Id,
        path: &str,
        named: &Id,
    ) -> Result<(), RewriteError> {
        if link.value > MOST_VALUE {
            return Err(self.malformed(
                path,
                format!("a link of {} bytes", link.value),
                format!("{MOST_VALUE}"),
            ));
        }
        // With one byte more, the value always ends with NUL.
        let mut value = vec![0_u8; link.value + 1];
        // SAFETY: under the lock, with open groups; the buffer has the size that the call is given;
        // the unpacked strings point into it and end with NUL.
        unsafe {
            let bytes = value.as_mut_ptr().cast::<c_void>();
            status(H5Lget_val(from.raw(), link.name.as_ptr(), bytes, link.value, H5P_DEFAULT))?;
            if link.class == SOFT {
                let path = bytes.cast::<c_char>();
                status(H5Lcreate_soft(
                    path,
                    to.raw(),
                    link.name.as_ptr(),
                    named.raw(),
                    H5P_DEFAULT,
                ))?;
            } else {
                let (mut flags, mut file, mut object) = (0, std::ptr::null(), std::ptr::null());
                status(H5Lunpack_elink_val(
                    bytes,
                    link.value,
                    &raw mut flags,
                    &raw mut file,
                    &raw mut object,
                ))?;
                let name = link.name.as_ptr();
                status(H5Lcreate_external(file, object, to.raw(), name, named.raw(), H5P_DEFAULT))?;
            }
        }
        Ok(())
    }
}

/// The links of a group, in the order of creation if it is known, else by name. The lock is held.
fn links(group: &Id) -> Result<Vec<OriginalLink>, RewriteError> {
    unsafe extern "C" fn visit(
        _: hid_t,
        name: *const c_char,
        info: *const H5L_info2_t,
        out: *mut c_void,
    ) -> c_int {
        // SAFETY: `out` is the vector below; the library passes a name that ends with NUL and a
        // filled structure, whose class may be a number that the enumeration of the bindings lacks.
        unsafe {
            let class = info.cast::<c_int>().read();
            let mut more = std::mem::MaybeUninit::<H5L_info2_t>::zeroed();
            std::ptr::copy_nonoverlapping(
                info.cast::<u8>(),
                more.as_mut_ptr().cast(),
                size_of::<H5L_info2_t>(),
            );
            more.as_mut_ptr().cast::<c_int>().write(HARD);
            let mut more = more.assume_init();
            let (address, value) = if class == HARD {
                (address(&*more.u.token()), 0)
            } else {
                (0, *more.u.val_size())
            };
            (*out.cast::<Vec<OriginalLink>>()).push(OriginalLink {
                name: CStr::from_ptr(name).to_owned(),
                class,
                order: (more.corder_valid != 0).then_some(more.corder),
                encoding: more.cset,
                address,
                value,
            });
        }
        0
    }
    let mut found: Vec<OriginalLink> = Vec::new();
    // SAFETY: under the lock; the vector outlives the call.
    status(unsafe {
        let by = H5_index_t::H5_INDEX_NAME;
        let order = H5_iter_order_t::H5_ITER_INC;
        H5Literate2(
            group.raw(),
            by,
            order,
            std::ptr::null_mut(),
            Some(visit),
            (&raw mut found).cast(),
        )
    })?;
    if found.iter().all(|link| link.order.is_some()) {
        found.sort_by_key(|link| link.order);
    }
    Ok(found)
}
