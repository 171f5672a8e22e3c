//! Trials of an arm without one of its stages. They serve the verdict alone: they belong to no pair
//! and are never averaged with other trials.

use super::{Arm, ComparisonPlan, Session, Trial};
use crate::stats::median;
use crate::verdict::{Role, Without};

/// How many trials of each kind: enough for a median. The verdict needs differences far larger than
/// the noise, and ignores smaller ones.
pub(super) const TRIALS: usize = 3;

/// The arms without a stage, in the order in which they run. Empty if the plan has no probe,
/// because there is then no limit that these runs could confirm.
pub(super) fn arms(session: &Session, plan: &ComparisonPlan) -> Vec<(Role, Arm)> {
    if plan.probe.is_none() {
        return Vec::new();
    }
    let of = |arm: &Arm| {
        Role::ALL
            .into_iter()
            .filter_map(|role| Some((role, arm.without(role)?)))
            .collect::<Vec<_>>()
    };
    session.arms.iter().flat_map(of).collect()
}

/// Whether `trial` decoded the same values as `arm`.
pub(super) fn is_of(trial: &Trial, arm: &Arm) -> bool {
    match trial.role {
        None => trial.arm == arm.name,
        Some(role) => {
            arm.without(role).is_some_and(|other| other.decoder && other.name == trial.arm)
        }
    }
}

/// The median times of `arm` without each stage.
pub(super) fn times(arm: &Arm, trials: &[Trial]) -> Without {
    let time = |role: Role| {
        let other = arm.without(role)?.name;
        let own = trials.iter().filter(|t| t.role == Some(role) && t.arm == other);
        median(&own.filter_map(Trial::counted_time_s).collect::<Vec<_>>())
    };
    Without { store_s: time(Role::FromMemory), decoding_s: time(Role::WithoutDecoding) }
}
