//! The file header: version, compression, read groups with their attributes, and the auxiliary
//! columns.
//!
//! A BLOW5 header starts with 68 fixed bytes, a SLOW5 header with two lines of text (sections
//! "SLOW5 header" and "BLOW5 header"). The rest is the same text in both: the attributes and the
//! two column lines.

mod parse;
#[cfg(test)]
mod tests;
mod write;

use crate::record::Header;

/// First bytes of a BLOW5 file.
pub(crate) const MAGIC: &[u8; 6] = b"BLOW5\x01";

/// The offset of the length of a BLOW5 header's text, a `u32`. Unused bytes before it are zero.
const TEXT_LEN_AT: usize = 64;

/// The offset of the text of a BLOW5 header.
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

/// The value of an attribute that a read group does not have.
const MISSING: &str = ".";

/// The result of [`Header::parse`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// The header is complete.
    Done(Header),
    /// The header is longer than the given bytes. At least this many bytes of the file are needed.
    /// A file with fewer bytes is truncated. For text this is a guess: twice the given number.
    NeedMore(u64),
}
