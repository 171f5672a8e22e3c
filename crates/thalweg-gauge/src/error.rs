//! The error type of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// What every fallible function of this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong while measuring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused or failed an operation.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file, folder or program.
        path: PathBuf,
        /// What was being done, as in "opening".
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A store or a writer of files failed.
    #[error(transparent)]
    Store(#[from] thalweg_io::Error),
    /// A workload failed.
    #[error("{command}: {how}{}", stderr_note(stderr))]
    Failed {
        /// The command line.
        command: String,
        /// "exit status 3", "killed by signal 9".
        how: String,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// A workload ran past its time limit and was killed.
    #[error("{command}: still running after {limit_s} s, killed{}", stderr_note(stderr))]
    TimedOut {
        /// The command line.
        command: String,
        /// The limit in seconds.
        limit_s: f64,
        /// The end of what it wrote to standard error.
        stderr: String,
    },
    /// A workload's report is missing or invalid.
    #[error("{command}: its report {what}")]
    Report {
        /// The command line.
        command: String,
        /// What is wrong with it, as in "has no digest".
        what: String,
    },
    /// The arms did not decode the same values, so their results are not compared.
    #[error("comparison refused: {0}")]
    Refused(String),
    /// A results file that this version can't read.
    #[error("{}: line {line}: {what}", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// Results of an earlier run that this run may not continue.
    #[error(
        "comparison {comparison:?} can't be resumed: {what}; start anew with another results file"
    )]
    Resume {
        /// Name of the comparison.
        comparison: String,
        /// What has changed.
        what: String,
    },
    /// A suite with mistakes: one per line, each with its position in the text.
    #[error("{0}")]
    Suite(String),
    /// An invalid argument.
    #[error("{0}")]
    Usage(String),
    /// The caller stopped the work.
    #[error("cancelled")]
    Cancelled,
}

fn stderr_note(stderr: &str) -> String {
    let stderr = stderr.trim_end();
    if stderr.is_empty() { String::new() } else { format!("; it said:\n{stderr}") }
}

impl Error {
    /// An I/O failure while `doing` something to `path`.
    pub fn io(path: impl AsRef<Path>, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), doing, source: source.into() }
    }
}
