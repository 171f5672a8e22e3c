//! Makes attributes of any type.

use hdf5_metno_sys::h5a::{H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5p::{H5P_CLS_ATTRIBUTE_CREATE, H5P_DEFAULT, H5Pcreate};

use super::link::set_encoding;
use super::memory::MemoryForm;
use super::selection::space_of;
use super::{Rewrite, RewriteError, type_in_memory};
use crate::libhdf5::handle::{Id, status};
use crate::metadata::Attribute;

impl Rewrite<'_> {
    /// Makes attributes of the object `to`. The lock is held.
    pub(super) fn attributes(
        &mut self,
        attributes: &[Attribute],
        to: &Id,
        path: &str,
    ) -> Result<(), RewriteError> {
        for attribute in attributes {
            self.step()?;
            let shown = String::from_utf8_lossy(&attribute.name);
            self.attribute(attribute, to, &format!("{path}, attribute {shown}"))?;
        }
        Ok(())
    }

    fn attribute(
        &mut self,
        attribute: &Attribute,
        to: &Id,
        path: &str,
    ) -> Result<(), RewriteError> {
        let name = self.c_string(attribute.name.clone(), path)?;
        let kind = self.type_in_file(&attribute.type_message, path)?;
        let memory = type_in_memory(&attribute.type_message)?;
        let form = MemoryForm::of(&attribute.datatype, &memory)?;
        // SAFETY: under the lock, with identifiers that are open and a name that ends with NUL; the
        // values have as many elements as the space, of the size of the type in memory.
        unsafe {
            let space = space_of(&attribute.space)?;
            let make = Id::new(H5Pcreate(*H5P_CLS_ATTRIBUTE_CREATE))?;
            set_encoding(&make, attribute.is_utf8)?;
            let made = Id::new(H5Acreate2(
                to.raw(),
                name.as_ptr(),
                kind.raw(),
                space.raw(),
                make.raw(),
                H5P_DEFAULT,
            ))?;
            if !attribute.bytes.is_empty() {
                let values = self.memory_values(&form, path, &attribute.bytes)?;
                status(H5Awrite(made.raw(), memory.raw(), values.bytes.as_ptr().cast()))?;
            }
        }
        Ok(())
    }
}
