//! Checking a whole file, and recovering the intact reads of a damaged one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use thalweg_io::urls;
use thalweg_io::{Error, Result};

use super::ReadFile;
use crate::file::CheckReport;

impl ReadFile {
    /// Decodes the whole file, and reports every defect of the file and of the index beside it.
    ///
    /// The check continues after a damaged record whose size is intact. If the framing is lost, it
    /// continues at the next place where a record decodes in full.
    ///
    /// ```
    /// use thalweg_io::open::Options;
    /// use thalweg_nanopore::reads::ReadFile;
    /// # use thalweg_nanopore::{synth::{Recipe, Synth}, write::Coding};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("reads.slow5");
    /// # let recipe = Recipe { reads: 4, mean_length: 500.0, ..Recipe::default() };
    /// # Synth::new(recipe)?.write(&path, Coding::Slow5)?;
    /// let whole = std::fs::read(&path)?;
    /// std::fs::write(&path, &whole[..whole.len() - 100])?;
    ///
    /// let report = ReadFile::open(&path, Options::default())?.check()?;
    /// assert_eq!(report.reads, 3);
    /// assert_eq!(report.defects.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Truncated`] if bytes cannot be read. Defects of the file are not
    /// errors: they are in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.reads.check(&self.file)
    }

    /// Checks the file, and writes every intact record to a new file at `out`, with the same
    /// header, the same stored bytes, and a correct end. If only the size of a record is wrong, the
    /// size is corrected. If several reads have the same id, only the first is kept.
    ///
    /// For a POD5 file, the tables are written again: rows of the Reads table are encoded anew, and
    /// their signal is copied as stored. All reads with the same id are kept.
    /// [`CheckReport::left_out`] lists content that a row cannot hold.
    ///
    /// Without checksums (only zlib has them), a record counts as intact if it decodes in full.
    ///
    /// # Errors
    /// Those of [`ReadFile::check`]; [`Error::Usage`] if `out` is the file itself; [`Error::Io`] if
    /// `out` cannot be written; [`Error::Unsupported`] for FAST5.
    pub fn salvage(&self, out: &Path) -> Result<CheckReport> {
        if self.file.path.as_deref().is_some_and(|path| is_same_file(path, out)) {
            return Err(Error::Usage(
                format!("{}: a file cannot be salvaged to itself", urls::shown_path(out)).into(),
            ));
        }
        self.reads.salvage(&self.file, out)
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}
