//! `thalweg split`: writes one data set as many files.

mod plan;
mod table;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use thalweg::convert::{Conversion, MadeFile, Output, SetPart, make, merged};
use thalweg::format::Format;
use thalweg::format::slow5::Merged;
use thalweg::new_file::{file_path, remove};
use thalweg::reads::{Options, ReadSet, Selection};
use thalweg_io::urls::url;

use crate::common::{
    Failure, NewFolder, VerbResult, complain, counted, parse_count, print_line, shown_path,
};
use crate::done::{say_done_of, stored_bytes};
use crate::fastq;
use crate::force::check_free;
use crate::open::{ReadArgs, open_set};
use crate::options::{Kind, check as check_options};
use crate::progress::FetchProgress;
use crate::write::{WriteArgs, formats};
use plan::{Plan, Rule};
use table::ReadValues;

/// Split a data set into files: by run, by any column or attribute, by a table of reads, or by
/// number of reads
///
/// The folder --out gets a file for each value of --by, with the value as its name. The header of a
/// file has only the read groups of its reads. An existing file is never replaced, and if anything
/// fails, all new files are removed.
///
/// Example: thalweg split run/ --by run_id --out by-run/
///
/// With --table, the values come from a table with a column read_id, as basecallers and
/// demultiplexers write it. Reads that the table does not have are left out. A value may be the
/// name of a file, such as a.pod5.
///
/// Example: thalweg split run/ --table summary.tsv --by barcode --out by-barcode/
///
/// One FASTQ file, or - for the standard input, is split by number of reads. The files are BGZF if
/// it is compressed.
///
/// Example: thalweg split reads.blow5 --reads 4000 --out parts/
///
/// Example: thalweg split reads.fastq.gz --reads 1M --out parts/
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("rule").required(true).multiple(true)))]
pub(crate) struct SplitArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The folder to write into; it is made if it does not exist
    #[arg(long, short = 'o', value_name = "FOLDER")]
    out: PathBuf,
    /// A file for each value of this column or attribute: run_id, read_group, channel_number,
    /// end_reason, file; with --table of this column of the table, if it has several
    #[arg(long, value_name = "NAME", group = "rule")]
    by: Option<String>,
    /// Take the value of each read from this table: CSV or TSV with names of columns, or - for
    /// standard input
    #[arg(long, visible_alias = "csv", value_name = "TABLE", group = "rule")]
    table: Option<PathBuf>,
    /// Reads of --table that no file has are no error
    #[arg(long, requires = "table")]
    missing_ok: bool,
    /// A file for each N reads, in their order, as in 4000 or 4k
    #[arg(long, value_name = "N", group = "rule", value_parser = parse_count)]
    #[arg(conflicts_with_all = ["by", "table"])]
    reads: Option<u64>,
    /// The format of the new files (default: blow5, or that of the names in the table)
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<Format>,
    /// Stop if there would be more files than this
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    most: usize,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// How many files are written at the same time. Each takes some MiB of memory: for BLOW5 and SLOW5
/// the buffers, for POD5 batches of signal and rows that are written later, for FAST5 libhdf5's
/// caches, and for objects parts of them.
fn files_at_once(format: Format, to: &Path) -> usize {
    match format {
        Format::Slow5 | Format::Blow5 if url(to).is_none() => 16,
        _ => 4,
    }
}

