//! The error type of the crate. An error says which file and byte it is about, what was found there
//! and what was expected.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub use thalweg_codec::Fault;

use crate::text::Shown;

/// Turns a [`Fault`] into an [`Error`] once the file is known.
pub trait InFile {
    /// The fault as an [`Error::Malformed`]. `base` is the offset in `file` of the bytes that the
    /// fault is about, and `what` names what these bytes hold.
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

/// Everything that can go wrong, with enough detail for the user to act on. Its message is one
/// line: control characters of names and ids are escaped ([`crate::text`]).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused or failed an operation.
    #[error("{}: {doing}{}: {}", Shown(file), at(*offset), Shown(source))]
    Io {
        /// The file or folder.
        file: Arc<str>,
        /// The operation that failed, such as "opening".
        doing: &'static str,
        /// Offset in the file, if the operation has one.
        offset: Option<u64>,
        /// The system's error, shared by the copies of this error.
        source: Arc<io::Error>,
    },
    /// Bytes that violate the file's format.
    #[error(
        "{}: {}, byte {offset}: found {}, expected {}",
        Shown(file),
        Shown(what),
        Shown(found),
        Shown(expected)
    )]
    Malformed {
        /// The file.
        file: Arc<str>,
        /// What the bytes should hold, such as "record 17 (read 00a1…)".
        what: Cow<'static, str>,
        /// Offset in the file. For a compressed record: the record's offset in the file plus the
        /// offset in its decoded bytes.
        offset: u64,
        /// What was found there.
        found: Cow<'static, str>,
        /// What the format requires there.
        expected: Cow<'static, str>,
    },
    /// The file ends inside one of its parts.
    #[error(
        "{}: the file ends at byte {size}, inside {} at byte {offset}; it is truncated{advice}",
        Shown(file),
        Shown(what)
    )]
    Truncated {
        /// The file.
        file: Arc<str>,
        /// The part that is cut short.
        what: Cow<'static, str>,
        /// Offset in the file where that part starts.
        offset: u64,
        /// Size of the file in bytes.
        size: u64,
        /// What to do about it; empty, or starts with "; ".
        advice: &'static str,
    },
    /// A file that is intact but uses a feature that this build cannot handle.
    #[error("{}: {} is not supported; {}", Shown(file), Shown(what), Shown(advice))]
    Unsupported {
        /// The file.
        file: Arc<str>,
        /// The feature.
        what: Cow<'static, str>,
        /// What to do about it.
        advice: Cow<'static, str>,
    },
    /// The file does not have what the caller asked for.
    #[error("{}: {} not found; {}", Shown(file), Shown(what), Shown(advice))]
    NotFound {
        /// The file.
        file: Arc<str>,
        /// What was looked for.
        what: Cow<'static, str>,
        /// What to do about it.
        advice: Cow<'static, str>,
    },
    /// A file that exists where a new one is to appear.
    #[error("{}: the file exists{what}; {advice}", Shown(file))]
    Exists {
        /// The file.
        file: Arc<str>,
        /// What follows "exists" in the sentence: empty, or starts with a space or a punctuation
        /// mark.
        what: &'static str,
        /// What to do about it.
        advice: &'static str,
    },
    /// An invalid argument.
    #[error("{}", Shown(.0))]
    Usage(Cow<'static, str>),
    /// The caller stopped the work.
    #[error("cancelled")]
    Cancelled,
}

fn at(offset: Option<u64>) -> String {
    offset.map(|o| format!(" at byte {o}")).unwrap_or_default()
}

impl Error {
    /// An [`Error::Io`]: the operation `doing` failed on `file`.
    pub fn io(file: &Arc<str>, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { file: file.clone(), doing, offset: None, source: Arc::new(source.into()) }
    }

    /// An [`Error::Io`]: the operation `doing` failed on `file` at byte `offset`.
    pub fn io_at(
        file: &Arc<str>,
        doing: &'static str,
        offset: u64,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            file: file.clone(),
            doing,
            offset: Some(offset),
            source: Arc::new(source.into()),
        }
    }
}
