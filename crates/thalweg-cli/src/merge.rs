//! `thalweg merge`: writes the reads of many files into one.

use thalweg::reads::Selection;

use crate::common::VerbResult;
use crate::write::{ManyToOneArgs, all_files};

/// Put the reads of many files into one, of any format
///
/// Read groups with the same attributes become one; others stay separate. Fields that only some
/// files have are missing in the reads of the other files. The same read in two files is an error,
/// unless --duplicate-ok is given.
///
/// Example: thalweg merge run/ --out run.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    files: ManyToOneArgs,
    /// Take a read that several files have from the first of them, in the order of their paths
    #[arg(long)]
    duplicate_ok: bool,
}

pub(crate) fn run(args: &MergeArgs) -> VerbResult {
    let options = args.files.read.options();
    args.files.run("merged", &[], options, args.duplicate_ok, |set| {
        Ok((all_files(set, &Selection::All), None))
    })
}
