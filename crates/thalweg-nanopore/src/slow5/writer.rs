//! Writing SLOW5 and BLOW5 files record by record.

use std::path::Path;

use thalweg_io::new_file::NewFile;
use thalweg_io::{Error, Result};

use crate::record::{Encoding, Entry, Header, Index};
use crate::slow5::Framing;

/// Writes a SLOW5 or BLOW5 file record by record, and builds its index.
#[derive(Debug)]
pub struct ReadWriter {
    file: NewFile,
    encoding: Encoding,
    index: Index,
}

impl ReadWriter {
    /// Starts a file with this header.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written, [`Error::Usage`] if the format cannot express
    /// the header.
    pub fn create(path: &Path, header: &Header) -> Result<Self> {
        Self::start(NewFile::create(path)?, header)
    }

    /// [`ReadWriter::create`] in a new file.
    pub(crate) fn start(mut file: NewFile, header: &Header) -> Result<Self> {
        let bytes = header.write().map_err(|f| {
            let name = file.name();
            Error::Usage(
                format!("{name}: the header has {}, expected {}", f.found, f.expected).into(),
            )
        })?;
        file.push(&bytes)?;
        Ok(Self { file, encoding: header.encoding, index: Index::new(header.written_version()) })
    }

    /// Starts a file with `stored`, the bytes of another file's header. The records must have the
    /// encoding and the compressions of that header.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written.
    pub fn copying(path: &Path, header: &Header, stored: &[u8]) -> Result<Self> {
        let mut file = NewFile::create(path)?;
        file.push(stored)?;
        Ok(Self { file, encoding: header.encoding, index: Index::new(header.version) })
    }

    /// Appends a record from [`RecordEncoder::record`](crate::slow5::RecordEncoder::record).
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] for a read id that was written before.
    pub fn push(&mut self, read_id: &str, frame: &[u8]) -> Result<()> {
        let entry = Entry { offset: self.file.len(), size: frame.len() as u64 };
        self.index.push(read_id, entry).map_err(|f| {
            Error::Usage(
                format!("{}: {}, expected {}", self.file.name(), f.found, f.expected).into(),
            )
        })?;
        self.file.push(frame)
    }

    /// Ends the file and makes it durable. Returns the index, which is not saved.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn seal(mut self) -> Result<(NewFile, Index)> {
        self.file.push(Framing::new(self.encoding).end_marker())?;
        self.file.seal()?;
        Ok((self.file, self.index))
    }

    /// Ends the file and gives it its name. Returns the index, which is not saved.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<Index> {
        let (file, index) = self.seal()?;
        file.finish()?;
        Ok(index)
    }
}
