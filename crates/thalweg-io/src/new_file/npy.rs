//! Folders of arrays in numpy's format (NEP 1, version 1.0) that appear complete or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::existing::not_renamed;
use super::local::creating;
use super::object::{file_path, upload_folder, writer};
use super::temporary::Temporary;
use crate::urls::url;
use crate::{Error, Result};

/// A folder that is written under a temporary name beside its final path, or for a URL in the
/// folder for temporary files. An unfinished folder is removed on drop.
#[derive(Debug)]
pub struct NpyFolder {
    name: Arc<str>,
    path: PathBuf,
    temporary: Temporary,
}

/// An array that is being written.
#[derive(Debug)]
pub struct NpyArray {
    name: Arc<str>,
    file: BufWriter<File>,
    descr: String,
    /// The dimensions after the first.
    inner: Vec<u64>,
    element: u64,
    written: u64,
}

/// The start of every file: signature and version of the format.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// Bytes buffered before each write. The buffer is small because many arrays may be open at once.
const BUFFER: usize = 64 << 10;
/// The header is padded to a multiple of this, so that the values can be mapped.
const ALIGNMENT: usize = 64;

impl NpyFolder {
    /// Creates the temporary folder.
    ///
    /// # Errors
    /// [`Error::Io`] if the parent folder cannot be written, [`Error::Unsupported`] if `path`
    /// exists.
    pub fn create(path: &Path) -> Result<Self> {
        let path = &*file_path(path)?;
        let name: Arc<str> = path.to_string_lossy().into();
        if let Some(url) = url(path) {
            // Where nothing can be written, this fails now rather than at the end.
            let url = url.trim_end_matches('/');
            if writer(url)?.find(url)?.is_some() {
                return Err(super::existing::exists(path));
            }
            let temporary = Temporary::aside_folder().map_err(|e| creating(&name, e))?;
            return Ok(Self { name, path: url.into(), temporary });
        }
        if fs::symlink_metadata(path).is_ok() {
            let what = "replacing what is there by a folder of arrays";
            return Err(Error::Unsupported {
                file: name,
                what: what.into(),
                advice: "give another name, or remove it first".into(),
            });
        }
        // Without a slash at its end, the path names an entry of its parent.
        let path: PathBuf = path.components().collect();
        let temporary = Temporary::folder(&path).map_err(|e| creating(&name, e))?;
        Ok(Self { name, path, temporary })
    }

    /// Creates an array. `descr` is numpy's `dtype.str`, `size` the bytes of one value, `inner` the
    /// dimensions after the first. The name may contain folders; components that would lead out of
    /// the folder are replaced or dropped.
    ///
    /// # Errors
    /// [`Error::Io`], for instance if two arrays have the same name.
    pub fn array(&self, name: &str, descr: &str, size: usize, inner: &[u64]) -> Result<NpyArray> {
        let mut path = self.temporary.path().to_owned();
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => path.push(part),
                Component::ParentDir => path.push("_"),
                Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
            }
        }
        if path == self.temporary.path() {
            path.push("_");
        }
        path.as_mut_os_string().push(".npy");
        let failed = |e| Error::io(&self.name, "creating an array in", e);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let file = BufWriter::with_capacity(BUFFER, File::create_new(&path).map_err(failed)?);
        let element = inner.iter().product::<u64>() * size as u64;
        let descr = descr.to_owned();
        let inner = inner.to_vec();
        let mut array =
            NpyArray { name: self.name.clone(), file, descr, inner, element, written: 0 };
        array.head(None)?;
        Ok(array)
    }

    /// Renames the folder to its final path. Every array must be finished before. At a URL, each
    /// array becomes an object; if one fails, those before it are removed again.
    ///
    /// # Errors
    /// [`Error::Io`], for instance if something else took the final path meanwhile.
    pub fn finish(self) -> Result<()> {
        if let Some(url) = url(&self.path) {
            return upload_folder(self.temporary.path(), url);
        }
        let failed = |e| Error::io(&self.name, "finishing", e);
        File::open(self.temporary.path()).and_then(|folder| folder.sync_all()).map_err(failed)?;
        self.temporary.rename(&self.path, false).map_err(|e| not_renamed(&self.name, e))
    }
}

impl NpyArray {
    /// Writes the header with `shape`, or, if it is not known yet, with the longest possible shape
    /// to reserve room.
    fn head(&mut self, shape: Option<&[u64]>) -> Result<()> {
        let dictionary = |shape: &[u64]| {
            let lengths: String = shape.iter().map(|length| format!("{length},")).collect();
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({lengths}), }}", self.descr)
        };
        let most: Vec<u64> = [u64::MAX].iter().chain(&self.inner).copied().collect();
        let front = MAGIC.len() + size_of::<u16>();
        let len = (front + dictionary(&most).len() + 1).next_multiple_of(ALIGNMENT) - front;
        let Ok(stored) = u16::try_from(len) else {
            return Err(Error::Usage(format!("an array of {} dimensions", most.len()).into()));
        };
        let text = dictionary(shape.unwrap_or(&most));
        let head =
            [MAGIC, &stored.to_le_bytes(), format!("{text:<width$}\n", width = len - 1).as_bytes()]
                .concat();
        self.file.write_all(&head).map_err(|e| Error::io(&self.name, "writing", e))
    }

    /// Appends elements, encoded as `descr` states.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.written += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|e| Error::io(&self.name, "writing", e))
    }

    /// Writes the final shape and makes the array durable. Without `shape`, the first dimension
    /// follows from the appended bytes.
    ///
    /// # Errors
    /// [`Error::Io`], as on a full disk.
    pub fn finish(mut self, shape: Option<&[u64]>) -> Result<()> {
        let name = self.name.clone();
        let failed = |e| Error::io(&name, "finishing", e);
        let length = self.written.checked_div(self.element).unwrap_or(0);
        let own: Vec<u64> = [length].iter().chain(&self.inner).copied().collect();
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.head(Some(shape.unwrap_or(&own)))?;
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(failed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::NpyFolder;

    #[test]
    fn headers_say_type_and_shape_on_a_boundary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let made = NpyFolder::create(&path).unwrap();
        let mut array = made.array("/bank/../id", "<u2", 2, &[3]).unwrap();
        array.push(&[1, 0, 2, 0, 3, 0]).unwrap();
        array.push(&[4, 0, 5, 0, 6, 0]).unwrap();
        array.finish(None).unwrap();
        made.array("/", "<u2", 2, &[]).unwrap().finish(Some(&[])).unwrap();
        assert!(!path.exists());
        made.finish().unwrap();
        let bytes = std::fs::read(path.join("bank/_/id.npy")).unwrap();
        let head = bytes.len() - 12;
        assert!(head.is_multiple_of(64) && bytes.starts_with(b"\x93NUMPY\x01\x00"));
        let text = String::from_utf8_lossy(&bytes[10..head]).into_owned();
        assert_eq!(text.trim_end(), "{'descr': '<u2', 'fortran_order': False, 'shape': (2,3,), }");
        assert_eq!(usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), head - 10);
        assert!(text.ends_with('\n'));
        let alone = std::fs::read(path.join("_.npy")).unwrap();
        assert!(String::from_utf8_lossy(&alone).contains("'shape': (), "));
    }

    #[test]
    fn unfinished_work_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        drop(NpyFolder::create(&path).unwrap().array("id", "<u2", 2, &[]).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        std::fs::create_dir(&path).unwrap();
        assert!(NpyFolder::create(&path).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
