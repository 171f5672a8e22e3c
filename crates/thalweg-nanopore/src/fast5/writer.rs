//! Writes FAST5 files that appear when they are complete.

use std::path::Path;

use thalweg_io::Result;
use thalweg_io::new_file::NewFile;

use crate::fast5::{Compression, EncodedRead, FileWriter};
use crate::record::Header;

/// A multi-read FAST5 file that is being written read by read. It is removed if this is dropped
/// unfinished.
#[derive(Debug)]
pub struct Fast5Writer {
    // Declared before `file`, so that it is closed before the file is removed.
    writer: FileWriter,
    file: NewFile,
}

impl Fast5Writer {
    /// Starts a file of reads that `header` describes.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io) if the folder cannot be written.
    pub fn create(path: &Path, header: &Header, compression: Compression) -> Result<Self> {
        let file = NewFile::staged(path)?;
        let writer = FileWriter::create(file.temporary(), file.name(), header, compression)?;
        Ok(Self { writer, file })
    }

    /// Appends a read that [`SignalCompressor::encode`](crate::fast5::SignalCompressor::encode)
    /// made.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io), for example on a full disk, and for an id that was
    /// written before.
    pub fn push(&mut self, read: &EncodedRead) -> Result<()> {
        self.writer.push(read)
    }

    /// Ends the file and gives it its final name.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io).
    pub fn finish(self) -> Result<()> {
        self.seal()?.finish()
    }

    /// Ends the file and makes it durable.
    pub(crate) fn seal(mut self) -> Result<NewFile> {
        self.writer.finish()?;
        self.file.seal()?;
        Ok(self.file)
    }
}
