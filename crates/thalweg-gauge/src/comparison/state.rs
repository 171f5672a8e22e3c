//! The state of a running comparison: which trials remain, and what its pairs show. All of it
//! follows from the trials.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Arm, Session, Trial};
use crate::stats::{Pair, Ratio, ratio};

/// The number of the next attempt at a trial; `None` if the trial is complete or has no attempts
/// left.
pub(super) fn next_attempt(
    session: &Session,
    trials: &[Trial],
    arm: &str,
    round: Option<usize>,
) -> Option<usize> {
    let own = || trials.iter().filter(|t| t.arm == arm);
    let before = || own().filter(|t| t.round == round);
    let out = own().any(|t| t.failed.is_some());
    let made = before().any(|t| t.rejected.is_none());
    let retries = if round.is_some() { session.retries.unwrap_or(0) } else { 0 };
    (!out && !made && before().count() <= retries).then(|| before().count())
}

/// The number of rounds in which every arm has run or was removed.
pub(super) fn whole_rounds(session: &Session, trials: &[Trial]) -> usize {
    let out: HashSet<&str> =
        trials.iter().filter(|t| t.failed.is_some()).map(|t| t.arm.as_str()).collect();
    let mut attempts: HashMap<(&str, usize), usize> = HashMap::new();
    for t in trials {
        let Some(round) = t.round else { continue };
        let left = attempts.entry((&t.arm, round)).or_insert(session.retries.unwrap_or(0) + 1);
        *left = if t.rejected.is_none() { 0 } else { left.saturating_sub(1) };
    }
    let over = |arm: &Arm, round| {
        out.contains(arm.name.as_str()) || attempts.get(&(&arm.name, round)) == Some(&0)
    };
    (0..session.rounds).take_while(|&round| session.arms.iter().all(|arm| over(arm, round))).count()
}

/// Whether `rounds` rounds are a planned look, and all intervals are as narrow as the plan
/// requires.
pub(super) fn narrow_enough(session: &Session, trials: &[Trial], rounds: usize) -> bool {
    if session.looks.iter().all(|look| look.rounds != rounds) {
        return false;
    }
    // Removed arms and arms without a pair do not prolong the comparison.
    let is_active = |arm: &&Arm| trials.iter().all(|t| t.arm != arm.name || t.failed.is_none());
    let ratio = |arm| against(session, trials, arm, rounds);
    let ratios: Vec<Ratio> = session.arms.iter().filter(is_active).filter_map(ratio).collect();
    session.pairs.is_some_and(|pairs| pairs.enough(&ratios))
}

/// The ratio of an arm to the baseline after `rounds` rounds; `None` for the baseline.
pub(super) fn against(
    session: &Session,
    trials: &[Trial],
    arm: &Arm,
    rounds: usize,
) -> Option<Ratio> {
    let baseline = session.arms.first().filter(|b| b.name != arm.name)?;
    ratio(&pairs(trials, &arm.name, &baseline.name), &session.looks(), rounds)
}

/// The pairs of two arms, from the rounds in which both trials count.
pub(crate) fn pairs(trials: &[Trial], arm: &str, baseline: &str) -> Vec<Pair> {
    let times = |name: &str| -> BTreeMap<usize, f64> {
        let own = trials.iter().rev().filter(|t| t.arm == name);
        own.filter_map(|t| Some((t.round?, t.counted_time_s()?))).collect()
    };
    let baseline = times(baseline);
    let pair = |(round, arm_s)| Some(Pair { round, arm_s, baseline_s: *baseline.get(&round)? });
    times(arm).into_iter().filter_map(pair).collect()
}
