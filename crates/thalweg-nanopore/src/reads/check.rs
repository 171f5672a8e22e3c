//! Integrity of a whole file, and recovery of what is intact in a damaged one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use thalweg_io::{Error, Result};

use super::ReadFile;
use crate::file::CheckReport;

impl ReadFile {
    /// Decodes the whole file and says everything that is wrong with it, and with the index beside
    /// it.
    ///
    /// Where a record is damaged but its size is not, the check goes on after it; where the framing
    /// is lost, at the next place where a record decodes in full.
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
    /// [`Error::Io`] and [`Error::Truncated`] where the bytes cannot be had. Defects of the file
    /// are no errors: they are in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.reads.check(&self.file)
    }

    /// Checks the file, and writes every intact record to a new one at `out`: the same header, the
    /// same stored bytes, and the end that belongs there. A record that is whole but for its size
    /// gets the right one. Of reads with the same id the first is kept.
    ///
    /// Of a POD5 file, whose tables belong together, a new one is made: the rows of the Reads table
    /// anew, their signal as it is stored, and reads with the same id all kept.
    /// [`CheckReport::left_out`] says what a row has no place for.
    ///
    /// Without checksums (only zlib has them), a record counts as intact if it decodes in full.
    ///
    /// # Errors
    /// As [`ReadFile::check`]; [`Error::Usage`] when `out` is the file itself; [`Error::Io`] when
    /// it cannot be written; [`Error::Unsupported`] for FAST5.
    pub fn salvage(&self, out: &Path) -> Result<CheckReport> {
        if self.file.path.as_deref().is_some_and(|path| is_same_file(path, out)) {
            return Err(Error::Usage(
                format!("{}: a file cannot be salvaged to itself", out.display()).into(),
            ));
        }
        self.reads.salvage(&self.file, out)
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let id = |path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}
