//! `thalweg doctor`: why a file is read as fast as it is, and what would make it faster.

mod reads;
mod words;

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thalweg::arrays::{ArrayFile, Dataset};
use thalweg::doctor::{Costs, Diagnosis, Finding, Layout, Predicted, diagnose};
use thalweg::hdf5::libhdf5::Found;
use thalweg::model::{Origin, StoreModel};
use thalweg::plan::{Load, in_turn};
use thalweg::reads::Options;
use thalweg::residency::resident;
use thalweg::store::throttled::Limits;
use thalweg_gauge::cache::{EvictOptions, evict};

use crate::common::{Failure, Outcome, ReadArgs, complain, output};
use crate::digest::Words;
use crate::hdf5;
use words::in_words;

/// Say why a file is read as fast as it is, predict how long that takes, and name what would make
/// it faster
///
/// From metadata alone: where the chunks of HDF5 datasets lie and how they are coded. What thalweg
/// would ask of the store is the plan that it reads by; beside it stands a reader through libhdf5,
/// which asks for one chunk after the other. Times are predicted for the store that the file lies
/// on, as `thalweg probe` measured it or as its kind is known, or for another with --model.
///
/// Example: thalweg doctor run.nxs '/entry/bank*_events/event_id'
///
/// Example: thalweg doctor run.nxs --model hdd --json
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file: HDF5, or of reads
    file: PathBuf,
    /// Datasets or groups, or patterns of them (default: all datasets)
    paths: Vec<PathBuf>,
    /// Predict for such a store: hdd, ssd, nvme, nfs, lustre or s3, or one of these limits and no
    /// others, as in bandwidth=2GB/s,latency=300us,requests=20000/s,parallel=16
    #[arg(long, value_name = "NAME|LIMITS", value_parser = model)]
    model: Option<Asked>,
    /// Take the file out of memory, read it, and set the time beside the predicted one
    #[arg(long)]
    measure: bool,
    /// Print one JSON line
    #[arg(long)]
    json: bool,
    /// HDF5: take the file for harmless; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// A store that is asked about.
#[derive(Debug, Clone)]
struct Asked {
    model: StoreModel,
    /// Where the model comes from.
    origin: String,
    /// Whether it stands for many a store of its kind.
    assumed: bool,
}

fn model(text: &str) -> Result<Asked, String> {
    if text.contains('=') {
        let limits: Limits = text.parse().map_err(|error: thalweg::Error| error.to_string())?;
        let model = limits.applied_to(&StoreModel::MEMORY);
        return Ok(Asked { model, origin: "as --model says".into(), assumed: false });
    }
    let known = StoreModel::NAMED.iter().find(|(name, _)| *name == text);
    let asked = known.map(|(name, model)| (*model, format!("what `{name}` is known for")));
    asked.map(|(model, origin)| Asked { model, origin, assumed: true }).ok_or_else(|| {
        let names: Vec<&str> = StoreModel::NAMED.iter().map(|(name, _)| *name).collect();
        format!(
            "one of {}, or limits as in bandwidth=2GB/s,latency=300us are needed",
            names.join(", ")
        )
    })
}

/// What was found out, for words and JSON.
struct Told<'a> {
    path: &'a Path,
    diagnosis: Diagnosis,
    /// Where the model comes from.
    origin: String,
    /// Whether the store's speed is only assumed.
    assumed: bool,
    /// Arrays that libhdf5 alone reads, and what is none.
    left_out: usize,
    measured_s: Option<f64>,
    stripes: Option<Stripes>,
    throttled: bool,
}

impl Told<'_> {
    /// Between which times thalweg's may lie, where the store's speed is only assumed.
    fn range(&self) -> Option<(f64, f64)> {
        self.assumed.then(|| self.diagnosis.thalweg.range_s(ASSUMED))
    }
}

