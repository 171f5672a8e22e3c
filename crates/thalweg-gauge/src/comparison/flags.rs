//! Flags: facts that a reader should know before trusting a ratio. A flag never removes a trial.

use std::fmt;

use serde::Serialize;

use super::{Arm, Resumed, Session, Trial, state};
use crate::stats::median;
use crate::stats::trend::{outliers, trend};
use crate::trial::MachineLoad;
use crate::units::{digits, seconds};

/// An anomaly of a comparison. Rounds count from 0, as in the trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "flag", rename_all = "snake_case")]
pub enum Flag {
    /// The times of the baseline rose or fell. Pairs cancel this drift.
    BaselineDrift {
        /// Time at the end over time at the start.
        factor: f64,
    },
    /// The ratio itself rose or fell, so that one figure does not describe it.
    RatioDrift {
        /// Name of the arm.
        arm: String,
        /// The ratio at the end over that at the start.
        factor: f64,
    },
    /// Trials whose times are far from the arm's other times. They still count.
    Outliers {
        /// Name of the arm.
        arm: String,
        /// Their rounds.
        rounds: Vec<usize>,
        /// The time of the farthest trial over the arm's median.
        farthest: f64,
    },
    /// The baseline and its control, which run identical commands, differ significantly.
    IdenticalArmsDiffer,
    /// The wall clock was set while a trial ran, or the machine slept.
    ClockStep {
        /// Name of the arm.
        arm: String,
        /// Its round; none for a warm-up.
        round: Option<usize>,
        /// How far the clock went forward, in seconds.
        step_s: f64,
    },
    /// The hypervisor took CPU time away.
    Stolen {
        /// Share of the machine's CPU time during all trials.
        share: f64,
        /// The largest share in a trial, as far as the system's ticks can tell.
        worst: f64,
    },
    /// Others used the CPUs.
    OthersBusy {
        /// Share of the machine's CPU time during all trials.
        share: f64,
        /// The largest share in a trial, as far as the system's ticks can tell.
        worst: f64,
    },
    /// In some trials tasks waited far longer than in the arm's other trials (PSI).
    Pressure {
        /// Name of the arm.
        arm: String,
        /// What they waited for: "cpu" or "io".
        resource: String,
        /// Rounds of these trials.
        rounds: Vec<usize>,
        /// The longest share of a trial in which some task waited.
        worst: f64,
        /// The median share of the arm's trials.
        usual: f64,
    },
    /// The run was stopped and resumed. The pair of that round may span the gap.
    Interrupted {
        /// The round of the last trial before the gap; `None` for a warm-up.
        round: Option<usize>,
        /// The length of the gap, in seconds by the wall clock; `None` if nothing had run before.
        gap_s: Option<f64>,
    },
}

/// Smaller differences than 1 % are not reported.
pub(super) const LEAST: f64 = 0.01;

/// CPU time that others use, or that the hypervisor takes, is reported from these shares of the
/// machine's CPU time on.
const OTHERS: f64 = 0.05;
const STOLEN: f64 = 0.01;

/// The system counts CPU time in ticks of 10 ms: two of them may be rounding.
const TICKS_S: f64 = 0.02;

/// A trial is flagged if its tasks waited for this much more of its time than usual.
const PRESSURE: f64 = 0.25;

/// A smaller difference between two clocks may come from a pause between their readings. (NTP steps
/// a clock that is off by more than 128 ms, and otherwise slews both clocks alike.)
pub(super) const CLOCK_STEP_S: f64 = 0.05;

