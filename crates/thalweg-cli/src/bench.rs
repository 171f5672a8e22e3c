//! `thalweg bench`: measure reads, verified cold and hot, beside peers and against this machine's limit.

mod experiment;
mod peers;

use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use thalweg_gauge::comparison::{Comparison, Progress, run as compare};
use thalweg_gauge::report::{html, machine, markdown, text};

use crate::common::{Failure, Outcome, complain, output};
use experiment::Experiment;

/// Measure: thalweg beside slow5lib and against this machine's limit, cold and hot
///
/// Without arguments, a tour of about three minutes over half a gigabyte of synthetic reads in your cache folder. Raw
/// trials and a page with plots go to a new folder below --out.
///
/// Example: thalweg bench reads.blow5 --threads 8 --rounds 10
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A BLOW5 file of your own to measure on, in place of synthetic ones
    file: Option<PathBuf>,
    /// The long experiment: 1.2 G samples, every coding, reads by id
    #[arg(long, conflicts_with = "file")]
    full: bool,
    /// Only the comparisons whose names contain this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Trials of each arm; at least 6 are needed for an interval
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// Decode threads of every arm (default: all cores that this process may use)
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Pin every arm to these CPUs, as in 0,1
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Option<Vec<usize>>,
    /// Where synthetic files are made and kept (default: the user's cache folder)
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Where the results go, in a new folder
    #[arg(long, value_name = "FOLDER", default_value = "thalweg-bench")]
    out: PathBuf,
    /// Print the summaries as JSON lines in place of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // The first Ctrl-C ends the measurement and still writes the report.
    let set = ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    if let Err(error) = set {
        complain(&format!("Ctrl-C will not stop cleanly: {error}"));
    }
    let experiments = experiments(args)?;
    let folder = result_folder(&args.out)?;
    let mut raw = create(&folder.join("results.jsonl"))?;
    let peers = peers::find();
    for absent in &peers.absent {
        complain(&format!("{absent}; it is left out (`make peers` builds the peers)"));
    }
    let mut done: Vec<Comparison> = Vec::new();
    let mut out = output();
    for experiment in experiments {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        experiment.prepare(&stop)?;
        let plan = experiment.plan(&peers)?;
        let bar = bar(&experiment.name);
        let comparison = compare(&plan, &mut raw, &stop, &mut |progress| show(&bar, progress)).map_err(failure)?;
        bar.finish_and_clear();
        if args.json {
            writeln!(out, "{}", comparison.last_line())?;
        } else {
            writeln!(out, "{}", text(&comparison))?;
        }
        out.flush()?;
        done.push(comparison);
        // Written after each comparison, so that whatever happens next, what is measured can be read.
        report(&folder, &done)?;
    }
    if !args.json {
        if let Some(last) = done.last() {
            writeln!(out, "{}", machine(last))?;
        }
        writeln!(out, "raw trials: {0}/results.jsonl; report: {0}/report.html, {0}/report.md", folder.display())?;
    }
    out.flush()?;
    if stop.load(Ordering::SeqCst) {
        return Err(Failure::Failed(thalweg::Error::Cancelled));
    }
    if let Some(refused) = done.iter().find_map(|c| c.refused.clone()) {
        return Err(Failure::FellShort(refused));
    }
    if done.iter().any(Comparison::any_failed) {
        return Err(Failure::Said("an arm failed; the report says which and why".into()));
    }
    Ok(())
}

fn experiments(args: &Args) -> Result<Vec<Experiment>, Failure> {
    let settings = experiment::Settings {
        threads: args.threads.map_or_else(thalweg::engine::default_threads, usize::from),
        rounds: args.rounds.map(usize::from),
        cpus: args.cpus.clone(),
    };
    let data = match &args.data {
        Some(folder) => folder.clone(),
        None => thalweg::cache_folder()
            .ok_or_else(|| Failure::Usage("neither HOME nor XDG_CACHE_HOME is set: say --data FOLDER".into()))?
            .join("bench"),
    };
    let mut all = match &args.file {
        Some(file) => Experiment::on_file(file, &settings),
        None if args.full => Experiment::full(&data, &settings),
        None => Experiment::tour(&data, &settings),
    };
    if let Some(only) = &args.only {
        all.retain(|experiment| experiment.name.contains(only.as_str()));
        if all.is_empty() {
            return Err(Failure::Usage(format!("no comparison has {only:?} in its name")));
        }
    }
    Ok(all)
}

fn failure(error: thalweg_gauge::Error) -> Failure {
    match error {
        thalweg_gauge::Error::Cancelled => Failure::Failed(thalweg::Error::Cancelled),
        other => Failure::Failed(thalweg::Error::Usage(other.to_string().into())),
    }
}

fn result_folder(out: &Path) -> Result<PathBuf, Failure> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%SZ").to_string();
    let folder = out.join(now);
    fs::create_dir_all(&folder).map_err(|e| thalweg::Error::io(&folder.to_string_lossy().into(), "creating", e))?;
    Ok(folder)
}

fn create(path: &Path) -> Result<File, Failure> {
    Ok(File::create(path).map_err(|e| thalweg::Error::io(&path.to_string_lossy().into(), "creating", e))?)
}

fn report(folder: &Path, done: &[Comparison]) -> Outcome {
    let pages: String = done.iter().map(|c| markdown(c) + "\n").collect();
    for (name, page) in [("report.html", html(done)), ("report.md", pages)] {
        create(&folder.join(name))?.write_all(page.as_bytes())?;
    }
    Ok(())
}

fn bar(name: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix}: {bar:24} {pos}/{len} {msg} ({eta} left)");
    let bar = ProgressBar::new(0).with_prefix(name.to_owned());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn show(bar: &ProgressBar, progress: Progress<'_>) {
    match progress {
        Progress::Starting { arm, done, total, .. } => {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            bar.set_message(arm.to_owned());
        }
        Progress::Probing { done, total } => bar.set_message(format!("probing the device {done}/{total}")),
        _ => {}
    }
}
