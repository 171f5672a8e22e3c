//! `thalweg convert --repack`: HDF5 files made anew.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Value, json};
use thalweg::reads::Options;
use thalweg::repack::{Change, Chunking, Coder, Repack, Report, Version, Wish, coders, repack};
use thalweg_gauge::units::{decimal_bytes, seconds};

use crate::common::{Failure, Outcome, ReadArgs, complain, output as standard_output};
use crate::hdf5::{look_first, times};
use crate::progress::Progress;
use crate::write::say;

/// How to make an HDF5 file anew.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HDF5")]
pub(crate) struct RepackArgs {
    /// Make an HDF5 file anew: chunks of a dataset beside each other, in other shapes, with other
    /// filters; all else as it was
    #[arg(long, conflicts_with_all = ["per_file", "ids", "sort", "to"])]
    pub(crate) repack: bool,
    /// Chunks of so many elements of the first dimension (1Mi), a shape (128x64), contiguous, or
    /// keep; for one dataset or group with PATH= before it. Without a path it counts for numbers of
    /// 64 KiB and more
    #[arg(long, value_name = "[PATH=]SHAPE", requires = "repack")]
    chunk: Vec<Named<Kept<Chunking>>>,
    /// Filters: none, gzip[:LEVEL], shuffle+gzip, zstd[:LEVEL], shuffle+zstd, lz4, fletcher32, or
    /// keep; with PATH= as for --chunk
    // The text is what `--help` shows, without backslashes before the brackets.
    #[allow(rustdoc::broken_intra_doc_links)]
    #[arg(long, value_name = "[PATH=]FILTER", requires = "repack")]
    filter: Vec<Named<Filters>>,
    /// Of which of libhdf5's structures the file is made: chunks are found faster in those of 1.10
    #[arg(long, value_enum, default_value_t, requires = "repack")]
    libver: Libver,
    /// HDF5: take the file for harmless; see `thalweg read --help`
    #[arg(long, requires = "repack")]
    trusted: bool,
}

/// A value, for a path or for all.
#[derive(Debug, Clone)]
struct Named<T>(Option<String>, T);

impl<T: FromStr<Err = String>> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A path may have an equals sign in it, a value has none.
        match text.rsplit_once('=') {
            None => Ok(Self(None, text.parse()?)),
            Some((path, value)) => Ok(Self(Some(path.to_owned()), value.parse()?)),
        }
    }
}

/// What is said, or nothing for `keep`.
#[derive(Debug, Clone)]
struct Kept<T>(Option<T>);

impl<T: FromStr<Err = String>> FromStr for Kept<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "keep" { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

#[derive(Debug, Clone)]
struct Filters(Option<Vec<Coder>>);

impl FromStr for Filters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "keep" { Ok(Self(None)) } else { coders(text).map(|coders| Self(Some(coders))) }
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Libver {
    /// As the original
    #[default]
    Keep,
    /// What every libhdf5 reads
    Earliest,
    /// What libhdf5 1.8 and newer read
    V18,
    /// What libhdf5 1.10 and newer read
    V110,
}

impl RepackArgs {
    fn how(&self, verify: bool) -> Repack {
        let mut wish = Wish::default();
        let mut paths: Vec<(String, Wish)> = Vec::new();
        let mut wish_of = |path: &Option<String>, set: &dyn Fn(&mut Wish)| {
            let Some(path) = path else { return set(&mut wish) };
            match paths.iter_mut().find(|(known, _)| known == path) {
                Some((_, wish)) => set(wish),
                None => {
                    let mut wish = Wish::default();
                    set(&mut wish);
                    paths.push((path.clone(), wish));
                }
            }
        };
        for Named(path, Kept(chunk)) in &self.chunk {
            wish_of(path, &|wish| wish.chunk.clone_from(chunk));
        }
        for Named(path, Filters(coders)) in &self.filter {
            wish_of(path, &|wish| wish.coders.clone_from(coders));
        }
        let version = match self.libver {
            Libver::Keep => Version::Keep,
            Libver::Earliest => Version::Earliest,
            Libver::V18 => Version::V18,
            Libver::V110 => Version::V110,
        };
        Repack { wish, paths, version, verify }
    }
}

/// Makes a file anew, and says what became of it.
pub(super) fn run(
    args: &RepackArgs,
    inputs: &[PathBuf],
    output: &Path,
    (verify, as_json): (bool, bool),
    read: &ReadArgs,
) -> Outcome {
    let [input] = inputs else {
        return Err(Failure::Usage(format!(
            "--repack takes one file, and {} are named",
            inputs.len()
        )));
    };
    let options: Options = read.trusting();
    if !args.trusted {
        look_first(input, &options.control)?;
    }
    let bytes = std::fs::metadata(input).map_or(0, |meta| meta.len());
    let progress = Progress::watch(&options.control, bytes);
    let started = Instant::now();
    let report = repack(input, output, options, &args.how(verify)).map_err(Failure::of_argument)?;
    drop(progress);
    let took = started.elapsed().as_secs_f64();
    for (path, why) in &report.kept {
        complain(&format!("{path}: kept as it is: {why}"));
    }
    if report.cleared > 0 {
        complain(&format!(
            "{} references named objects that no link leads to, and lead nowhere now",
            report.cleared
        ));
    }
    if as_json {
        return say(&in_json(input, output, &report, took));
    }
    let line = in_words(output, &report, took);
    let mut out = standard_output();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// What is less than this part of the file is not told.
const WORTH: u64 = 50;

fn in_words(output: &Path, report: &Report, took: f64) -> String {
    let verified =
        if report.verified > 0 { format!(", {} compared", report.verified) } else { String::new() };
    let filling = if report.bytes_filling * WORTH > report.bytes_after {
        format!(
            ", {} of it to fill up last chunks: shorter chunks, or a filter, would take less",
            decimal_bytes(report.bytes_filling as f64)
        )
    } else {
        String::new()
    };
    format!(
        "{}: {} datasets, {} of them stored otherwise{verified}; {}{filling}, from {} in {}",
        output.display(),
        report.datasets,
        report.changes.len(),
        decimal_bytes(report.bytes_after as f64),
        decimal_bytes(report.bytes_before as f64),
        seconds(took),
    )
}

fn in_json(input: &Path, output: &Path, report: &Report, took: f64) -> Value {
    let shape = |chunk: &Option<Vec<u64>>| chunk.as_deref().map(times);
    let change = |change: &Change| {
        json!({
            "path": change.path,
            "chunk_before": shape(&change.chunk_before),
            "chunk_after": shape(&change.chunk_after),
            "filters_before": change.filters_before,
            "filters_after": change.filters_after,
        })
    };
    let kept = |(path, why): &(String, String)| json!({ "path": path, "why": why });
    json!({
        "schema": "thalweg.repack/1",
        "input": input.to_string_lossy(),
        "output": output.to_string_lossy(),
        "objects": report.objects,
        "datasets": report.datasets,
        "changes": report.changes.iter().map(change).collect::<Vec<_>>(),
        "kept": report.kept.iter().map(kept).collect::<Vec<_>>(),
        "references_cleared": report.cleared,
        "passes": report.passes,
        "bytes_before": report.bytes_before,
        "bytes_after": report.bytes_after,
        "bytes_filling": report.bytes_filling,
        "datasets_compared": report.verified,
        "seconds": took,
    })
}
