//! The files of a run's results, and how an interrupted run is found again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use thalweg::new_file::NewFile;
use thalweg_gauge::comparison::{Comparison, Earlier, read_text, reopen};
use thalweg_gauge::report::{html, is_markdown_file, is_page, markdown_file};
use thalweg_gauge::suite::SuiteRecord;

use super::files::io;
use crate::common::{Failure, VerbResult};
use crate::force::{ForceArgs, check_sidecar};
use crate::output_name::check_name;

/// The files that a run writes.
pub(super) struct Outputs {
    pub(super) lines: PathBuf,
    /// The page that the user named.
    page: Option<PathBuf>,
    /// The folder of the lines, if the reports that nobody named are written beside them.
    folder: Option<PathBuf>,
}

const LINES: &str = "results.jsonl";

impl Outputs {
    /// The lines and the reports in a new folder below `out`. With `json`, the lines go to that
    /// file, and a page is written only if `page` names it.
    pub(super) fn new(
        out: &Path,
        json: Option<&PathBuf>,
        page: Option<&PathBuf>,
    ) -> Result<Self, Failure> {
        let now = || jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%SZ").to_string();
        let outputs = match json {
            Some(lines) => {
                check_name(lines, "JSON", &["json"])?;
                Self { lines: lines.clone(), page: page.cloned(), folder: None }
            }
            None => {
                // Another run may have begun in the same second.
                let name = now();
                let names = (2..).map(|number| format!("{name}-{number}"));
                let mut free =
                    std::iter::once(name.clone()).chain(names).map(|name| out.join(name));
                let folder =
                    free.find(|folder| !folder.exists()).unwrap_or_else(|| out.join(&name));
                Self::inside(folder, page)
            }
        };
        let lines = outputs.lines.display();
        match fs::metadata(&outputs.lines) {
            Ok(meta) if meta.is_file() => Err(Failure::Usage(format!(
                "{lines} is there already: go on with it (--resume {lines}), or give another name"
            ))),
            Err(_) if outputs.lines.is_symlink() => Err(Failure::Usage(format!(
                "{lines} is a symbolic link that leads nowhere: give another name, or remove it"
            ))),
            _ => Ok(outputs),
        }
    }

    /// The outputs of an earlier run, by its folder or its file of lines.
    pub(super) fn earlier(path: &Path, page: Option<&PathBuf>) -> Self {
        if path.is_dir() {
            return Self::inside(path.to_owned(), page);
        }
        Self { lines: path.to_owned(), page: page.cloned(), folder: None }
    }

    fn inside(folder: PathBuf, page: Option<&PathBuf>) -> Self {
        Self { lines: folder.join(LINES), page: page.cloned(), folder: Some(folder) }
    }

    /// The page that is written without being named. Another file of that name is the user's.
    fn unnamed_page(&self) -> Option<PathBuf> {
        self.folder.as_ref().filter(|_| self.page.is_none()).map(|at| at.join("report.html"))
    }

    /// As [`Outputs::unnamed_page`], the report in Markdown.
    fn unnamed_markdown(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|at| at.join("report.md"))
    }

    /// Checks that the reports may be written. `inputs`: what the run reads.
    pub(super) fn check(
        &self,
        force: ForceArgs,
        inputs: impl IntoIterator<Item = PathBuf>,
    ) -> VerbResult {
        if let Some(page) = &self.page {
            force.check_kind(page, inputs.into_iter().chain([self.lines.clone()]), is_page)?;
            check_name(page, "HTML", &["html"])?;
        }
        if let Some(page) = self.unnamed_page() {
            check_sidecar(&page, &self.lines, is_page)?;
        }
        match self.unnamed_markdown() {
            Some(markdown) => check_sidecar(&markdown, &self.lines, is_markdown_file),
            None => Ok(()),
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
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder).map_err(|e| io(folder, "creating", e))?;
        }
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
        if let Some(path) = &self.page {
            NewFile::replacing(path)?.finish_with(html(done).as_bytes())?;
        }
        if let Some(path) = self.unnamed_page() {
            NewFile::sidecar(&path, is_page)?.finish_with(html(done).as_bytes())?;
        }
        if let Some(path) = self.unnamed_markdown() {
            let text = markdown_file(done);
            NewFile::sidecar(&path, is_markdown_file)?.finish_with(text.as_bytes())?;
        }
        Ok(())
    }

    /// The paths of all outputs, for the last line on the terminal.
    pub(super) fn in_words(&self) -> String {
        let reports: Vec<String> =
            [self.page.clone(), self.unnamed_page(), self.unnamed_markdown()]
                .iter()
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
