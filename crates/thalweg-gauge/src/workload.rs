//! A workload: a command line to time, and the report that it prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A command to run as a fresh process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables set on top of the inherited environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// CPUs that it may run on; `None` for all CPUs of this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<usize>>,
    /// Seconds after which it is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
}

impl Workload {
    /// The command line `argv`, unpinned and without a time limit.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cpus: None,
            timeout_s: None,
        }
    }

    /// The command line, quoted where a shell would need it.
    pub fn command_line(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%{}".contains(c);
        let quote = |s: &String| {
            if !s.is_empty() && s.chars().all(plain) {
                s.clone()
            } else {
                format!("'{}'", s.replace('\'', r"'\''"))
            }
        };
        self.argv.iter().map(quote).collect::<Vec<_>>().join(" ")
    }
}

/// The report of a workload: the last line of its standard output that is a JSON object.
///
/// An arm with [`must_report`](crate::comparison::Arm::must_report) needs `open_to_last_s` and
/// `digest`. All other fields are optional, and unknown fields are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadReport {
    /// The name of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The version of the program or library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Time to samples: seconds from opening the file until the consumer has the last batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_to_last_s: Option<f64>,
    /// The number of reads (records) that were delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    /// The number of samples (values) that were delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// The number of bases that were delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bases: Option<u64>,
    /// The number of stored (compressed) bytes of the delivered data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_stored: Option<u64>,
    /// The number of decoded bytes that were delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_decoded: Option<u64>,
    /// The number of stored bytes that had to be read, if this is not the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_bytes: Option<u64>,
    /// The number of requests to the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The number of requests in the longest chain in which each request waits for the answer to
    /// the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dependent_requests: Option<u64>,
    /// CPU seconds of all its threads within `open_to_last_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// The sum over all values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Value>,
    /// The digest of all values, which must be equal in every arm of a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The number of threads that were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// The distribution of its calls' durations, if it makes many calls in a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// The throttle of its store, in the form of `thalweg read --throttle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle: Option<String>,
    /// How the program was built: compiler, flags, libraries, allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Value>,
    /// Stages by name: seconds, or an object with `busy_s`, `exposed_s`, `bytes_in`, `bytes_out`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub stages: Map<String, Value>,
    /// All other fields.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The distribution of the calls of a loop, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// The mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// The longest call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// One stage of a workload's pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageTimes {
    /// The name of the stage, as in "decode".
    pub name: String,
    /// Seconds of work, summed over workers.
    pub busy_s: Option<f64>,
    /// Seconds for which the consumer waited for the stage.
    pub exposed_s: Option<f64>,
}

impl WorkloadReport {
    /// Finds the report in a workload's standard output. `None` if no line is a JSON object.
    ///
    /// # Errors
    /// When the last such line has a field of the wrong type, and a field that makes it a report:
    /// `open_to_last_s` or `digest`. Other JSON may be what a command is there to print.
    pub fn find(stdout: &str) -> Result<Option<Self>, serde_json::Error> {
        let mut lines = stdout.lines().rev().map(str::trim).filter(|line| line.starts_with('{'));
        let last = lines.find_map(|line| serde_json::from_str::<Value>(line).ok());
        let Some(last) = last else { return Ok(None) };
        let is_report = ["open_to_last_s", "digest"].iter().any(|field| last.get(field).is_some());
        match serde_json::from_value(last) {
            Err(_) if !is_report => Ok(None),
            read => read.map(Some),
        }
    }

    /// The stages: those with known names in the order of the pipeline, then the others sorted by
    /// name.
    pub(crate) fn stage_list(&self) -> Vec<StageTimes> {
        let known = ["index", "fetch", "decode", "deliver"];
        let rank = |name: &str| known.iter().position(|k| *k == name).unwrap_or(known.len());
        let mut stages: Vec<StageTimes> = self
            .stages
            .iter()
            .map(|(name, value)| StageTimes {
                name: name.clone(),
                busy_s: value.as_f64().or_else(|| value.get("busy_s")?.as_f64()),
                exposed_s: value.get("exposed_s").and_then(Value::as_f64),
            })
            .collect();
        stages.sort_by(|a, b| (rank(&a.name), &a.name).cmp(&(rank(&b.name), &b.name)));
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_json_object_is_the_report() {
        let out = "hello\n{\"digest\":\"old\"}\n\
                   {\"digest\":\"d\",\"open_to_last_s\":0.5,\"gpu\":true}\n{not json\n3\n";
        let report = WorkloadReport::find(out).ok().flatten().unwrap_or_default();
        assert_eq!(report.digest.as_deref(), Some("d"));
        assert_eq!(report.open_to_last_s, Some(0.5));
        assert_eq!(report.other.get("gpu"), Some(&Value::Bool(true)));
        assert!(matches!(WorkloadReport::find("no json here"), Ok(None)));
        assert!(WorkloadReport::find("{\"digest\":\"d\",\"reads\":\"many\"}").is_err());
        assert!(matches!(WorkloadReport::find("{\"version\":3}"), Ok(None)), "not a report");
    }

    #[test]
    fn unknown_fields_survive_a_round_trip() {
        let line = r#"{"digest":"d","extra":{"a":[1,2]},"sum":-12}"#;
        let report: WorkloadReport = serde_json::from_str(line).unwrap_or_default();
        let back: Value = serde_json::to_value(&report).unwrap_or_default();
        assert_eq!(back, serde_json::from_str::<Value>(line).unwrap_or_default());
    }

    #[test]
    fn stages_are_numbers_or_objects() {
        let line = r#"{"stages":{"decode":{"busy_s":2.0,"exposed_s":0.5},"fetch":1.5,"warp":1}}"#;
        let report: WorkloadReport = serde_json::from_str(line).unwrap_or_default();
        let stages = report.stage_list();
        let names: Vec<&str> = stages.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["fetch", "decode", "warp"]);
        assert_eq!(stages.first().and_then(|s| s.busy_s), Some(1.5));
        assert_eq!(stages.get(1).and_then(|s| s.exposed_s), Some(0.5));
    }

    #[test]
    fn command_lines_can_be_pasted() {
        assert_eq!(
            Workload::new(["sh", "-c", "echo 'a b'"]).command_line(),
            r"sh -c 'echo '\''a b'\'''"
        );
    }
}
