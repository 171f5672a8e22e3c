//! The lines of a results file. `docs/results.md` describes them for readers of the JSON.

use serde::{Deserialize, Serialize};

use super::{Arm, Clock, InSuite, PairCount};
use crate::cache_level::{CacheLevel, Prepared};
use crate::host::{Host, StoragePlace};
use crate::limit::Probe;
use crate::schedule::ArmOrder;
use crate::stats::{CONFIDENCE, Look};
use crate::trial::Outcome;
use crate::verdict::Role;

/// Version of a trial's line.
pub const TRIAL_SCHEMA: &str = "thalweg.trial/1";
pub(crate) const SESSION_SCHEMA: &str = "thalweg.session/1";
pub(crate) const PROBE_SCHEMA: &str = "thalweg.limit/1";
pub(crate) const RESUMED_SCHEMA: &str = "thalweg.resumed/1";
pub(crate) const COMPARISON_SCHEMA: &str = "thalweg.comparison/1";

/// The first line of a comparison: what is compared, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// "thalweg.session/1".
    pub schema: String,
    /// Identifies the comparison in all of its lines.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The suite that it belongs to; `None` if it was run on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<InSuite>,
    /// Version of this crate.
    pub gauge_version: String,
    /// Seconds since 1970.
    pub started_unix_s: f64,
    /// The machine.
    pub host: Host,
    /// The places of the files, one entry per file.
    pub places: Vec<FilePlace>,
    /// The programs that the arms start.
    #[serde(default)]
    pub programs: Vec<ProgramVersion>,
    /// The arms, the control included; the first is the baseline.
    pub arms: Vec<Arm>,
    /// Index of the control arm (the baseline once more).
    pub control: Option<usize>,
    /// The most rounds planned.
    pub rounds: usize,
    /// How many pairs; `None` in results of versions that knew only a fixed number, `rounds`.
    #[serde(default)]
    pub pairs: Option<PairCount>,
    /// When the intervals are computed; `None` in results of versions that computed them once,
    /// after the last round.
    #[serde(default)]
    pub looks: Vec<Look>,
    /// The order of the arms in each round.
    #[serde(default)]
    pub order: ArmOrder,
    /// How often a rejected trial is repeated; `None` in results of versions that did not record
    /// it.
    #[serde(default)]
    pub retries: Option<usize>,
    /// How long the run might take.
    #[serde(default)]
    pub budget_s: Option<f64>,
    /// The time that is compared.
    pub clock: Clock,
}

impl Session {
    /// The moments at which the intervals are computed.
    pub fn looks(&self) -> Vec<Look> {
        if self.looks.is_empty() {
            return vec![Look { rounds: self.rounds, alpha: 1.0 - CONFIDENCE }];
        }
        self.looks.clone()
    }
}

/// Where one file lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilePlace {
    /// The file.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last changed, in seconds since 1970.
    #[serde(default)]
    pub modified_unix_s: Option<f64>,
    /// Its place; `None` if the system does not report it.
    pub place: Option<StoragePlace>,
}

/// The state of a program file when the run started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramVersion {
    /// Its file. A name without a folder was looked up in PATH.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// When it was last changed, in seconds since 1970.
    pub modified_unix_s: Option<f64>,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// "thalweg.trial/1".
    pub schema: String,
    /// The comparison's id.
    pub comparison: String,
    /// Name of the arm.
    pub arm: String,
    /// The stage that was left out, for the verdict on an arm. Such a trial belongs to no pair, and
    /// its arm comes from [`Arm::without`]. `None` for all other trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Round, from 0; `None` for a warm-up, which is never averaged.
    pub round: Option<usize>,
    /// Place in the order of its round, from 0.
    pub position: usize,
    /// The number of earlier attempts at this trial that were rejected.
    pub attempt: usize,
    /// Seconds since 1970.
    pub started_unix_s: f64,
    /// The command line.
    pub command: String,
    /// The requested level.
    pub level_asked: CacheLevel,
    /// The verified level; `None` if the trial was rejected or failed.
    pub level: Option<CacheLevel>,
    /// The evidence against its level. Such a trial is never averaged.
    pub rejected: Option<String>,
    /// Why there is no result.
    pub failed: Option<String>,
    /// The time that is compared (see the session's clock).
    pub time_s: Option<f64>,
    /// Bytes that it needed from its files.
    pub needed_bytes: Option<u64>,
    /// How far the wall clock was set forward (or, if negative, back) during the trial, compared
    /// with the steady clock.
    #[serde(default)]
    pub clock_step_s: Option<f64>,
    /// The preparation of the caches.
    pub prepared: Option<Prepared>,
    /// Its resources and its report.
    pub outcome: Option<Outcome>,
}

impl Trial {
    /// The compared time; `None` for a warm-up and for a rejected or failed trial.
    pub fn counted_time_s(&self) -> Option<f64> {
        self.time_s
            .filter(|_| self.round.is_some() && self.rejected.is_none() && self.failed.is_none())
    }
}

/// The line of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// "thalweg.limit/1".
    pub schema: String,
    /// The comparison's id.
    pub comparison: String,
    /// The measurements.
    pub probe: Probe,
}

/// The line of a resumption: a stopped run continued here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// "thalweg.resumed/1".
    pub schema: String,
    /// The comparison's id.
    pub comparison: String,
    /// Seconds since 1970.
    pub started_unix_s: f64,
    /// The round of the last trial before it; `None` for the warm-up.
    pub round: Option<usize>,
    /// Seconds between the end of that trial and the resumption; `None` if there was no trial.
    pub gap_s: Option<f64>,
}
