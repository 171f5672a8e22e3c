//! `thalweg filter`: writes some reads of many files into one.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use thalweg::condition::Condition;
use thalweg::convert::SetPart;
use thalweg::format::bam::BamIds;
use thalweg::reads::{FILE_COLUMN, Located, ReadSet, ScanOptions, Selection};

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
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
    /// Only the reads in this BAM file; the parent of a split read counts (tag pi)
    #[arg(long, value_name = "BAM", conflicts_with = "ids")]
    bam: Option<PathBuf>,
    /// Ids that no file has are no error
    #[arg(long)]
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
    args.files.run(&lists, |set| {
        let chosen = choose(set, listed, condition, args.missing_ok)?;
        Ok(chosen
            .into_iter()
            .map(|(file, ids)| SetPart::new(file, Selection::Ids(Arc::new(ids))))
            .collect())
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

/// The number of a file in a data set, and the ids of some of its reads.
type FileIds = (usize, Vec<String>);

/// Finds the files that have these reads.
fn locate(set: &ReadSet, mut ids: Vec<String>, missing_ok: bool) -> Result<Vec<FileIds>, Failure> {
    let mut seen = HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    let Located { files, missing } = set.locate(&ids)?;
    if let Some(first) = missing.first() {
        let of = counted(ids.len() as u64, "read");
        let what = format!("{} of {of} ({first}, for one)", missing.len());
        if !missing_ok {
            return Err(Failure::Failed(thalweg::Error::NotFound {
                file: counted(set.paths().len() as u64, "file").into(),
                what: what.into(),
                advice: "check the ids, or let --missing-ok leave them out".into(),
            }));
        }
        complain(&format!("not found: {what}"));
    }
    Ok(files)
}

/// The reads to keep, file by file.
fn choose(
    set: &ReadSet,
    listed: Option<Vec<String>>,
    condition: Option<Condition>,
    missing_ok: bool,
) -> Result<Vec<FileIds>, Failure> {
    let listed = listed.map(|ids| locate(set, ids, missing_ok)).transpose()?;
    let Some(condition) = condition else { return Ok(listed.unwrap_or_default()) };
    let wanted: Option<HashSet<&str>> = listed
        .as_ref()
        .map(|files| files.iter().flat_map(|(_, ids)| ids).map(String::as_str).collect());
    let columns = vec!["read_id".to_owned(), FILE_COLUMN.to_owned()];
    let options = ScanOptions { columns, condition: Some(condition), ..ScanOptions::default() };
    let mut chosen: Vec<FileIds> = Vec::new();
    for batch in set.scan(&Selection::All, &options).map_err(Failure::of_argument)? {
        let batch = batch?;
        let ids = batch.column(0).as_string::<i32>();
        let files = batch.column(1).as_dictionary::<Int32Type>().keys();
        for (id, file) in ids.iter().zip(files.values()) {
            let Some(id) = id.filter(|id| wanted.as_ref().is_none_or(|wanted| wanted.contains(id)))
            else {
                continue;
            };
            let file = *file as usize;
            match chosen.last_mut() {
                Some((last, ids)) if *last == file => ids.push(id.to_owned()),
                _ => chosen.push((file, vec![id.to_owned()])),
            }
        }
    }
    Ok(chosen)
}
