//! Stored signal, as it is in a file.

use std::borrow::Cow;

/// A stored row of a signal table. A read of a POD5 file has one or more rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow<'a> {
    /// The number of samples in the row.
    pub samples: u32,
    /// The stored bytes, compressed or plain.
    pub bytes: Cow<'a, [u8]>,
}
