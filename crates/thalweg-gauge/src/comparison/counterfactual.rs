//! Trials of an arm without one of its stages: in no pair, never averaged in, for the verdict
//! alone.

use super::{Arm, ComparisonPlan, Session, Trial};
use crate::stats::median;
use crate::verdict::{Role, Without};

/// How many of each: enough for a median. What they decide differs by far more than noise, or is
/// not decided.
pub(super) const TRIALS: usize = 3;

/// The arms without a stage, in the order of their turns; none where no limit is probed that they
/// could bear out.
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

/// Whether `trial` decoded what `arm` decodes.
pub(super) fn is_of(trial: &Trial, arm: &Arm) -> bool {
    match trial.role {
        None => trial.arm == arm.name,
        Some(role) => {
            arm.without(role).is_some_and(|other| other.decoder && other.name == trial.arm)
        }
    }
}

/// What the arm took without a stage.
pub(super) fn times(arm: &Arm, trials: &[Trial]) -> Without {
    let time = |role: Role| {
        let other = arm.without(role)?.name;
        let own = trials.iter().filter(|t| t.role == Some(role) && t.arm == other);
        median(&own.filter_map(Trial::counted_time_s).collect::<Vec<_>>())
    };
    Without { store_s: time(Role::FromMemory), decoding_s: time(Role::WithoutDecoding) }
}
