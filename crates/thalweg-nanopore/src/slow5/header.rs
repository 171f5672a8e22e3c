//! The file header: version, compression, read groups with their attributes, and the auxiliary
//! columns.
//!
//! BLOW5 puts 68 fixed bytes before the text, SLOW5 two lines (sections "SLOW5 header" and "BLOW5
//! header"). The rest, the attributes and the two column lines, is the same text in both.

mod parse;
#[cfg(test)]
mod tests;
mod write;

use super::{AuxField, RecordPress, SignalPress, Version};

/// First bytes of a BLOW5 file.
pub(crate) const MAGIC: &[u8; 6] = b"BLOW5\x01";

/// Where a BLOW5 header says how long its text is, as a `u32`; unused bytes before it are zero.
const TEXT_LEN_AT: usize = 64;

/// Where the text of a BLOW5 header starts.
const TEXT_AT: usize = 68;

/// The type line up to the auxiliary columns.
const TYPES: &str = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*";

/// The name line up to the auxiliary columns.
const NAMES: &str =
    "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal";

/// First line of a SLOW5 file, before its value.
const VERSION_LINE: &str = "#slow5_version\t";

/// Second line of a SLOW5 file, before its value.
const READ_GROUPS_LINE: &str = "#num_read_groups\t";

/// Stands for an attribute that a read group does not have.
const MISSING: &str = ".";

/// The two ways to write the format down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// SLOW5: tab-separated text.
    Ascii,
    /// BLOW5: binary records.
    Binary,
}

/// An attribute: something that is the same for every read of a read group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value for each read group. The format writes `.` for what is missing and cannot tell it
    /// from an empty or single-dot value, so both are read as `None`.
    pub values: Vec<Option<String>>,
}

/// Everything that stands before the first record.
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
    /// How many read groups there are, at least one. A record names its group by number.
    pub read_groups: u32,
    /// The attributes, in the order of the file. Names are distinct.
    pub attributes: Vec<Attribute>,
    /// The auxiliary columns, in the order in which records store them. Names are distinct.
    pub aux: Vec<AuxField>,
    /// Where the first record starts: the header's own length.
    pub data_offset: u64,
}

/// What [`Header::parse`] made of the first bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// The whole header was there.
    Done(Header),
    /// The header is longer than the bytes given. At least this many bytes of the file are needed;
    /// a file that does not have them is truncated. For text it is a guess, twice what was given.
    NeedMore(u64),
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
