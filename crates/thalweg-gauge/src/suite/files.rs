//! The files that a suite needs, and how absent ones are made.

use std::path::PathBuf;
use std::sync::Arc;

use super::ids::IdList;
use super::test_files::TestFile;
use crate::workload::Workload;

/// A file that a comparison needs.
#[derive(Debug, Clone, PartialEq)]
pub struct NeededFile {
    /// The path of the file, which may not exist yet.
    pub path: PathBuf,
    /// How the file is made if it does not exist.
    pub make: FileOrigin,
}

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum FileOrigin {
    /// The file exists, and belongs to the user.
    Given,
    /// The caller's [`TestFileMaker`](super::TestFileMaker) makes it.
    Synth(Arc<dyn TestFile>),
    /// A list of read ids, one per line.
    Ids {
        /// The file of the reads.
        of: PathBuf,
        /// Which reads, in which order.
        list: IdList,
    },
    /// A command that writes the file to `partial`, which is then renamed.
    Command {
        /// The command.
        workload: Workload,
        /// The path that the command writes.
        partial: PathBuf,
    },
}
