//! Runs the trials of a comparison one after the other, and writes each to the results before the
//! next one starts.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use serde::Serialize;
use thalweg_io::urls::url;

use super::flags::{CLOCK_STEP_S, LEAST};
use super::record::{PROBE_SCHEMA, RESUMED_SCHEMA};
use super::session::{same, session};
use super::{
    Arm, Clock, Comparison, ComparisonPlan, ComparisonProgress, Earlier, EndReason, Needs,
    ProbeRecord, Resumed, TRIAL_SCHEMA, Trial, counterfactual, state, summarise, summary,
};
use crate::cache::{self, EvictOptions, ReadTwice};
use crate::cache_level::{CacheLevel, Judgement, is_most_of, judge, prepare};
use crate::limit::probe;
use crate::trial::{self, Outcome};
use crate::units::unix_s;
use crate::verdict::OmittedStage;
use crate::workload::Workload;
use crate::{Error, Result};

/// Runs `plan`, or continues an earlier run of it. Each line of the results is written to `out` at
/// once. When `stop` becomes true, the running trial is killed and the finished ones are summarised
/// as of the last planned look that was reached.
///
/// An arm that fails is removed, and the others continue, unless the plan ends at a failure.
/// Different digests end the comparison as refused.
///
/// # Errors
/// [`Error::Usage`] for an inconsistent plan, the failure that a plan ends at,
/// [`Error::Resume`] if the earlier run had another plan, and every failure to read a file or to
/// write `out`.
pub fn run(
    plan: &ComparisonPlan,
    out: &mut dyn Write,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ComparisonProgress<'_>),
) -> Result<Comparison> {
    let session = session(plan)?;
    let kept = match &plan.resume {
        Some(earlier) => {
            same(&earlier.session, &session)?;
            earlier.clone()
        }
        None => Earlier {
            session,
            trials: Vec::new(),
            probes: Vec::new(),
            resumed: Vec::new(),
            ended: None,
        },
    };
    if kept.ended.is_some() {
        return Ok(summarise(kept));
    }
    let extra = counterfactual::arms(&kept.session, plan).len() * counterfactual::TRIALS;
    let total = kept.session.arms.len() * (kept.session.rounds + 1) + extra;
    let mut running =
        Running { plan, kept, done: 0, total, started: Instant::now(), out, stop, progress };
    let ended = match running.everything() {
        Ok(ended) => ended,
        Err(Error::Cancelled) => EndReason::Stopped,
        // `summarise` finds the difference again in the trials.
        Err(Error::Refused(_)) => EndReason::Refused,
        Err(e) => return Err(e),
    };
    let Running { kept, out, .. } = running;
    let comparison = summarise(Earlier { ended: Some(ended), ..kept });
    // A stopped comparison gets no last line. The missing line tells a reader of the file that the
    // comparison can be resumed.
    if !comparison.stopped() {
        write_line(out, &comparison.last_line())?;
    }
    Ok(comparison)
}

struct Running<'a> {
    plan: &'a ComparisonPlan,
    kept: Earlier,
    done: usize,
    total: usize,
    started: Instant,
    out: &'a mut dyn Write,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(ComparisonProgress<'_>),
}

