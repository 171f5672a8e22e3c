//! Runs the trials of a comparison in turn, and writes each down before the next one starts.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use serde::Serialize;

use super::record::PROBE_SCHEMA;
use super::session::{same, session, unix_s};
use super::{Arm, Clock, Comparison, Ended, Needs, Plan, ProbeRecord, Progress, Session, TRIAL_SCHEMA, Trial};
use super::{summarise, summary};
use crate::cache::EvictOptions;
use crate::level::{Judgement, Level, judge, prepare};
use crate::limit::{Probe, probe};
use crate::trial::{self, Outcome};
use crate::{Error, Result};

/// Runs `plan`, or goes on with what an earlier run of it has left. Each line goes to `out` as soon as it is known. When
/// `stop` becomes true the running trial is killed, and what has finished is summarised: what it may still claim is that
/// of the last planned look that was reached.
///
/// An arm that fails is out, and the others go on. Differing digests end the comparison as refused.
///
/// # Errors
/// When the plan makes no sense, a file can't be read, `out` can't be written, or the earlier run was another's.
pub fn run(
    plan: &Plan,
    out: &mut dyn Write,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Comparison> {
    let mut session = session(plan)?;
    let (mut trials, mut probes) = (Vec::new(), Vec::new());
    if let Some(earlier) = &plan.resume {
        same(&earlier.session, &session)?;
        let earlier = earlier.clone();
        if earlier.ended.is_some() {
            return Ok(earlier.summarise());
        }
        (session, trials, probes) = (earlier.session, earlier.trials, earlier.probes);
    } else {
        write_line(out, &session)?;
    }
    let mut running = Running {
        plan,
        done: 0,
        total: session.arms.len() * (session.rounds + 1),
        started: Instant::now(),
        trials,
        session,
        out,
        stop,
        progress,
    };
    let ended = match running.everything(&mut probes) {
        Ok(ended) => ended,
        Err(Error::Cancelled) => Ended::Stopped,
        // The two values are found again by `summarise`, from the trials.
        Err(Error::Refused(_)) => Ended::Refused,
        Err(e) => return Err(e),
    };
    let Running { session, trials, out, .. } = running;
    let comparison = summarise(session, trials, probes, ended);
    // A stopped comparison has no last line: that is how a reader of the file knows, and how it can be resumed.
    if !comparison.stopped() {
        write_line(out, &comparison.last_line())?;
    }
    Ok(comparison)
}

struct Running<'a> {
    plan: &'a Plan,
    session: Session,
    trials: Vec<Trial>,
    done: usize,
    total: usize,
    started: Instant,
    out: &'a mut dyn Write,
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Running<'_> {
    fn everything(&mut self, probes: &mut Vec<Probe>) -> Result<Ended> {
        // The warm-up brings programs and libraries into memory, and finds wrong digests before hours are spent.
        for arm in 0..self.session.arms.len() {
            self.turn(arm, None, arm)?;
        }
        // Until a round has been timed, it is expected to take as long as the warm-up did.
        let mut longest = self.started.elapsed();
        self.probe(probes)?;
        for round in 0..self.session.rounds {
            let start = self.started.elapsed();
            if self.plan.budget.is_some_and(|budget| start + longest > budget) {
                return Ok(Ended::Budget);
            }
            let order = self.session.order.round(self.session.arms.len(), round);
            for (position, arm) in order.into_iter().enumerate() {
                self.turn(arm, Some(round), position)?;
            }
            longest = longest.max(self.started.elapsed() - start);
            if summary::narrow_enough(&self.session, &self.trials, round + 1) {
                return Ok(Ended::Precise);
            }
        }
        Ok(Ended::AllRounds)
    }

    fn probe(&mut self, probes: &mut Vec<Probe>) -> Result<()> {
        let Some(options) = &self.plan.probe else { return Ok(()) };
        let mut files: Vec<_> = self.session.arms.iter().filter_map(|a| a.files.first().cloned()).collect();
        files.sort();
        files.dedup();
        files.retain(|file| probes.iter().all(|p| p.file != file.display().to_string()));
        for file in files {
            let progress = &mut *self.progress;
            let probe = probe(&file, options, self.stop, &mut |done, total| {
                progress(Progress::Probing { done, total });
            })?;
            let comparison = self.session.id.clone();
            self.line(&ProbeRecord { schema: PROBE_SCHEMA.into(), comparison, probe: probe.clone() })?;
            probes.push(probe);
        }
        Ok(())
    }

    /// Runs one trial, again if it is rejected; whatever of it an earlier run has finished is not run twice.
    fn turn(&mut self, index: usize, round: Option<usize>, position: usize) -> Result<()> {
        if let Some(arm) = self.session.arms.get(index).cloned() {
            while let Some(attempt) = summary::next_attempt(&self.session, &self.trials, &arm.name, round) {
                self.trial(&arm, round, position, attempt)?;
            }
        }
        self.done += 1;
        Ok(())
    }

    /// Runs one trial and keeps it.
    fn trial(&mut self, arm: &Arm, round: Option<usize>, position: usize, attempt: usize) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        (self.progress)(Progress::Starting { arm: &arm.name, round, done: self.done, total: self.total });
        let mut trial = Trial {
            schema: TRIAL_SCHEMA.into(),
            comparison: self.session.id.clone(),
            arm: arm.name.clone(),
            round,
            position,
            attempt,
            started_unix_s: unix_s(SystemTime::now()),
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
        match fill(&mut trial, arm, self.session.clock, self.plan.evict, self.stop) {
            Ok(()) => {}
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(e) => trial.failed = Some(e.to_string()),
        }
        self.line(&trial)?;
        (self.progress)(Progress::Finished(&trial));
        self.trials.push(trial);
        match summary::disagreement(&self.session.arms, &self.trials) {
            Some(why) => Err(Error::Refused(why)),
            None => Ok(()),
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
    trial.started_unix_s = unix_s(SystemTime::now());
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
