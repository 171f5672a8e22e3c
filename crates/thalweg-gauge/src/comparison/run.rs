//! Runs the trials of a comparison in turn, and writes each down before the next one starts.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::record::{FilePlace, PROBE_SCHEMA, SESSION_SCHEMA};
use super::{Arm, CONTROL_SUFFIX, Clock, Comparison, Needs, Plan, ProbeRecord, Progress, Session, TRIAL_SCHEMA, Trial};
use super::{summarise, summary};
use crate::cache::EvictOptions;
use crate::level::{Judgement, Level, judge, prepare};
use crate::limit::{Probe, probe};
use crate::schedule::abba;
use crate::trial::{self, Outcome};
use crate::{Error, Result, host};

/// Runs `plan`. Each line goes to `out` as soon as it is known. When `stop` becomes true the running trial is killed and
/// what has finished is summarised, without a finding.
///
/// An arm that fails is out, and the others go on. Differing digests end the comparison as refused.
///
/// # Errors
/// When the plan makes no sense, a file can't be read, or `out` can't be written.
pub fn run(
    plan: &Plan,
    out: &mut dyn Write,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison> {
    let session = session(plan)?;
    let mut running = Running {
        evict: plan.evict,
        total: session.arms.len() * (plan.rounds + 1),
        done: 0,
        failed: vec![false; session.arms.len()],
        trials: Vec::new(),
        session,
        out,
        stop,
        progress,
    };
    running.line(&running.session.clone())?;
    let mut probes = Vec::new();
    let ended = running.everything(plan, &mut probes);
    let Running { session, trials, out, .. } = running;
    let stopped = match ended {
        Ok(()) => false,
        Err(Error::Cancelled) => true,
        // The two values are found again by `summarise`, from the trials.
        Err(Error::Refused(_)) => false,
        Err(e) => return Err(e),
    };
    let comparison = summarise(session, trials, probes, stopped);
    // A stopped comparison has no last line: that is how a reader of the file knows.
    if !stopped {
        write_line(out, &comparison.last_line())?;
    }
    Ok(comparison)
}

struct Running<'a> {
    session: Session,
    evict: EvictOptions,
    trials: Vec<Trial>,
    /// Arms that are out.
    failed: Vec<bool>,
    done: usize,
    total: usize,
    out: &'a mut dyn Write,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Running<'_> {
    fn everything(&mut self, plan: &Plan, probes: &mut Vec<Probe>) -> Result<()> {
        // The warm-up brings programs and libraries into memory, and finds wrong digests before hours are spent.
        for arm in 0..self.session.arms.len() {
            self.trial(arm, None, arm, 0)?;
        }
        if let Some(options) = &plan.probe {
            let mut files: Vec<_> = self.session.arms.iter().filter_map(|a| a.files.first().cloned()).collect();
            files.sort();
            files.dedup();
            for file in files {
                let progress = &mut *self.progress;
                let probe = probe(&file, options, self.stop, &mut |done, total| {
                    progress(Progress::Probing { done, total });
                })?;
                let comparison = self.session.id.clone();
                self.line(&ProbeRecord { schema: PROBE_SCHEMA.into(), comparison, probe: probe.clone() })?;
                probes.push(probe);
            }
        }
        for (round, order) in abba(self.session.arms.len(), plan.rounds).into_iter().enumerate() {
            for (position, arm) in order.into_iter().enumerate() {
                for attempt in 0..=plan.retries {
                    if !self.trial(arm, Some(round), position, attempt)? {
                        break;
                    }
                }
                self.done += 1;
            }
        }
        Ok(())
    }

    /// Runs one trial and keeps it. Tells whether another attempt makes sense.
    fn trial(&mut self, index: usize, round: Option<usize>, position: usize, attempt: usize) -> Result<bool> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let arm = match self.session.arms.get(index) {
            Some(arm) if self.failed.get(index) == Some(&false) => arm.clone(),
            _ => return Ok(false),
        };
        (self.progress)(Progress::Starting { arm: &arm.name, round, done: self.done, total: self.total });
        let mut trial = Trial {
            schema: TRIAL_SCHEMA.into(),
            comparison: self.session.id.clone(),
            arm: arm.name.clone(),
            round,
            position,
            attempt,
            started_unix_s: unix_now(),
            command: arm.command().command_line(),
            // The warm-up is not about the file's caches.
            level_asked: if round.is_some() { arm.level } else { Level::Lukewarm },
            level: None,
            rejected: None,
            failed: None,
            time_s: None,
            needed_bytes: None,
            prepared: None,
            outcome: None,
        };
        match fill(&mut trial, &arm, self.session.clock, self.evict, self.stop) {
            Ok(()) => {}
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(e) => {
                trial.failed = Some(e.to_string());
                if let Some(failed) = self.failed.get_mut(index) {
                    *failed = true;
                }
            }
        }
        let again = trial.rejected.is_some() && trial.failed.is_none();
        self.line(&trial)?;
        (self.progress)(Progress::Finished(&trial));
        if round.is_none() {
            self.done += 1;
        }
        self.trials.push(trial);
        match summary::disagreement(&self.session.arms, &self.trials) {
            Some(why) => Err(Error::Refused(why)),
            None => Ok(again),
        }
    }

    fn line(&mut self, record: &impl Serialize) -> Result<()> {
        write_line(self.out, record)
    }
}