impl Running<'_> {
    fn everything(&mut self) -> Result<EndReason> {
        let arms = self.kept.session.arms.len();
        let rounds = self.kept.session.rounds;
        let order = self.kept.session.order;
        match self.plan.resume {
            None => write_line(self.out, &self.kept.session)?,
            Some(_) => self.say_resumed()?,
        }
        // This must precede the warm-up, which reads the files into the caches.
        let twice = self.read_twice()?;
        // The warm-up loads programs and libraries into memory, and detects different digests
        // before the long run.
        let warm_up = self.started.elapsed();
        for index in 0..arms {
            self.turn(&self.arm(index)?, None, None, index)?;
        }
        // The first round is expected to take as long as the warm-up.
        let mut longest = self.started.elapsed() - warm_up;
        self.probe(twice)?;
        for round in 0..counterfactual::TRIALS {
            for (position, (role, arm)) in
                counterfactual::arms(&self.kept.session, self.plan).into_iter().enumerate()
            {
                self.turn(&arm, Some(role), Some(round), position)?;
            }
        }
        let prepared = self.started.elapsed().min(self.plan.reserve);
        for round in 0..rounds {
            let start = self.started.elapsed();
            if self.plan.budget.is_some_and(|budget| start + longest > budget + prepared) {
                return Ok(EndReason::Budget);
            }
            for (position, index) in order.round(arms, round).into_iter().enumerate() {
                self.turn(&self.arm(index)?, None, Some(round), position)?;
            }
            longest = longest.max(self.started.elapsed() - start);
            if state::narrow_enough(&self.kept.session, &self.kept.trials, round + 1) {
                return Ok(EndReason::Precise);
            }
        }
        Ok(EndReason::AllRounds)
    }

    fn say_resumed(&mut self) -> Result<()> {
        let started_unix_s = unix_s(SystemTime::now());
        let last = self.kept.trials.last();
        let ended =
            |t: &Trial| t.started_unix_s + t.outcome.as_ref().map_or(0.0, |o| o.usage.wall_s);
        let resumed = Resumed {
            schema: RESUMED_SCHEMA.into(),
            comparison: self.kept.session.id.clone(),
            started_unix_s,
            round: last.and_then(|t| t.round),
            gap_s: last.map(|t| started_unix_s - ended(t)),
        };
        write_line(self.out, &resumed)?;
        self.kept.resumed.push(resumed);
        Ok(())
    }

    /// The files whose limit has not been probed yet. Objects at URLs are not probed.
    fn unprobed(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            self.kept.session.arms.iter().filter_map(|a| a.files.first().cloned()).collect();
        files.sort();
        files.dedup();
        files.retain(|file| url(file).is_none());
        files.retain(|file| self.kept.probes.iter().all(|p| p.file != file.display().to_string()));
        files
    }

    fn read_twice(&self) -> Result<BTreeMap<PathBuf, ReadTwice>> {
        let mut all = BTreeMap::new();
        if self.plan.probe.is_some() && self.kept.trials.is_empty() {
            for file in self.unprobed() {
                if let Some(twice) = cache::read_twice(&cache::largest_of(&file)?, self.stop)? {
                    all.insert(file, twice);
                }
            }
        }
        Ok(all)
    }

    fn probe(&mut self, mut twice: BTreeMap<PathBuf, ReadTwice>) -> Result<()> {
        let Some(options) = &self.plan.probe else { return Ok(()) };
        for file in self.unprobed() {
            let progress = &mut *self.progress;
            let mut probe =
                probe(&cache::largest_of(&file)?, options, self.stop, &mut |done, total| {
                    progress(ComparisonProgress::Probing { done, total });
                })?;
            // The arms name a store by its folder, and the probe reads one file of it.
            probe.file = file.display().to_string();
            probe.twice = twice.remove(&file);
            let comparison = self.kept.session.id.clone();
            write_line(
                self.out,
                &ProbeRecord { schema: PROBE_SCHEMA.into(), comparison, probe: probe.clone() },
            )?;
            self.kept.probes.push(probe);
        }
        Ok(())
    }

    /// Runs one trial, and repeats it if it is rejected. Attempts that an earlier run finished are
    /// not repeated.
    fn turn(
        &mut self,
        arm: &Arm,
        role: Option<OmittedStage>,
        round: Option<usize>,
        position: usize,
    ) -> Result<()> {
        while let Some(attempt) =
            state::next_attempt(&self.kept.session, &self.kept.trials, &arm.name, round)
        {
            self.trial(arm, role, round, (position, attempt))?;
        }
        self.done += 1;
        Ok(())
    }

    fn arm(&self, index: usize) -> Result<Arm> {
        let arm = self.kept.session.arms.get(index).cloned();
        arm.ok_or_else(|| Error::Usage(format!("there is no arm number {index}")))
    }

    /// Runs one trial and records it.
    fn trial(
        &mut self,
        arm: &Arm,
        role: Option<OmittedStage>,
        round: Option<usize>,
        (position, attempt): (usize, usize),
    ) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        (self.progress)(ComparisonProgress::Starting {
            arm: &arm.name,
            round,
            done: self.done,
            total: self.total,
        });
        let mut trial = Trial {
            schema: TRIAL_SCHEMA.into(),
            comparison: self.kept.session.id.clone(),
            arm: arm.name.clone(),
            role,
            round,
            position,
            attempt,
            started_unix_s: unix_s(SystemTime::now()),
            command: arm.command().command_line(),
            // The warm-up requires no state of the caches.
            level_asked: if round.is_some() { arm.level } else { CacheLevel::Lukewarm },
            level: None,
            rejected: None,
            failed: None,
            time_s: None,
            needed_bytes: None,
            clock_step_s: None,
            prepared: None,
            outcome: None,
        };
        // A run without a stage is timed by its own report, even if the comparison uses wall time.
        let clock = if role.is_some() { Clock::TimeToSamples } else { self.kept.session.clock };
        match fill(&mut trial, arm, clock, self.plan.evict, self.stop) {
            Ok(()) => {}
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(e) if self.plan.ends_at_failure => return Err(e),
            Err(e) => trial.failed = Some(e.to_string()),
        }
        write_line(self.out, &trial)?;
        (self.progress)(ComparisonProgress::Finished(&trial));
        self.kept.trials.push(trial);
        match summary::disagreement(&self.kept.session.arms, &self.kept.trials) {
            Some(why) => Err(Error::Refused(why)),
            None => Ok(()),
        }
    }
}

