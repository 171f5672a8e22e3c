//! The first line of a suite's results, with all data that a resumption needs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SettingValue;
use crate::comparison::PairCount;

/// The schema of the line, with its version.
const SUITE_SCHEMA: &str = "thalweg.suite/1";

/// The suite, and the options that the command line added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteRecord {
    /// "thalweg.suite/1".
    pub schema: String,
    /// The suite's name.
    pub name: String,
    /// The name of its text in messages.
    pub source: String,
    /// The text of the suite.
    pub text: String,
    /// The folder that relative paths of the suite start from.
    pub folder: PathBuf,
    /// Folders of places that the command line gave.
    pub places: BTreeMap<String, PathBuf>,
    /// Files that the command line gave.
    pub files: BTreeMap<String, PathBuf>,
    /// Settings that the command line gave.
    pub set: Vec<(String, SettingValue)>,
    /// Pairs that the command line gave.
    pub pairs: Option<PairCount>,
    /// The budget in seconds that the command line gave.
    pub budget_s: Option<f64>,
    /// A text that the names of the selected comparisons contain; `None` selects all.
    pub only: Option<String>,
    /// The start, in seconds since 1970.
    pub started_unix_s: f64,
    /// Names of the comparisons, in their order.
    pub comparisons: Vec<String>,
}

impl SuiteRecord {
    /// The schema of this version.
    pub fn schema() -> String {
        SUITE_SCHEMA.into()
    }

    /// The line in JSON, with its line feed.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// The record in the lines of a results file.
    pub fn find(text: &str) -> Option<Self> {
        let record = text.lines().find(|line| line.contains(SUITE_SCHEMA))?;
        serde_json::from_str::<Self>(record).ok().filter(|record| record.schema == SUITE_SCHEMA)
    }
}
