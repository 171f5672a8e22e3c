//! What the schemas of the three tables have in common.

use std::collections::HashMap;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field};

use super::Identity;
use super::footer::POD5_VERSION;

/// The keys that every table repeats (specification, "Table Schema").
pub(super) fn metadata(identity: &Identity, software: &str) -> HashMap<String, String> {
    [
        ("MINKNOW:file_identifier", identity.file_identifier.as_str()),
        ("MINKNOW:software", software),
        ("MINKNOW:pod5_version", POD5_VERSION),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// A field of an extension type, which has no parameters.
pub(super) fn extension(field: Field, name: &str) -> Field {
    let metadata = [(EXTENSION_TYPE_NAME_KEY, name), (EXTENSION_TYPE_METADATA_KEY, "")];
    field.with_metadata(metadata.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// The column of read ids, first of the Signal and the Reads table.
pub(super) fn read_id() -> Field {
    extension(Field::new("read_id", DataType::FixedSizeBinary(16), true), "minknow.uuid")
}
