//! Writing POD5 files read by read.

use std::path::Path;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Fault, Result};

use super::spill::Spill;
use crate::pod5::RunInfo;
use crate::pod5::write::{EncodedSignal, ExtraColumn, Pod5Encoder, Pod5Layout, ReadsRow};

/// Writes a POD5 file. If it is dropped before it is finished, the file is removed.
///
/// Memory does not grow with the file. Each full batch of signal is written. The Reads table is the
/// last table, so that its rows wait in memory, or in an unnamed file beside the POD5 file if there
/// are many.
#[derive(Debug)]
pub struct Pod5Writer {
    file: NewFile,
    tables: Pod5Encoder,
    late: Spill,
    out: Vec<u8>,
}

impl Pod5Writer {
    /// Starts a file. `extra` lists the columns of the Reads table that POD5 does not define.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written.
    pub fn create(path: &Path, layout: Pod5Layout, extra: &[ExtraColumn]) -> Result<Self> {
        Ok(Self::start(NewFile::create(path)?, layout, extra))
    }

    /// [`Pod5Writer::create`] in a new file.
    pub(crate) fn start(file: NewFile, layout: Pod5Layout, extra: &[ExtraColumn]) -> Self {
        let late = Spill::new(file.path(), file.name());
        let mut out = Vec::new();
        let tables = Pod5Encoder::start(layout, extra, &mut out);
        Self { file, tables, late, out }
    }

    /// Appends a read.
    ///
    /// # Errors
    /// [`Error::Io`], for example on a full disk. [`Error::Usage`] for a row that does not fit its
    /// columns.
    pub fn push(&mut self, row: &ReadsRow, signal: EncodedSignal) -> Result<()> {
        let outcome = self.tables.push(row, signal, &mut self.out, self.late.buffer());
        outcome.map_err(|fault| refused(&self.file, &fault))?;
        self.late.settle()?;
        self.write()
    }

    /// Ends the file and gives it its name. Rows refer to `run_infos` by index
    /// ([`ReadsRow::run_info`]).
    ///
    /// # Errors
    /// [`Error::Io`]. [`Error::Usage`] for a run info that does not fit its columns.
    pub fn finish(self, run_infos: &[RunInfo]) -> Result<()> {
        self.seal(run_infos)?.finish()
    }

    /// Ends the file and makes it durable.
    pub(crate) fn seal(mut self, run_infos: &[RunInfo]) -> Result<NewFile> {
        let outcome = self.tables.end_signal(run_infos, &mut self.out, self.late.buffer());
        let ending = outcome.map_err(|fault| refused(&self.file, &fault))?;
        self.file.push(&self.out)?;
        self.late.drain(|bytes| self.file.push(bytes))?;
        self.out.clear();
        ending.finish(&mut self.out);
        self.file.push(&self.out)?;
        self.file.seal()?;
        Ok(self.file)
    }

    fn write(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            self.file.push(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}

fn refused(file: &NewFile, fault: &Fault) -> Error {
    Error::Usage(format!("{}: {}, expected {}", file.name(), fault.found, fault.expected).into())
}
