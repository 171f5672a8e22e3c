//! How far a comparison has come, and what its pairs say so far. Pure: it follows from the trials.

use super::{Arm, Session, Trial};
use crate::stats::{Pair, Ratio, ratio};

/// The next attempt at a trial; none if it has been made, or needs no more.
pub(super) fn next_attempt(session: &Session, trials: &[Trial], arm: &str, round: Option<usize>) -> Option<usize> {
    let own = || trials.iter().filter(|t| t.arm == arm);
    let before = || own().filter(|t| t.round == round);
    let out = own().any(|t| t.failed.is_some());
    let made = before().any(|t| t.rejected.is_none());
    let retries = if round.is_some() { session.retries.unwrap_or(0) } else { 0 };
    (!out && !made && before().count() <= retries).then(|| before().count())
}

/// Rounds in which each arm has had its turn, or is out.
pub(super) fn whole_rounds(session: &Session, trials: &[Trial]) -> usize {
    let whole =
        |&round: &usize| session.arms.iter().all(|arm| next_attempt(session, trials, &arm.name, Some(round)).is_none());
    (0..session.rounds).take_while(whole).count()
}

/// Whether `rounds` rounds are a planned look, and all intervals there are as narrow as the plan wants them.
pub(super) fn narrow_enough(session: &Session, trials: &[Trial], rounds: usize) -> bool {
    if session.looks.iter().all(|look| look.rounds != rounds) {
        return false;
    }
    // Arms that are out, and those without a single pair, are not waited for.
    let in_the_race = |arm: &&Arm| trials.iter().all(|t| t.arm != arm.name || t.failed.is_none());
    let ratio = |arm| against(session, trials, arm, rounds);
    let ratios: Vec<Ratio> = session.arms.iter().filter(in_the_race).filter_map(ratio).collect();
    session.pairs.is_some_and(|pairs| pairs.enough(&ratios))
}

/// The ratio of an arm to the baseline after `rounds` rounds; none for the baseline.
pub(super) fn against(session: &Session, trials: &[Trial], arm: &Arm, rounds: usize) -> Option<Ratio> {
    let baseline = session.arms.first().filter(|b| b.name != arm.name)?;
    ratio(&pairs(trials, &arm.name, &baseline.name), &session.looks(), rounds)
}

/// Times of two arms from the rounds in which both count.
pub(crate) fn pairs(trials: &[Trial], arm: &str, baseline: &str) -> Vec<Pair> {
    let time = |name: &str, round: usize| {
        trials.iter().filter(|t| t.arm == name && t.round == Some(round)).find_map(Trial::counted_time_s)
    };
    let rounds = trials.iter().filter_map(|t| t.round).max().map_or(0, |r| r + 1);
    let pair = |round| Some(Pair { round, arm_s: time(arm, round)?, baseline_s: time(baseline, round)? });
    (0..rounds).filter_map(pair).collect()
}
