//! `thalweg read` of a file of arrays: in one process or several, as digests, as a table, or timed.

mod digests;
mod plan;
mod timed;

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use thalweg::arrays::Dataset;
use thalweg::engine::default_threads;
use thalweg::hdf5::array::{Array, Found};
use thalweg::plan::Budget;
use thalweg::reads::ReadFile;
use thalweg::{ArrayFile, Identified, Opened, Options};
use thalweg_io::urls::{self, url};

use super::events::{self, EventArgs};
use super::ranks::{MOST_SLICES, Ranks, SliceNumber, lead};
use super::select::Select;
use super::table;
use crate::common::{Failure, VerbResult, alone, complain, counted, ended, output, shown_path};
use crate::options::{Kind, check as check_options};
use crate::prices::PriceArgs;
use crate::progress::FetchProgress;
use crate::table_sink::TableOut;
use crate::timing::Started;

/// Which parts of arrays are read, and by which processes.
#[derive(Debug, clap::Args)]
pub(crate) struct ArrayArgs {
    /// HDF5: only this part of each array, as in 0:100:2,:,5 for its dimensions, or single elements
    /// as in 1,2;3,4
    #[arg(long, value_name = "SELECTION", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["out", "ranks", "slice", "slices"])]
    select: Option<Select>,
    /// HDF5: read in N processes, each a slice, as `mpiexec -n N thalweg read` does with MPI
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_SLICES))]
    #[arg(conflicts_with_all = ["digest", "out", "explain", "slices"])]
    ranks: Option<u16>,
    /// HDF5: read one slice of SIZE, counted from 0, as in 0/4; the digests of all slices add up to
    /// that of the whole
    #[arg(long, value_name = "RANK/SIZE", conflicts_with_all = ["digest", "out"])]
    slice: Option<SliceNumber>,
    /// HDF5: print what each of N processes would read of each dataset, a line of JSON for each,
    /// and read nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_SLICES))]
    #[arg(conflicts_with_all = ["digest", "json", "out", "explain", "slice"])]
    slices: Option<u16>,
    /// Take part in a read of the process that started this one with --ranks
    #[arg(long, hide = true, requires = "slice")]
    member: bool,
}

/// What `thalweg read` is asked to do with a file of arrays.
pub(crate) struct ReadJob<'a> {
    pub(crate) path: &'a Path,
    /// Paths and patterns of datasets; all datasets if there are none.
    pub(crate) within: &'a [PathBuf],
    /// The table or folder of arrays to write.
    pub(crate) to: Option<TableOut<'a>>,
    pub(crate) digests: bool,
    pub(crate) as_json: bool,
    /// The plan is printed with these prices, and nothing is read.
    pub(crate) explain: Option<&'a PriceArgs>,
    /// All arrays are put into memory at once, instead of part by part.
    pub(crate) at_once: bool,
    /// Decode threads, if --threads says how many.
    pub(crate) threads: Option<usize>,
    pub(crate) arrays: &'a ArrayArgs,
    pub(crate) events: &'a EventArgs,
    pub(crate) options: &'a Options,
    pub(crate) started: Started,
}

/// Reads a file of arrays. Returns the open file if it turns out to be a file of reads.
pub(crate) fn read(
    identified: Identified,
    mut job: ReadJob<'_>,
) -> Result<Option<ReadFile>, Failure> {
    if job.events.asked() || job.to.is_some() || job.explain.is_some() {
        return by_one_process(identified, &job);
    }
    let leads = job.arrays.ranks.filter(|_| !job.arrays.member).map(usize::from);
    // The time that MPI takes to start is not counted, just as an interpreter's start is not.
    let args = job.arrays;
    let ranks = without_counting(&mut job.started, || Ranks::find(args.slice, args.member))?;
    let processes = ranks.on_this_machine().max(leads.unwrap_or(1));
    let threads = job.threads.unwrap_or_else(|| (default_threads() / processes).max(1));
    let budget = Budget { threads, ..job.options.budget };
    let options = Options { budget, ..job.options.clone() };
    by_ranks(identified, &job, &ranks, leads, options).map_err(|failure| ranks.abort(failure))
}

/// Does some work, and moves the start of the measurement by the time that it took.
fn without_counting<T>(started: &mut Started, work: impl FnOnce() -> T) -> T {
    let before = Started::now();
    let done = work();
    let after = Started::now();
    started.at += after.at - before.at;
    started.cpu += after.cpu.saturating_sub(before.cpu);
    done
}