/// The flags of the trials of the first `rounds` rounds, and of the whole run.
pub(super) fn flags(
    session: &Session,
    trials: &[Trial],
    resumed: &[Resumed],
    rounds: usize,
) -> Vec<Flag> {
    let mut flags: Vec<Flag> =
        resumed.iter().map(|r| Flag::Interrupted { round: r.round, gap_s: r.gap_s }).collect();
    let counted = |arm: &Arm| -> Vec<(usize, &Trial, f64)> {
        let round = |t: &Trial| t.round.filter(|&round| round < rounds && t.arm == arm.name);
        let mut own: Vec<_> =
            trials.iter().filter_map(|t| Some((round(t)?, t, t.counted_time_s()?))).collect();
        own.sort_by_key(|&(round, ..)| round);
        own
    };
    let drift = |series: &[(usize, f64)]| {
        let (at, logs): (Vec<_>, Vec<_>) =
            series.iter().map(|&(round, x)| (round as f64, x.ln())).unzip();
        trend(&at, &logs).map(|t| t.change).filter(|change| change.abs() > LEAST).map(f64::exp)
    };
    for (i, arm) in session.arms.iter().enumerate() {
        let own = counted(arm);
        if i == 0 {
            let times: Vec<_> = own.iter().map(|&(round, _, time)| (round, time)).collect();
            flags.extend(drift(&times).map(|factor| Flag::BaselineDrift { factor }));
        } else if let Some(baseline) = session.arms.first() {
            let pairs = state::pairs(trials, &arm.name, &baseline.name);
            let ratios: Vec<_> = pairs
                .iter()
                .filter(|p| p.round < rounds)
                .map(|p| (p.round, p.arm_s / p.baseline_s))
                .collect();
            let arm = arm.name.clone();
            flags.extend(drift(&ratios).map(|factor| Flag::RatioDrift { arm, factor }));
        }
        flags.extend(outlying(arm, &own));
        flags.extend(["cpu", "io"].iter().filter_map(|resource| pressed(arm, &own, resource)));
    }
    flags.extend(trials.iter().filter_map(stepped));
    let cpus = session.host.cpus_online.unwrap_or(1) as f64;
    let of = |f: fn(&MachineLoad) -> Option<f64>, least| busy(trials, cpus, f, least);
    flags
        .extend(of(|l| l.stolen_cpu_s, STOLEN).map(|(share, worst)| Flag::Stolen { share, worst }));
    flags.extend(
        of(|l| l.other_cpu_s, OTHERS).map(|(share, worst)| Flag::OthersBusy { share, worst }),
    );
    flags
}

fn outlying(arm: &Arm, own: &[(usize, &Trial, f64)]) -> Option<Flag> {
    let logs: Vec<f64> = own.iter().map(|(.., time)| time.ln()).collect();
    let middle = median(&logs)?;
    let far: Vec<(usize, f64)> = outliers(&logs, LEAST)
        .into_iter()
        .filter_map(|i| Some((own.get(i)?.0, *logs.get(i)?)))
        .collect();
    let farthest =
        far.iter().map(|(_, log)| log - middle).max_by(|a, b| a.abs().total_cmp(&b.abs()))?.exp();
    Some(Flag::Outliers {
        arm: arm.name.clone(),
        rounds: far.iter().map(|&(round, _)| round).collect(),
        farthest,
    })
}

fn pressed(arm: &Arm, own: &[(usize, &Trial, f64)], resource: &str) -> Option<Flag> {
    let share = |t: &Trial| {
        let load = &t.outcome.as_ref()?.load;
        if resource == "cpu" { load.cpu_pressure } else { load.io_pressure }
    };
    let shares: Vec<(usize, f64)> =
        own.iter().filter_map(|&(round, t, _)| Some((round, share(t)?))).collect();
    let usual = median(&shares.iter().map(|&(_, share)| share).collect::<Vec<_>>())?;
    let pressed: Vec<_> =
        shares.into_iter().filter(|&(_, share)| share > usual + PRESSURE).collect();
    let worst = pressed.iter().map(|&(_, share)| share).max_by(f64::total_cmp)?;
    let rounds = pressed.iter().map(|&(round, _)| round).collect();
    Some(Flag::Pressure { arm: arm.name.clone(), resource: resource.into(), rounds, worst, usual })
}

fn stepped(trial: &Trial) -> Option<Flag> {
    let step_s = trial.clock_step_s.filter(|step| step.abs() > CLOCK_STEP_S)?;
    Some(Flag::ClockStep { arm: trial.arm.clone(), round: trial.round, step_s })
}

