//! Arrow IPC files ("Feather version 2") that appear complete or not at all.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};

use super::NewFile;
use crate::{Error, Result};

/// An Arrow IPC file that is written batch by batch. An unfinished file is removed on drop.
pub struct ArrowWriter(FileWriter<ArrowSink>);

impl fmt::Debug for ArrowWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArrowWriter").field(&self.0.get_ref().file).finish()
    }
}

/// Keeps the original error, because Arrow passes on only its message.
struct ArrowSink {
    file: NewFile,
    failed: Option<Error>,
}

impl Write for ArrowSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.push(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let words = io::Error::other(error.to_string());
                self.failed = Some(error);
                Err(words)
            }
        }
    }

    /// Does nothing: [`NewFile::finish`] flushes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ArrowWriter {
    /// Starts a file of batches with these columns.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written.
    pub fn create(path: &Path, schema: &Schema) -> Result<Self> {
        let sink = ArrowSink { file: NewFile::create(path)?, failed: None };
        FileWriter::try_new(sink, schema).map(Self).map_err(refused)
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk; [`Error::Usage`] for a batch with other columns.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let outcome = self.0.write(batch);
        outcome.map_err(|error| self.0.get_mut().failed.take().unwrap_or_else(|| refused(error)))
    }

    /// Completes the file and renames it to its final path.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(mut self) -> Result<()> {
        let outcome = self.0.finish();
        outcome
            .map_err(|error| self.0.get_mut().failed.take().unwrap_or_else(|| refused(error)))?;
        self.0.into_inner().map_err(refused)?.file.finish()
    }
}

fn refused(error: ArrowError) -> Error {
    Error::Usage(format!("Arrow IPC: {error}").into())
}