fn write_line(out: &mut dyn Write, record: &impl Serialize) -> Result<()> {
    let io = |e: std::io::Error| Error::io("results", "writing", e);
    let mut line = serde_json::to_vec(record).map_err(|e| io(e.into()))?;
    line.push(b'\n');
    // One write, so that a line is never half there because something else failed in between.
    out.write_all(&line).and_then(|()| out.flush()).map_err(io)
}

/// Prepares the caches, runs the workload, judges it.
fn fill(trial: &mut Trial, arm: &Arm, clock: Clock, evict: EvictOptions, stop: &AtomicBool) -> Result<()> {
    for command in &arm.prepare {
        trial::run(command, stop)?;
    }
    let prepared = prepare(trial.level_asked, &arm.files, evict)?;
    trial.rejected.clone_from(&prepared.objection);
    trial.started_unix_s = unix_now();
    if prepared.objection.is_some() {
        trial.prepared = Some(prepared);
        return Ok(()); // it could only be rejected
    }
    let prepared = trial.prepared.insert(prepared);
    let outcome = trial::run(&arm.command(), stop)?;
    let outcome = trial.outcome.insert(outcome);
    check_report(arm, outcome)?;
    trial.needed_bytes = needed(arm, outcome)?;
    trial.time_s = match clock {
        Clock::Wall => Some(outcome.usage.wall_s),
        Clock::TimeToSamples => outcome.report.as_ref().and_then(|r| r.open_to_last_s),
    };
    match judge(trial.level_asked, prepared, outcome.usage.device_read_bytes, trial.needed_bytes) {
        Judgement::Reached(level) => trial.level = Some(level),
        Judgement::Rejected(why) => trial.rejected = Some(why),
    }
    Ok(())
}

fn needed(arm: &Arm, outcome: &Outcome) -> Result<Option<u64>> {
    let reported = outcome.report.as_ref().and_then(|r| r.needed_bytes);
    Ok(match arm.needs {
        Needs::Bytes(bytes) => Some(bytes),
        Needs::Reported => reported,
        // What an arm says of itself must not lower what the suite says.
        Needs::WholeFiles => Some(total_bytes(arm)?),
    })
}

fn total_bytes(arm: &Arm) -> Result<u64> {
    arm.files
        .iter()
        .try_fold(0, |sum, f| Ok(sum + std::fs::metadata(f).map_err(|e| Error::io(f, "looking up", e))?.len()))
}

fn check_report(arm: &Arm, outcome: &Outcome) -> Result<()> {
    let wrong = |what: String| Error::Report { command: arm.command().command_line(), what };
    let report = outcome.report.as_ref();
    if let Some(t) = report.and_then(|r| r.open_to_last_s) {
        // Clocks tick alike on one machine, so a part can't take longer than the whole.
        if !(t > 0.0 && t <= outcome.usage.wall_s) {
            let wall = outcome.usage.wall_s;
            return Err(wrong(format!("says open_to_last_s = {t}, but the whole process took {wall} s")));
        }
    } else if arm.decoder {
        return Err(wrong("has no open_to_last_s (a number, in the last line of JSON on standard output)".into()));
    }
    if arm.decoder && report.is_none_or(|r| r.digest.as_deref().unwrap_or_default().is_empty()) {
        return Err(wrong("has no digest".into()));
    }
    Ok(())
}

fn unix_now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn session(plan: &Plan) -> Result<Session> {
    let usage = |what: String| Err(Error::Usage(what));
    let mut arms = plan.arms.clone();
    let mut control = None;
    match arms.first() {
        None => return usage("a comparison needs at least one arm".into()),
        Some(baseline) if plan.control => {
            control = Some(arms.len());
            let name = format!("{}{CONTROL_SUFFIX}", baseline.name);
            arms.push(Arm { name, ..baseline.clone() });
        }
        Some(_) => {}
    }
    if plan.rounds == 0 {
        return usage("a comparison needs at least one round".into());
    }
    let mut names = BTreeMap::new();
    for arm in &arms {
        if names.insert(arm.name.as_str(), ()).is_some() {
            return usage(format!("two arms are called {:?}", arm.name));
        }
    }
    let mut files: Vec<_> = arms.iter().flat_map(|a| a.files.iter()).collect();
    files.sort();
    files.dedup();
    if let Some(file) = files.iter().find(|f| f.to_str().is_none()) {
        return usage(format!("{}: JSON results need file names in UTF-8", file.display()));
    }
    let places = files
        .into_iter()
        .map(|f| {
            let bytes = std::fs::metadata(f).map_err(|e| Error::io(f, "looking up", e))?.len();
            Ok(FilePlace { file: f.display().to_string(), bytes, place: host::place(f) })
        })
        .collect::<Result<_>>()?;
    let started_unix_s = unix_now();
    Ok(Session {
        schema: SESSION_SCHEMA.into(),
        // Unique enough on one machine: a process can't start two comparisons within a microsecond.
        id: format!("{}-{:.6}-{}", plan.name, started_unix_s, std::process::id()),
        name: plan.name.clone(),
        suite: plan.suite.clone(),
        gauge_version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s,
        host: host::host(),
        places,
        clock: if arms.iter().all(|a| a.decoder) { Clock::TimeToSamples } else { Clock::Wall },
        arms,
        control,
        rounds: plan.rounds,
    })
}
