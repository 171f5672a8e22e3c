//! The error type of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a measurement, a suite or a results file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused or failed an operation.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file, folder or program.
        path: PathBuf,
        /// The operation that failed, as in "opening".
        doing: &'static str,
        /// The error of the system.
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
        /// How it failed, as in "exit status 3" or "killed by signal 9".
        how: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// A workload ran past its time limit and was killed.
    #[error("{command}: still running after {limit_s} s, killed{}", stderr_note(stderr))]
    TimedOut {
        /// The command line.
        command: String,
        /// The limit in seconds.
        limit_s: f64,
        /// The end of its standard error.
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
    /// This version can't read a results file.
    #[error("{}: line {line}: {what}", path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with the line.
        what: String,
    },
    /// This run may not continue the results of an earlier run.
    #[error(
        "comparison {comparison:?} can't be resumed: {what}; start anew with another results file"
    )]
    Resume {
        /// Name of the comparison.
        comparison: String,
        /// What has changed.
        what: String,
    },
    /// A suite has mistakes. The message has one line for each, with its position in the text.
    #[error("{0}")]
    Suite(String),
    /// An invalid argument.
    #[error("{0}")]
    Usage(String),
    /// The caller stopped the work.
    #[error("cancelled")]
    Cancelled,
}

/// The most lines of a workload's standard error in a message. A program that fails says why at the
/// end.
const SAID_LINES: usize = 20;

fn stderr_note(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    let last = lines.get(lines.len().saturating_sub(SAID_LINES)..).unwrap_or_default();
    match last {
        [] => String::new(),
        all if all.len() == lines.len() => format!("; it said:\n{}", all.join("\n")),
        last => format!("; it said at the end:\n{}", last.join("\n")),
    }
}

impl Error {
    /// An I/O failure while `doing` something to `path`.
    pub fn io(path: impl AsRef<Path>, doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.as_ref().to_path_buf(), doing, source: source.into() }
    }
}
