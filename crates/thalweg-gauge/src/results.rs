//! Reads result files into a common form. The results may be measured here, measured elsewhere, or
//! typed in from a publication.

mod entry;
pub mod published;
mod remarks;

use std::path::{Path, PathBuf};

use crate::comparison::{self, Comparison};
use crate::{Error, Result};

pub use entry::ResultEntry;
pub use published::Published;

/// The results of one file or folder.
#[derive(Debug, Clone, Default)]
pub struct ResultRun {
    /// The name of the run beside other runs.
    pub name: String,
    /// Comparisons that thalweg ran.
    pub comparisons: Vec<Comparison>,
    /// Tables that others published.
    pub published: Vec<Published>,
    /// Notes on the lines that were skipped, with the reason.
    pub notes: Vec<String>,
}

impl ResultRun {
    /// Reads a result file (`.jsonl`, or gzip-compressed), or all result files in a folder.
    ///
    /// # Errors
    /// When a file can't be read, is damaged before its last line, or has no results.
    pub fn read(path: &Path) -> Result<Self> {
        let mut run = Self { name: short_name(path), ..Self::default() };
        for file in result_files(path)? {
            let text = comparison::read_text(&file)?;
            let records = comparison::parse(&file, &text)?;
            run.comparisons.extend(records.comparisons);
            run.notes.extend(records.notes.iter().map(|n| format!("{}: {n}", file.display())));
            run.published.extend(published::parse(&file, &text)?);
        }
        if run.comparisons.is_empty() && run.published.is_empty() {
            let schemas = "neither a thalweg.session/1 nor a thalweg.published/1 line is in it";
            return Err(Error::Usage(format!("{}: no results: {schemas}", path.display())));
        }
        Ok(run)
    }

    /// All timed arms, in the order of the files. Control arms are left out: they repeat the
    /// baseline.
    pub fn entries(&self) -> Vec<ResultEntry> {
        let measured = self.comparisons.iter().flat_map(entry::measured);
        measured.chain(self.published.iter().flat_map(entry::published)).collect()
    }

    /// The origin of the results: the version of thalweg, or the publication.
    pub fn origin(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        let measured =
            self.comparisons.iter().map(|c| format!("thalweg-gauge {}", c.session.gauge_version));
        for origin in measured.chain(self.published.iter().map(|p| p.source.title.clone())) {
            if !all.contains(&origin) {
                all.push(origin);
            }
        }
        all.join(", ")
    }
}

/// The result files of a path: the file itself, or those in the folder, sorted by name.
///
/// # Errors
/// When the folder can't be listed, or has no result file.
pub fn result_files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let listing = std::fs::read_dir(path).map_err(|e| Error::io(path, "listing", e))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for item in listing {
        let file = item.map_err(|e| Error::io(path, "listing", e))?.path();
        let name = file.to_string_lossy().into_owned();
        if file.is_file() && (name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")) {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::Usage(format!(
            "{}: no .jsonl or .jsonl.gz file is in this folder",
            path.display()
        )));
    }
    Ok(files)
}

/// The name of a run: the name of the folder for a file `results.jsonl`, and the name of the file
/// otherwise.
fn short_name(path: &Path) -> String {
    let file = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = file.trim_end_matches(".gz").trim_end_matches(".jsonl");
    let folder = path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned());
    match folder {
        Some(folder) if stem == "results" => folder,
        _ if stem.is_empty() => path.display().to_string(),
        _ => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_by_what_tells_them_apart() {
        for (path, name) in [
            ("a/2026-11-22T0102Z/results.jsonl", "2026-11-22T0102Z"),
            ("a/before.jsonl.gz", "before"),
            ("results.jsonl", "results"),
            ("runs/here", "here"),
        ] {
            assert_eq!(short_name(Path::new(path)), name);
        }
    }
}