pub(crate) fn run(args: &SplitArgs) -> VerbResult {
    let started = Instant::now();
    if args.write.force.is_given() {
        return Err(Failure::Usage("split replaces no file, so --force has no effect".into()));
    }
    let rule = match (&args.table, &args.by, args.reads) {
        (Some(table), by, _) => Rule::Table(ReadValues::read(table, by.as_deref())?),
        (None, Some(name), _) => Rule::Value(name.clone()),
        (None, None, Some(reads @ 1..)) => Rule::Reads(reads),
        (None, None, _) => return Err(Failure::Usage("--reads: at least one read a file".into())),
    };
    let options = args.read.options();
    if let Some(named) = fastq::Named::only(&args.paths, &options)? {
        return split_fastq(args, named, &options, &rule);
    }
    if let Some(path) = args.paths.first() {
        check_options(path, Kind::Reads)?;
    }
    let control = options.control.clone();
    let format = args.to.or(format_of_values(&rule)).unwrap_or(Format::Blow5);
    let conversion = args.write.conversion(format, &options)?;
    let set = open_set(&args.paths, options)?;
    let headers = merged(&set)?;
    let progress = FetchProgress::watch(&control, set.bytes());
    let plan = Plan::make(&set, &headers, &rule)?;
    drop(progress);
    if let Rule::Table(values) = &rule {
        tell_missing(&plan, values, args.missing_ok)?;
    }
    if plan.parts.len() > args.most {
        let message = format!(
            "{} files would be made; --most {} allows them",
            plan.parts.len(),
            plan.parts.len()
        );
        return Err(Failure::Usage(message));
    }
    let out = &*file_path(&args.out)?;
    let _folder = NewFolder::create(out)?;
    let outputs = outputs(format, out, &plan, &headers)?;
    let paths: Vec<PathBuf> = outputs.iter().map(|output| output.path.clone()).collect();
    let _progress = FetchProgress::watch(&control, set.bytes());
    let mut made = Vec::with_capacity(outputs.len());
    let at_once = files_at_once(format, out);
    for (pass, outputs) in outputs.chunks(at_once).enumerate() {
        made.extend(write(&set, &plan, pass * at_once, outputs, &conversion)?);
    }
    publish(args, &plan, &paths, made)?;
    if !args.write.json {
        let (reads, left) = (plan.reads_in_all() as u64, plan.left_out);
        let of = if left == 0 { String::new() } else { format!("{reads} of ") };
        let reads = counted(reads + left, "read");
        let what = format!("split {of}{reads} into {}", counted(paths.len() as u64, "file"));
        let bytes = paths.iter().map(|path| stored_bytes(path)).sum();
        say_done_of(&what, out, bytes, started.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The format that all values of a table name, if they are names of files of one format.
fn format_of_values(rule: &Rule) -> Option<Format> {
    let Rule::Table(table) = rule else { return None };
    let mut formats = table.values().map(|value| Format::of_path(Path::new(value)));
    let first = formats.next()??;
    formats.all(|format| format == Some(first)).then_some(first)
}

/// Fails if no file has some reads of a table. With `missing_ok` it warns.
fn tell_missing(plan: &Plan, values: &ReadValues, missing_ok: bool) -> VerbResult {
    let found: HashSet<&str> = plan.assigned().map(|read| &*read.id).collect();
    let mut missing: Vec<&str> = values.ids().filter(|id| !found.contains(id)).collect();
    missing.sort_unstable();
    let [first, ..] = missing[..] else { return Ok(()) };
    let of = counted(values.len() as u64, "read");
    let what = format!("not found: {} of {of} of the table (such as {first})", missing.len());
    if missing_ok {
        complain(&what);
        return Ok(());
    }
    Err(Failure::Said(format!("{what}; --missing-ok leaves them out")))
}

/// The files to write. Fails if one of them exists: what a part replaced could not be brought back
/// if a later part failed.
fn outputs(
    format: Format,
    to: &Path,
    plan: &Plan,
    headers: &Merged,
) -> Result<Vec<Output>, Failure> {
    let mut outputs = Vec::with_capacity(plan.parts.len());
    for part in &plan.parts {
        let path = to.join(format!("{}.{}", part.name, format.extension()));
        check_free(&path)?;
        outputs.push(Output::new(&path, headers.only(&part.groups)));
    }
    Ok(outputs)
}

/// Splits a FASTQ file.
fn split_fastq(
    args: &SplitArgs,
    named: fastq::Named,
    options: &Options,
    rule: &Rule,
) -> VerbResult {
    if let Some(path) = args.paths.first() {
        check_options(path, Kind::Fastq)?;
    }
    let &Rule::Reads(reads) = rule else {
        return Err(Failure::Usage("--by and --table are for reads, and not for FASTQ".into()));
    };
    let out = &*file_path(&args.out)?;
    let file = named.open(options)?;
    let _folder = NewFolder::create(out)?;
    let job = fastq::SplitJob {
        to: out,
        reads,
        most: args.most,
        level: args.write.level(),
        verify: args.write.verify,
        as_json: args.write.json,
    };
    fastq::split(&file, &job)
}

/// Writes some files in one pass over the data set; the first of them is number `first`.
fn write(
    set: &ReadSet,
    plan: &Plan,
    first: usize,
    outputs: &[Output],
    conversion: &Conversion,
) -> Result<Vec<MadeFile>, Failure> {
    let mut parts = Vec::new();
    for file in 0..set.paths().len() {
        let reads = plan.reads(file);
        let output_of =
            |part: u32| (part as usize).checked_sub(first).filter(|&to| to < outputs.len());
        let wanted: Vec<_> =
            reads.iter().filter_map(|read| Some((read, output_of(read.part)? as u32))).collect();
        let selection = match wanted.len() {
            0 => continue,
            all if all == reads.len() && plan.has_all(file) => Selection::All,
            _ => Selection::Ids(Arc::new(
                wanted.iter().map(|(read, _)| read.id.to_string()).collect(),
            )),
        };
        parts.push(SetPart { file, selection, to: wanted.iter().map(|(_, to)| *to).collect() });
    }
    Ok(make(set, parts, outputs.to_vec(), conversion)?)
}

/// Gives all files their names, and prints what was written. After an error, no file stays.
fn publish(args: &SplitArgs, plan: &Plan, paths: &[PathBuf], made: Vec<MadeFile>) -> VerbResult {
    let mut reports = Vec::with_capacity(made.len());
    for made in made {
        match made.publish() {
            Ok(report) => reports.push(report),
            Err(error) => {
                for path in paths.iter().take(reports.len()) {
                    let _ = remove(path);
                }
                return Err(error.into());
            }
        }
    }
    for ((part, path), report) in plan.parts.iter().zip(paths).zip(&reports) {
        args.write.print_report(path, report, Some(("value", json!(part.value))))?;
        if !args.write.json {
            let reads = counted(report.reads, "read");
            print_line(&format!("{}\t{reads}", shown_path(path)))?;
        }
    }
    Ok(())
}
