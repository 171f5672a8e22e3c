//! `thalweg merge`: writes the reads of many files into one.

use std::collections::HashSet;
use std::sync::Arc;

use thalweg::convert::SetPart;
use thalweg::reads::{KeepIndex, ReadSet, Selection};

use crate::common::{Failure, VerbResult, complain, counted, shown_path};
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
    /// Take a read that several files have from the first of them
    #[arg(long)]
    duplicate_ok: bool,
}

pub(crate) fn run(args: &MergeArgs) -> VerbResult {
    let mut options = args.files.read.options();
    // All ids are looked at, not some: no index is needed for the next run.
    options.keep_index = KeepIndex::No;
    args.files.run("merged", &[], options, |set| {
        if args.duplicate_ok {
            return Ok((without_duplicates(set)?, None));
        }
        Ok((all_files(set, &Selection::All), None))
    })
}

/// The reads of each file that no file before it has. A file that has a read twice keeps both.
fn without_duplicates(set: &ReadSet) -> Result<Vec<SetPart>, Failure> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut parts = Vec::new();
    for number in 0..set.paths().len() {
        let ids = set.file(number)?.read_ids()?;
        let count = ids.len();
        let new: Vec<String> = ids.into_iter().filter(|id| !seen.contains(id)).collect();
        if new.len() < count {
            let path = set.paths().nth(number).map_or_else(String::new, shown_path);
            let left = counted((count - new.len()) as u64, "read");
            complain(&format!("{path}: left out: {left} that files before it have"));
        }
        seen.extend(new.iter().cloned());
        let all = new.len() == count;
        let selection = if all { Selection::All } else { Selection::Ids(Arc::new(new)) };
        parts.push(SetPart::new(number, selection));
    }
    Ok(parts)
}
