//! `thalweg read`: decode reads and count, print or digest them.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use thalweg::reads::{Read, ReadFile, Selection, Visitor};

use crate::common::{Outcome, ReadArgs, output};
use crate::digest;

/// Decode reads: count them, or print a digest of each
///
/// Example: thalweg read reads.blow5 --digest
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A SLOW5 or BLOW5 file
    file: PathBuf,
    /// Print read_id, samples, sum and sha256 of each read's int16 samples, in file order
    #[arg(long)]
    digest: bool,
    /// Print one JSON line about the whole read: time to samples, bytes, stages
    #[arg(long, conflicts_with = "digest")]
    json: bool,
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

pub(crate) fn run(args: &Args) -> Outcome {
    let started = Instant::now();
    let options = args.read.options();
    let threads = args.read.budget().threads;
    let file = ReadFile::open(&args.file, options)?;
    let mut out = output();
    if args.digest {
        for row in file.map(&Selection::All, digest::row)? {
            writeln!(out, "{}", row?)?;
        }
        out.flush()?;
        return Ok(());
    }
    let (sums, summary) = file.visit(&Selection::All, Sums::default)?;
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
