//! Trials of an arm without one of its stages. They serve the verdict only: they belong to no pair,
//! and no average includes them.

use super::{Arm, ComparisonPlan, Session, Trial};
use crate::stats::median;
use crate::verdict::{OmittedStage, Without};

/// The number of trials for each arm and stage, which is enough for a median. The verdict uses only
/// differences that are much larger than noise.
pub(super) const TRIALS: usize = 3;

/// The arms without a stage, in the order in which they run. Empty if no limit is probed, because
/// the trials only confirm a limit.
pub(super) fn arms(session: &Session, plan: &ComparisonPlan) -> Vec<(OmittedStage, Arm)> {
    if plan.probe.is_none() {
        return Vec::new();
    }
    let of = |arm: &Arm| {
        OmittedStage::ALL
            .into_iter()
            .filter_map(|role| Some((role, arm.without(role)?)))
            .collect::<Vec<_>>()
    };
    session.arms.iter().flat_map(of).collect()
}

/// Whether `trial` decodes the values that `arm` decodes. Trials of the arm with its bytes in
/// memory do so. Trials without decoding do not.
pub(super) fn is_of(trial: &Trial, arm: &Arm) -> bool {
    match trial.role {
        None => trial.arm == arm.name,
        Some(role) => {
            arm.without(role).is_some_and(|other| other.must_report && other.name == trial.arm)
        }
    }
}

/// The median times of the arm without each of its stages.
pub(super) fn times(arm: &Arm, trials: &[Trial]) -> Without {
    let time = |role: OmittedStage| {
        let other = arm.without(role)?.name;
        let own = trials.iter().filter(|t| t.role == Some(role) && t.arm == other);
        median(&own.filter_map(Trial::counted_time_s).collect::<Vec<_>>())
    };
    Without {
        store_s: time(OmittedStage::FromMemory),
        decoding_s: time(OmittedStage::WithoutDecoding),
    }
}
