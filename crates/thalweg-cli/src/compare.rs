//! `thalweg compare`: prints results side by side, and checks a condition for continuous
//! integration.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use thalweg::new_file::NewFile;
use thalweg_gauge::cross_run::{
    Compared, ConditionVerdict, CrossRunOptions, ResultCondition, compare,
};
use thalweg_gauge::report::{compared_html, compared_text, is_page};
use thalweg_gauge::results::{ResultRun, result_files};
use thalweg_io::urls;

use crate::common::{Failure, VerbResult, complain, counted, output};
use crate::done::say_done;
use crate::force::ForceArgs;
use crate::output_name::check_name;
use crate::terminal::width;

/// Compare results: arms of one run in pairs, or the same arms of several runs, machines, stores
/// and versions
///
/// With one file, every arm is compared with the baseline of its session, pair by pair. With
/// several, each run is compared with the first, unpaired, and normalised by each machine's own
/// limit. Published tables (crates/thalweg-cli/suites/published) count as runs. The exit code is 3
/// if --fail-if holds for any row.
///
/// Example: thalweg compare before.jsonl after.jsonl --fail-if 'low > 1.05'
#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Result files (.jsonl, .jsonl.gz), or folders of them
    #[arg(required = true, value_name = "RESULTS")]
    results: Vec<PathBuf>,
    /// Two equivalent names of arms or of experiments; may be repeated
    #[arg(
        long = "match",
        num_args = 2,
        value_names = ["NAME", "OTHER"],
        action = clap::ArgAction::Append
    )]
    same: Vec<String>,
    /// Compare all arms of one run with this arm
    #[arg(long, value_name = "ARM")]
    baseline: Option<String>,
    /// Show only rows whose experiment or arm contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// A condition, as in 'ratio > 1.05': fields ratio, low, high (ends of its interval),
    /// normalised, fraction (of the limit), time_s, cpu_ratio, memory_ratio; > >= < <=; and, or
    #[arg(long, value_name = "CONDITION", value_parser = ResultCondition::parse)]
    fail_if: Option<ResultCondition>,
    /// Print one JSON object a row in place of tables
    #[arg(long)]
    json: bool,
    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    force: ForceArgs,
}

pub(crate) fn run(args: &CompareArgs) -> VerbResult {
    let started = Instant::now();
    if args.baseline.is_some() && args.results.len() > 1 {
        return Err(Failure::Usage(
            "--baseline chooses an arm of one run; several runs are held against the first".into(),
        ));
    }
    if let Some(path) = &args.html {
        let files: Vec<Vec<PathBuf>> =
            args.results.iter().map(|path| result_files(path)).collect::<Result<_, _>>()?;
        args.force.check_kind(path, files.iter().flatten(), is_page)?;
        check_name(path, "HTML", &["html"])?;
    }
    let mut runs: Vec<ResultRun> =
        args.results.iter().map(|path| ResultRun::read(path)).collect::<Result<_, _>>()?;
    name_uniquely(&mut runs, &args.results);
    let same = args
        .same
        .chunks_exact(2)
        .filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())))
        .collect();
    let options =
        CrossRunOptions { same, baseline: args.baseline.clone(), only: args.only.clone() };
    let compared = compare(runs, &options);
    if compared.rows.is_empty() {
        let only = args.only.clone().unwrap_or_default();
        return Err(Failure::Usage(format!("no experiment and no arm has {only:?} in its name")));
    }
    if let Some(name) = &args.baseline
        && !compared.rows.iter().any(|r| r.arm == *name)
    {
        let arms: Vec<&str> = compared.rows.iter().map(|r| r.arm.as_str()).collect();
        return Err(Failure::Usage(format!(
            "no arm is called {name:?}; there are: {}",
            arms.join(", ")
        )));
    }
    if let Some(path) = &args.html {
        NewFile::create(path)?.finish_with(compared_html(&compared).as_bytes())?;
        let rows = counted(compared.rows.len() as u64, "row");
        say_done(&format!("compared {rows}"), path, started.elapsed().as_secs_f64());
    }
    let mut out = output();
    if args.json {
        for row in &compared.rows {
            writeln!(out, "{}", row.line(&compared.runs))?;
        }
    } else {
        write!(out, "{}", compared_text(&compared, width()))?;
    }
    out.flush()?;
    args.fail_if.as_ref().map_or(Ok(()), |condition| judge(&compared, condition))
}

/// Names runs by their paths where two files have the same name.
fn name_uniquely(runs: &mut [ResultRun], paths: &[PathBuf]) {
    let names: Vec<String> = runs.iter().map(|r| r.name.clone()).collect();
    for (run, path) in runs.iter_mut().zip(paths) {
        if names.iter().filter(|n| **n == run.name).count() > 1 {
            run.name = urls::shown_path(path);
        }
    }
}

/// Fails if the condition holds for any row, or cannot be decided for any.
fn judge(compared: &Compared, condition: &ResultCondition) -> VerbResult {
    let mut held: Vec<String> = Vec::new();
    let mut unknown: Vec<String> = Vec::new();
    let mut decided = 0;
    for row in &compared.rows {
        for against in &row.against {
            let name = format!("{}, {}", row.experiment, row.arm);
            match condition.check(row, against, compared.base(row, against)) {
                ConditionVerdict::Holds => held.push(match against.ratio {
                    Some(ratio) => format!("{name} ({ratio})"),
                    None => name,
                }),
                ConditionVerdict::Unknown => unknown.push(name),
                ConditionVerdict::DoesNot => decided += 1,
            }
        }
    }
    for name in &unknown {
        complain(&format!(
            "{name}: {condition:?} cannot be told",
            condition = condition.to_string()
        ));
    }
    if !held.is_empty() {
        return Err(Failure::FellShort(format!("{condition}: {}", held.join("; "))));
    }
    if decided == 0 {
        return Err(Failure::FellShort(format!("{condition}: there was no row by which to tell")));
    }
    Ok(())
}
