//! `thalweg merge`: writes the reads of many files into one.

use thalweg::convert::SetPart;
use thalweg::reads::Selection;

use crate::common::VerbResult;
use crate::write::ManyToOneArgs;

/// Put the reads of many files into one, of any format
///
/// Read groups with the same attributes become one; others stay separate. Fields that only some
/// files have are missing in the reads of the other files. The same read in two files is an error.
///
/// Example: thalweg merge run/ --to run.blow5
#[derive(Debug, clap::Args)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    files: ManyToOneArgs,
}

pub(crate) fn run(args: &MergeArgs) -> VerbResult {
    args.files.run("merged", &[], args.files.read.options(), |set| {
        let all = |file| SetPart::new(file, Selection::All);
        Ok(((0..set.paths().len()).map(all).collect(), None))
    })
}
