//! New files at URLs: objects, which a crate above this one uploads.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::urls::{is_file, unknown_scheme, url};

/// What a new file or object may take the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// Nothing.
    Nothing,
    /// What is there when it is created. What appears later is kept.
    WhatIsThere,
    /// Whatever is there when it is finished.
    Anything,
}

/// An object that is being uploaded. It is visible once it is finished. Dropped before, nothing of
/// it is left.
pub trait NewObject: Send + Sync + std::fmt::Debug {
    /// The name of the object in messages: its URL, without what may be secret.
    fn name(&self) -> &Arc<str>;

    /// Appends bytes. Waits while too many are under way.
    ///
    /// # Errors
    /// [`Error::Io`] if the service refuses them; [`Error::Cancelled`].
    fn push(&mut self, bytes: &[u8]) -> Result<()>;

    /// Waits until the service has all bytes but those of a last, small part. Nothing can be
    /// appended afterwards.
    ///
    /// # Errors
    /// Those of [`NewObject::push`].
    fn seal(&mut self) -> Result<()>;

    /// Makes the object visible.
    ///
    /// # Errors
    /// Those of [`NewObject::push`]; [`Error::Exists`] if another object appeared meanwhile.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Writes objects at URLs. A crate above this one does it, so that this one needs no network.
pub trait WriteUrl: Send + Sync + std::fmt::Debug {
    /// The path that a `file:` URL stands for.
    ///
    /// # Errors
    /// [`Error::Usage`] if it names no file of this machine.
    fn path(&self, url: &str) -> Result<PathBuf>;

    /// The first bytes of the object at a URL to which one is to be written; `None` if there is no
    /// object.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Usage`] about the URL, [`Error::Unsupported`] if it is only read.
    fn find(&self, url: &str) -> Result<Option<Vec<u8>>>;

    /// Starts an object.
    ///
    /// # Errors
    /// Those of [`WriteUrl::find`]; [`Error::Exists`].
    fn create(&self, url: &str, replaced: Replaced) -> Result<Box<dyn NewObject>>;

    /// Removes the object at a URL.
    ///
    /// # Errors
    /// Those of [`WriteUrl::find`].
    fn remove(&self, url: &str) -> Result<()>;
}

static WRITER: OnceLock<&dyn WriteUrl> = OnceLock::new();

/// Sets what writes to URLs in this process. Only the first call has an effect.
pub fn write_urls_with(writer: &'static dyn WriteUrl) {
    let _ = WRITER.set(writer);
}

/// What writes to a URL.
pub(super) fn writer(url: &str) -> Result<&'static dyn WriteUrl> {
    WRITER.get().copied().ok_or_else(|| Error::Unsupported {
        file: url.into(),
        what: "writing to a URL".into(),
        advice: "register what writes there: `thalweg_object::register()`".into(),
    })
}

/// The path that a `file:` URL stands for; other paths and URLs as they are.
///
/// # Errors
/// [`Error::Usage`] if it names no file of this machine, or is a URL of an unknown kind.
pub fn file_path(path: &Path) -> Result<Cow<'_, Path>> {
    match url(path) {
        Some(url) if is_file(url) => Ok(writer(url)?.path(url)?.into()),
        Some(_) => Ok(path.into()),
        // No folder is made of the name of a scheme.
        None => unknown_scheme(path).map_or_else(|| Ok(path.into()), Err),
    }
}

/// Creates the folder of a new file if necessary. An object needs none.
///
/// # Errors
/// [`Error::Io`], for example if the folder above it is read-only.
pub fn create_parent(path: &Path) -> Result<()> {
    let path = file_path(path)?;
    path.parent().filter(|_| url(&path).is_none()).map_or(Ok(()), |folder| {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io(&folder.to_string_lossy().into(), "creating", e))
    })
}

/// Removes a file, or the object at a URL.
///
/// # Errors
/// [`Error::Io`].
pub fn remove(path: &Path) -> Result<()> {
    let path = file_path(path)?;
    match url(&path) {
        Some(url) => writer(url)?.remove(url),
        None => fs::remove_file(&path)
            .map_err(|e| Error::io(&path.to_string_lossy().into(), "removing", e)),
    }
}

/// Bytes of a file that are uploaded at a time.
const PIECE: usize = 1 << 20;

/// Uploads a file as an object.
pub(super) fn upload(from: &Path, mut object: Box<dyn NewObject>) -> Result<()> {
    let name = object.name().clone();
    let failed = |e| Error::io(&name, "reading the temporary file of", e);
    let mut file = File::open(from).map_err(failed)?;
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return object.finish(),
            len => object.push(piece.get(..len).unwrap_or_default())?,
        }
    }
}

/// Uploads each file of a folder as an object below a URL. Objects that exist stay. After an error,
/// none of the new ones does.
pub(super) fn upload_folder(from: &Path, url: &str) -> Result<()> {
    let writer = writer(url)?;
    let mut files = Vec::new();
    list(from, url, &mut files)
        .map_err(|e| Error::io(&url.into(), "listing the temporary folder of", e))?;
    for (_, target) in &files {
        if writer.find(target)?.is_some() {
            return Err(super::existing::exists(Path::new(target)));
        }
    }
    for (number, (file, target)) in files.iter().enumerate() {
        let uploaded =
            writer.create(target, Replaced::Nothing).and_then(|object| upload(file, object));
        if let Err(error) = uploaded {
            for (_, target) in files.iter().take(number) {
                let _ = writer.remove(target);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Lists the files of a folder and of its folders, each with its place below `url`.
fn list(folder: &Path, url: &str, files: &mut Vec<(PathBuf, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let target = format!("{url}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &target, files)?;
        } else {
            files.push((entry.path(), target));
        }
    }
    Ok(())
}
