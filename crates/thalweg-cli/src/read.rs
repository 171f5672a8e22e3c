//! `thalweg read`: decode reads and count, print, digest or save them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use thalweg::reads::{Read, ReadSet, Selection, Strings, Visitor};
use thalweg::write::ArrowWriter;

use crate::common::{Outcome, ReadArgs, output, read_ids};
use crate::digest;
use crate::progress::Progress;

/// Decode reads: count them, print a digest of each, or save them as an Arrow file
///
/// Several files, or folders of them, are read one after the other in the order of their paths.
///
/// Examples: thalweg read reads.blow5 --digest; thalweg read run/ --to run.arrow
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// SLOW5 and BLOW5 files, and folders of them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Print read_id, samples, sum and sha256 of each read's int16 samples, in file order
    #[arg(long)]
    digest: bool,
    /// Print one JSON line about the whole read: time to samples, bytes, stages
    #[arg(long, conflicts_with = "digest")]
    json: bool,
    /// Write an Arrow IPC file: one row a read, with its samples and all auxiliary fields; it appears when it is whole
    #[arg(long, value_name = "OUT.arrow", conflicts_with_all = ["digest", "json"])]
    to: Option<PathBuf>,
    /// Only the reads in this list (one id a line), in its order
    #[arg(long, value_name = "LIST")]
    ids: Option<PathBuf>,
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
    let set = ReadSet::open(&args.paths, options)?;
    let mut out = output();
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
            "requests": clocks.requests,
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
