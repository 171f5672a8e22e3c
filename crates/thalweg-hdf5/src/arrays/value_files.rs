//! The other files that hold values of a file: no output may replace them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use thalweg_io::Result;
use thalweg_io::new_file::{Existing, check_output};

use super::ArrayFile;
use crate::metadata::with_number;

impl ArrayFile {
    /// Checks that an output replaces none of the other files that hold values of this one: those
    /// of external datasets, the sources of virtual datasets, and those that hold values of these.
    /// Files that may not be read count, too.
    ///
    /// # Errors
    /// [`thalweg_io::Error::Usage`] if the output is one of them; the errors of the store.
    pub fn check_output(&self, output: &Path) -> Result<()> {
        // What is not there cannot be destroyed. To look for the files, all objects are read.
        if fs::metadata(output).is_err() {
            return Ok(());
        }
        let mut paths = BTreeSet::new();
        self.add_value_files(&mut paths)?;
        check_output(output, paths, Existing::Replace)
    }

    fn add_value_files(&self, paths: &mut BTreeSet<PathBuf>) -> Result<()> {
        let other_files = self.metadata().other_files();
        for stored in self.metadata().value_file_names()? {
            let numbered = (0..)
                .map_while(|number| with_number(&stored, number))
                .take_while(|name| other_files.place(name).is_some());
            for name in numbered.chain([stored.clone()]) {
                let Some(path) = other_files.place(&name) else { continue };
                if !paths.insert(path) {
                    continue;
                }
                // Bytes of an external dataset are no HDF5 file, and some files may not be read.
                if let Ok(Some(source)) = self.source(&name.into()) {
                    source.file.add_value_files(paths)?;
                }
            }
        }
        Ok(())
    }
}
