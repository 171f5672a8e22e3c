//! Published tables: figures of other authors, typed in with their source. The format has lines
//! that are easy to type and to check.
//!
//! `docs/results.md` describes the two schemas; `crates/thalweg-cli/suites/published/` holds the
//! files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::comparison::schema_of;
use crate::{Error, Result};

const SOURCE_SCHEMA: &str = "thalweg.published/1";
const FIGURE_SCHEMA: &str = "thalweg.figure/1";

/// A publication: the source of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedSource {
    /// "thalweg.published/1".
    pub schema: String,
    /// Identifies the publication in the lines of its figures.
    pub id: String,
    /// A short name for reports.
    pub name: String,
    /// The title of the publication.
    pub title: String,
    /// The URL of the publication.
    pub url: Option<String>,
    /// The date on which the figures were read, as in "2026-11-22".
    pub retrieved: Option<String>,
    /// The machines, by the names that the figures use.
    #[serde(default)]
    pub machines: BTreeMap<String, PublishedMachine>,
    /// The conclusions of the authors, as ratios.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Notes for readers.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A machine, as the publication describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedMachine {
    /// CPU, or kind of machine.
    pub cpu: String,
    /// The storage of the files.
    pub storage: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The bandwidth of its network link, in bytes a second.
    pub network_bytes_per_s: Option<f64>,
    /// The source of the link's bandwidth.
    pub network_source: Option<String>,
    /// Operating system, compiler, libraries.
    pub software: Option<String>,
}

/// A published conclusion: `arm` takes `ratio` times as long as `baseline`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The arm.
    pub arm: String,
    /// The arm that the ratio divides by.
    pub baseline: String,
    /// The conclusion covers the experiments whose names start with this text.
    #[serde(default)]
    pub experiments: String,
    /// The time of the arm divided by that of the baseline.
    pub ratio: f64,
    /// Whether the ratio compares the sums over all rows.
    #[serde(default)]
    pub of_total: bool,
}

/// One figure of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// "thalweg.figure/1".
    pub schema: String,
    /// The id of the publication.
    pub source: String,
    /// The row of the table.
    pub experiment: String,
    /// The column of the table.
    pub arm: String,
    /// The step of a pipeline, if the rows are steps.
    pub step: Option<String>,
    /// The name of the machine.
    pub machine: Option<String>,
    /// The store of the bytes, if the machine has several.
    pub store: Option<String>,
    /// The time, in seconds.
    pub time_s: f64,
    /// The kind of time, in the words of docs/method.md where they fit.
    pub clock: Option<String>,
    /// The number of runs or iterations behind the time.
    pub iterations: Option<u64>,
    /// The number of stored bytes that the arm read.
    pub bytes: Option<u64>,
    /// Decoded bytes.
    pub decoded_bytes: Option<u64>,
    /// The store that the arm wrote to, if any.
    pub writes_to: Option<String>,
    /// Settings, as in `{"threads": 20}`.
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
    /// Seconds of reading from the store, if they were reported separately.
    pub fetch_s: Option<f64>,
    /// Wall time of the whole process.
    pub wall_s: Option<f64>,
    /// CPU seconds in user mode.
    pub user_s: Option<f64>,
    /// CPU seconds in the kernel.
    pub system_s: Option<f64>,
    /// Largest resident memory, file pages included.
    pub max_rss_bytes: Option<u64>,
    /// Whether the arm maps its file, so that resident memory is mostly page cache.
    #[serde(default)]
    pub maps_file: bool,
    /// Whether the arm is one sequential reader that does nothing else (`cat`, `dd`).
    #[serde(default)]
    pub one_stream: bool,
    /// The version of the program.
    pub version: Option<String>,
    /// The command line, if it was published and matters.
    pub command: Option<String>,
    /// Derived figures as they were printed, for checking the typed figures: `speed_up_percent`,
    /// `mib_per_s`, `cpu_percent`, `cpu_s`, `cpu_ns`.
    #[serde(default)]
    pub printed: BTreeMap<String, f64>,
}

/// A publication and its figures.
#[derive(Debug, Clone)]
pub struct Published {
    /// The source of the figures.
    pub source: PublishedSource,
    /// The figures, in the order of the file.
    pub figures: Vec<PublishedFigure>,
}

impl PublishedFigure {
    /// The name of the row, with the settings that distinguish it.
    pub fn row(&self) -> String {
        let settings: Vec<String> = self.settings.iter().map(|(k, v)| format!("{k} {v}")).collect();
        if settings.is_empty() {
            self.experiment.clone()
        } else {
            format!("{}, {}", self.experiment, settings.join(", "))
        }
    }
}

impl Published {
    /// Remarks on the table beyond the conclusions of its authors, such as rows that a claim
    /// covers, single streams taken for devices, and figures that exceed the network link.
    pub fn remarks(&self) -> Vec<String> {
        super::remarks::of(self)
    }
}

/// The publications in the lines of `text`, which came from `path`. Lines of other schemas are
/// skipped.
///
/// # Errors
/// For a malformed line, a time that is not positive, and a figure whose source or machine is
/// absent. Unknown fields are accepted, because newer files may have more.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Published>> {
    let mut all: Vec<Published> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let wrong = |what: String| Error::Results { path: path.to_path_buf(), line: i + 1, what };
        match schema_of(line).as_deref() {
            Some(SOURCE_SCHEMA) => {
                let source = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
                all.push(Published { source, figures: Vec::new() });
            }
            Some(FIGURE_SCHEMA) => {
                let figure: PublishedFigure =
                    serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
                if !(figure.time_s > 0.0 && figure.time_s.is_finite()) {
                    return Err(wrong(format!(
                        "time_s is {}, not a positive number of seconds",
                        figure.time_s
                    )));
                }
                let Some(of) = all.iter_mut().rev().find(|p| p.source.id == figure.source) else {
                    return Err(wrong(format!(
                        "no thalweg.published/1 line before it has the id {:?}",
                        figure.source
                    )));
                };
                if let Some(machine) =
                    figure.machine.as_ref().filter(|m| !of.source.machines.contains_key(*m))
                {
                    return Err(wrong(format!("its source describes no machine {machine:?}")));
                }
                of.figures.push(figure);
            }
            _ => {}
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(lines: &str) -> String {
        parse(Path::new("p.jsonl"), lines).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn mismatches_are_named_with_their_line() {
        let source =
            r#"{"schema":"thalweg.published/1","id":"a","name":"A","title":"T","later":1}"#;
        let figure = |rest: &str| {
            format!(
                "{source}\n{{\"schema\":\"thalweg.figure/1\",\"experiment\":\"e\",\
                 \"arm\":\"x\",{rest}}}\n"
            )
        };
        assert_eq!(error(&figure(r#""source":"a","time_s":1"#)), "");
        assert!(
            error(&figure(r#""source":"b","time_s":1"#))
                .contains("p.jsonl: line 2: no thalweg.published/1")
        );
        assert!(error(&figure(r#""source":"a","time_s":0"#)).contains("line 2: time_s is 0"));
        assert!(
            error(
                &figure(r#""source":"a","time_s":1,"machine":"m"#.trim_end())
                    .replace("\"m}", "\"m\"}")
            )
            .contains("no machine \"m\"")
        );
        assert!(error(&figure(r#""source":"a""#)).contains("line 2: missing field `time_s`"));
    }
}