fn write_line(out: &mut dyn Write, record: &impl Serialize) -> Result<()> {
    let io = |e: std::io::Error| Error::io("results", "writing", e);
    let mut line = serde_json::to_vec(record).map_err(|e| io(e.into()))?;
    line.push(b'\n');
    // The line and its end are one write, so that no failure between two writes leaves a partial
    // line.
    out.write_all(&line).and_then(|()| out.flush()).map_err(io)
}

/// Prepares the caches, runs the workload, and judges the trial.
fn fill(
    trial: &mut Trial,
    arm: &Arm,
    clock: Clock,
    evict: EvictOptions,
    stop: &AtomicBool,
) -> Result<()> {
    for command in &arm.prepare {
        trial::run(command, stop)?;
    }
    let prepared = prepare(trial.level_asked, &arm.files, evict)?;
    trial.rejected.clone_from(&prepared.objection);
    trial.started_unix_s = unix_s(SystemTime::now());
    if prepared.objection.is_some() {
        trial.prepared = Some(prepared);
        return Ok(()); // the trial would be rejected anyway
    }
    let prepared = trial.prepared.insert(prepared);
    let before = (Instant::now(), SystemTime::now());
    let outcome = trial::run(&arm.command(), stop);
    trial.clock_step_s = clock_step_s(before, (Instant::now(), SystemTime::now()));
    let outcome = outcome?;
    let outcome = trial.outcome.insert(outcome);
    check_report(arm, outcome)?;
    trial.needed_bytes = needed(arm, outcome)?;
    trial.time_s = match clock {
        Clock::Wall => Some(outcome.usage.wall_s),
        Clock::TimeToSamples => outcome.report.as_ref().and_then(|r| r.open_to_last_s),
    };
    if let (Clock::TimeToSamples, Some(time), Some(step)) =
        (clock, trial.time_s, trial.clock_step_s)
        && step.abs() > CLOCK_STEP_S.max(LEAST * time)
    {
        // The workload may have used either clock for its report, but the time of the process comes
        // from the steady clock.
        trial.rejected = Some(format!(
            "the wall clock was set by {step:+.3} s meanwhile, so its own time can't be trusted"
        ));
        return Ok(());
    }
    match judge(trial.level_asked, prepared, outcome.usage.device_read_bytes, trial.needed_bytes) {
        Judgement::Reached(level) => trial.level = Some(level),
        Judgement::Rejected(why) => trial.rejected = Some(why),
    }
    match &arm.check {
        Some(check) => read_back(check, outcome, stop),
        None => Ok(()),
    }
}

