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

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use temporary::Temporary;

pub use arrow::ArrowWriter;
pub use existing::{Existing, Inputs, check_output};
pub use npy::{NpyArray, NpyFolder};
pub use temporary::nameless;

mod arrow;
mod existing;
mod npy;
mod temporary;

/// Bytes buffered before each write.
const BUFFER: usize = 4 << 20;

/// A file that is written under a temporary name beside its final path. An unfinished file is
/// removed on drop; one of a process that was killed, by the next process that writes a file into
/// the folder.
#[derive(Debug)]
pub struct NewFile {
    name: Arc<str>,
    path: PathBuf,
    temporary: Temporary,
    state: State,
    buffer: Vec<u8>,
    written: u64,
    /// Whether a file at `path` is replaced.
    replaces: bool,
    /// The permissions of the file that is replaced.
    permissions: Option<Permissions>,
}

#[derive(Debug)]
enum State {
    Open(File),
    /// Complete and durable. It holds no descriptor while it waits for its rename.
    Sealed,
    /// Bytes were lost, so the file must not get its path.
    Failed,
}

impl NewFile {
    /// Creates the temporary file. [`NewFile::finish`] replaces a file that is at `path` now, and
    /// gives the new file its permissions. A file that appears at `path` later is kept, and is an
    /// error then.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written, [`Error::Unsupported`] if `path` is something
    /// other than a regular file.
    pub fn create(path: &Path) -> Result<Self> {
        Self::at(path, &followed(path))
    }

    /// [`NewFile::create`] for a file that several processes may write at the same time, all with
    /// the same contents: [`NewFile::finish`] replaces whatever file is at `path` then.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn replacing(path: &Path) -> Result<Self> {
        Ok(Self { replaces: true, ..Self::at(path, &followed(path))? })
    }

    /// [`NewFile::replacing`] for a file that thalweg writes beside the user's without being asked
    /// to. It replaces only files of its own kind, which `is_kind` tells by their first bytes, and
    /// no link, because a link may lead to any file of the user's.
    ///
    /// # Errors
    /// Those of [`NewFile::create`]; [`Error::Exists`] if `path` is something else.
    pub fn sidecar(path: &Path, is_kind: fn(&[u8]) -> bool) -> Result<Self> {
        check_output(path, [""; 0], Existing::Sidecar(is_kind))?;
        Ok(Self { replaces: true, ..Self::at(path, path)? })
    }

    fn at(path: &Path, target: &Path) -> Result<Self> {
        let name: Arc<str> = path.to_string_lossy().into();
        let existing = fs::metadata(target).ok();
        if existing.as_ref().is_some_and(|meta| !meta.is_file()) {
            return Err(existing::no_file(path));
        }
        let (temporary, file) = Temporary::file(target).map_err(|e| creating(&name, e))?;
        let permissions = existing.map(|meta| meta.permissions());
        if let Some(permissions) = &permissions {
            let failed = |e| Error::io(&name, "copying the permissions of", e);
            file.set_permissions(writable(permissions)).map_err(failed)?;
        }
        Ok(Self {
            name,
            path: target.to_owned(),
            temporary,
            state: State::Open(file),
            buffer: Vec::with_capacity(BUFFER),
            written: 0,
            // A link that leads nowhere is replaced itself.
            replaces: permissions.is_some() || target.is_symlink(),
            permissions,
        })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk, and after [`NewFile::seal`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= BUFFER {
            self.flush()?;
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Appends the last bytes, and finishes the file.
    ///
    /// # Errors
    /// Those of [`NewFile::push`] and [`NewFile::finish`].
    pub fn finish_with(mut self, bytes: &[u8]) -> Result<()> {
        self.push(bytes)?;
        self.finish()
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
        let outcome = if buffer.is_empty() { Ok(()) } else { self.write(&buffer) };
        buffer.clear();
        self.buffer = buffer;
        outcome
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let State::Open(file) = &mut self.state else { return Err(self.closed()) };
        if let Err(error) = write_counted(file, bytes, &mut self.written) {
            self.state = State::Failed;
            return Err(Error::io_at(&self.name, "writing", self.written, error));
        }
        Ok(())
    }

    /// The error for a file that takes no more bytes.
    fn closed(&self) -> Error {
        let error = io::Error::other("the new file is complete, or a write failed before");
        Error::io_at(&self.name, "writing", self.written, error)
    }

    /// The path of the temporary file.
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Makes the bytes durable. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn seal(&mut self) -> Result<()> {
        self.flush()?;
        self.buffer = Vec::new();
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(file) => {
                file.sync_all().map_err(|e| Error::io(&self.name, "finishing", e))?;
            }
            State::Sealed => {}
            State::Failed => return Err(self.closed()),
        }
        self.state = State::Sealed;
        Ok(())
    }

    /// Makes the bytes durable and renames the file to its final path.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk; [`Error::Exists`] if another file appeared at the path
    /// meanwhile.
    pub fn finish(mut self) -> Result<()> {
        self.seal()?;
        let failed = |e| Error::io(&self.name, "finishing", e);
        if let Some(permissions) = self.permissions {
            fs::set_permissions(self.temporary.path(), permissions).map_err(failed)?;
        }
        self.temporary
            .rename(&self.path, self.replaces)
            .map_err(|e| existing::not_renamed(&self.name, e))
    }
}

/// The path that a path leads to. A rename would replace a link, not the file that it leads to.
fn followed(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// The permissions of a file that is being written: `final_`, and the owner may read and write.
fn writable(final_: &Permissions) -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(final_.mode() | 0o600)
}

/// Writes all of `bytes`, and adds to `written` what was written. After an error, `written` says
/// where: a full disk takes the first part of a write.
pub(crate) fn write_counted(
    file: &mut impl Write,
    mut bytes: &[u8],
    written: &mut u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => {
                *written += len as u64;
                bytes = bytes.get(len..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The error for a file that cannot be created.
fn creating(name: &Arc<str>, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::NotFound {
            file: name.clone(),
            what: "the folder for this file".into(),
            advice: "make the folder first".into(),
        };
    }
    Error::io(name, "creating", error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
