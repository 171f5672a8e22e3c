//! Runs the comparisons of a suite one after the other, and continues an interrupted run.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thalweg_gauge::comparison::{
    Comparison, ComparisonPlan, ComparisonProgress, Earlier, run as compare, summarise,
};
use thalweg_gauge::report::{machine, markdown, text};
use thalweg_gauge::suite::ComparisonJob;
use thalweg_gauge::trial;

use super::PlannedSuite;
use super::files::{io, make};
use super::outputs::Outputs;
use super::remaining::{Display, RemainingWork};
use crate::common::{Failure, VerbResult, complain, output};
use crate::signals::flag_on_signal;
use crate::terminal::width;

pub(super) fn run(
    work: PlannedSuite,
    mut lines: Box<dyn Write>,
    earlier: Vec<Earlier>,
    outputs: &Outputs,
    as_markdown: bool,
) -> VerbResult {
    // The first Ctrl-C ends the measurement and still writes the report.
    let stop = flag_on_signal();
    let started = Instant::now();
    let mut jobs = work.jobs;
    report_absent(&jobs);
    jobs.retain(|job| !job.plan.arms.is_empty());
    if jobs.is_empty() {
        return Err(Failure::Said("nothing of this suite can run here".into()));
    }
    for job in &mut jobs {
        // The latest comparison of this name is the one that may have been interrupted.
        job.plan.resume = earlier.iter().rev().find(|e| e.session.name == job.plan.name).cloned();
    }
    for needed in jobs.iter().filter(|job| !is_finished(job)).flat_map(|job| &job.needed) {
        make(needed, &stop)?;
    }
    let display = Display::new(RemainingWork::new(jobs.iter().map(|job| job.guess)));
    let mut session = SuiteRun {
        started,
        budget: work.budget,
        stop: &stop,
        lines: &mut *lines,
        outputs,
        as_markdown,
        display,
        done: Vec::new(),
    };
    let mut unbegun: Vec<&str> = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        if !session.job(number, job)? {
            unbegun.push(&job.plan.name);
        }
    }
    session.display.end();
    if !unbegun.is_empty() {
        complain(&format!(
            "the time was over before these began (--resume goes on with them): {}",
            unbegun.join("; ")
        ));
    }
    finish(&session.done, outputs, as_markdown, stop.load(Ordering::SeqCst))
}

/// Whether an earlier run finished this comparison.
fn is_finished(job: &ComparisonJob) -> bool {
    job.plan.resume.as_ref().is_some_and(|e| e.ended.is_some())
}

/// The comparisons of a suite while they run.
struct SuiteRun<'a> {
    started: Instant,
    budget: Option<Duration>,
    stop: &'a AtomicBool,
    lines: &'a mut dyn Write,
    outputs: &'a Outputs,
    as_markdown: bool,
    display: Display,
    done: Vec<Comparison>,
}

impl SuiteRun<'_> {
    /// Runs job `number`, or takes over its earlier results. False if the budget is spent.
    fn job(&mut self, number: usize, job: &ComparisonJob) -> Result<bool, Failure> {
        if let Some(earlier) = job.plan.resume.as_ref().filter(|_| is_finished(job)) {
            self.display.over(number);
            self.done.push(summarise(earlier.clone()));
            return Ok(true);
        }
        let Some(plan) = self.within_budget(number, &job.plan) else { return Ok(false) };
        let ended = with_setup_and_cleanup(job, self.stop, || {
            let mut on_progress = |progress: ComparisonProgress<'_>| {
                self.display.show(number, &plan.name, &progress);
            };
            Ok(compare(&plan, &mut self.lines, self.stop, &mut on_progress)?)
        });
        self.display.over(number);
        let comparison = match ended {
            Ok(comparison) => comparison,
            Err(failure) => {
                self.display.end();
                return Err(failure);
            }
        };
        let report =
            if self.as_markdown { markdown(&comparison) } else { text(&comparison, width()) };
        self.display.aside(|| -> VerbResult {
            let mut out = output();
            writeln!(out, "{report}")?;
            Ok(out.flush()?)
        })?;
        self.done.push(comparison);
        self.outputs.report(&self.done)?;
        Ok(true)
    }

    /// The plan with its share of the remaining time; `None` if no time remains.
    fn within_budget(&self, number: usize, plan: &ComparisonPlan) -> Option<ComparisonPlan> {
        let mut plan = plan.clone();
        if let Some(budget) = self.budget {
            let remaining = budget.checked_sub(self.started.elapsed())?;
            // The remaining time is divided in proportion to the expected duration of each
            // comparison. The time for preparation is taken from all comparisons that follow.
            let share = share(&self.display.remaining, number).clamp(0.0, 1.0);
            let own = remaining.mul_f64(share);
            plan.reserve = remaining - own;
            plan.budget = Some(plan.budget.map_or(own, |b| b.min(own)));
        }
        Some(plan)
    }
}

fn report_absent(jobs: &[ComparisonJob]) {
    let mut said: Vec<&str> = Vec::new();
    for job in jobs {
        for absent in &job.absent {
            if !said.contains(&absent.as_str()) {
                complain(&format!("{absent}; it is left out"));
                said.push(absent);
            }
        }
    }
}

/// The share of job `number` in the work of this job and the later ones.
fn share(remaining: &RemainingWork, number: usize) -> f64 {
    let own = remaining.seconds(number) - remaining.seconds(number + 1);
    let all = remaining.seconds(number);
    if all > 0.0 { own / all } else { 1.0 }
}

/// Runs the setup commands of a job, its trials and, whatever their result, its clean-up commands.
fn with_setup_and_cleanup(
    job: &ComparisonJob,
    stop: &AtomicBool,
    trials: impl FnOnce() -> Result<Comparison, Failure>,
) -> Result<Comparison, Failure> {
    for folder in &job.folders {
        std::fs::create_dir_all(folder).map_err(|e| io(folder, "creating", e))?;
    }
    let setup: VerbResult = job.setup.iter().try_for_each(|command| {
        trial::run(command, stop)?;
        Ok(())
    });
    let ended = setup.and_then(|()| trials());
    for command in &job.cleanup {
        // The clean-up runs after Ctrl-C, too, so it gets no stop flag; a time limit ends it.
        let mut command = command.clone();
        command.timeout_s = Some(CLEANUP.as_secs_f64());
        if let Err(error) = trial::run(&command, &AtomicBool::new(false)) {
            complain(&format!("cleaning up after {:?}: {error}", job.plan.name));
        }
    }
    ended
}

/// The time limit of a clean-up command.
const CLEANUP: Duration = Duration::from_secs(60);

fn finish(done: &[Comparison], outputs: &Outputs, as_markdown: bool, stopped: bool) -> VerbResult {
    // The report is written here, too, for runs without a remaining comparison.
    outputs.report(done)?;
    let mut out = output();
    if !as_markdown {
        if let Some(last) = done.last() {
            writeln!(out, "{}", machine(last, width()))?;
        }
        writeln!(out, "{}", outputs.in_words())?;
    }
    out.flush()?;
    if stopped {
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