pub(crate) fn run(args: &Args) -> Outcome {
    // libhdf5 finds the chunks in the file itself, and is compared with.
    let mut options = Options { own_index: true, ..args.read.trusting() };
    if !args.trusted {
        hdf5::guard(&options);
    }
    let throttled = options.throttle.is_some();
    let path = &args.file;
    let cached = cached(path);
    let started = Instant::now();
    let Some(file) = hdf5::open(path, &options, args.trusted)? else {
        options.model = args.model.as_ref().map(|asked| asked.model);
        return reads::run(path, options, args.json);
    };
    let datasets = wanted(&file, &args.paths)?;
    let found = started.elapsed();
    if let Some(note) = file.note() {
        complain(&note);
    }
    let (all, left_out): (Vec<&Dataset>, Vec<&Dataset>) = datasets.iter().partition(
        |dataset| matches!(&dataset.found, Found::Array(array) if array.library().is_none()),
    );
    let here = file.options().model.unwrap_or(StoreModel::LOCAL);
    let (model, origin, assumed) = match &args.model {
        Some(asked) => (asked.model, asked.origin.clone(), asked.assumed),
        None => {
            let (origin, assumed) = origin(path, &here, throttled);
            (here, origin, assumed)
        }
    };
    // A store that is held back is so for what is cached, too.
    let warm = if throttled && args.model.is_none() { 0.0 } else { cached };
    let index = found + cold_index(file.index_requests(), &model).mul_f64(warm);
    let diagnosis = diagnose(&file, &all, &model, index, &Costs::default())?;
    let measured_s = if args.measure {
        if args.model.is_some() {
            return Err(Failure::Usage(
                "--measure is about the store that the file lies on, not about --model".into(),
            ));
        }
        Some(measure(path, args, &all, &options)?)
    } else {
        None
    };
    let told = Told {
        path,
        diagnosis,
        origin,
        assumed,
        left_out: left_out.len(),
        measured_s,
        stripes: stripes(path),
        throttled,
    };
    let text = if args.json { format!("{}\n", in_json(&told)) } else { in_words(&told) };
    let mut out = output();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn wanted(file: &ArrayFile, paths: &[PathBuf]) -> Result<Vec<Dataset>, Failure> {
    let mut datasets = Vec::new();
    for path in paths {
        datasets.extend(file.matching(&path.to_string_lossy()).map_err(Failure::of_argument)?);
    }
    Ok(if paths.is_empty() { file.datasets()? } else { datasets })
}

/// Where the model of a file's store comes from, in words, and whether it is only assumed: one that
/// is held to much less by --throttle is known well enough.
fn origin(path: &Path, model: &StoreModel, throttled: bool) -> (String, bool) {
    let known = std::fs::File::open(path).map(|file| StoreModel::known(&file));
    let (mut words, mut assumed) = match known {
        Ok((_, Origin::Measured(_))) => ("measured by `thalweg probe`".to_owned(), false),
        _ => ("assumed from the kind of file system; `thalweg probe` measures it".to_owned(), true),
    };
    if throttled {
        words.push_str(", held to --throttle");
        assumed &= known.is_ok_and(|(own, _)| model.bandwidth > own.bandwidth / 2.0);
    }
    (words, assumed)
}

/// A store whose speed is assumed may be so many times as fast, or as slow.
const ASSUMED: f64 = 2.0;

/// How much of a file is in memory: nothing where the system does not tell.
fn cached(path: &Path) -> f64 {
    let pages = std::fs::File::open(path).ok().and_then(|file| resident(&file, 0..u64::MAX));
    pages.map_or(0.0, |pages| pages.fraction())
}

/// How much longer it takes to find the datasets of a file that is not in memory: small requests,
/// one after the other.
fn cold_index(requests: u64, model: &StoreModel) -> Duration {
    /// Bytes of a request.
    const BYTES: u64 = 16384;
    /// Seconds that the system takes for a request beside the store.
    const REQUEST_S: f64 = 50e-6;
    let load = Load { requests, bytes: requests * BYTES };
    let system_s = requests as f64 * REQUEST_S;
    Duration::from_secs_f64(in_turn(requests, model) + load.transfer_s(model) + system_s)
}

/// Reads the arrays, cold, as `thalweg read` does; seconds until the last value was looked at.
fn measure(path: &Path, args: &Args, all: &[&Dataset], options: &Options) -> Result<f64, Failure> {
    let eviction = evict(path, EvictOptions { drop_caches: false })?;
    if let Some(why) = eviction.objection() {
        complain(&format!("{}: not proved to be out of memory: {why}", path.display()));
    }
    let started = Instant::now();
    let Some(file) = hdf5::open(path, options, args.trusted)? else { return Ok(0.0) };
    let datasets = wanted(&file, &args.paths)?;
    let same: Vec<&Dataset> = datasets
        .iter()
        .filter(|dataset| all.iter().any(|known| known.path() == dataset.path()))
        .collect();
    let mut words = vec![Words::default(); same.len()];
    file.each(&same, &mut |number, values| {
        if let Some(words) = words.get_mut(number) {
            words.update(values);
        }
        Ok(())
    })?;
    let took: Duration = started.elapsed();
    black_box(&words);
    Ok(took.as_secs_f64())
}

/// How a file lies on Lustre.
#[derive(Debug, Clone, Copy)]
struct Stripes {
    count: u64,
    bytes: u64,
}

/// Asks Lustre's own tool, where the file system is Lustre.
fn stripes(path: &Path) -> Option<Stripes> {
    const LUSTRE: u64 = 0x0bd0_0bd0;
    let stat = rustix::fs::statfs(path).ok()?;
    if stat.f_type as u64 & 0xffff_ffff != LUSTRE {
        return None;
    }
    let ask = |option: &str| {
        let out = std::process::Command::new("lfs")
            .args(["getstripe", option])
            .arg(path)
            .output()
            .ok()?;
        String::from_utf8_lossy(&out.stdout).trim().parse::<u64>().ok()
    };
    Some(Stripes { count: ask("-c")?, bytes: ask("-S")? })
}

impl Stripes {
    /// What it should be, for a file of so many bytes.
    fn advice(self, size: u64) -> Option<String> {
        // A server each for every few hundred MB, up to eight, which is what a client can use.
        let good = (size >> 28).clamp(1, 8);
        (self.count < good).then(|| {
            format!("lfs migrate -c {good} -S 4M FILE, or lfs setstripe on its folder beforehand")
        })
    }
}

/// The command that mends a file.
fn command(path: &Path, repack: &str) -> String {
    let shown = path.display().to_string();
    let (stem, ending) =
        shown.rsplit_once('.').filter(|(_, e)| !e.contains('/')).unwrap_or((&shown, "h5"));
    let plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=".contains(c));
    let quoted = |text: String| {
        if plain(&text) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let (from, to) = (quoted(shown.clone()), quoted(format!("{stem}.repacked.{ending}")));
    format!("thalweg convert --repack {from} {to} {repack}").trim_end().to_owned()
}

fn predicted(time: &Predicted, range: Option<(f64, f64)>) -> Value {
    json!({
        "range_s": range.map(|(least, most)| [least, most]),
        "requests": time.requests,
        "bytes": time.bytes,
        "jumps": time.jumps,
        "store_s": time.store_s,
        "cpu_s": time.cpu_s,
        "threads": time.threads,
        "index_s": time.index_s,
        "total_s": time.total_s,
    })
}

fn in_json(told: &Told<'_>) -> Value {
    let Diagnosis { layouts, model, requests, thalweg, libhdf5, findings, .. } = &told.diagnosis;
    let layout = |layout: &Layout| {
        json!({
            "path": layout.path,
            "bytes": layout.bytes,
            "bytes_stored": layout.stored,
            "chunk": layout.chunk,
            "chunk_bytes": layout.chunk_bytes(),
            "chunks": layout.pieces,
            "in_order": if layout.pairs == 0 { None } else { Some(layout.followed as f64 / layout.pairs as f64) },
            "filters": layout.filters,
        })
    };
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.name(),
            "what": finding.what,
            "writer": finding.writer,
            "command": finding.repack.as_ref().map(|repack| command(told.path, repack)),
            "thalweg": finding.gain.map(|gain| predicted(&gain.thalweg, None)),
            "libhdf5": finding.gain.map(|gain| predicted(&gain.libhdf5, None)),
            "bytes_stored": finding.gain.map(|gain| gain.stored),
        })
    };
    json!({
        "schema": "thalweg.doctor/1",
        "file": told.path.to_string_lossy(),
        "model": model,
        "model_origin": told.origin,
        "model_assumed": told.assumed,
        "costs": "defaults",
        "datasets": layouts.iter().map(layout).collect::<Vec<_>>(),
        "datasets_left_out": told.left_out,
        "bytes": told.diagnosis.bytes,
        "bytes_stored": told.diagnosis.stored,
        "chunks": told.diagnosis.chunks,
        "in_order": told.diagnosis.in_order,
        "small_share": told.diagnosis.small,
        "wanted_bytes": requests.wanted,
        "depth": requests.shape.depth,
        "block_bytes": requests.shape.block,
        "thalweg": predicted(thalweg, told.range()),
        "libhdf5": predicted(libhdf5, None),
        "measured_s": told.measured_s,
        "throttled": told.throttled,
        "stripes": told.stripes.map(|stripes| json!({ "count": stripes.count, "bytes": stripes.bytes })),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
