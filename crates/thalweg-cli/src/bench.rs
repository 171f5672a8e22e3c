//! `thalweg bench`: run a suite of measurements, verified cold and hot, beside peers and against
//! this machine's limit.

mod commands;
mod consent;
mod files;
mod given;
mod outputs;
mod peers;
mod remaining;
mod run;
mod shipped;
mod show;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use thalweg_gauge::comparison::PairCount;
use thalweg_gauge::suite::{AUTO, ComparisonJob, Context, SettingValue, Suite, SuiteRecord};
use thalweg_gauge::units::{parse_duration, unix_s};
use thalweg_io::urls::{self, url};

use crate::common::{Failure, VerbResult};
use crate::force::{ForceArgs, files_of};
use crate::options::is_given;
use crate::synth::SyntheticFiles;
use given::{DATASET, GivenFile};
use outputs::Outputs;
use shipped::{NamedSuite, named};

/// Run a suite of measurements, cold and hot, beside peers and against this machine's limit; or
/// compare commands
///
/// Without arguments, it runs a tour of less than three minutes over half a gigabyte of synthetic
/// reads in your cache folder. Raw trials and a page with plots go to a new folder below --out.
/// After Ctrl-C it keeps the finished trials and still writes the page.
///
/// After `--`, each COMMAND runs in the shell, in turn with the others. Files that it names are in
/// memory before each trial; --set level=cold has them evicted, and shows that they were. Files
/// that no word names, as those of a pattern, are named by --file.
///
/// A suite of your own and a run that --resume continues hold commands, which run as you. Where
/// another user owns that file, they are shown, and run only after you agree.
///
/// Example: thalweg bench pipeline --place a=/mnt/one --place b=/mnt/two --pairs 10
///
/// Example: thalweg bench reads.blow5 --set threads=8
///
/// Example: thalweg bench --set level=cold -- 'gzip -dc reads.gz' 'pigz -dc reads.gz'
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// A shipped suite (see --list), a suite of your own (a .toml file), or a file of reads or HDF5
    /// arrays to measure on
    suite: Option<String>,
    /// List the shipped suites, or the comparisons of SUITE
    #[arg(long, conflicts_with_all = ["dry_run", "out", "json", "html", "force", "markdown"])]
    #[arg(conflicts_with = "yes")]
    list: bool,
    /// Check everything, print what would run and about how long it would take, and stop
    #[arg(long)]
    dry_run: bool,
    /// Run only the comparisons whose names contain this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Pairs of trials in each comparison: a number, or auto for as many as a precision of +-5 %
    /// needs; below 6 there is no interval
    #[arg(long, value_name = "N|auto", value_parser = parse_pairs)]
    pairs: Option<PairCount>,
    /// Time for the whole suite, as in "20 min"; no round starts that is not expected to end in
    /// time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Replace the value of a setting of the suite, as in threads=8, cpus=0-3 or level=hot
    #[arg(long, value_name = "NAME=VALUE", value_parser = named_value::<SettingValue>)]
    set: Vec<(String, SettingValue)>,
    /// Use this folder for a place of the suite
    #[arg(long, value_name = "NAME=FOLDER", value_parser = named_value::<PathBuf>)]
    place: Vec<(String, PathBuf)>,
    /// Use this file for a file of the suite; beside COMMANDs, a file or folder that all of them
    /// read, which is {file:NAME} in them
    #[arg(long, value_name = "NAME=PATH", value_parser = named_value::<PathBuf>)]
    file: Vec<(String, PathBuf)>,
    /// A name for a COMMAND in place of its text; the first is that of the first, and so on
    #[arg(long, value_name = "NAME", requires = "commands")]
    #[arg(conflicts_with_all = ["suite", "list", "resume"])]
    name: Vec<String>,
    /// Run this before each trial, outside of its time: one for all COMMANDs, or one for each
    #[arg(long, value_name = "COMMAND", requires = "commands")]
    #[arg(conflicts_with_all = ["suite", "list", "resume"])]
    prepare: Vec<String>,
    /// Write the results to a new folder in this one
    #[arg(long, value_name = "FOLDER", default_value = "thalweg-bench")]
    out: PathBuf,
    /// Write the raw trials to this file, and make no folder
    #[arg(long, value_name = "OUT.jsonl", conflicts_with = "out")]
    json: Option<PathBuf>,
    /// Write the page with plots to this file
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
    /// Run the commands of a suite, or of results, that another user wrote
    #[arg(long)]
    yes: bool,
    /// Print Markdown in place of plain text
    #[arg(long)]
    markdown: bool,
    /// Continue a run that was interrupted: its folder, or its file of raw trials. The commands in
    /// it run again
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = [
            "suite", "list", "only", "pairs", "budget", "set", "place", "file", "out", "json",
            "commands",
        ]
    )]
    resume: Option<PathBuf>,
    /// Commands to compare with the first one, each in quotes, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    #[arg(conflicts_with_all = ["suite", "list", "only", "place"])]
    commands: Vec<String>,
}

fn parse_pairs(text: &str) -> Result<PairCount, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(AUTO),
        (_, Ok(n @ 1..=10_000)) => Ok(PairCount::Fixed(n)),
        _ => Err("neither \"auto\" nor a number from 1 to 10000".into()),
    }
}

fn named_value<T: std::str::FromStr>(text: &str) -> Result<(String, T), String> {
    let (name, value) = text.split_once('=').ok_or("a name, = and a value, as in threads=8")?;
    let value = value.parse().map_err(|_| format!("{value:?} makes no sense here"))?;
    Ok((name.to_owned(), value))
}

/// A suite that is resolved on this machine.
struct PlannedSuite {
    suite: Suite,
    jobs: Vec<ComparisonJob>,
    budget: Option<Duration>,
    record: SuiteRecord,
}