/// Reads events, or writes a table.
fn by_one_process(identified: Identified, job: &ReadJob<'_>) -> Result<Option<ReadFile>, Failure> {
    let options = Options { finds_in_rounds: job.explain.is_some(), ..job.options.clone() };
    let file = match identified.open(options)? {
        Opened::Arrays(file) => file,
        other => return Ok(Some(other.into_reads()?)),
    };
    check_options(job.path, Kind::Arrays)?;
    if let Some(prices) = job.explain {
        plan::print(&file, job, prices)?;
        return Ok(None);
    }
    if job.arrays.ranks.is_some() || job.arrays.slice.is_some() {
        return Err(Failure::Usage("events and tables are read by one process".into()));
    }
    alone()?;
    if let Some(to) = job.to {
        file.check_output(to.path).map_err(Failure::of_argument)?;
    }
    match job.to {
        Some(to) if !job.events.asked() => {
            table::run(&file, job.within, to, job.as_json, &job.started)?;
        }
        to => events::run(&file, job.within, job.events, to, job.as_json, &job.started)?,
    }
    Ok(None)
}

/// Reads as one of several processes, or as the only one. `leads`: the number of processes to
/// start, which read instead of this one.
fn by_ranks(
    identified: Identified,
    job: &ReadJob<'_>,
    ranks: &Ranks,
    leads: Option<usize>,
    options: Options,
) -> Result<Option<ReadFile>, Failure> {
    ranks.meet();
    let opened = identified.open(options)?;
    let file = match opened {
        Opened::Arrays(file) => file,
        other => return Ok(Some(other.into_reads()?)),
    };
    check_options(job.path, Kind::Arrays)?;
    match leads {
        Some(size) => {
            let wanted = WantedArrays::at(&file, job.within)?;
            let tally = lead(size, &job.options.control)?;
            timed::print(&file, &tally, job, size, None)?;
            wanted.end()?;
        }
        None => arrays(&file, job, ranks)?,
    }
    Ok(None)
}

/// The arrays that a verb reads, and whether something that it was asked for cannot be read.
pub(super) struct WantedArrays {
    pub(super) datasets: Vec<Dataset>,
    is_partial: bool,
}

impl WantedArrays {
    /// The arrays at or below the paths and patterns; without paths, all arrays. Prints what the
    /// other datasets are, and what could not be read.
    pub(super) fn at(file: &ArrayFile, paths: &[PathBuf]) -> Result<Self, Failure> {
        Ok(Self::among(file, paths, |_| false, complain)?.with_warnings(file))
    }

    /// The arrays, for a process whose leader has printed what is not read.
    fn of_member(file: &ArrayFile, paths: &[PathBuf]) -> Result<Self, Failure> {
        Self::among(file, paths, |_| false, |_| {})
    }

    /// These, and the strings and lists of any length.
    pub(super) fn with_variable(file: &ArrayFile, paths: &[PathBuf]) -> Result<Self, Failure> {
        // Who reads a dataset that is damaged is told.
        let is_read = |dataset: &Dataset| !matches!(file.variable(dataset), Ok(None));
        Ok(Self::among(file, paths, is_read, complain)?.with_warnings(file))
    }

    /// The arrays, and the other datasets that `is_read` says are read.
    fn among(
        file: &ArrayFile,
        paths: &[PathBuf],
        is_read: impl Fn(&Dataset) -> bool,
        say: fn(&dyn Display),
    ) -> Result<Self, Failure> {
        let (mut datasets, mut is_partial) = surveyed(file, paths, say)?;
        datasets.retain(|dataset| {
            let Some(what) = dataset.not_read().filter(|_| !is_read(dataset)) else { return true };
            say(&format!("{}: not read: {what}", dataset.path()));
            // What is named must be read.
            is_partial |= paths.iter().any(|path| path == Path::new(dataset.path()));
            false
        });
        is_partial |= datasets.is_empty() && !paths.is_empty();
        Ok(Self { datasets, is_partial })
    }

    /// Warns of fill values, for which other files are looked at.
    fn with_warnings(self, file: &ArrayFile) -> Self {
        self.datasets.iter().for_each(|dataset| warn_of_fill_values(file, dataset));
        self
    }

    /// Fails if something could not be read. It was printed already.
    pub(super) fn end(&self) -> VerbResult {
        ended(self.is_partial)
    }
}