/// CPU seconds that did not go to the trials: their share of all trials, and of the worst one, if
/// it is at least `least`.
fn busy(
    trials: &[Trial],
    cpus: f64,
    seconds: fn(&MachineLoad) -> Option<f64>,
    least: f64,
) -> Option<(f64, f64)> {
    let outcomes = trials.iter().filter(|t| t.round.is_some()).filter_map(|t| t.outcome.as_ref());
    let known: Vec<(f64, f64)> =
        outcomes.filter_map(|o| Some((seconds(&o.load)?, o.usage.wall_s * cpus))).collect();
    let (lost, all) = known.iter().fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
    let share =
        |lost: f64, all: f64| if lost > TICKS_S && all > 0.0 { (lost / all).min(1.0) } else { 0.0 };
    let worst = known.iter().map(|&(lost, all)| share(lost, all)).fold(0.0, f64::max);
    let share = share(lost, all);
    (share >= least || worst >= least).then_some((share, worst))
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BaselineDrift { factor } => {
                write!(f, "drift: the baseline's times {}", change(*factor))
            }
            Self::RatioDrift { arm, factor } => {
                let change = change(*factor);
                write!(f, "drift: the ratio of {arm} {change}: no one figure describes it")
            }
            Self::Outliers { arm, rounds, farthest } => {
                let rounds = numbered(rounds);
                let far = digits(*farthest);
                write!(f, "outliers: {arm} in {rounds}, up to {far} times its median; they count")
            }
            Self::IdenticalArmsDiffer => f.write_str(IDENTICAL_ARMS_DIFFER),
            Self::ClockStep { arm, round, step_s } => {
                let direction = if *step_s < 0.0 { "back" } else { "forward" };
                let step = seconds(step_s.abs());
                let when = when(*round);
                write!(f, "clock: it was set {direction} by {step} during {arm}, {when} ")?;
                f.write_str("(or the machine slept)")
            }
            Self::Stolen { share, worst } => {
                let share = percent(*share);
                let worst = percent(*worst);
                write!(f, "the hypervisor took {share} of the machine's CPU time, up to {worst} ")?;
                f.write_str("in a trial")
            }
            Self::OthersBusy { share, worst } => {
                let share = percent(*share);
                let worst = percent(*worst);
                write!(f, "the machine was not quiet: others used {share} of its CPU time, ")?;
                write!(f, "up to {worst} in a trial")
            }
            Self::Pressure { arm, resource, rounds, worst, usual } => {
                let resource = if resource == "cpu" { "a CPU" } else { "I/O" };
                let rounds = numbered(rounds);
                let worst = percent(*worst);
                let usual = percent(*usual);
                write!(f, "pressure: {arm} in {rounds} waited for {resource} up to {worst} of ")?;
                write!(f, "its time, {usual} is usual")
            }
            Self::Interrupted { round, gap_s } => {
                let gap = gap_s.map_or(String::new(), |s| format!(" for {}", seconds(s.max(0.0))));
                let when = when(*round);
                write!(f, "interrupted{gap} after a trial of {when}; a pair of that round may ")?;
                f.write_str("span the gap")
            }
        }
    }
}

const IDENTICAL_ARMS_DIFFER: &str = "identical arms were told apart: by chance (once in twenty), \
    or because something here favours an arm for its place alone; the floor is the far end of \
    their interval";

fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

fn change(factor: f64) -> String {
    let word = if factor < 1.0 { "fell" } else { "rose" };
    format!("{word} by {} from the first round to the last", percent((factor - 1.0).abs()))
}

/// "round 3" or "rounds 3, 7": numbers from 1.
fn numbered(rounds: &[usize]) -> String {
    let list = rounds.iter().map(|r| (r + 1).to_string()).collect::<Vec<_>>().join(", ");
    format!("{} {list}", if rounds.len() == 1 { "round" } else { "rounds" })
}

fn when(round: Option<usize>) -> String {
    round.map_or("the warm-up".into(), |r| format!("round {}", r + 1))
}

#[cfg(test)]
mod tests;
