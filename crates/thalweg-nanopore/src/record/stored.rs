//! Signal as a file stores it.

use std::borrow::Cow;

/// A row of a signal table as it is stored. A read of a POD5 file has one or more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow<'a> {
    /// How many samples it holds.
    pub samples: u32,
    /// Its stored bytes, compressed or plain.
    pub bytes: Cow<'a, [u8]>,
}
