//! `thalweg filter`: writes some reads of many files into one.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg::condition::{Bound, Condition};
use thalweg::convert::SetPart;
use thalweg::fastq::{Record, condition_schema};
use thalweg::format::bam::BamIds;
use thalweg::reads::{Chosen, KeepIndex, Options, ReadSet, Selection};

use crate::common::{Failure, VerbResult, complain, counted, is_stream};
use crate::fastq;
use crate::id_list::read_ids;
use crate::options::{Kind, check as check_options};
use crate::write::ManyToOneArgs;

/// Keep some reads: those of a list, those of a BAM file, those for which a condition holds
///
/// With a condition and a list (or a BAM file), reads must meet both. The reads are written file by
/// file: in the order of each file, or of the list if there is no condition. Ids that no file has
/// are an error, unless --missing-ok is given.
///
/// One FASTQ file, or - for the standard input, is filtered into .fastq or .fastq.gz (BGZF), in the
/// order of the file. Conditions have the columns name, description, bases and mean_quality, the
/// Phred quality of the mean probability of an error.
///
/// Example: thalweg filter run/ --out long.blow5 --where 'samples >= 5000 and end_reason ==
/// signal_positive'
///
/// Example: thalweg filter run/ --out mapped.blow5 --bam mapped.bam
///
/// Example: thalweg filter reads.fastq.gz --out good.fastq.gz --where 'bases >= 1000 and
/// mean_quality >= 10'
#[derive(Debug, clap::Args)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    files: ManyToOneArgs,
    /// Only reads for which this holds; `thalweg scan` shows the columns, `thalweg info` the
    /// attributes
    #[arg(id = "where", long, value_name = "CONDITION")]
    #[arg(required_unless_present_any = ["ids", "bam"])]
    condition: Option<String>,
    /// Only the reads in this list (an id a line, or a table with a column read_id)
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
    if args.ids.as_ref().is_some_and(|list| is_stream(list))
        && args.files.paths.iter().any(|path| is_stream(path))
    {
        return Err(Failure::Usage("-: the file and --ids cannot both be standard input".into()));
    }
    let listed = match (&args.ids, &args.bam) {
        (Some(list), _) => Some(read_ids(list)?),
        (None, Some(bam)) => Some(bam_ids(bam)?),
        (None, None) => None,
    };
    let mut options = args.files.read.options();
    if let Some(named) = fastq::Named::only(&args.files.paths, &options)? {
        return filter_fastq(args, named, &options, condition.as_ref(), listed);
    }
    let lists: Vec<&Path> = args.ids.iter().chain(&args.bam).map(PathBuf::as_path).collect();
    if listed.is_none() {
        // A condition looks at all reads: no index is needed for the next run.
        options.keep_index = KeepIndex::No;
    }
    args.files.run("kept", &lists, options, false, |set| {
        let chosen = choose(set, listed.as_deref(), condition, args.missing_ok)?;
        let part = |(file, ids)| SetPart::new(file, Selection::Ids(Arc::new(ids)));
        Ok((chosen.files.into_iter().map(part).collect(), chosen.of))
    })
}

/// Writes the records of one FASTQ file for which a condition holds, and whose names are in a list.
fn filter_fastq(
    args: &FilterArgs,
    named: fastq::Named,
    options: &Options,
    condition: Option<&Condition>,
    listed: Option<Vec<String>>,
) -> VerbResult {
    let ManyToOneArgs { paths, out, write, .. } = &args.files;
    if let Some(path) = paths.first() {
        check_options(path, Kind::Fastq)?;
    }
    if !is_stream(out) {
        write.force.check(out, paths.iter().chain(&args.ids).chain(&args.bam))?;
    }
    let job = fastq::ConvertJob {
        to: out,
        single_member: false,
        level: write.level(),
        verify: write.verify,
        md5: false,
        as_json: write.json,
    };
    let target = job.target()?;
    let bound = condition.map(|condition| condition.bind(&condition_schema())).transpose();
    let bound = bound.map_err(Failure::of_argument)?;
    let file = named.open(options)?;
    let is_listed = listed.is_some();
    let names = listed.unwrap_or_default().into_iter().map(|name| (name, AtomicBool::new(false)));
    let names: Arc<HashMap<String, AtomicBool>> = Arc::new(names.collect());
    let wanted = names.clone();
    let keep = move |record: &Record<'_>| {
        let name = wanted.get(record.name());
        name.inspect(|is_found| is_found.store(true, Ordering::Relaxed));
        let holds = |bound: &Bound| bound.holds_for(record) == Some(true);
        (name.is_some() || !is_listed) && bound.as_ref().is_none_or(holds)
    };
    fastq::filter(&file, target, job, keep, || {
        let is_missing = |(_, is_found): &(_, &AtomicBool)| !is_found.load(Ordering::Relaxed);
        let mut missing: Vec<_> = names.iter().filter(is_missing).map(|(name, _)| name).collect();
        missing.sort_unstable();
        let [first, ..] = missing[..] else { return Ok(()) };
        tell_missing(file.name(), (missing.len(), names.len()), first, args.missing_ok)
    })
}

/// Fails if ids are missing. With `missing_ok` it warns.
fn tell_missing(
    files: &Arc<str>,
    (missing, of): (usize, usize),
    first: &str,
    missing_ok: bool,
) -> VerbResult {
    let of = counted(of as u64, "read");
    let what = format!("{missing} of {of} (such as {first})");
    if !missing_ok {
        return Err(Failure::Failed(thalweg::Error::NotFound {
            file: files.clone(),
            what: what.into(),
            advice: "check the ids, or let --missing-ok leave them out".into(),
        }));
    }
    complain(&format!("not found: {what}"));
    Ok(())
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
        let files = counted(set.paths().len() as u64, "file").into();
        tell_missing(&files, (chosen.missing.len(), of), first, missing_ok)?;
    }
    Ok(chosen)
}