impl PlannedSuite {
    /// The files that its commands read, and what is in those that are folders.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.jobs.iter().flat_map(|job| &job.needed).flat_map(|needed| files_of(&needed.path))
    }
}

pub(crate) fn run(args: &BenchArgs) -> VerbResult {
    if args.list && args.suite.is_none() {
        let of_suite = ["only", "pairs", "budget", "set", "place", "file"];
        if let Some(name) = of_suite.into_iter().find(|name| is_given(name)) {
            return Err(Failure::Usage(format!("--{name} is about a suite: name one to list")));
        }
        return show::shipped();
    }
    if let Some(path) = &args.resume {
        let outputs = Outputs::earlier(path, args.html.as_ref());
        let record = outputs.recorded()?;
        commands::check_folder(&record)?;
        let suite = Suite::parse(&record.source, &record.text, &SyntheticFiles)?;
        let given = shipped::given_in(&record)?;
        let work = work(suite, record, given.as_ref())?;
        outputs.check(args.force, work.files())?;
        if args.dry_run {
            return show::plan(&work.suite, &work.jobs);
        }
        consent::agreed(&outputs.lines, &work, args.yes)?;
        let (lines, earlier) = outputs.open(None)?;
        return run::run(work, lines, earlier, &outputs, args.markdown);
    }
    let NamedSuite { suite, source, folder, mut files, file: suite_file } =
        if args.commands.is_empty() {
            named(args.suite.as_deref())
        } else {
            commands::suite(args)
        }?;
    files.extend(args.file.iter().cloned());
    let places: Vec<_> =
        args.place.iter().map(|(name, path)| (name.clone(), absolute(path))).collect();
    if let Some((name, folder)) = places.iter().find(|(_, folder)| !folder.is_dir()) {
        return Err(Failure::Usage(format!(
            "--place {name}={}: not a folder",
            urls::shown_path(folder)
        )));
    }
    let mut record = SuiteRecord {
        schema: SuiteRecord::schema(),
        name: suite.name().to_owned(),
        source,
        text: suite.text().to_owned(),
        folder: absolute(&folder),
        places: places.into_iter().collect(),
        files: files.into_iter().map(|(name, path)| (name, absolute(&path))).collect(),
        set: args.set.clone(),
        pairs: args.pairs,
        budget_s: args.budget.map(|b| b.as_secs_f64()),
        only: args.only.clone(),
        started_unix_s: unix_s(SystemTime::now()),
        comparisons: Vec::new(),
    };
    let given = shipped::given_in(&record)?;
    let dataset = given.as_ref().and_then(GivenFile::dataset);
    if let Some(dataset) = dataset.filter(|_| record.set.iter().all(|(name, _)| name != DATASET)) {
        record.set.push((DATASET.into(), SettingValue::Text(dataset.to_owned())));
    }
    let work = work(suite, record, given.as_ref())?;
    if args.list {
        return show::comparisons(&work.jobs);
    }
    let outputs = Outputs::new(&args.out, args.json.as_ref(), args.html.as_ref())?;
    outputs.check(args.force, work.files().chain(suite_file.clone()))?;
    if args.dry_run {
        return show::plan(&work.suite, &work.jobs);
    }
    if let Some(suite) = &suite_file {
        consent::agreed(suite, &work, args.yes)?;
    }
    let (lines, earlier) = outputs.open(Some(&work.record))?;
    run::run(work, lines, earlier, &outputs, args.markdown)
}

/// The absolute path: a run may be resumed from another folder.
fn absolute(path: &std::path::Path) -> PathBuf {
    if url(path).is_some() {
        return path.to_owned();
    }
    std::path::absolute(path)
        .or_else(|_| std::env::current_dir())
        .unwrap_or_else(|_| path.to_owned())
}

/// Resolves a suite on this machine. `given`: the file of the user that it measures on.
fn work(
    suite: Suite,
    mut record: SuiteRecord,
    given: Option<&GivenFile>,
) -> Result<PlannedSuite, Failure> {
    let thalweg = std::env::current_exe()
        .map_err(|e| thalweg::Error::io(&"thalweg".into(), "finding the program itself:", e))?;
    let cache = thalweg::cache_folder().ok_or_else(|| {
        Failure::Usage(
            "neither HOME nor XDG_CACHE_HOME is set: set XDG_CACHE_HOME to a folder".into(),
        )
    })?;
    let context = Context {
        thalweg: thalweg.to_string_lossy().into_owned(),
        peer: &|name| given.map_or_else(|| peers::find(name), |given| given.peer(name)),
        places: record.places.clone(),
        files: record.files.clone(),
        set: record.set.clone(),
        pairs: record.pairs,
        cache: cache.join("bench"),
        folder: record.folder.clone(),
        cores: thalweg::engine::default_threads(),
        cpus: thalweg_gauge::host::usable_cpus(),
    };
    let mut jobs = suite.plan(&context)?;
    if let Some(only) = &record.only {
        jobs.retain(|job| job.plan.name.contains(only.as_str()));
        if jobs.is_empty() {
            return Err(Failure::Usage(format!(
                "no comparison of {:?} has {only:?} in its name",
                suite.name()
            )));
        }
    }
    // A command that fails was mistyped, most often.
    let ends_at_failure = commands::is_of_commands(&record);
    jobs.iter_mut().for_each(|job| job.plan.ends_at_failure = ends_at_failure);
    record.comparisons = jobs.iter().map(|job| job.plan.name.clone()).collect();
    let asked = record.budget_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let budget = asked.or(suite.budget());
    Ok(PlannedSuite { suite, jobs, budget, record })
}
