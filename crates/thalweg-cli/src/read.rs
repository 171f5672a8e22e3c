//! `thalweg read`: decodes reads or arrays, and counts, prints, digests or saves them.

mod save;
mod timed;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use thalweg::fastq::FastqFile;
use thalweg::reads::{ReadFile, ReadSet, Selection, pattern};
use thalweg::{Identified, Options, StoreKind};
use thalweg_io::urls::{self, url};

use crate::arrays::{self, ArrayArgs, EventArgs, ReadJob};
use crate::common::{
    Failure, MEASURING, VerbResult, alone, counted, is_stream, listing, print_json, shown_path,
};
use crate::done::say_done;
use crate::explain::{ExplainedRun, counting, sole};
use crate::force::ForceArgs;
use crate::id_list::read_ids;
use crate::open::{ReadArgs, identify, open_set_with};
use crate::options::{Kind, check as check_options};
use crate::prices::PriceArgs;
use crate::progress::FetchProgress;
use crate::table_sink::{TableFormat, TableOut};
use crate::timing::Started;
use crate::{digest, explain, fastq};
use save::save;
use timed::{TimedJob, one_by_one, whole};

/// Decode reads, arrays or FASTQ: count them, print a digest of each, or save them
///
/// Several files of reads, folders of them, or patterns in quotes, are read one after the other in
/// the order of their paths. Of one HDF5 file of arrays, the further paths are datasets or groups
/// in it, or patterns of them; all are read without any. In a pattern, `*` stands for any letters
/// of a name, `?` for any one, and `[ab]` for one of these; `[*]` is the letter itself.
///
/// FASTQ is read from one file, plain, gzip or BGZF, or from the standard input, as `-`.
///
/// Example: thalweg read reads.blow5 --digest
///
/// Example: thalweg read run/ --out run.arrow
///
/// Example: thalweg read run.nxs --events --bank 'bank1*' --time 0..60 --out events.parquet
#[derive(Debug, clap::Args)]
pub(crate) struct ReadVerbArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'; or an HDF5 file,
    /// and datasets in it; or a FASTQ file
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Print read_id, samples, sum and sha256 of each read's int16 samples, in file order
    #[arg(long)]
    digest: bool,
    /// Print one JSON line about the whole read (time to samples, bytes, stages), or about the plan
    #[arg(long, conflicts_with = "digest")]
    json: bool,
    /// Write a table, whose name ends in .arrow, .parquet, .csv or .tsv, or - for CSV on standard
    /// output: one row a read, with its samples and all auxiliary fields, or a row a record of
    /// FASTQ, or a column for each dataset of HDF5. Reads and datasets can be a folder of numpy's
    /// arrays, .npy, too. The output appears when it is whole
    #[arg(long, short = 'o', value_name = "OUT")]
    #[arg(conflicts_with_all = ["digest", "explain", "one_by_one"])]
    out: Option<PathBuf>,
    /// The format of OUT, if its name does not say it
    #[arg(long, value_name = "FORMAT", requires = "out")]
    to: Option<TableFormat>,
    /// Convert the samples to picoampere (float32). With --out these are written in place of the
    /// samples
    #[arg(long, conflicts_with_all = ["digest", "explain", "no_decode"])]
    pa: bool,
    /// Of one file, print the plan (store model, sizes, memory, requests, predicted time, and of a
    /// URL the cost). Only what a plan needs is read: headers, tables, HDF5's metadata, the index
    #[arg(long, conflicts_with = "digest")]
    explain: bool,
    #[command(flatten)]
    prices: PriceArgs,
    /// Only the reads in this list (an id a line, or a table with a column read_id), in its order.
    /// If there is no index of the file, one is made and kept as FILE.idx, or in your cache folder
    /// where that cannot be written
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
    /// Get the reads of --ids one after the other on one thread, and print how long each took
    #[arg(long, requires = "ids", requires = "json")]
    one_by_one: bool,
    /// Fetch the reads and find their records, but decode and deliver nothing
    #[arg(long, conflicts_with_all = ["digest", "out", "explain"])]
    #[arg(help_heading = MEASURING)]
    no_decode: bool,
    /// Let the consumer take this many nanoseconds longer for each sample
    #[arg(long, value_name = "NS", conflicts_with_all = ["digest", "out", "explain"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), help_heading = MEASURING)]
    consumer_ns: Option<u32>,
    /// Let the consumer also take what the published comparison of SLOW5 and POD5 takes from each
    /// read: channel, number, mux, start, run, experiment, flow cell and position
    #[arg(long, conflicts_with_all = ["digest", "out", "explain", "no_decode", "one_by_one"])]
    #[arg(help_heading = MEASURING)]
    metadata: bool,
    /// HDF5: put all arrays into memory at once, even beyond the budget, instead of using them part
    /// by part
    #[arg(long, conflicts_with_all = ["digest", "out", "explain", "select", "slices"])]
    #[arg(help_heading = MEASURING)]
    arrays: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    of_arrays: ArrayArgs,
    /// HDF5: trust the file, which may then show values in files outside of its folder
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    events: EventArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &ReadVerbArgs) -> VerbResult {
    let selection = match &args.ids {
        Some(list) => Selection::Ids(Arc::new(read_ids(list)?)),
        None => Selection::All,
    };
    let options = counting(args.explain, args.read.options());
    let started = Started::now();
    let out = args.out.as_deref().map(|path| TableOut::new(path, args.to)).transpose()?;
    if let Some(out) = out {
        check_output(args, out.path, args.paths.iter().chain(&args.ids))?;
    }
    if let Some(path) = args.paths.first()
        && !is_stream(path)
        && url(path).is_none()
        && pattern(path).is_none()
    {
        std::fs::metadata(path)
            .map_err(|e| thalweg::Error::io(&urls::shown_path(path).into(), "opening", e))?;
    }
    let first = match other_first(args, out, &options, started)? {
        Some(first) => first,
        None => return Ok(()),
    };
    alone()?;
    if let Some(path) = args.paths.first() {
        check_options(path, Kind::Reads)?;
    }
    if args.events.asked() {
        return Err(Failure::Usage(
            "events and logs are in NeXus files: name one HDF5 file".into(),
        ));
    }
    let in_memory = options.store == StoreKind::Memory;
    let known = match first {
        First::Open(file) => Some(*file),
        First::Identified(first) => Some(first.open(options.clone())?.into_reads()?),
        First::Unknown => None,
    };
    let set = open_set_with(&args.paths, known, options)?;
    if let Some(out) = out {
        check_output(args, out.path, set.paths())?;
    }
    if in_memory {
        load_indexes(&set, &selection)?;
    }
    let started = if in_memory { Started::now() } else { started };
    reads(args, out, &set, &selection, started)
}

