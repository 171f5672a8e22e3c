//! `thalweg convert`: any format of reads to any other, any compression to any other, many files to one or one by one.

mod coding;
mod outputs;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use thalweg::convert::{Conversion, Report, convert};
use thalweg::reads::{ReadSet, Selection};

use crate::common::{Failure, Outcome, ReadArgs, complain, open_set, output, read_ids};
use crate::progress::Progress;
use coding::CodingArgs;
use outputs::{Output, is_whole, outputs};

/// Convert between SLOW5, BLOW5, POD5 and FAST5, and between compressions
///
/// The name of OUT says which: .slow5, .blow5, .pod5 or .fast5. Many files become one, or with --per-file one each.
///
/// Example: thalweg convert reads.pod5 reads.blow5
///
/// Example: thalweg convert runs/today today.pod5 --verify
///
/// Example: thalweg convert runs/today converted --per-file --to blow5 --resume
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The files to convert, or folders or patterns of them
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The file to write, which appears when it is whole; with --per-file the folder
    #[arg(required = true, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    coding: CodingArgs,
    /// Write one file for each, with its name, into the folder OUT
    #[arg(long)]
    per_file: bool,
    /// With --per-file: leave outputs alone that are whole and newer than their inputs
    #[arg(long, requires = "per_file")]
    resume: bool,
    /// Go on where the format cannot hold all there is, and list what was lost
    #[arg(long)]
    lossy: bool,
    /// Read what was written, and compare every read, before the file gets its name
    #[arg(long)]
    verify: bool,
    /// Only the reads in this list (one id a line), in its order
    #[arg(long, value_name = "LIST", conflicts_with = "per_file")]
    ids: Option<PathBuf>,
    /// Sort the reads by id
    #[arg(long, conflicts_with_all = ["ids", "per_file"])]
    sort: bool,
    /// Print what was done as JSON, a line for each file written
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let options = args.read.options();
    let control = options.control.clone();
    let set = open_set(&args.inputs, options.clone())?;
    let outputs = outputs(args, &set)?;
    let selection = selection(args, &set)?;
    let _progress = Progress::watch(&control, set.bytes());
    for Output { path, format, files } in outputs {
        let inputs = || set.paths().skip(files.start).take(files.len());
        if args.resume && is_whole(&path, inputs(), &options) {
            tell(args, &path, None)?;
            continue;
        }
        let conversion = Conversion {
            coding: args.coding.coding(format)?,
            selection: selection.clone(),
            files: Some(files.clone()),
            lossy: args.lossy,
            verify: args.verify.then(|| options.clone()),
        };
        if let Some(folder) = path.parent().filter(|_| args.per_file) {
            std::fs::create_dir_all(folder)
                .map_err(|e| thalweg::Error::io(&folder.to_string_lossy().into(), "creating", e))?;
        }
        let report = convert(&set, &path, &conversion)?;
        tell(args, &path, Some(&report))?;
    }
    Ok(())
}

/// Says what was done: losses always, the rest where it is asked for.
fn tell(args: &Args, path: &std::path::Path, report: Option<&Report>) -> Outcome {
    for lost in report.into_iter().flat_map(|report| &report.lost) {
        let reads = lost.reads.map(|reads| format!(", in {reads} reads")).unwrap_or_default();
        let first = lost.first.as_ref().map(|id| format!(", first in {id}")).unwrap_or_default();
        complain(&format!("{}: lost: {}{reads}{first}", path.display(), lost.what));
    }
    if !args.json {
        return Ok(());
    }
    let lost = |lost: &thalweg::convert::Lost| json!({ "what": lost.what, "reads": lost.reads, "first": lost.first });
    let line = json!({
        "output": path.to_string_lossy(),
        "skipped": report.is_none(),
        "reads": report.map(|r| r.reads),
        "samples": report.map(|r| r.samples),
        "verified": report.map(|r| r.verified),
        "lost": report.map(|r| r.lost.iter().map(lost).collect::<Vec<_>>()),
    });
    let mut out = output();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

fn selection(args: &Args, set: &ReadSet) -> Result<Selection, Failure> {
    if args.ids.is_none() && !args.sort {
        return Ok(Selection::All);
    }
    if set.paths().len() != 1 {
        return Err(Failure::Usage("--ids and --sort take one file; merge or subset many".into()));
    }
    if let Some(list) = &args.ids {
        return Ok(Selection::Ids(Arc::new(read_ids(list)?)));
    }
    let (index, _) = set.file(0)?.index()?;
    let mut ids: Vec<String> = index.iter().map(|(id, _)| id.to_owned()).collect();
    ids.sort_unstable();
    Ok(Selection::Ids(Arc::new(ids)))
}
