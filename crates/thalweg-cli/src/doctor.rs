//! `thalweg doctor`: reports what limits the speed of reading a file, and what would make it
//! faster.

mod reads;
mod report;
mod stripes;

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use thalweg::arrays::Dataset;
use thalweg::doctor::{Costs, Diagnosis, diagnose};
use thalweg::hdf5::array::Found;
use thalweg::hdf5::metadata::Cost;
use thalweg::model::{Origin, StoreModel};
use thalweg::plan::{Load, in_turn};
use thalweg::residency::resident;
use thalweg::store::throttled::Limits;
use thalweg::{ArrayFile, Identified, Opened, OpenedStore, Options};
use thalweg_gauge::cache::{EvictOptions, evict};
use thalweg_io::urls::{self, url};

use crate::arrays::{self, WordSum};
use crate::common::{Failure, VerbResult, complain, ended, output};
use crate::explain::{CACHE, counting, prior};
use crate::open::ReadArgs;
use crate::options::{Kind, check as check_options};
use crate::progress::FetchProgress;
use report::{in_json, in_words};
use stripes::{Stripes, stripes};

/// Say why a file is read as fast as it is, predict how long that takes, and name what would make
/// it faster
///
/// Only metadata are read: where the chunks of HDF5 datasets lie, and how they are coded. The
/// requests are those of the plan that thalweg reads by; they are compared with those of a reader
/// through libhdf5, which requests one chunk after the other. Times are predicted for the file's
/// store, as `thalweg probe` has measured it or as stores of its kind are known, or with --model
/// for another store.
///
/// Example: thalweg doctor run.nxs '/entry/bank*_events/event_id'
///
/// Example: thalweg doctor run.nxs --model hdd --json
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// An HDF5 file, or a file of reads
    file: PathBuf,
    /// Datasets or groups, or patterns of them (default: all datasets)
    paths: Vec<PathBuf>,
    /// Predict for this kind of store: hdd, ssd, nvme, nfs, lustre or s3, or one of these limits
    /// and no others, as in bandwidth=2GB/s,latency=300us,requests=20000/s,parallel=16
    #[arg(long, value_name = "NAME|LIMITS", value_parser = model)]
    model: Option<AskedStore>,
    /// Evict the file from memory, read it, and print the time beside the predicted one
    #[arg(long)]
    measure: bool,
    /// Print one JSON line
    #[arg(long)]
    json: bool,
    /// HDF5: trust the file; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// The store of --model.
#[derive(Debug, Clone)]
struct AskedStore {
    model: StoreModel,
    /// Where the model comes from.
    origin: String,
    /// Whether the model is that of a typical store of its kind.
    assumed: bool,
}

fn model(text: &str) -> Result<AskedStore, String> {
    if text.contains('=') {
        let limits: Limits = text.parse().map_err(|error: thalweg::Error| error.to_string())?;
        let model = limits.applied_to(&StoreModel::MEMORY);
        return Ok(AskedStore { model, origin: "as --model says".into(), assumed: false });
    }
    let known = StoreModel::NAMED.iter().find(|(name, _)| *name == text);
    let asked = known.map(|(name, model)| (*model, format!("what `{name}` is known for")));
    asked.map(|(model, origin)| AskedStore { model, origin, assumed: true }).ok_or_else(|| {
        let names: Vec<&str> = StoreModel::NAMED.iter().map(|(name, _)| *name).collect();
        format!(
            "one of {}, or limits as in bandwidth=2GB/s,latency=300us are needed",
            names.join(", ")
        )
    })
}

/// A diagnosis, and what else the report says.
struct DoctorReport<'a> {
    path: &'a Path,
    diagnosis: Diagnosis,
    /// Where the model comes from.
    origin: String,
    /// Whether the store's speed is only assumed.
    assumed: bool,
    /// Datasets that are virtual, or that cannot be read.
    left_out: usize,
    measured_s: Option<f64>,
    stripes: Option<Stripes>,
    throttled: bool,
}

