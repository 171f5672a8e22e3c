//! The lines of a results file. `docs/results.md` describes them for readers of the JSON.

use serde::{Deserialize, Serialize};

use super::{Arm, Clock, InSuite, PairCount};
use crate::cache_level::{CacheLevel, Prepared};
use crate::host::{Host, StoragePlace};
use crate::limit::Probe;
use crate::schedule::ArmOrder;
use crate::stats::{CONFIDENCE, Look};
use crate::trial::Outcome;
use crate::verdict::OmittedStage;

/// The schema of a trial's line, with its version.
pub const TRIAL_SCHEMA: &str = "thalweg.trial/1";
pub(crate) const SESSION_SCHEMA: &str = "thalweg.session/1";
pub(crate) const PROBE_SCHEMA: &str = "thalweg.limit/1";
pub(crate) const RESUMED_SCHEMA: &str = "thalweg.resumed/1";
pub(crate) const COMPARISON_SCHEMA: &str = "thalweg.comparison/1";

/// The first line of a comparison: its arms, its plan, its files and the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// "thalweg.session/1".
    pub schema: String,
    /// The id of the comparison in all of its lines.
    pub id: String,
    /// The name of the comparison.
    pub name: String,
    /// The suite that the comparison belongs to; `None` if it was run alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<InSuite>,
    /// The version of this crate.
    pub gauge_version: String,
    /// The start, in seconds since 1970.
    pub started_unix_s: f64,
    /// The machine.
    pub host: Host,
    /// Where the files lie, with one entry for each file.
    pub places: Vec<FilePlace>,
    /// The programs that the arms start.
    #[serde(default)]
    pub programs: Vec<ProgramVersion>,
    /// The arms, the control included; the first is the baseline.
    pub arms: Vec<Arm>,
    /// The index of the control arm, which repeats the baseline; `None` without a control.
    pub control: Option<usize>,
    /// The largest number of rounds.
    pub rounds: usize,
    /// The number of pairs; `None` in results of versions that knew only a fixed number, `rounds`.
    #[serde(default)]
    pub pairs: Option<PairCount>,
    /// The planned looks, at which the intervals are computed. Empty in results of versions that
    /// computed them once, after the last round.
    #[serde(default)]
    pub looks: Vec<Look>,
    /// The order of the arms in each round.
    #[serde(default)]
    pub order: ArmOrder,
    /// How often a rejected trial is repeated; `None` in results of versions that did not record
    /// it.
    #[serde(default)]
    pub retries: Option<usize>,
    /// The time budget of the run, in seconds.
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
    /// The path of the file.
    pub file: String,
    /// The size in bytes.
    pub bytes: u64,
    /// When it was last changed, in seconds since 1970.
    #[serde(default)]
    pub modified_unix_s: Option<f64>,
    /// The storage that the file lies on; `None` if the system does not report it.
    pub place: Option<StoragePlace>,
}

/// The state of a program file when the run started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramVersion {
    /// The path of the program. A name without a folder was looked up in PATH.
    pub file: String,
    /// The size in bytes.
    pub bytes: u64,
    /// When it was last changed, in seconds since 1970.
    pub modified_unix_s: Option<f64>,
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// "thalweg.trial/1".
    pub schema: String,
    /// The id of the comparison.
    pub comparison: String,
    /// The name of the arm.
    pub arm: String,
    /// The stage that was left out, for the verdict on an arm. Such a trial is in no pair, and its
    /// arm comes from [`Arm::without`]. `None` for all other trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<OmittedStage>,
    /// The round, from 0; `None` for a warm-up, which is never averaged.
    pub round: Option<usize>,
    /// The position of the trial in its round, from 0.
    pub position: usize,
    /// The number of earlier attempts that were rejected.
    pub attempt: usize,
    /// The start, in seconds since 1970.
    pub started_unix_s: f64,
    /// The command line.
    pub command: String,
    /// The requested cache level.
    pub level_asked: CacheLevel,
    /// The verified cache level; `None` if the trial was rejected or failed.
    pub level: Option<CacheLevel>,
    /// Why the trial was rejected: the evidence against its cache level. A rejected trial is never
    /// averaged. `None` if it was not rejected.
    pub rejected: Option<String>,
    /// Why the trial failed; `None` if it did not.
    pub failed: Option<String>,
    /// The time that is compared (see the session's clock).
    pub time_s: Option<f64>,
    /// The number of bytes that the trial needed from its files.
    pub needed_bytes: Option<u64>,
    /// How far the wall clock was set forward (or, if negative, back) during the trial, compared
    /// with the steady clock.
    #[serde(default)]
    pub clock_step_s: Option<f64>,
    /// The preparation of the caches.
    pub prepared: Option<Prepared>,
    /// The resources and the report of the trial.
    pub outcome: Option<Outcome>,
}

impl Trial {
    /// The compared time; `None` for a warm-up and for a rejected or failed trial.
    pub(crate) fn counted_time_s(&self) -> Option<f64> {
        self.time_s
            .filter(|_| self.round.is_some() && self.rejected.is_none() && self.failed.is_none())
    }
}

/// The line of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// "thalweg.limit/1".
    pub schema: String,
    /// The id of the comparison.
    pub comparison: String,
    /// The measurements.
    pub probe: Probe,
}

/// The line of a resumption: a stopped run continued at this place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// "thalweg.resumed/1".
    pub schema: String,
    /// The id of the comparison.
    pub comparison: String,
    /// The start, in seconds since 1970.
    pub started_unix_s: f64,
    /// The round of the last trial before the resumption; `None` for the warm-up.
    pub round: Option<usize>,
    /// Seconds between the end of that trial and the resumption; `None` if there was no trial.
    pub gap_s: Option<f64>,
}
