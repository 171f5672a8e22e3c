//! What codecs and parsers say of bytes that are not what they should be.

use std::borrow::Cow;

/// A defect inside a run of bytes, found by code that does not know which file they came from.
///
/// Codecs and parsers return it; `thalweg_io::InFile` makes it an error that names the file, once
/// that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: found {found}, expected {expected}")]
pub struct Fault {
    /// Byte offset within the run of bytes where the defect shows.
    pub at: u64,
    /// What stands there.
    pub found: Cow<'static, str>,
    /// What should stand there.
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

    /// This defect, counted from `base` bytes further out.
    #[must_use]
    pub fn shifted(mut self, base: usize) -> Self {
        self.at = self.at.saturating_add(base as u64);
        self
    }
}
