//! The files of a run's results, and how an interrupted run is found again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use thalweg::new_file::NewFile;
use thalweg_gauge::comparison::{Comparison, Earlier, read_text, reopen};
use thalweg_gauge::report::{html, markdown};
use thalweg_gauge::suite::SuiteRecord;

use super::files::io;
use crate::common::{Failure, VerbResult};

/// The files that a run writes.
pub(super) struct Outputs {
    pub(super) lines: PathBuf,
    pub(super) html: Option<PathBuf>,
    pub(super) markdown: Option<PathBuf>,
}

const LINES: &str = "results.jsonl";

impl Outputs {
    /// All three files in a new folder below `out`. With `json`, the lines go to that file, and a
    /// page is written only if `html` names it.
    pub(super) fn new(
        out: &Path,
        json: Option<&PathBuf>,
        html: Option<&PathBuf>,
    ) -> Result<Self, Failure> {
        let outputs = match json {
            Some(lines) => Self { lines: lines.clone(), html: None, markdown: None },
            None => {
                let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%SZ").to_string();
                let folder = out.join(now);
                fs::create_dir_all(&folder).map_err(|e| io(&folder, "creating", e))?;
                Self::inside(&folder)
            }
        };
        if outputs.lines.is_file() {
            let lines = outputs.lines.display();
            return Err(Failure::Usage(format!(
                "{lines} is there already: go on with it (--resume {lines}), or give another name"
            )));
        }
        Ok(Self { html: html.cloned().or(outputs.html), ..outputs })
    }

    /// The outputs of an earlier run, by its folder or its file of lines.
    pub(super) fn earlier(path: &Path, html: Option<&PathBuf>) -> Self {
        let outputs = if path.is_dir() {
            Self::inside(path)
        } else {
            Self { lines: path.to_owned(), html: None, markdown: None }
        };
        Self { html: html.cloned().or(outputs.html), ..outputs }
    }

    fn inside(folder: &Path) -> Self {
        let file = |name: &str| folder.join(name);
        Self {
            lines: file(LINES),
            html: Some(file("report.html")),
            markdown: Some(file("report.md")),
        }
    }

    /// The suite of an earlier run.
    pub(super) fn recorded(&self) -> Result<SuiteRecord, Failure> {
        let record = SuiteRecord::find(&read_text(&self.lines)?);
        let lines = self.lines.display();
        record.ok_or_else(|| {
            Failure::Usage(format!(
                "{lines} names no suite: it is not from a run that can be gone on with"
            ))
        })
    }

    /// Opens the file of lines, and returns the comparisons of an earlier run in it. A new file
    /// starts with `record`.
    pub(super) fn open(
        &self,
        record: Option<&SuiteRecord>,
    ) -> Result<(Box<dyn Write>, Vec<Earlier>), Failure> {
        let path = &self.lines;
        let (mut file, earlier) = if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            // A pipe or a device has no earlier lines.
            (
                OpenOptions::new().write(true).open(path).map_err(|e| io(path, "opening", e))?,
                Vec::new(),
            )
        } else {
            reopen(path)?
        };
        if let Some(record) = record {
            file.write_all(record.line().as_bytes()).map_err(|e| io(path, "writing", e))?;
        }
        Ok((Box::new(file), earlier))
    }

    /// Writes the reports. It is called after each comparison, so that an interruption later leaves
    /// a report.
    pub(super) fn report(&self, done: &[Comparison]) -> VerbResult {
        let write = |path: &Option<PathBuf>, page: &dyn Fn() -> String| -> VerbResult {
            match path {
                Some(path) => Ok(NewFile::replacing(path)?.finish_with(page().as_bytes())?),
                None => Ok(()),
            }
        };
        write(&self.html, &|| html(done))?;
        write(&self.markdown, &|| done.iter().map(|c| markdown(c) + "\n").collect())
    }

    /// The paths of all outputs, for the last line on the terminal.
    pub(super) fn in_words(&self) -> String {
        let reports: Vec<String> = [&self.html, &self.markdown]
            .into_iter()
            .flatten()
            .map(|p| p.display().to_string())
            .collect();
        let reports = if reports.is_empty() {
            String::new()
        } else {
            format!("; report: {}", reports.join(", "))
        };
        format!("raw trials: {}{reports}", self.lines.display())
    }
}
