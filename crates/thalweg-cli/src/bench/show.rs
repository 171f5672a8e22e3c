//! Lists suites, comparisons and the plan of a run.

use std::io::Write;

use thalweg_gauge::comparison::PairCount;
use thalweg_gauge::report::wrapped;
use thalweg_gauge::suite::{ComparisonJob, FileOrigin, Suite};
use thalweg_gauge::units::decimal_bytes;
use thalweg_gauge::workload::Workload;

use super::remaining::in_words;
use super::shipped::SHIPPED;
use crate::common::{VerbResult, output, shown_path};
use crate::synth::SyntheticFiles;
use crate::terminal::width;

/// The width of the names of the suites inside the program.
const NAMES: usize = 10;

/// Prints the suites inside the program.
pub(super) fn shipped() -> VerbResult {
    let mut out = output();
    for (name, text) in SHIPPED {
        let suite = Suite::parse(&format!("{name}.toml"), text, &SyntheticFiles)?;
        let line = format!("{name:<NAMES$} {}", suite.about());
        write!(out, "{}", wrapped(&line, 0, NAMES + 1, width()))?;
    }
    Ok(out.flush()?)
}

/// Prints the comparisons of a suite, one per line.
pub(super) fn comparisons(jobs: &[ComparisonJob]) -> VerbResult {
    let mut out = output();
    for job in jobs {
        let arms = job.plan.arms.iter().map(|arm| arm.name.clone());
        let absent = job.absent.iter().map(|absent| format!("(left out: {absent})"));
        let arms = arms.chain(absent).collect::<Vec<_>>().join("; ");
        write!(out, "{}", wrapped(&format!("{}: {arms}", job.plan.name), 0, 2, width()))?;
    }
    Ok(out.flush()?)
}

/// Prints everything that would run, and about how long it takes.
pub(super) fn plan(suite: &Suite, jobs: &[ComparisonJob]) -> VerbResult {
    let mut out = output();
    let seconds: f64 = jobs.iter().map(|job| job.guess.total().as_secs_f64()).sum();
    let trials: usize = jobs.iter().map(|job| job.guess.trials).sum();
    writeln!(out, "{}: {}", suite.name(), suite.about())?;
    writeln!(
        out,
        "at most {trials} trials, about {} (guessed from the sizes of the files; it is measured \
         once trials have run)\n",
        in_words(seconds)
    )?;
    let mut seen = Vec::new();
    for needed in jobs.iter().flat_map(|job| &job.needed) {
        if seen.contains(&needed) {
            continue;
        }
        seen.push(needed);
        let size = needed.about_bytes().map_or("size unknown".into(), |b| decimal_bytes(b as f64));
        let how = match &needed.make {
            _ if needed.path.exists() => "there",
            FileOrigin::Given => "given",
            FileOrigin::Synth(_) => "to be synthesised",
            FileOrigin::Ids { .. } => "to be listed",
            FileOrigin::Command { .. } => "to be made",
        };
        writeln!(out, "file {}: {how}, {size}", shown_path(&needed.path))?;
        if let FileOrigin::Command { workload, .. } = &needed.make {
            writeln!(out, "  made by: {}", in_shell(workload))?;
        }
    }
    for job in jobs {
        let pairs = match job.plan.pairs {
            PairCount::Fixed(n) => format!("{n} pairs"),
            PairCount::Auto { least, most, half_width } => {
                format!("{least} to {most} pairs, until +-{} % are reached", half_width * 100.0)
            }
        };
        writeln!(out, "\n{} ({pairs})", job.plan.name)?;
        for arm in &job.plan.arms {
            let command = arm.command();
            let cpus =
                arm.workload.cpus.as_ref().map(|c| format!(", CPUs {c:?}")).unwrap_or_default();
            writeln!(out, "  {} ({}{cpus}): {}", arm.name, arm.level, in_shell(&command))?;
            for before in &arm.prepare {
                writeln!(out, "    before each trial: {}", in_shell(before))?;
            }
            if let Some(check) = &arm.check {
                writeln!(out, "    after each trial: {}", in_shell(check))?;
            }
        }
        for (when, commands) in [("before the first", &job.setup), ("after the last", &job.cleanup)]
        {
            for command in commands {
                writeln!(out, "  {when}: {}", in_shell(command))?;
            }
        }
        for absent in &job.absent {
            writeln!(out, "  left out: {absent}")?;
        }
    }
    Ok(out.flush()?)
}

/// A command with the variables that it runs with.
fn in_shell(workload: &Workload) -> String {
    let variables: String =
        workload.env.iter().map(|(name, value)| format!("{name}={value:?} ")).collect();
    variables + &workload.command_line()
}
