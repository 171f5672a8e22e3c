//! The model of a read that all formats share: a header with read groups and their attributes, a
//! record with primary and auxiliary fields, and an index of records by read id.
//!
//! It is SLOW5's model, because that is the most general one. POD5 and FAST5 files are converted to
//! it, so that selections, Arrow columns and all operations work the same for all formats.

pub(crate) mod auxiliary;
mod header;
mod index;
mod merge;
pub(crate) mod number;
mod press;
mod primary;
mod stored;
mod version;

pub use auxiliary::{AuxArray, AuxField, AuxType, AuxValue, AuxValues, Scalar};
pub use header::{Attribute, Encoding, Header};
pub use index::{Entry, Index};
pub use merge::Merged;
pub use press::{RecordPress, SignalPress};
pub use primary::Record;
pub use stored::StoredRow;
pub use version::Version;

/// Most bytes that a fault quotes from the file, so that a message stays one line.
pub(crate) const QUOTED_BYTES: usize = 40;

/// Formats bytes for a message: printable, short, in quotation marks.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..QUOTED_BYTES) {
        Some(head) if bytes.len() > QUOTED_BYTES => format!("\"{}...\"", head.escape_ascii()),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
