//! Comparisons: several arms on the same values, interleaved, verified and compared pair by pair.
//! Every raw trial is kept.
//!
//! The arms must decode the same values. If their digests differ, the comparison is refused.

mod counterfactual;
mod flags;
#[cfg(test)]
pub(crate) mod made_up;
mod plan;
mod read;
mod record;
mod resume;
mod run;
mod session;
mod state;
mod summary;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cache_level::CacheLevel;
use crate::verdict::OmittedStage;
use crate::workload::Workload;

pub use crate::stats::PairCount;
pub use flags::Flag;
pub use plan::{ComparisonPlan, InSuite};
pub(crate) use read::schema_of;
pub use read::{Earlier, Records, parse, read, read_text};
pub use record::{FilePlace, ProbeRecord, ProgramVersion, Resumed, Session, TRIAL_SCHEMA, Trial};
pub use resume::reopen;
pub use run::run;
pub(crate) use state::pairs;
pub use summary::{ArmSummary, Comparison, EndReason, Spread, summarise};

/// How many bytes an arm has to fetch from its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// The arm needs all bytes of its files.
    WholeFiles,
    /// The arm needs this number of bytes, which the suite states.
    Bytes(u64),
    /// The report of the arm states the number as `needed_bytes`. Without this field, a cold trial
    /// stays unverified.
    Reported,
    /// Nobody states the number, which is at most that of the files. A cold trial is shown to be
    /// cold if all of them came from the device, and stays unverified otherwise.
    Unknown,
}

/// One arm of a comparison: a workload with its files and its cache level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// The name of the arm in every report.
    pub name: String,
    /// The command; `{file}` in an argument stands for the first file, `{file1}` for the second,
    /// and so on.
    pub workload: Workload,
    /// Whether the command is complete, so that `{file}` in it stands for itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_complete: bool,
    /// The files of the arm, which are brought to the cache level. The limit is probed on the first
    /// one.
    pub files: Vec<PathBuf>,
    /// The state of the caches when a trial of the arm starts.
    pub level: CacheLevel,
    /// The bytes that the arm needs from its files.
    pub needs: Needs,
    /// Whether the arm must report `open_to_last_s` and `digest`. If an arm need not report them,
    /// all arms are compared by wall time.
    // Runs that were kept have it under this name.
    #[serde(rename = "decoder")]
    pub must_report: bool,
    /// Arms with the same key must report the same digest; arms without a key must agree with all
    /// others. An arm with the key [`NO_VALUES`](Arm::NO_VALUES) decodes nothing, and need not
    /// report a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// The settings that distinguish the arm within its suite: swept variables and the place of its
    /// files, as in `{"threads": 4}`. Reports show them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
    /// Commands that run before each trial, outside of its time, and before the caches are brought
    /// to the level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<Workload>,
    /// A command that reads the output of each trial, outside of the trial's time. The digest that
    /// it reports counts as the trial's digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Workload>,
    /// The number of bytes of one decoded sample. It is used if the report gives the number of
    /// samples and not the number of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_bytes: Option<u64>,
    /// A label for readers, as in "runs an interpreter".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How the arm runs without one of its stages, for the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterfactuals: Option<Counterfactuals>,
}

/// Additional arguments with which a command leaves out one of its stages. It must still report
/// `open_to_last_s`, and from memory also the same digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counterfactuals {
    /// Arguments with which the command loads its bytes into memory before its clock starts.
    pub from_memory: Vec<String>,
    /// Arguments with which the command fetches its bytes and decodes nothing.
    pub without_decoding: Vec<String>,
}

impl Counterfactuals {
    /// The arguments of `thalweg read`.
    pub fn of_thalweg() -> Self {
        let words = |args: &[&str]| args.iter().map(ToString::to_string).collect();
        let from_memory = words(&["--store", "memory", "--throttle", "none"]);
        Self { from_memory, without_decoding: words(&["--no-decode"]) }
    }
}

impl Arm {
    /// The key of arms that decode nothing, such as an arm that reads the device and drops the
    /// bytes.
    pub const NO_VALUES: &str = "none";

    /// Makes an arm that decodes `file`, starts cold, and needs the whole file.
    pub fn new<S: Into<String>>(
        name: impl Into<String>,
        argv: impl IntoIterator<Item = S>,
        file: impl Into<PathBuf>,
    ) -> Self {
        Self {
            name: name.into(),
            workload: Workload::new(argv),
            is_complete: false,
            files: vec![file.into()],
            level: CacheLevel::Cold,
            needs: Needs::WholeFiles,
            must_report: true,
            values: None,
            settings: BTreeMap::new(),
            prepare: Vec::new(),
            check: None,
            sample_bytes: None,
            label: None,
            counterfactuals: None,
        }
    }

    /// Sets the cache level.
    #[must_use]
    pub fn level(mut self, level: CacheLevel) -> Self {
        self.level = level;
        self
    }

