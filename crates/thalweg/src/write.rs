//! Files that appear whole or not at all: a temporary sibling, fsync, rename.

mod arrow;
#[cfg(feature = "hdf5")]
mod fast5;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::slow5::{Encoding, Entry, Framing, Header, Index};

pub use arrow::ArrowWriter;
#[cfg(feature = "hdf5")]
pub use fast5::Fast5Writer;

/// Bytes gathered before each write.
const BUFFER: usize = 4 << 20;

/// A file being written under a temporary name beside its own. Dropped unfinished, it is removed.
#[derive(Debug)]
pub struct NewFile {
    name: Arc<str>,
    path: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
    written: u64,
}

impl NewFile {
    /// Starts the file. An existing one is replaced at the end, and only then.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written, [`Error::Unsupported`] if something other than a file is there.
    pub fn create(path: &Path) -> Result<Self> {
        let name: Arc<str> = path.to_string_lossy().into();
        // The rename at the end would replace a device by a file, and a link by what should go where it leads.
        if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            let what = "writing to a folder, pipe or device";
            let advice = "give the path of a regular file";
            return Err(Error::Unsupported { file: name, what: what.into(), advice: advice.into() });
        }
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(|e| Error::io(&name, "creating", e))?;
        let path = path.to_owned();
        Ok(Self { name, path, temporary, file: Some(file), buffer: Vec::with_capacity(BUFFER), written: 0 })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Bytes appended so far.
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Whether nothing has been appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn flush(&mut self) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(&self.buffer).map_err(|e| Error::io_at(&self.name, "writing", self.written, e))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Makes the bytes durable and gives the file its name.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        if let Some(file) = self.file.take() {
            let outcome = file.sync_all().and_then(|()| fs::rename(&self.temporary, &self.path));
            if let Err(e) = outcome {
                let _ = fs::remove_file(&self.temporary);
                return Err(Error::io(&self.name, "finishing", e));
            }
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A SLOW5 or BLOW5 file being written, record by record. Its index is built on the way.
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
    /// [`Error::Io`] if the folder cannot be written, [`Error::Usage`] if the header cannot be written down.
    pub fn create(path: &Path, header: &Header) -> Result<Self> {
        let mut file = NewFile::create(path)?;
        let bytes = header.write().map_err(|f| {
            Error::Usage(format!("{}: the header has {}, expected {}", path.display(), f.found, f.expected).into())
        })?;
        file.push(&bytes)?;
        Ok(Self { file, encoding: header.encoding, index: Index::new(header.written_version()) })
    }

    /// Starts a file with a header as it is stored elsewhere, byte for byte. The records must be of the same kind.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written.
    pub fn copying(path: &Path, header: &Header, stored: &[u8]) -> Result<Self> {
        let mut file = NewFile::create(path)?;
        file.push(stored)?;
        Ok(Self { file, encoding: header.encoding, index: Index::new(header.version) })
    }

    /// Appends a record as [`Encoder::record`](crate::format::slow5::Encoder::record) made it.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Usage`] for a read id that was written before.
    pub fn push(&mut self, read_id: &str, frame: &[u8]) -> Result<()> {
        let entry = Entry { offset: self.file.len(), size: frame.len() as u64 };
        self.index
            .push(read_id, entry)
            .map_err(|f| Error::Usage(format!("{}: {}, expected {}", self.file.name, f.found, f.expected).into()))?;
        self.file.push(frame)
    }

    /// Ends the file and gives it its name; the index is for whoever wants to save it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<Index> {
        self.file.push(Framing::new(self.encoding).end_marker())?;
        self.file.finish()?;
        Ok(self.index)
    }
}

/// Writes an index file, and the folder for it if need be.
///
/// # Errors
/// [`Error::Io`], as where the folder is read-only.
pub fn save_index(index: &Index, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io(&folder.to_string_lossy().into(), "creating", e))?;
    }
    let mut file = NewFile::create(path)?;
    for part in index.parts() {
        file.push(part)?;
    }
    file.finish()
}
