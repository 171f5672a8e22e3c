//! The header of a file: version, compression, read groups with their attributes, and the auxiliary
//! fields.

use super::{AuxField, RecordPress, SignalPress, Version};

/// The two encodings of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// SLOW5: tab-separated text.
    Ascii,
    /// BLOW5: binary records.
    Binary,
}

/// An attribute: a property that all reads of a read group share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute's name.
    pub name: String,
    /// The value for each read group. The format writes `.` for a missing value, and does not
    /// distinguish it from an empty value or a single dot. All of these are read as `None`.
    pub values: Vec<Option<String>>,
}

/// The content of a file before the first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The file's version.
    pub version: Version,
    /// Text or binary.
    pub encoding: Encoding,
    /// How each record is compressed; none in text.
    pub record_press: RecordPress,
    /// How the signal within each record is compressed; none in text.
    pub signal_press: SignalPress,
    /// The number of read groups, at least one. A record refers to its group by number.
    pub read_groups: u32,
    /// The attributes, in the order of the file. Names are distinct.
    pub attributes: Vec<Attribute>,
    /// The auxiliary columns, in the order in which records store them. Names are distinct.
    pub aux: Vec<AuxField>,
    /// The offset of the first record, which is the length of the header.
    pub data_offset: u64,
}

impl Header {
    /// The value of an attribute for a read group.
    pub fn attribute(&self, name: &str, read_group: u32) -> Option<&str> {
        let attribute = self.attributes.iter().find(|attribute| attribute.name == name)?;
        attribute.values.get(usize::try_from(read_group).ok()?)?.as_deref()
    }

    /// The position and description of an auxiliary column.
    pub fn aux_field(&self, name: &str) -> Option<(usize, &AuxField)> {
        self.aux.iter().enumerate().find(|(_, field)| field.name == name)
    }
}
