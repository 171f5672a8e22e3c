//! The files that a suite needs, and how absent ones are made.

use std::path::PathBuf;
use std::sync::Arc;

use super::ids::IdList;
use super::test_files::TestFile;
use crate::workload::Workload;

/// A file that a comparison needs.
#[derive(Debug, Clone, PartialEq)]
pub struct NeededFile {
    /// Where it lies, or will.
    pub path: PathBuf,
    /// Where it comes from if it does not lie there yet.
    pub make: Make,
}

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Make {
    /// It is the user's, and it is there.
    Given,
    /// The caller's [`TestFileMaker`](super::TestFileMaker) makes it.
    Synth(Arc<dyn TestFile>),
    /// A list of read ids, one a line.
    Ids {
        /// The reads.
        of: PathBuf,
        /// Which of them, in which order.
        list: IdList,
    },
    /// A command that writes the file to `partial`, which is then renamed.
    Command {
        /// The command.
        workload: Workload,
        /// What it writes.
        partial: PathBuf,
    },
}
