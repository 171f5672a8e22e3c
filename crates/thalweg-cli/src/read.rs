//! `thalweg read`: decode reads and count, print, digest or save them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use thalweg::reads::{Read, ReadFile, ReadSet, Selection, Strings, Visitor};
use thalweg::write::ArrowWriter;

use crate::common::{Failure, Outcome, ReadArgs, open_set, output, read_ids};
use crate::digest;
use crate::explain;
use crate::progress::Progress;

/// Decode reads: count them, print a digest of each, or save them as an Arrow file
///
/// Several files, or folders of them, are read one after the other in the order of their paths.
///
/// Example: thalweg read reads.blow5 --digest
///
/// Example: thalweg read run/ --to run.arrow
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// SLOW5 and BLOW5 files, and folders of them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Print read_id, samples, sum and sha256 of each read's int16 samples, in file order
    #[arg(long)]
    digest: bool,
    /// Print one JSON line about the whole read (time to samples, bytes, stages), or about the plan
    #[arg(long, conflicts_with = "digest")]
    json: bool,
    /// Write an Arrow IPC file: one row a read, with its samples and all auxiliary fields; it appears when it is whole
    #[arg(long, value_name = "OUT.arrow", conflicts_with_all = ["digest", "json", "explain", "one_by_one"])]
    to: Option<PathBuf>,
    /// Print the plan (store model, sizes, memory, requests, predicted time), and read nothing
    #[arg(long, conflicts_with = "digest")]
    explain: bool,
    /// Only the reads in this list (one id a line), in its order
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
    /// Get the reads of --ids one after the other on one thread, and tell how long each took
    #[arg(long, requires = "ids", requires = "json")]
    one_by_one: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Sums every sample, as each arm of a benchmark does.
#[derive(Debug, Default)]
struct Sums {
    sum: i64,
    digest: u64,
}

impl Visitor for Sums {
    fn visit(&mut self, read: &Read<'_>) -> thalweg::Result<()> {
        let sum = digest::sum(read.samples);
        self.sum = self.sum.wrapping_add(sum);
        self.digest = self.digest.wrapping_add(digest::light(read.record.read_id, read.samples.len(), sum));
        Ok(())
    }
}

/// The only file, for what is about one.
fn sole(set: &ReadSet, option: &str) -> Result<Arc<ReadFile>, Failure> {
    match set.paths().len() {
        1 => Ok(set.file(0)?),
        files => Err(Failure::Usage(format!("{option} is about one file, and {files} are named"))),
    }
}

/// Writes the reads as an Arrow IPC file.
fn save(set: &ReadSet, selection: &Selection, to: &Path) -> Outcome {
    let mut out = ArrowWriter::create(to, &*set.schema(Strings::Text)?)?;
    for batch in set.batches(selection)? {
        out.push(&*batch?)?;
    }
    out.finish()?;
    Ok(())
}

pub(crate) fn run(args: &Args) -> Outcome {
    let selection = match &args.ids {
        Some(list) => Selection::Ids(Arc::new(read_ids(list)?)),
        None => Selection::All,
    };
    let options = args.read.options();
    let control = options.control.clone();
    let threads = args.read.budget().threads;
    let started = Instant::now();
    let set = open_set(&args.paths, options)?;
    let mut out = output();
    if args.explain {
        return explain::print(&*sole(&set, "--explain")?, &selection, args.json, &mut out);
    }
    let progress = Progress::watch(&control, set.bytes());
    if let Some(to) = &args.to {
        return save(&set, &selection, to);
    }
    if args.digest {
        for row in set.map(&selection, digest::row)? {
            writeln!(out, "{}", row?)?;
        }
        out.flush()?;
        return Ok(());
    }
    if args.one_by_one {
        return one_by_one(&*sole(&set, "--one-by-one")?, &selection, started);
    }
    let (sums, summary) = set.visit(&selection, Sums::default)?;
    drop(progress);
    let seconds = started.elapsed().as_secs_f64();
    let sum = sums.iter().fold(0_i64, |a, s| a.wrapping_add(s.sum));
    let digest = sums.iter().fold(0_u64, |a, s| a.wrapping_add(s.digest));
    let clocks = summary.clocks;
    if args.json {
        let report = json!({
            "workload": "thalweg",
            "version": concat!("thalweg ", env!("CARGO_PKG_VERSION")),
            "open_to_last_s": seconds,
            "reads": summary.reads,
            "samples": summary.samples,
            "sum": sum,
            "digest": format!("{digest:016x}"),
            "threads": threads,
            "bytes_stored": clocks.fetch.bytes,
            "bytes_decoded": summary.samples * 2,
            "needed_bytes": clocks.fetch.bytes,
            "requests": clocks.requests,
            "max_depth": clocks.max_depth,
            "peak_buffers": clocks.peak_buffers,
            "peak_oversize": clocks.peak_oversize,
            "stages": {
                "fetch": { "busy_s": clocks.fetch.busy.as_secs_f64(), "exposed_s": clocks.fetch.exposed.as_secs_f64(), "bytes": clocks.fetch.bytes },
                "decode": { "busy_s": clocks.decode.busy.as_secs_f64(), "exposed_s": clocks.decode.exposed.as_secs_f64(), "bytes": clocks.decode.bytes },
                "deliver": { "busy_s": clocks.deliver.busy.as_secs_f64(), "exposed_s": clocks.deliver.exposed.as_secs_f64(), "bytes": clocks.deliver.bytes },
            },
        });
        writeln!(out, "{report}")?;
    } else {
        writeln!(
            out,
            "{} reads, {} samples, {:.1} MB stored, {:.1} MB decoded in {seconds:.3} s ({:.0} MB/s decoded)",
            summary.reads,
            summary.samples,
            clocks.fetch.bytes as f64 / 1e6,
            clocks.decode.bytes as f64 / 1e6,
            clocks.decode.bytes as f64 / 1e6 / seconds.max(1e-9),
        )?;
    }
    out.flush()?;
    Ok(())
}

/// Gets reads one by one, and reports the latencies.
fn one_by_one(file: &ReadFile, selection: &Selection, started: Instant) -> Outcome {
    let Selection::Ids(ids) = selection else { return Ok(()) };
    let mut getter = file.getter()?;
    let mut sums = Sums::default();
    let mut samples = 0_u64;
    let mut latencies = Vec::with_capacity(ids.len());
    let (mut needed, page) = (0, thalweg::store::PAGE as u64);
    let (index, _) = file.index()?;
    for id in ids.iter() {
        let before = Instant::now();
        getter.get(id, |read| {
            samples += read.samples.len() as u64;
            sums.visit(read)
        })??;
        // With the sum, as the peer's.
        latencies.push(before.elapsed().as_secs_f64() * 1e6);
        needed += index.get(id).map_or(0, |entry| entry.size / page * page);
    }
    let seconds = started.elapsed().as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    let quantile =
        |q: f64| latencies.get(((latencies.len() as f64 * q) as usize).min(latencies.len().saturating_sub(1)));
    let report = json!({
        "workload": "thalweg-get1",
        "version": concat!("thalweg ", env!("CARGO_PKG_VERSION")),
        "open_to_last_s": seconds,
        "reads": ids.len(),
        "samples": samples,
        "bytes_decoded": samples * 2,
        "needed_bytes": needed,
        "sum": sums.sum,
        "digest": format!("{:016x}", sums.digest),
        "threads": 1,
        "latency_us": { "p50": quantile(0.5), "p99": quantile(0.99), "max": latencies.last() },
    });
    let mut out = output();
    writeln!(out, "{report}")?;
    out.flush()?;
    Ok(())
}
