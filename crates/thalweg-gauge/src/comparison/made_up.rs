//! Comparisons with made-up times, for tests.

use super::summarise;
use super::{Arm, Clock, Comparison, ComparisonPlan, Earlier, Session, TRIAL_SCHEMA, Trial};
use crate::cache_level::CacheLevel;
use crate::host::Host;
use crate::trial::{Outcome, Usage};

/// A session of these arms with so many rounds, on a machine with four CPUs.
pub(crate) fn session(arms: &[&str], rounds: usize) -> Session {
    let arms = arms.iter().map(|name| Arm::new(*name, [*name], "f")).collect();
    let plan = ComparisonPlan::new("n", arms).rounds(rounds);
    Session {
        schema: "thalweg.session/1".into(),
        id: "s".into(),
        name: plan.name,
        suite: None,
        gauge_version: "0".into(),
        started_unix_s: 0.0,
        host: Host { cpus_online: Some(4), ..Host::default() },
        places: Vec::new(),
        programs: Vec::new(),
        arms: plan.arms,
        control: None,
        rounds,
        pairs: Some(plan.pairs),
        looks: plan.pairs.looks(),
        order: plan.order,
        retries: Some(0),
        budget_s: None,
        clock: Clock::Wall,
    }
}

/// A trial on a quiet machine.
pub(crate) fn trial(arm: &str, round: usize, time_s: f64) -> Trial {
    let usage = Usage { wall_s: time_s, ..Usage::default() };
    Trial {
        schema: TRIAL_SCHEMA.into(),
        comparison: "s".into(),
        arm: arm.into(),
        role: None,
        round: Some(round),
        position: 0,
        attempt: 0,
        started_unix_s: 0.0,
        command: arm.into(),
        level_asked: CacheLevel::Lukewarm,
        level: Some(CacheLevel::Lukewarm),
        rejected: None,
        failed: None,
        time_s: Some(time_s),
        needed_bytes: None,
        clock_step_s: Some(1e-6),
        prepared: None,
        outcome: Some(Outcome { usage, ..Outcome::default() }),
    }
}

/// The summary of all rounds.
pub(crate) fn summary(session: Session, trials: Vec<Trial>) -> Comparison {
    let ended = Some(super::EndReason::AllRounds);
    summarise(Earlier { session, trials, probes: Vec::new(), resumed: Vec::new(), ended })
}
