//! `thalweg filter`: writes some reads of many files into one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg::condition::Condition;
use thalweg::convert::SetPart;
use thalweg::format::bam::BamIds;
use thalweg::reads::{Chosen, ReadSet, Selection};

use crate::common::{Failure, VerbResult, complain, counted};
use crate::id_list::read_ids;
use crate::write::ManyToOneArgs;

/// Keep some reads: those of a list, those of a BAM file, those for which a condition holds
///
/// With a condition and a list (or a BAM file), reads must meet both. The reads are written file by
/// file: in the order of each file, or of the list if there is no condition. Ids that no file has
/// are an error, unless --missing-ok is given.
///
/// Example: thalweg filter run/ --to long.blow5 --where 'samples >= 5000 and end_reason ==
/// signal_positive'
///
/// Example: thalweg filter run/ --to mapped.blow5 --bam mapped.bam
#[derive(Debug, clap::Args)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    files: ManyToOneArgs,
    /// Only reads for which this holds; `thalweg scan` shows the columns, `thalweg info` the
    /// attributes
    #[arg(long = "where", value_name = "CONDITION", required_unless_present_any = ["ids", "bam"])]
    condition: Option<String>,
    /// Only the reads in this list (one id a line)
    #[arg(long, value_name = "LIST", group = "listed")]
    ids: Option<PathBuf>,
    /// Only the reads in this BAM file; the parent of a split read counts (tag pi)
    #[arg(long, value_name = "BAM", group = "listed")]
    bam: Option<PathBuf>,
    /// Ids that no file has are no error
    #[arg(long, requires = "listed")]
    missing_ok: bool,
}

pub(crate) fn run(args: &FilterArgs) -> VerbResult {
    let condition = args
        .condition
        .as_deref()
        .map(Condition::parse)
        .transpose()
        .map_err(Failure::of_argument)?;
    let listed = match (&args.ids, &args.bam) {
        (Some(list), _) => Some(read_ids(list)?),
        (None, Some(bam)) => Some(bam_ids(bam)?),
        (None, None) => None,
    };
    let lists: Vec<&Path> = args.ids.iter().chain(&args.bam).map(PathBuf::as_path).collect();
    // A condition looks at all reads: no index is needed for the next run.
    let keeps_index = listed.is_some();
    args.files.run("kept", &lists, keeps_index, |set| {
        let chosen = choose(set, listed.as_deref(), condition, args.missing_ok)?;
        let part = |(file, ids)| SetPart::new(file, Selection::Ids(Arc::new(ids)));
        Ok((chosen.files.into_iter().map(part).collect(), chosen.of))
    })
}

/// The distinct ids of a BAM file, in its order.
fn bam_ids(path: &Path) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    for id in BamIds::open(path)? {
        let id = id?;
        if !seen.contains(&id) {
            seen.insert(id.clone());
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The reads to keep, file by file.
fn choose(
    set: &ReadSet,
    listed: Option<&[String]>,
    condition: Option<Condition>,
    missing_ok: bool,
) -> Result<Chosen, Failure> {
    let chosen = set.choose(listed, condition).map_err(Failure::of_argument)?;
    if let Some(first) = chosen.missing.first() {
        let of = listed.unwrap_or_default().iter().collect::<HashSet<_>>().len();
        let of = counted(of as u64, "read");
        let what = format!("{} of {of} ({first}, for one)", chosen.missing.len());
        if !missing_ok {
            return Err(Failure::Failed(thalweg::Error::NotFound {
                file: counted(set.paths().len() as u64, "file").into(),
                what: what.into(),
                advice: "check the ids, or let --missing-ok leave them out".into(),
            }));
        }
        complain(&format!("not found: {what}"));
    }
    Ok(chosen)
}
