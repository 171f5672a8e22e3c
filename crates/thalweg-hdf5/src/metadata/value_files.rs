//! The names of the other files in which the elements of datasets lie.

use std::collections::BTreeSet;

use thalweg_io::Error;

use super::dataset::Layout;
use super::file::{Entity, MetadataFile};
use super::heap::Collections;
use super::virtual_layout::stored_mappings;
use super::{NOWHERE, Object, Result};
use crate::array::{ElementPlace, Found};

impl MetadataFile {
    /// The names of the other files that external and virtual datasets of the whole file name, as
    /// they are stored. A damaged object names none.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; the errors of the store.
    pub(crate) fn value_file_names(&self) -> Result<BTreeSet<Vec<u8>>, Error> {
        let mut names = BTreeSet::new();
        for (address, entity) in self.entities(vec![self.superblock().root])? {
            if !may_name_files(&entity) {
                continue;
            }
            match self.wait("/", self.names_of_dataset(address)) {
                Ok(found) => names.extend(found),
                Err(
                    Error::Malformed { .. } | Error::Truncated { .. } | Error::Unsupported { .. },
                ) => {}
                Err(error) => return Err(error),
            }
        }
        names.remove(&b"."[..]);
        Ok(names)
    }

    /// The names of other files that the dataset at `address` names; `.` for the same file.
    async fn names_of_dataset(&self, address: u64) -> Result<Vec<Vec<u8>>> {
        let reader = self.reader();
        let object = Object::read(&reader, address).await?;
        let Some(header) = object.dataset(&reader).await? else { return Ok(Vec::new()) };
        let mut names: Vec<Vec<u8>> = header.external.into_iter().map(|piece| piece.file).collect();
        if let Layout::Virtual(id) = header.layout
            && id.0 != NOWHERE
        {
            let collections = Collections::read(&reader, [id]).await?;
            let mappings = stored_mappings(&reader.cursor(collections.object(id)?, id.0))?;
            names.extend(mappings.iter().map(|mapping| mapping.file.to_vec()));
        }
        Ok(names)
    }
}

/// Whether an object may be a dataset whose elements are in other files. An object that cannot be
/// read may be one.
fn may_name_files(entity: &Result<Entity>) -> bool {
    match entity {
        Ok(Entity::Group(_) | Entity::Type) => false,
        Ok(Entity::Dataset(Found::Array(array))) => {
            matches!(array.place, ElementPlace::Contiguous(_) | ElementPlace::Virtual(_))
        }
        _ => true,
    }
}
