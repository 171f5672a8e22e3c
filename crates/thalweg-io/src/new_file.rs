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

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::urls::url;
use local::LocalFile;
use object::{upload, writer};

pub use arrow::ArrowWriter;
pub use existing::{Existing, Inputs, check_output};
pub(crate) use local::write_counted;
pub use npy::{NpyArray, NpyFolder};
pub use object::{
    NewObject, Replaced, WriteUrl, create_parent, file_path, remove, write_urls_with,
};
pub use temporary::nameless;

mod arrow;
mod existing;
mod local;
mod npy;
mod object;
mod temporary;

/// A file that is written under a temporary name beside its final path. An unfinished file is
/// removed on drop; one of a process that was killed, by the next process that writes a file into
/// the folder.
///
/// At a URL it is an object, which is uploaded while it is written, and whose upload is aborted on
/// drop.
#[derive(Debug)]
pub struct NewFile {
    name: Arc<str>,
    path: PathBuf,
    bytes: Bytes,
}

/// Where the bytes go.
#[derive(Debug)]
enum Bytes {
    File(LocalFile),
    Object {
        object: Box<dyn NewObject>,
        written: u64,
    },
    Stream {
        to: Stream,
        written: u64,
    },
    /// Into a file, which is uploaded when it is complete.
    Staged {
        file: LocalFile,
        object: Box<dyn NewObject>,
    },
}

/// What takes bytes as they come.
struct Stream(Box<dyn Write + Send>);

impl Stream {
    fn flush(&mut self, name: &Arc<str>) -> Result<()> {
        self.0.flush().map_err(|e| Error::io(name, "writing", e))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl NewFile {
    /// A file that is no file: its bytes go to `to` at once, and what was written stays whatever
    /// happens. `name` is for messages.
    pub fn stream(name: &str, to: impl Write + Send + 'static) -> Self {
        let bytes = Bytes::Stream { to: Stream(Box::new(to)), written: 0 };
        Self { name: name.into(), path: PathBuf::new(), bytes }
    }

    /// Creates the temporary file. [`NewFile::finish`] replaces a file that is at `path` now, and
    /// gives the new file its permissions. A file that appears at `path` later is kept, and is an
    /// error then. Objects at URLs are replaced by the same rule.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be written,
    /// [`Error::Unsupported`] if `path` is something other than a
    /// regular file, or a URL that is only read.
    pub fn create(path: &Path) -> Result<Self> {
        Self::at(path, Replaced::WhatIsThere, false)
    }

    /// [`NewFile::create`] for a file that something else writes, at the path
    /// [`NewFile::temporary`], or that is read there before it is finished. If `path` is a URL,
    /// this path is in the folder for temporary files ([`std::env::temp_dir`]).
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn staged(path: &Path) -> Result<Self> {
        Self::at(path, Replaced::WhatIsThere, true)
    }

    /// [`NewFile::create`] for a file that several processes may write at the same time, all with
    /// the same contents: [`NewFile::finish`] replaces whatever file is at `path` then.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn replacing(path: &Path) -> Result<Self> {
        Self::at(path, Replaced::Anything, false)
    }

    /// [`NewFile::replacing`] for a file that thalweg writes beside the user's without being asked
    /// to. It replaces only files of its own kind, which `is_kind` tells by their first bytes, and
    /// no link, because a link may lead to any file of the user's.
    ///
    /// # Errors
    /// Those of [`NewFile::create`]; [`Error::Exists`] if `path` is something
    /// else.
    pub fn sidecar(path: &Path, is_kind: fn(&[u8]) -> bool) -> Result<Self> {
        check_output(path, [""; 0], Existing::Sidecar(is_kind))?;
        if url(path).is_some() {
            return Self::replacing(path);
        }
        Self::local(path, path, Replaced::Anything)
    }

    fn at(path: &Path, replaced: Replaced, is_staged: bool) -> Result<Self> {
        let path: Cow<'_, Path> = file_path(path)?;
        let Some(url) = url(&path) else {
            return Self::local(&path, &followed(&path), replaced);
        };
        let object = writer(url)?.create(url, replaced)?;
        let name = object.name().clone();
        let bytes = if is_staged {
            Bytes::Staged { file: LocalFile::aside(&name)?, object }
        } else {
            Bytes::Object { object, written: 0 }
        };
        Ok(Self { name, path: path.into_owned(), bytes })
    }

    fn local(path: &Path, target: &Path, replaced: Replaced) -> Result<Self> {
        let name: Arc<str> = path.to_string_lossy().into();
        let mut file = LocalFile::create(&name, target)?;
        file.replaces |= replaced == Replaced::Anything;
        Ok(Self { name, path: target.to_owned(), bytes: Bytes::File(file) })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk, and after [`NewFile::seal`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.bytes {
            Bytes::File(file) | Bytes::Staged { file, .. } => file.push(bytes),
            Bytes::Object { object, written } => {
                object.push(bytes)?;
                *written += bytes.len() as u64;
                Ok(())
            }
            Bytes::Stream { to, written } => {
                to.0.write_all(bytes).map_err(|e| Error::io(&self.name, "writing", e))?;
                *written += bytes.len() as u64;
                Ok(())
            }
        }
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

    /// The final path of the file, or its URL.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of bytes appended so far.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::File(file) | Bytes::Staged { file, .. } => file.len(),
            Bytes::Object { written, .. } | Bytes::Stream { written, .. } => *written,
        }
    }

    /// Whether nothing has been appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The path of the temporary file. An object has none, and this is its URL, unless it was made
    /// by [`NewFile::staged`]; a stream has none at all, and this is empty.
    pub fn temporary(&self) -> &Path {
        match &self.bytes {
            Bytes::File(file) | Bytes::Staged { file, .. } => file.temporary(),
            Bytes::Object { .. } | Bytes::Stream { .. } => &self.path,
        }
    }

    /// Makes the bytes durable. Nothing can be appended afterwards. A staged object is uploaded by
    /// [`NewFile::finish`] only, because its file may still be read.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn seal(&mut self) -> Result<()> {
        match &mut self.bytes {
            Bytes::File(file) | Bytes::Staged { file, .. } => file.seal(),
            Bytes::Object { object, .. } => object.seal(),
            Bytes::Stream { to, .. } => to.flush(&self.name),
        }
    }

    /// Makes the bytes durable and renames the file to its final path. An object becomes visible.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk;
    /// [`Error::Exists`] if another file appeared at the path meanwhile.
    pub fn finish(self) -> Result<()> {
        match self.bytes {
            Bytes::Stream { mut to, .. } => to.flush(&self.name),
            Bytes::File(file) => file.finish(),
            Bytes::Object { object, .. } => object.finish(),
            Bytes::Staged { mut file, object } => {
                file.seal()?;
                upload(file.temporary(), object)
            }
        }
    }
}

/// The path that a path leads to. A rename would replace a link, not the file that it leads to.
fn followed(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
