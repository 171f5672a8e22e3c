//! `thalweg split`: one data set into many files.

mod plan;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg::reads::{ReadSet, Selection};
use thalweg::write::ReadWriter;

use crate::common::{Failure, Outcome, ReadArgs, open_set, output, parse_count};
use crate::pour::{Coding, Target, merged, pour};
use crate::progress::Progress;
use plan::{Plan, Rule};

/// Split a data set into files: by run, by any column or attribute, or by number of reads
///
/// There is a file for each value of --by, named after it, in the folder that --to names. Its header has only the read
/// groups of its reads. An existing file is never replaced, and if anything fails, no new file stays.
///
/// Example: thalweg split run/ --by run_id --to by-run/
///
/// Example: thalweg split reads.blow5 --reads 4000 --to parts/
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The folder to write into; it is made if need be
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// A file for each value of this column or attribute: run_id, read_group, channel_number, end_reason, file
    #[arg(long, value_name = "NAME", required_unless_present = "reads")]
    by: Option<String>,
    /// A file for so many reads, in their order, as in 4000 or 4k
    #[arg(long, value_name = "N", conflicts_with = "by", value_parser = parse_count)]
    reads: Option<u64>,
    /// End of the new files' names: blow5 or slow5
    #[arg(long, value_name = "FORMAT", default_value = "blow5")]
    format: String,
    /// More files than this are a mistake
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    most: usize,
    /// Print one JSON line a new file
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    coding: Coding,
    #[command(flatten)]
    read: ReadArgs,
}

/// Files that are written side by side: each has a buffer of some MiB.
const OPEN: usize = 16;

pub(crate) fn run(args: &Args) -> Outcome {
    args.coding.check(&PathBuf::from(format!("out.{}", args.format)))?;
    let rule = match (&args.by, args.reads) {
        (Some(name), _) => Rule::Value(name.clone()),
        (None, Some(reads @ 1..)) => Rule::Reads(reads),
        (None, _) => return Err(Failure::Usage("--reads: at least one read a file".into())),
    };
    let options = args.read.options();
    let control = options.control.clone();
    let set = open_set(&args.paths, options)?;
    let merged = merged(&set)?;
    let progress = Progress::watch(&control, set.bytes());
    let plan = Plan::make(&set, &merged, &rule)?;
    drop(progress);
    if plan.parts.len() > args.most {
        let message = format!("{} files would be made; --most {} allows them", plan.parts.len(), plan.parts.len());
        return Err(Failure::Usage(message));
    }
    fs::create_dir_all(&args.to).map_err(|e| thalweg::Error::io(&args.to.to_string_lossy().into(), "creating", e))?;
    let targets = targets(args, &plan, &merged)?;
    let _progress = Progress::watch(&control, set.bytes());
    let mut made = Made::default();
    for first in (0..targets.len()).step_by(OPEN) {
        pass(&set, &plan, &targets, first, &mut made)?;
    }
    made.keep = true;
    report(args.json, &plan, &targets)
}

/// The new files, none of which may be there yet.
fn targets(args: &Args, plan: &Plan, merged: &thalweg::format::slow5::Merged) -> Result<Arc<Vec<Target>>, Failure> {
    let mut targets = Vec::with_capacity(plan.parts.len());
    for part in &plan.parts {
        let path = args.to.join(format!("{}.{}", part.name, args.format));
        if path.symlink_metadata().is_ok() {
            return Err(Failure::Said(format!("{}: is there already; name another folder", path.display())));
        }
        let merged = merged.only(&part.groups);
        let header = args.coding.header(&path, merged.header());
        targets.push(Target { path, merged, header });
    }
    Ok(Arc::new(targets))
}

/// Files that were made; they go again unless all are to stay.
#[derive(Debug, Default)]
struct Made {
    paths: Vec<PathBuf>,
    keep: bool,
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.paths.iter().filter(|_| !self.keep) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Writes the targets from number `first` on, as many as may be open.
fn pass(set: &ReadSet, plan: &Plan, targets: &Arc<Vec<Target>>, first: usize, made: &mut Made) -> Outcome {
    let here = first..targets.len().min(first + OPEN);
    let mut writers = Vec::with_capacity(OPEN);
    for target in targets.get(here.clone()).unwrap_or_default() {
        writers.push(ReadWriter::create(&target.path, &target.header)?);
    }
    for file in 0..set.paths().len() {
        let reads = plan.reads(file);
        let wanted: Vec<_> = reads.iter().filter(|read| here.contains(&(read.part as usize))).collect();
        let selection = match wanted.len() {
            0 => continue,
            all if all == reads.len() => Selection::All,
            _ => Selection::Ids(Arc::new(wanted.iter().map(|read| read.id.to_string()).collect())),
        };
        let parts: Vec<u32> = wanted.iter().map(|read| read.part).collect();
        let target = move |ordinal| parts.get(ordinal as usize).map(|&part| part as usize);
        pour(set, file, &selection, targets, target, |frame| {
            if let Some(writer) = writers.get_mut(frame.target - first) {
                writer.push(&frame.read_id, &frame.bytes)?;
            }
            Ok(())
        })?;
    }
    for (writer, target) in writers.into_iter().zip(&targets[here]) {
        writer.finish()?;
        made.paths.push(target.path.clone());
    }
    Ok(())
}

fn report(as_json: bool, plan: &Plan, targets: &[Target]) -> Outcome {
    use std::io::Write;
    let mut out = output();
    for (part, target) in plan.parts.iter().zip(targets) {
        let path = target.path.display().to_string();
        if as_json {
            writeln!(out, "{}", serde_json::json!({ "file": path, "value": part.value, "reads": part.reads }))?;
        } else {
            writeln!(out, "{path}\t{} reads", part.reads)?;
        }
    }
    out.flush()?;
    Ok(())
}