    /// Sets the bytes that the arm needs from its files.
    #[must_use]
    pub fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    /// Sets how the arm runs without one of its stages.
    #[must_use]
    pub fn counterfactuals(mut self, counterfactuals: Counterfactuals) -> Self {
        self.counterfactuals = Some(counterfactuals);
        self
    }

    /// The arm without the stage that `role` names; `None` if the arm has no counterfactuals.
    pub fn without(&self, role: OmittedStage) -> Option<Self> {
        let more = self.counterfactuals.as_ref()?;
        let (more, level) = match role {
            // The state of the caches does not matter, because the bytes are in memory before the
            // clock starts.
            OmittedStage::FromMemory => (&more.from_memory, CacheLevel::Lukewarm),
            OmittedStage::WithoutDecoding => (&more.without_decoding, self.level),
        };
        let mut arm = Self {
            name: format!("{}{}", self.name, role.suffix()),
            level,
            counterfactuals: None,
            ..self.clone()
        };
        arm.workload.argv.extend(more.iter().cloned());
        // A run that decodes nothing has no digest.
        arm.must_report = role == OmittedStage::FromMemory && self.must_report;
        Some(arm)
    }

    /// Makes this an arm without a report: the arm is timed by the wall clock, and its values are
    /// not checked.
    #[must_use]
    pub fn without_report(mut self) -> Self {
        self.must_report = false;
        self
    }

    /// Sets the time limit of one trial.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.workload.timeout_s = Some(timeout.as_secs_f64());
        self
    }

    /// Pins the command to these CPUs.
    #[must_use]
    pub fn cpus(mut self, cpus: Vec<usize>) -> Self {
        self.workload.cpus = Some(cpus);
        self
    }

    /// Sets an environment variable of the command.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.workload.env.insert(name.into(), value.into());
        self
    }

    /// The workload with the names of the files filled in.
    pub fn command(&self) -> Workload {
        if self.is_complete {
            return self.workload.clone();
        }
        let names: BTreeMap<String, String> = self
            .files
            .iter()
            .enumerate()
            .map(|(i, f)| {
                (
                    if i == 0 { "{file}".into() } else { format!("{{file{i}}}") },
                    f.display().to_string(),
                )
            })
            .collect();
        let fill = |arg: &String| {
            names.iter().fold(arg.clone(), |arg, (key, file)| arg.replace(key, file))
        };
        Workload { argv: self.workload.argv.iter().map(fill).collect(), ..self.workload.clone() }
    }
}

/// The kind of time that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The time from opening the file until the consumer has the last batch, as the workload
    /// reports it.
    TimeToSamples,
    /// The wall time of the whole process.
    Wall,
}

impl Clock {
    /// The name of the compared time, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::TimeToSamples => "time to samples",
            Self::Wall => "wall time of the process",
        }
    }
}

/// Progress of a comparison.
#[derive(Debug)]
#[non_exhaustive]
pub enum ComparisonProgress<'a> {
    /// A trial is about to be prepared and run.
    Starting {
        /// The name of the arm.
        arm: &'a str,
        /// The round of the trial; `None` for the warm-up.
        round: Option<usize>,
        /// The number of finished trials.
        done: usize,
        /// The number of planned trials, warm-ups included. With automatic pairs, this is the
        /// largest possible number.
        total: usize,
    },
    /// A trial has finished, was rejected, or failed.
    Finished(&'a Trial),
    /// The limit is being probed.
    Probing {
        /// The number of finished points.
        done: usize,
        /// The number of planned points.
        total: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_filled_in() {
        let mut arm = Arm::new("a", ["p", "--in={file}", "{file1}", "{other}"], "x.blow5");
        arm.files.push("x.blow5.idx".into());
        assert_eq!(arm.command().argv, ["p", "--in=x.blow5", "x.blow5.idx", "{other}"]);
        arm.is_complete = true;
        assert_eq!(arm.command().argv, ["p", "--in={file}", "{file1}", "{other}"]);
    }

    #[test]
    fn an_arm_without_a_stage_has_a_name_of_its_own() {
        let arm = Arm::new("a", ["thalweg", "read", "{file}"], "x")
            .counterfactuals(Counterfactuals::of_thalweg());
        let memory = arm.without(OmittedStage::FromMemory);
        let memory = memory
            .as_ref()
            .map(|a| (a.name.as_str(), a.command().command_line(), a.level, a.must_report));
        assert_eq!(
            memory,
            Some((
                "a (bytes from memory)",
                "thalweg read x --store memory --throttle none".into(),
                CacheLevel::Lukewarm,
                true
            ))
        );
        let fetch = arm
            .without(OmittedStage::WithoutDecoding)
            .map(|a| (a.workload.argv.len(), a.level, a.must_report));
        assert_eq!(fetch, Some((4, CacheLevel::Cold, false)));
        assert_eq!(Arm::new("b", ["x"], "y").without(OmittedStage::FromMemory), None);
    }
}
