//! `thalweg convert --repack`: rewrites an HDF5 file with other chunks or filters.

use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Value, json};
use thalweg::repack::{
    Chunking, Coder, LayoutChange, LibraryVersion, Repack, RepackReport, TargetLayout, coders,
};
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls;

use super::{RepackJob, shape_in_words};
use crate::common::{Failure, VerbResult, complain, counted, print_json};
use crate::done::say_done;
use crate::progress::FetchProgress;

/// How to rewrite an HDF5 file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HDF5")]
pub(crate) struct RepackArgs {
    /// Rewrite an HDF5 file: the chunks of a dataset next to each other, in other shapes, with
    /// other filters; everything else as it was
    #[arg(long, conflicts_with_all = ["per_file", "ids", "sort", "to", "explain"])]
    repack: bool,
    /// Chunks of so many elements of the first dimension (1Mi), a shape (128x64), contiguous, or
    /// keep; for one dataset or group with PATH= before it. Without a path it applies to datasets
    /// of numbers of 64 KiB and more
    #[arg(long, value_name = "[PATH=]SHAPE", requires = "repack")]
    chunk: Vec<ForPath<KeepOr<Chunking>>>,
    /// Filters: none, gzip[:LEVEL], shuffle+gzip, zstd[:LEVEL], shuffle+zstd, lz4, fletcher32, or
    /// keep; with PATH= as for --chunk
    // The text is what `--help` shows, without backslashes before the brackets.
    #[allow(rustdoc::broken_intra_doc_links)]
    #[arg(long, value_name = "[PATH=]FILTER", requires = "repack")]
    filter: Vec<ForPath<Filters>>,
    /// The oldest libhdf5 that can read the file: chunks are found faster in the structures of 1.10
    #[arg(long, value_enum, default_value_t, requires = "repack")]
    libver: LibverChoice,
}

/// A value for the dataset or group with this path; without a path, for all.
#[derive(Debug, Clone)]
struct ForPath<T>(Option<String>, T);

impl<T: FromStr<Err = String>> FromStr for ForPath<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A path may contain an equals sign; a value does not.
        match text.rsplit_once('=') {
            None => Ok(Self(None, text.parse()?)),
            Some((path, value)) => Ok(Self(Some(path.to_owned()), value.parse()?)),
        }
    }
}

/// A value; `None` for `keep`.
#[derive(Debug, Clone)]
struct KeepOr<T>(Option<T>);

impl<T: FromStr<Err = String>> FromStr for KeepOr<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "keep" { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

/// The filters of a dataset; `None` for `keep`.
#[derive(Debug, Clone)]
struct Filters(Option<Vec<Coder>>);

impl FromStr for Filters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "keep" { Ok(Self(None)) } else { coders(text).map(|coders| Self(Some(coders))) }
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum LibverChoice {
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
    /// The options of the library.
    fn options(&self, verify: bool) -> Repack {
        let mut layout = TargetLayout::default();
        let mut paths: Vec<(String, TargetLayout)> = Vec::new();
        let mut set_layout = |path: &Option<String>, set: &dyn Fn(&mut TargetLayout)| {
            let Some(path) = path else { return set(&mut layout) };
            match paths.iter_mut().find(|(known, _)| known == path) {
                Some((_, layout)) => set(layout),
                None => {
                    let mut layout = TargetLayout::default();
                    set(&mut layout);
                    paths.push((path.clone(), layout));
                }
            }
        };
        for ForPath(path, KeepOr(chunk)) in &self.chunk {
            set_layout(path, &|layout| layout.chunk.clone_from(chunk));
        }
        for ForPath(path, Filters(coders)) in &self.filter {
            set_layout(path, &|layout| layout.coders.clone_from(coders));
        }
        let version = match self.libver {
            LibverChoice::Keep => LibraryVersion::Keep,
            LibverChoice::Earliest => LibraryVersion::Earliest,
            LibverChoice::V18 => LibraryVersion::V18,
            LibverChoice::V110 => LibraryVersion::V110,
        };
        Repack { layout, paths, version, verify }
    }
}

impl RepackArgs {
    /// Whether --repack is given.
    pub(crate) fn asked(&self) -> bool {
        self.repack
    }
}

/// Rewrites a file, and prints what was changed.
pub(crate) fn repack(args: &RepackArgs, job: RepackJob<'_>) -> VerbResult {
    let RepackJob { inputs, output, verify, as_json, options } = job;
    let [input] = inputs else {
        return Err(Failure::Usage(format!(
            "--repack takes one file, and {} are named",
            inputs.len()
        )));
    };
    let how = args.options(verify);
    let bytes = std::fs::metadata(input).map_or(0, |meta| meta.len());
    let progress = FetchProgress::watch(&options.control, bytes);
    let started = Instant::now();
    let report =
        thalweg::repack::repack(input, output, options, &how).map_err(Failure::of_argument)?;
    drop(progress);
    let took = started.elapsed().as_secs_f64();
    print_kept(&report);
    if as_json {
        return print_json(&in_json(input, output, &report, took));
    }
    say_done(&in_words(&report), output, took);
    Ok(())
}

/// Prints what was kept as it is.
fn print_kept(report: &RepackReport) {
    for (path, why) in &report.kept {
        complain(&format!("{path}: kept as it is: {why}"));
    }
    if report.cleared > 0 {
        complain(&format!(
            "{} references named objects that no link leads to, and lead nowhere now",
            report.cleared
        ));
    }
}

/// The padding of last chunks is mentioned if it exceeds the size of the file divided by this
/// number.
const MENTIONED_PADDING: u64 = 50;

fn in_words(report: &RepackReport) -> String {
    let verified =
        if report.verified > 0 { format!(", {} compared", report.verified) } else { String::new() };
    let filling = if report.bytes_filling * MENTIONED_PADDING > report.bytes_after {
        format!(
            ", with {} to fill up last chunks: shorter chunks, or a filter, would take less",
            decimal_bytes(report.bytes_filling as f64)
        )
    } else {
        String::new()
    };
    format!(
        "repacked {}, {} of them stored otherwise{verified}{filling}, from {}",
        counted(report.datasets, "dataset"),
        report.changes.len(),
        decimal_bytes(report.bytes_before as f64),
    )
}

fn in_json(input: &Path, output: &Path, report: &RepackReport, took: f64) -> Value {
    let shape = |chunk: &Option<Vec<u64>>| chunk.as_deref().map(shape_in_words);
    let change = |change: &LayoutChange| {
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
        "input": urls::shown_path(input),
        "output": urls::shown_path(output),
        "path": urls::shown_path(output),
        "objects": report.objects,
        "datasets": report.datasets,
        "changes": report.changes.iter().map(change).collect::<Vec<_>>(),
        "kept": report.kept.iter().map(kept).collect::<Vec<_>>(),
        "references_cleared": report.cleared,
        "passes": report.passes,
        "bytes_before": report.bytes_before,
        "bytes_after": report.bytes_after,
        "bytes_stored": report.bytes_after,
        "bytes_filling": report.bytes_filling,
        "datasets_compared": report.verified,
        "seconds": took,
    })
}
