//! The model of a read that all formats share: a header with read groups and their attributes, a
//! record with primary and auxiliary fields, and an index of records by read id.
//!
//! It is SLOW5's model, because that is the most general one. POD5 and FAST5 files present
//! themselves in it, so that selections, Arrow columns and every verb serve all formats alike.

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

/// What a fault quotes of the bytes it found: at most this many, so that a message stays one line.
pub(crate) const QUOTED_BYTES: usize = 40;

/// The bytes as a message shows them: printable, short, in quotation marks.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match bytes.get(..QUOTED_BYTES) {
        Some(head) if bytes.len() > QUOTED_BYTES => format!("\"{}...\"", head.escape_ascii()),
        _ => format!("\"{}\"", bytes.escape_ascii()),
    }
}