impl DoctorReport<'_> {
    /// The least and the greatest time that thalweg may take, if the store's speed is assumed.
    fn range(&self) -> Option<(f64, f64)> {
        self.assumed.then(|| self.diagnosis.thalweg.range_s(ASSUMED))
    }
}

pub(crate) fn run(args: &DoctorArgs) -> VerbResult {
    // An index beside the file is ignored: thalweg is compared with libhdf5, which does not use it.
    let counted = counting(true, args.read.options());
    let mut options = Options { own_index: true, finds_in_rounds: true, ..counted };
    let path = &args.file;
    let progress = options.counter.as_ref().map(FetchProgress::count);
    let started = Instant::now();
    let opened = OpenedStore::unthrottled(path, &options)?;
    let store = StoreHere::of(path, &opened);
    let identified = Identified::from_store(path, opened)?.trusted(args.trusted);
    if !identified.is_hdf5() {
        options.model = args.model.as_ref().map(|asked| asked.model);
    }
    match identified.open(options.clone())? {
        Opened::Arrays(file) => {
            check_options(path, Kind::Arrays)?;
            of_arrays(args, &file, &store, started, &options, progress)
        }
        other => {
            check_options(path, Kind::Reads)?;
            reads::run(path, &other.into_reads()?, args.json)
        }
    }
}

/// What is known of the store that a file lies on.
struct StoreHere {
    /// The share of the file that is in memory; 0 if the system does not say.
    cached: f64,
    model: StoreModel,
    origin: Origin,
    is_object: bool,
}

impl StoreHere {
    /// Asks the system, before anything of the file is read.
    fn of(path: &Path, opened: &OpenedStore) -> Self {
        let pages = opened.file.as_ref().and_then(|file| resident(file, 0..u64::MAX));
        let (model, origin) = opened.model;
        let cached = pages.map_or(0.0, |pages| pages.fraction());
        Self { cached, model, origin, is_object: url(path).is_some() }
    }

    /// Where the model comes from, in words, and whether it is only assumed. A store that
    /// --throttle slows down much counts as known. `held` is the model of the throttled store.
    fn origin(&self, held: &StoreModel, throttled: bool) -> (String, bool) {
        let (mut words, mut assumed) = match self.origin {
            Origin::Measured(_) => ("measured by `thalweg probe`".to_owned(), false),
            Origin::Cache => (CACHE.to_owned(), false),
            _ => (prior(self.is_object).to_owned(), true),
        };
        if throttled {
            words.push_str(", held to --throttle");
            assumed &= held.bandwidth > self.model.bandwidth / 2.0;
        }
        (words, assumed)
    }
}

/// Diagnoses a file of arrays, and prints the report.
fn of_arrays(
    args: &DoctorArgs,
    file: &ArrayFile,
    store: &StoreHere,
    started: Instant,
    options: &Options,
    progress: Option<FetchProgress>,
) -> VerbResult {
    let throttled = options.throttle.is_some();
    let (datasets, mut is_partial) = arrays::survey(file, &args.paths)?;
    let found = started.elapsed();
    if let Some(note) = file.note() {
        complain(&note);
    }
    let (all, left_out): (Vec<&Dataset>, Vec<&Dataset>) =
        datasets.iter().partition(|dataset| match &dataset.found {
            Found::Array(array) => !array.is_by_rows() && dataset.not_read().is_none(),
            Found::Other(_) => false,
        });
    for dataset in left_out
        .iter()
        .filter(|dataset| args.paths.iter().any(|path| path == Path::new(dataset.path())))
    {
        let why = dataset.not_read().unwrap_or("a virtual dataset");
        complain(&format!("{}: not diagnosed: {why}", dataset.path()));
        is_partial = true;
    }
    all.iter().for_each(|dataset| arrays::warn_of_fill_values(file, dataset));
    let here = file.options().model.unwrap_or(StoreModel::LOCAL);
    let (model, origin, assumed) = match &args.model {
        Some(asked) => (asked.model, asked.origin.clone(), asked.assumed),
        None => {
            let (origin, assumed) = store.origin(&here, throttled);
            (here, origin, assumed)
        }
    };
    // A throttled store is slow for cached pages too.
    let warm = if throttled && args.model.is_none() { 0.0 } else { store.cached };
    let index = found + cold_index(file.finding(), &model).mul_f64(warm);
    let diagnosis = diagnose(file, &all, &model, index, &Costs::default())?;
    drop(progress);
    let measured_s = if args.measure { Some(measure(args, &all, options)?) } else { None };
    let report = DoctorReport {
        path: &args.file,
        diagnosis,
        origin,
        assumed,
        left_out: left_out.len(),
        measured_s,
        stripes: stripes(&args.file),
        throttled,
    };
    let text = if args.json { format!("{}\n", in_json(&report)) } else { in_words(&report) };
    let mut out = output();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    ended(is_partial)
}

