//! Makes the links of groups: hard, soft and external ones.

use std::ffi::CString;

use hdf5_metno_sys::h5l::{H5Lcreate_external, H5Lcreate_soft};
use hdf5_metno_sys::h5o::H5Olink;
use hdf5_metno_sys::h5p::{H5P_CLS_LINK_CREATE, H5P_DEFAULT, H5Pcreate, H5Pset_char_encoding};
use hdf5_metno_sys::h5t::H5T_cset_t;

use super::dataset::RewrittenDataset;
use super::{Plan, Rewrite, RewriteError};
use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::metadata::stored_object::StoredKind;
use crate::metadata::{Link, Target};

/// The encoding of a name. The lock is held; `list` is a creation property list.
pub(super) fn set_encoding(list: &Id, is_utf8: bool) -> Result<(), LibraryRefusal> {
    let encoding = if is_utf8 { H5T_cset_t::H5T_CSET_UTF8 } else { H5T_cset_t::H5T_CSET_ASCII };
    // SAFETY: under the lock, an open list.
    status(unsafe { H5Pset_char_encoding(list.raw(), encoding) }).map(drop)
}

/// A hard link of the new file.
pub(super) struct NewLink<'a> {
    /// The group.
    pub(super) parent: &'a Id,
    pub(super) name: CString,
    /// Its creation property list.
    pub(super) properties: Id,
    /// Its path, for errors.
    pub(super) path: &'a str,
}

impl Rewrite<'_> {
    /// Makes links of the group `to`, and the objects that no earlier link led to. The lock is
    /// held.
    pub(super) fn links(
        &mut self,
        links: &[Link],
        to: &Id,
        path: &str,
        plan: &mut Plan<'_>,
        datasets: &mut Vec<RewrittenDataset>,
    ) -> Result<(), RewriteError> {
        for link in links {
            let shown = String::from_utf8_lossy(&link.name);
            let path = format!("{}/{shown}", path.trim_end_matches('/'));
            let name = self.c_string(link.name.clone(), &path)?;
            // SAFETY: under the lock.
            let properties = Id::new(unsafe { H5Pcreate(*H5P_CLS_LINK_CREATE) })?;
            set_encoding(&properties, link.is_utf8)?;
            let at = to.raw();
            let how = properties.raw();
            match &link.target {
                &Target::Object(from) => {
                    let link = NewLink { parent: to, name, properties, path: &path };
                    self.run_locked(&path, |rewrite| rewrite.hard(from, &link, plan, datasets))?;
                }
                Target::Path(target) => {
                    let target = self.c_string(target.clone(), &path)?;
                    // SAFETY: under the lock, with an open group and strings that end with NUL.
                    status(unsafe {
                        H5Lcreate_soft(target.as_ptr(), at, name.as_ptr(), how, H5P_DEFAULT)
                    })?;
                }
                Target::External { file, path: target } => {
                    let file = self.c_string(file.clone(), &path)?;
                    let target = self.c_string(target.clone(), &path)?;
                    // SAFETY: as above.
                    status(unsafe {
                        let file = file.as_ptr();
                        let target = target.as_ptr();
                        H5Lcreate_external(file, target, at, name.as_ptr(), how, H5P_DEFAULT)
                    })?;
                }
                Target::UserDefined(class) => {
                    let what = format!("a link of class {class}");
                    return Err(self.unsupported(&path, &what, "remove it first"));
                }
            }
        }
        Ok(())
    }

    /// Makes a hard link, and its object if there is no copy of it yet.
    fn hard(
        &mut self,
        from: u64,
        link: &NewLink<'_>,
        plan: &mut Plan<'_>,
        datasets: &mut Vec<RewrittenDataset>,
    ) -> Result<(), RewriteError> {
        let &NewLink { parent, ref name, ref properties, path } = link;
        let copied = if let Some(&copied) = self.copies.get(&from) {
            self.open_to(copied)?
        } else {
            self.step()?;
            let object = self.from.object(from, path)?;
            match object.kind {
                StoredKind::Group(group) => {
                    let made = self.group(&object.properties, &group, link)?;
                    self.record_copy(from, &made, path, group.links)?;
                    return Ok(());
                }
                // The library deletes an object that is closed before a link leads to it.
                StoredKind::Dataset(header) => {
                    let (made, copied) =
                        self.dataset(&header, &object.properties, from, path, plan)?;
                    datasets.push(made);
                    copied
                }
                StoredKind::Type(message) => self.type_in_file(&message, path)?,
            }
        };
        // SAFETY: under the lock, with objects that are open and a name that ends with NUL.
        status(unsafe {
            H5Olink(copied.raw(), parent.raw(), name.as_ptr(), properties.raw(), H5P_DEFAULT)
        })?;
        Ok(())
    }
}