/// Runs the command that reads the output of a trial. Its digest replaces the one in the trial's
/// report, and is compared with the digests of the other arms.
fn read_back(check: &Workload, outcome: &mut Outcome, stop: &AtomicBool) -> Result<()> {
    let found = trial::run(check, stop)?.report.filter(|found| found.digest.is_some());
    let found = found.ok_or_else(|| Error::Report {
        command: check.command_line(),
        what: "has no digest".into(),
    })?;
    let report = outcome.report.get_or_insert_default();
    (report.digest, report.reads, report.samples) = (found.digest, found.reads, found.samples);
    report.other.extend(found.bytes_stored.map(|bytes| ("bytes_written".to_owned(), bytes.into())));
    Ok(())
}

/// How many seconds more the wall clock advanced than the steady clock between two readings of
/// both.
fn clock_step_s(before: (Instant, SystemTime), after: (Instant, SystemTime)) -> Option<f64> {
    let steady = after.0.checked_duration_since(before.0)?.as_secs_f64();
    Some(unix_s(after.1) - unix_s(before.1) - steady)
}

fn needed(arm: &Arm, outcome: &Outcome) -> Result<Option<u64>> {
    let reported = outcome.report.as_ref().and_then(|r| r.needed_bytes);
    Ok(match arm.needs {
        Needs::Bytes(bytes) => Some(bytes),
        Needs::Reported => reported,
        Needs::WholeFiles if arm.files.is_empty() => None,
        // The report of an arm must not lower the number of bytes that the suite requires.
        Needs::WholeFiles => Some(total_bytes(arm)?),
        Needs::Unknown => {
            let whole = total_bytes(arm)?;
            let device = outcome.usage.device_read_bytes;
            device.filter(|&read| is_most_of(read, whole)).map(|_| whole)
        }
    })
}

fn total_bytes(arm: &Arm) -> Result<u64> {
    arm.files.iter().try_fold(0, |sum, f| Ok(sum + cache::state_of(f)?.0))
}

fn check_report(arm: &Arm, outcome: &Outcome) -> Result<()> {
    let wrong = |what: String| Error::Report { command: arm.command().command_line(), what };
    let report = outcome.report.as_ref();
    if let Some(t) = report.and_then(|r| r.open_to_last_s) {
        // All clocks of a machine run at the same rate, so a part of the process can't take longer
        // than the whole.
        if !(t > 0.0 && t <= outcome.usage.wall_s) {
            let wall = outcome.usage.wall_s;
            return Err(wrong(format!(
                "says open_to_last_s = {t}, but the whole process took {wall} s"
            )));
        }
    } else if arm.must_report {
        return Err(wrong(
            "has no open_to_last_s (a number, in the last line of JSON on standard output)".into(),
        ));
    }
    let has_values = arm.must_report && arm.values.as_deref() != Some(Arm::NO_VALUES);
    if has_values && report.is_none_or(|r| r.digest.as_deref().unwrap_or_default().is_empty()) {
        return Err(wrong("has no digest".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_unknown_need_is_known_if_all_bytes_came_from_the_device() -> Result<()> {
        let file = std::env::current_exe().map_err(|e| Error::io("test", "finding", e))?;
        let whole = cache::state_of(&file)?.0;
        let arm = Arm::new("a", ["true"], file).needs(Needs::Unknown);
        let needed = |device_read_bytes| {
            let mut outcome = Outcome::default();
            outcome.usage.device_read_bytes = device_read_bytes;
            needed(&arm, &outcome)
        };
        assert_eq!(needed(Some(whole))?, Some(whole));
        assert_eq!(needed(Some(whole / 10 * 9))?, None);
        assert_eq!(needed(None)?, None);
        Ok(())
    }

    #[test]
    fn a_clock_that_is_set_is_noticed() {
        let (steady, wall) = (Instant::now(), SystemTime::now());
        let second = Duration::from_secs(1);
        let step = |wall_after| {
            clock_step_s((steady, wall), (steady + second, wall_after)).unwrap_or(f64::NAN)
        };
        assert!(step(wall + second).abs() < 1e-5);
        assert!((step(wall + 3600 * second) - 3599.0).abs() < 1e-5);
        assert!((step(wall - 5 * second) + 6.0).abs() < 1e-5, "set back");
    }
}
