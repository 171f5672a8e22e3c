//! The plan of a comparison, fixed before the first trial: arms, pairs, order, budget.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Arm, Earlier};
use crate::cache::EvictOptions;
use crate::limit::ProbeOptions;
use crate::schedule::ArmOrder;
use crate::stats::PairCount;

/// The suite that a comparison belongs to. Reports group by it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InSuite {
    /// The name of the suite.
    pub name: String,
    /// The step of a pipeline that this comparison times, as in "gunzip"; steps are in the order of
    /// the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The values of the settings that the suite sweeps over comparisons, as in `{"threads": 4}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
}

/// A comparison to run.
#[derive(Debug, Clone)]
pub struct ComparisonPlan {
    /// The name of the comparison.
    pub name: String,
    /// The arms; the first is the baseline of every ratio.
    pub arms: Vec<Arm>,
    /// The number of pairs.
    pub pairs: PairCount,
    /// The order of the arms in each round.
    pub order: ArmOrder,
    /// How long the run may take. A resumed run gets the whole budget again. A round starts only if
    /// it is expected to end in time, so the run exceeds its budget by less than a round.
    pub budget: Option<Duration>,
    /// Additional time for the preparation (the warm-up, the probe, the runs without a stage).
    /// Without it, preparation could spend a small budget before the first round.
    pub reserve: Duration,
    /// How often a rejected trial is tried again.
    pub retries: usize,
    /// Whether the baseline runs a second time in each round, as a separate arm. Identical arms
    /// show the noise that a claim must exceed.
    pub control: bool,
    /// Whether a workload that fails ends the run with its error. Its trial is not recorded, so a
    /// resumed run tries it again. Otherwise the arm is removed.
    pub ends_at_failure: bool,
    /// The options of evictions.
    pub evict: EvictOptions,
    /// Whether and how to probe the limit, after the warm-up.
    pub probe: Option<ProbeOptions>,
    /// The suite that the comparison belongs to.
    pub suite: Option<InSuite>,
    /// The results of an earlier run of this plan (see [`super::reopen`]). The run continues from
    /// there.
    pub resume: Option<Earlier>,
}

/// The suffix that the name of the baseline gets for its second run, the control arm.
pub(crate) const CONTROL_SUFFIX: &str = " (again)";

impl ComparisonPlan {
    /// Ten rounds in random order, two retries, a control arm, no budget, no probe.
    pub fn new(name: impl Into<String>, arms: Vec<Arm>) -> Self {
        Self {
            name: name.into(),
            arms,
            pairs: PairCount::Fixed(10),
            order: ArmOrder::Random { seed: 1 },
            budget: None,
            reserve: Duration::ZERO,
            retries: 2,
            control: true,
            ends_at_failure: false,
            evict: EvictOptions::default(),
            probe: None,
            suite: None,
            resume: None,
        }
    }

    /// Sets a fixed number of rounds.
    #[must_use]
    pub fn rounds(self, rounds: usize) -> Self {
        self.pairs(PairCount::Fixed(rounds))
    }

    /// Sets the number of pairs.
    #[must_use]
    pub fn pairs(mut self, pairs: PairCount) -> Self {
        self.pairs = pairs;
        self
    }

    /// Sets the order of the arms in each round.
    #[must_use]
    pub fn order(mut self, order: ArmOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets how long the run may take.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets whether the baseline runs twice in each round.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Probes the limit with these options.
    #[must_use]
    pub fn probe(mut self, options: ProbeOptions) -> Self {
        self.probe = Some(options);
        self
    }

    /// Continues from the results of an earlier run.
    #[must_use]
    pub fn resume(mut self, earlier: Earlier) -> Self {
        self.resume = Some(earlier);
        self
    }
}
