//! The file header: version, compression, read groups with their attributes, and the auxiliary
//! columns.
//!
//! BLOW5 puts 68 fixed bytes before the text, SLOW5 two lines (sections "SLOW5 header" and "BLOW5
//! header"). The rest, the attributes and the two column lines, is the same text in both.

mod parse;
#[cfg(test)]
mod tests;
mod write;

use crate::record::Header;

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

/// What [`Header::parse`] made of the first bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// The whole header was there.
    Done(Header),
    /// The header is longer than the bytes given. At least this many bytes of the file are needed;
    /// a file that does not have them is truncated. For text it is a guess, twice what was given.
    NeedMore(u64),
}
