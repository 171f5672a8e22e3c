//! The common parts of the schemas of the three tables.

use std::collections::HashMap;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field};

use super::Identity;
use super::footer::POD5_VERSION;

/// The metadata that every table has (specification, "Table Schema").
pub(super) fn metadata(identity: &Identity, software: &str) -> HashMap<String, String> {
    [
        ("MINKNOW:file_identifier", identity.file_identifier.as_str()),
        ("MINKNOW:software", software),
        ("MINKNOW:pod5_version", POD5_VERSION),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// A field of an extension type without parameters.
pub(super) fn extension(field: Field, name: &str) -> Field {
    let metadata = [(EXTENSION_TYPE_NAME_KEY, name), (EXTENSION_TYPE_METADATA_KEY, "")];
    field.with_metadata(metadata.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// The column of read ids, the first column of the Signal table and the Reads table.
pub(super) fn read_id() -> Field {
    extension(Field::new("read_id", DataType::FixedSizeBinary(16), true), "minknow.uuid")
}