/// Says where fill values stand for what is missing, and where there are so many that reading them
/// takes long.
pub(crate) fn warn_of_fill_values(file: &ArrayFile, dataset: &Dataset) {
    if file.is_sparse(dataset) {
        let path = dataset.path();
        complain(&format!("{path}: far more values than the file can hold: most are fill values"));
    }
    // Reading the dataset meets the same error.
    let missing = file.missing_sources(dataset).unwrap_or_default();
    let Some(first) = missing.first() else { return };
    let others = if missing.len() > 1 { ", ..." } else { "" };
    complain(&format!(
        "{}: {} that it shows not found ({first}{others}): fill values take the place",
        dataset.path(),
        counted(missing.len() as u64, "dataset"),
    ));
}

/// The datasets at or below paths in the file, or that match patterns; without paths, all datasets.
/// Prints what could not be read. The second value is whether there is any such object.
pub(crate) fn survey(file: &ArrayFile, paths: &[PathBuf]) -> Result<(Vec<Dataset>, bool), Failure> {
    surveyed(file, paths, complain)
}

fn surveyed(
    file: &ArrayFile,
    paths: &[PathBuf],
    say: fn(&dyn Display),
) -> Result<(Vec<Dataset>, bool), Failure> {
    let names: Vec<_> = paths.iter().map(|path| urls::shown_path(path)).collect();
    let found = if names.is_empty() { file.survey(&["/"]) } else { file.survey(&names) };
    let found = found.map_err(|error| not_within(error, paths))?;
    found.unreadable.iter().for_each(|error| say(error));
    found.external.iter().for_each(|link| say(link));
    Ok((found.datasets, !found.unreadable.is_empty()))
}

/// The failure to find paths within a file. They may be other files that were to be read, too.
pub(super) fn not_within<P: AsRef<Path>>(error: thalweg::Error, paths: &[P]) -> Failure {
    let is_file = |path: &&Path| path.is_file() || url(path).is_some();
    let other = paths.iter().map(AsRef::as_ref).find(is_file);
    match (&error, other) {
        (thalweg::Error::NotFound { file, .. }, Some(other)) => Failure::Usage(format!(
            "{other}: a second file: this verb takes one HDF5 file, which is {file}, and then \
             datasets or groups in it; run it again for {other}",
            other = shown_path(other)
        )),
        _ => Failure::of_argument(error),
    }
}

fn array(dataset: &Dataset) -> Option<&Array> {
    match &dataset.found {
        Found::Array(array) => Some(array),
        Found::Other(_) => None,
    }
}

/// Reads datasets, and prints a digest of each or figures about all.
fn arrays(file: &ArrayFile, job: &ReadJob<'_>, ranks: &Ranks) -> VerbResult {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let wanted = if job.arrays.member {
        WantedArrays::of_member(file, job.within)?
    } else {
        WantedArrays::at(file, job.within)?
    };
    read_arrays(file, &wanted.datasets, job, ranks)?;
    wanted.end()
}

fn read_arrays(
    file: &ArrayFile,
    datasets: &[Dataset],
    job: &ReadJob<'_>,
    ranks: &Ranks,
) -> VerbResult {
    if let Some(count) = job.arrays.slices {
        return print_slices(file, datasets, usize::from(count));
    }
    let total: u64 = datasets.iter().filter_map(array).map(Array::bytes).sum();
    let size = ranks.own().size;
    // Compressed arrays are fetched in fewer bytes.
    let fetched = total.min(file.store().size());
    let _progress = FetchProgress::watch(&file.options().control, fetched / size as u64);
    if let Some(select) = &job.arrays.select {
        alone()?;
        return digests::selected(file, datasets, select, job);
    }
    match (job.digests, size) {
        (true, 1) => digests::print(file, datasets, !job.within.is_empty()),
        (true, _) => Err(Failure::Usage(
            "a slice has no digest of its own: use --json, whose digest is that of all".into(),
        )),
        (false, _) => timed::run(file, datasets, job, ranks),
    }
}

/// Prints what each of `count` processes would read.
fn print_slices(file: &ArrayFile, datasets: &[Dataset], count: usize) -> VerbResult {
    let mut out = output();
    for slice in file.slices(&datasets.iter().collect::<Vec<_>>(), count)? {
        let mut line = json!(slice);
        line["schema"] = "thalweg.slice/1".into();
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
