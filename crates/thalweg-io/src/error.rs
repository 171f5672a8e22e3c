//! One error type: which file, which byte, what was found, what was expected.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub use thalweg_codec::Fault;

/// Makes a [`Fault`] an [`Error`] once the file is known.
pub trait InFile {
    /// The defect as an error about bytes that start at `base` of `file`. `what` names the thing
    /// they hold.
    fn in_file(self, file: &Arc<str>, base: u64, what: impl Into<Cow<'static, str>>) -> Error;
}

impl InFile for Fault {
    fn in_file(self, file: &Arc<str>, base: u64, what: impl Into<Cow<'static, str>>) -> Error {
        Error::Malformed {
            file: file.clone(),
            what: what.into(),
            offset: base.saturating_add(self.at),
            found: self.found,
            expected: self.expected,
        }
    }
}

/// Everything that can go wrong, with enough to act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused or failed an operation.
    #[error("{file}: {doing}{}: {source}", at(*offset))]
    Io {
        /// The file or folder.
        file: Arc<str>,
        /// What was being done, as in "opening".
        doing: &'static str,
        /// Where in the file, if anywhere.
        offset: Option<u64>,
        /// The system's own word.
        source: io::Error,
    },
    /// Bytes that do not say what their format requires.
    #[error("{file}: {what}, byte {offset}: found {found}, expected {expected}")]
    Malformed {
        /// The file.
        file: Arc<str>,
        /// What the bytes should hold, as in "record 17 (read 00a1…)".
        what: Cow<'static, str>,
        /// Offset in the file. Inside a compressed record: the record's own offset plus that in its
        /// decoded bytes.
        offset: u64,
        /// What stands there.
        found: Cow<'static, str>,
        /// What should stand there.
        expected: Cow<'static, str>,
    },
    /// The file ends before its contents do.
    #[error(
        "{file}: the file ends at byte {size}, inside {what} at byte {offset}; it is \
         truncated{advice}"
    )]
    Truncated {
        /// The file.
        file: Arc<str>,
        /// What is cut short.
        what: Cow<'static, str>,
        /// Where that thing starts.
        offset: u64,
        /// Size of the file.
        size: u64,
        /// What to do about it; empty, or starts with "; ".
        advice: &'static str,
    },
    /// A file that is whole but that this build cannot handle.
    #[error("{file}: {what} is not supported; {advice}")]
    Unsupported {
        /// The file.
        file: Arc<str>,
        /// The feature.
        what: Cow<'static, str>,
        /// What to do about it.
        advice: Cow<'static, str>,
    },
    /// Something was asked for that the file does not have.
    #[error("{file}: {what} not found; {advice}")]
    NotFound {
        /// The file.
        file: Arc<str>,
        /// What was looked for.
        what: Cow<'static, str>,
        /// What to do about it.
        advice: Cow<'static, str>,
    },
    /// An argument that makes no sense.
    #[error("{0}")]
    Usage(Cow<'static, str>),
    /// The caller stopped the work.
    #[error("cancelled")]
    Cancelled,
}

fn at(offset: Option<u64>) -> String {
    offset.map(|o| format!(" at byte {o}")).unwrap_or_default()
}

impl Error {
    /// An I/O failure while `doing` something to `file`.
    pub fn io(file: &Arc<str>, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { file: file.clone(), doing, offset: None, source: source.into() }
    }

    /// An I/O failure at a known byte.
    pub fn io_at(
        file: &Arc<str>,
        doing: &'static str,
        offset: u64,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io { file: file.clone(), doing, offset: Some(offset), source: source.into() }
    }
}
