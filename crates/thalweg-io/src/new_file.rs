//! Files that appear complete or not at all. They are written to a temporary sibling, synced, then
//! renamed.
//!
//! ```
//! use thalweg_io::new_file::NewFile;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("values.bin");
//! let mut file = NewFile::create(&path)?;
//! file.push(b"values")?;
//! assert!(!path.exists());
//! file.finish()?;
//! assert_eq!(std::fs::read(&path)?, b"values");
//! # Ok(())
//! # }
//! ```

use crate::error::{Error, Result};

pub use arrow::ArrowWriter;
pub use npy::{NpyArray, NpyFolder};

mod arrow;
mod npy;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes buffered before each write.
const BUFFER: usize = 4 << 20;

/// A file that is written under a temporary name beside its final path. An unfinished file is
/// removed on drop.
#[derive(Debug)]
pub struct NewFile {
    name: Arc<str>,
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once the file is sealed, so that files that wait for their rename hold no descriptor.
    file: Option<File>,
    buffer: Vec<u8>,
    written: u64,
    named: bool,
}

impl NewFile {
    /// Creates the temporary file. An existing file at `path` is replaced only by
    /// [`NewFile::finish`].
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written, [`Error::Unsupported`] if `path` is something
    /// other than a regular file.
    pub fn create(path: &Path) -> Result<Self> {
        let name: Arc<str> = path.to_string_lossy().into();
        // The final rename would replace a device by a file, and a symbolic link instead of its
        // target.
        if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
            let what = "writing to a folder, pipe or device";
            let advice = "give the path of a regular file";
            return Err(Error::Unsupported {
                file: name,
                what: what.into(),
                advice: advice.into(),
            });
        }
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(|e| Error::io(&name, "creating", e))?;
        let path = path.to_owned();
        let buffer = Vec::with_capacity(BUFFER);
        Ok(Self { name, path, temporary, file: Some(file), buffer, written: 0, named: false })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= BUFFER {
            self.flush()?;
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The final path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes appended so far.
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Whether nothing has been appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn flush(&mut self) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let outcome = self.write(&buffer);
        buffer.clear();
        self.buffer = buffer;
        outcome
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(|e| Error::io_at(&self.name, "writing", self.written, e))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// The path of the temporary file.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Makes the bytes durable. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn seal(&mut self) -> Result<()> {
        self.flush()?;
        self.buffer = Vec::new();
        let Some(file) = self.file.take() else { return Ok(()) };
        file.sync_all().map_err(|e| Error::io(&self.name, "finishing", e))
    }

    /// Makes the bytes durable and renames the file to its final path.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(mut self) -> Result<()> {
        self.seal()?;
        fs::rename(&self.temporary, &self.path)
            .map_err(|e| Error::io(&self.name, "finishing", e))?;
        self.named = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.named {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Creates a file at `path` and unlinks it at once. The system deletes it when it is closed,
/// however the process ends.
pub fn nameless(path: &Path) -> std::io::Result<File> {
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    fs::remove_file(path)?;
    Ok(file)
}