/// Checks that the output replaces nothing.
fn check_output(
    args: &ReadVerbArgs,
    to: &Path,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
) -> VerbResult {
    if !is_stream(to) {
        return args.force.check(to, inputs);
    }
    if args.json {
        let why = "--json and a table cannot both be written to standard output";
        return Err(Failure::Usage(why.into()));
    }
    Ok(())
}

/// What the first path is, if not a file of arrays.
enum First {
    /// A folder or a pattern, or a path where nothing is.
    Unknown,
    /// A file of reads, by its name or first bytes.
    Identified(Identified),
    /// A file of reads in HDF5.
    Open(Box<ReadFile>),
}

/// Reads the first path if it is a file of arrays or of FASTQ, and returns `None`; the other paths
/// are datasets in it. Otherwise returns what is known of the path.
fn other_first(
    args: &ReadVerbArgs,
    out: Option<TableOut<'_>>,
    options: &Options,
    started: Started,
) -> Result<Option<First>, Failure> {
    let [path, within @ ..] = &args.paths[..] else { return Ok(Some(First::Unknown)) };
    if is_stream(path) {
        fastq(args, out, &fastq::from_stdin(options)?, started)?;
        return Ok(None);
    }
    let Some(identified) = identify(path, args.trusted, options)? else {
        return Ok(Some(First::Unknown));
    };
    if identified.is_fastq() {
        fastq(args, out, &fastq::open(identified, options)?, started)?;
        return Ok(None);
    }
    if !identified.may_hold_arrays() {
        return Ok(Some(First::Identified(identified)));
    }
    let job = ReadJob {
        path,
        within,
        to: out,
        digests: args.digest,
        as_json: args.json,
        explain: args.explain.then_some(&args.prices),
        at_once: args.arrays,
        threads: args.read.threads(),
        arrays: &args.of_arrays,
        events: &args.events,
        options,
        started,
    };
    Ok(arrays::read(identified, job)?.map(|file| First::Open(Box::new(file))))
}

/// Reads a FASTQ file.
fn fastq(
    args: &ReadVerbArgs,
    to: Option<TableOut<'_>>,
    file: &FastqFile,
    started: Started,
) -> VerbResult {
    alone()?;
    if let [path, _, ..] = &args.paths[..] {
        let path = shown_path(path);
        return Err(Failure::Usage(format!("{path}: FASTQ files are read one at a time")));
    }
    if let Some(path) = args.paths.first() {
        check_options(path, Kind::Fastq)?;
    }
    fastq::read(file, &fastq::ReadJob { to, digests: args.digest, as_json: args.json, started })
}

/// Reads the indexes of all files, so that a measurement from memory does not include reading them
/// from storage.
fn load_indexes(set: &ReadSet, selection: &Selection) -> VerbResult {
    if let Selection::Ids(_) = selection {
        for index in 0..set.paths().len() {
            set.file(index)?.load_index()?;
        }
    }
    Ok(())
}

/// Explains, saves, digests or times the reads, as the arguments say.
fn reads(
    args: &ReadVerbArgs,
    out: Option<TableOut<'_>>,
    set: &ReadSet,
    selection: &Selection,
    started: Started,
) -> VerbResult {
    let options = set.options();
    if args.explain {
        let run = ExplainedRun::Worker;
        return explain::print(set, selection, run, &args.prices, args.json);
    }
    let progress = FetchProgress::watch(&options.control, set.bytes());
    if let Some(to) = out {
        let reads = save(set, selection, to, args.pa)?;
        drop(progress);
        let (took_s, cpu_s) = started.seconds();
        if args.json {
            return print_json(&json!({
                "schema": "thalweg.table/1",
                "paths": set.paths().map(shown_path).collect::<Vec<_>>(),
                "to": shown_path(to.path), "reads": reads, "open_to_last_s": took_s, "cpu_s": cpu_s,
            }));
        }
        say_done(&counted(reads, "read"), to.path, took_s);
        return Ok(());
    }
    if args.digest {
        let mut out = listing();
        for row in set.map(selection, digest::row)? {
            writeln!(out, "{}", row?)?;
        }
        out.flush()?;
        return Ok(());
    }
    let job = TimedJob {
        threads: options.budget.threads,
        decode: !args.no_decode,
        pa: args.pa,
        metadata: args.metadata,
        consumer_ns: args.consumer_ns.unwrap_or(0),
        throttle: options.throttle,
    };
    if args.one_by_one {
        one_by_one(&*sole(set, "--one-by-one")?, selection, job, started)
    } else {
        whole(set, selection, job, args.json, started, progress)
    }
}