/// A store whose speed is assumed may be faster or slower by this factor.
const ASSUMED: f64 = 2.0;

/// How much longer finding the datasets takes if the file is not in memory: rounds of requests, one
/// after the other.
fn cold_index(cost: Cost, model: &StoreModel) -> Duration {
    /// Seconds that the system takes for a request, in addition to the store's time.
    const REQUEST_S: f64 = 50e-6;
    let load = Load { requests: cost.requests, bytes: cost.bytes };
    let system_s = cost.requests as f64 * REQUEST_S;
    Duration::from_secs_f64(in_turn(cost.rounds, model) + load.transfer_s(model) + system_s)
}

/// Reads the arrays, cold, as `thalweg read` does. Returns the seconds until the last value was
/// looked at.
fn measure(args: &DoctorArgs, all: &[&Dataset], options: &Options) -> Result<f64, Failure> {
    if args.model.is_some() {
        return Err(Failure::Usage(
            "--measure is about the store that the file lies on, not about --model".into(),
        ));
    }
    let path = &args.file;
    let eviction = evict(path, EvictOptions { drop_caches: false })?;
    if let Some(why) = eviction.objection() {
        complain(&format!("{}: not proved to be out of memory: {why}", urls::shown_path(path)));
    }
    let started = Instant::now();
    let options = Options { counter: None, ..options.clone() };
    let identified = Identified::new(path, &options)?.trusted(args.trusted);
    let Opened::Arrays(file) = identified.open(options)? else {
        let what = "it holds no arrays any more: it changed while it was examined";
        return Err(Failure::Said(format!("{}: {what}", urls::shown_path(path))));
    };
    let (datasets, _) = arrays::survey(&file, &args.paths)?;
    let same: Vec<&Dataset> = datasets
        .iter()
        .filter(|dataset| all.iter().any(|known| known.path() == dataset.path()))
        .collect();
    let mut sums = vec![WordSum::default(); same.len()];
    let bytes: u64 = same.iter().map(|dataset| array_bytes(dataset)).sum();
    let stored = file.store().size().min(bytes);
    let _progress = FetchProgress::watch(&file.options().control, stored);
    file.each(&same, &mut |number, values| {
        if let Some(sum) = sums.get_mut(number) {
            sum.update(values);
        }
        Ok(())
    })?;
    let took: Duration = started.elapsed();
    black_box(&sums);
    Ok(took.as_secs_f64())
}

fn array_bytes(dataset: &Dataset) -> u64 {
    match &dataset.found {
        Found::Array(array) => array.bytes(),
        Found::Other(_) => 0,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;
    use thalweg::Options;
    use thalweg_testing::slow5::{headers, sample};

    use super::{DoctorArgs, measure};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: DoctorArgs,
    }

    #[test]
    fn a_file_without_arrays_has_no_measured_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reads");
        let (_, header) = headers().pop().unwrap();
        std::fs::write(&path, sample("reads", &header, &[5]).bytes).unwrap();
        let args = Command::parse_from(["doctor", path.to_str().unwrap()]).args;
        let told = format!("{:?}", measure(&args, &[], &Options::default()));
        assert!(told.contains("it holds no arrays any more"), "{told}");
    }
}
