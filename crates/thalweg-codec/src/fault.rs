//! The error of codecs and parsers about malformed bytes.

use std::borrow::Cow;

/// A defect in a sequence of bytes, found by code that does not know which file the bytes come
/// from.
///
/// Codecs and parsers return it; `thalweg_io::InFile` turns it into an error that names the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: found {found}, expected {expected}")]
pub struct Fault {
    /// Offset of the defect within the bytes.
    pub at: u64,
    /// What was found there.
    pub found: Cow<'static, str>,
    /// What the format requires there.
    pub expected: Cow<'static, str>,
}

impl Fault {
    /// A defect at byte `at`.
    pub fn new(
        at: usize,
        found: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { at: at as u64, found: found.into(), expected: expected.into() }
    }

    /// The same fault with its offset increased by `base`.
    #[must_use]
    pub fn shifted(mut self, base: usize) -> Self {
        self.at = self.at.saturating_add(base as u64);
        self
    }
}
