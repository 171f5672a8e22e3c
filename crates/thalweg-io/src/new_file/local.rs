//! A file that is written beside its final path.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::existing;
use super::temporary::Temporary;
use crate::error::{Error, Result};

/// Bytes buffered before each write.
const BUFFER: usize = 4 << 20;

/// A file under a temporary name. It is removed on drop, unless it got its final path.
#[derive(Debug)]
pub(super) struct LocalFile {
    name: Arc<str>,
    path: PathBuf,
    temporary: Temporary,
    state: State,
    buffer: Vec<u8>,
    written: u64,
    /// Whether a file at `path` is replaced.
    pub(super) replaces: bool,
    /// The permissions of the file that is replaced.
    permissions: Option<Permissions>,
    /// Whether it is only read again by this process.
    is_aside: bool,
}

#[derive(Debug)]
enum State {
    Open(File),
    /// Complete and durable. It holds no descriptor while it waits for its rename.
    Sealed,
    /// Bytes were lost, so the file must not get its path.
    Failed,
}

impl LocalFile {
    /// A file that gets the path `target`. Messages call it `name`.
    pub(super) fn create(name: &Arc<str>, target: &Path) -> Result<Self> {
        let existing = fs::metadata(target).ok();
        if existing.as_ref().is_some_and(|meta| !meta.is_file()) {
            return Err(existing::no_file(Path::new(&**name)));
        }
        let permissions = existing.map(|meta| meta.permissions());
        // A link that leads nowhere is replaced itself.
        let replaces = permissions.is_some() || target.is_symlink();
        let made = Temporary::file(target).map_err(|e| creating(name, e))?;
        let path = target.to_owned();
        let file = Self { path, replaces, permissions, ..Self::new(name, made) };
        if let Some(permissions) = &file.permissions {
            file.permit(&writable(permissions))?;
        }
        Ok(file)
    }

    /// A file in the folder for temporary files, which only its owner may read. It gets no other
    /// path.
    pub(super) fn aside(name: &Arc<str>) -> Result<Self> {
        let made = Temporary::aside().map_err(|e| creating(name, e))?;
        let file = Self { is_aside: true, ..Self::new(name, made) };
        file.permit(&Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// A new file that keeps its temporary path.
    fn new(name: &Arc<str>, (temporary, file): (Temporary, File)) -> Self {
        Self {
            name: name.clone(),
            path: temporary.path().to_owned(),
            temporary,
            state: State::Open(file),
            buffer: Vec::new(),
            written: 0,
            replaces: false,
            permissions: None,
            is_aside: false,
        }
    }

    fn permit(&self, permissions: &Permissions) -> Result<()> {
        fs::set_permissions(self.temporary.path(), permissions.clone())
            .map_err(|e| Error::io(&self.name, "copying the permissions of", e))
    }

    /// See [`NewFile::push`](super::NewFile::push).
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() >= BUFFER {
            self.flush()?;
            return self.write(bytes);
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(BUFFER);
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// The number of bytes appended so far.
    pub(super) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
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
    pub(super) fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// See [`NewFile::seal`](super::NewFile::seal).
    pub(super) fn seal(&mut self) -> Result<()> {
        self.flush()?;
        self.buffer = Vec::new();
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Open(_) if self.is_aside => {}
            State::Open(file) => {
                file.sync_all().map_err(|e| Error::io(&self.name, "finishing", e))?;
            }
            State::Sealed => {}
            State::Failed => return Err(self.closed()),
        }
        self.state = State::Sealed;
        Ok(())
    }

    /// See [`NewFile::finish`](super::NewFile::finish).
    pub(super) fn finish(mut self) -> Result<()> {
        self.seal()?;
        if let Some(permissions) = &self.permissions {
            fs::set_permissions(self.temporary.path(), permissions.clone())
                .map_err(|e| Error::io(&self.name, "finishing", e))?;
        }
        self.temporary
            .rename(&self.path, self.replaces)
            .map_err(|e| existing::not_renamed(&self.name, e))
    }
}

/// The permissions of a file that is being written: `final_`, and the owner may read and write.
fn writable(final_: &Permissions) -> Permissions {
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
pub(super) fn creating(name: &Arc<str>, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::NotFound {
            file: name.clone(),
            what: "the folder for this file".into(),
            advice: "make the folder first".into(),
        };
    }
    Error::io(name, "creating", error)
}
