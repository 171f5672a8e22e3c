//! What a new file may replace. Every verb that writes asks here before it reads.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::object::{file_path, writer};
use crate::error::{Error, Result};
use crate::urls::{self, is_same_object, url};

/// What becomes of a file that exists where a new one is to appear.
#[derive(Debug, Clone, Copy, Default)]
pub enum Existing {
    /// It stays, and the new file is refused.
    #[default]
    Keep,
    /// It is replaced.
    Replace,
    /// It is replaced if it is of the kind of the new file, which the function tells by its first
    /// bytes. An empty file is replaced, too.
    ReplaceKind(fn(&[u8]) -> bool),
    /// As [`Existing::ReplaceKind`], for a file that thalweg writes beside the user's without being
    /// asked to. No link is replaced, because a link may lead to any file of the user's.
    Sidecar(fn(&[u8]) -> bool),
}

/// The first bytes of a file that [`Existing::ReplaceKind`] looks at.
const HEAD: u64 = 4096;
/// What to do about an output that exists.
const FORCE: &str = "give another name, or --force to replace it";

/// Checks that writing `output` destroys nothing: it is none of the `inputs`, whatever names lead
/// to them, and a file that exists there may be replaced.
///
/// ```
/// use thalweg_io::new_file::{Existing, check_output};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let [input, output] = ["in", "out"].map(|name| folder.path().join(name));
/// std::fs::write(&input, "values")?;
/// check_output(&output, [&input], Existing::Keep)?;
/// std::fs::hard_link(&input, &output)?;
/// assert!(check_output(&output, [&input], Existing::Replace).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Usage`] if `output` is an input, [`Error::Exists`] if it may not be replaced, as a
/// folder never is, [`Error::Unsupported`] if it is a pipe or a device.
pub fn check_output(
    output: &Path,
    inputs: impl IntoIterator<Item = impl AsRef<Path>>,
    existing: Existing,
) -> Result<()> {
    Inputs::new(inputs).check(output, existing)
}

/// The inputs of a verb that writes many outputs. Each output is looked up among them, so that the
/// time does not grow with the product of both numbers.
#[derive(Debug, Default)]
pub struct Inputs {
    paths: HashSet<PathBuf>,
    /// The files at the paths, by device and number. They are looked at when an output exists.
    files: OnceCell<HashMap<(u64, u64), PathBuf>>,
}

impl Inputs {
    /// The inputs at these paths.
    pub fn new(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Self {
        let path = |path: &Path| file_path(path).map_or_else(|_| path.to_owned(), Cow::into_owned);
        let paths = paths.into_iter().map(|given| path(given.as_ref())).collect();
        Self { paths, files: OnceCell::new() }
    }

    /// [`check_output`] with these inputs.
    ///
    /// # Errors
    /// Those of [`check_output`].
    pub fn check(&self, output: &Path, existing: Existing) -> Result<()> {
        let output = &*file_path(output)?;
        if let Some(input) = self.paths.get(output) {
            return Err(is_input(output, input));
        }
        if let Some(url) = url(output) {
            return self.check_object(url, existing);
        }
        let is_linked = || fs::symlink_metadata(output).is_ok_and(|meta| meta.is_symlink());
        if matches!(existing, Existing::Sidecar(_)) && is_linked() {
            return Err(is_link(output));
        }
        // What is not there cannot be destroyed. A link that leads nowhere is there.
        let Ok(meta) = fs::metadata(output) else {
            return match fs::symlink_metadata(output) {
                Ok(_) if !matches!(existing, Existing::Replace) => Err(exists(output)),
                _ => Ok(()),
            };
        };
        if let Some(input) = self.files().get(&number(&meta)) {
            return Err(is_input(output, input));
        }
        match existing {
            _ if meta.is_dir() => Err(is_folder(output)),
            _ if !meta.is_file() => Err(no_file(output)),
            Existing::Replace => Ok(()),
            Existing::ReplaceKind(is_kind) if is_of_kind(output, is_kind)? => Ok(()),
            Existing::Sidecar(is_kind) if is_of_kind(output, is_kind)? => Ok(()),
            Existing::ReplaceKind(_) => Err(other_kind(output, FORCE)),
            Existing::Sidecar(_) => Err(other_kind(output, "move it to another place")),
            Existing::Keep => Err(exists(output)),
        }
    }

    /// [`Inputs::check`] for an output at a URL.
    fn check_object(&self, url: &str, existing: Existing) -> Result<()> {
        let output = Path::new(url);
        let inputs = self.paths.iter().filter_map(|input| Some((input, urls::url(input)?)));
        for (input, other) in inputs {
            if is_same_object(url, other) {
                return Err(is_input(output, input));
            }
        }
        let Some(head) = writer(url)?.find(url)? else { return Ok(()) };
        match existing {
            Existing::Replace => Ok(()),
            Existing::ReplaceKind(is_kind) | Existing::Sidecar(is_kind)
                if head.is_empty() || is_kind(&head) =>
            {
                Ok(())
            }
            Existing::ReplaceKind(_) => Err(other_kind(output, FORCE)),
            Existing::Sidecar(_) => Err(other_kind(output, "move it to another place")),
            Existing::Keep => Err(exists(output)),
        }
    }

    fn files(&self) -> &HashMap<(u64, u64), PathBuf> {
        self.files.get_or_init(|| {
            let file = |path: &PathBuf| Some((number(&fs::metadata(path).ok()?), path.clone()));
            self.paths.iter().filter_map(file).collect()
        })
    }
}

/// The device and the number of a file.
fn number(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

fn is_input(output: &Path, input: &Path) -> Error {
    let output = urls::shown_path(output);
    let input = urls::shown_path(input);
    Error::Usage(format!("{output}: the output is the input {input}; give another name").into())
}

fn is_of_kind(path: &Path, is_kind: fn(&[u8]) -> bool) -> Result<bool> {
    let mut head = Vec::new();
    File::open(path)
        .and_then(|file| file.take(HEAD).read_to_end(&mut head))
        .map_err(|e| Error::io(&urls::shown_path(path).into(), "reading", e))?;
    Ok(head.is_empty() || is_kind(&head))
}

fn is_folder(path: &Path) -> Error {
    let advice = "give another name, or remove it first";
    Error::Exists { file: urls::shown_path(path).into(), what: " as a folder", advice }
}

/// The error for an output that is no regular file.
pub(super) fn no_file(path: &Path) -> Error {
    Error::Unsupported {
        file: urls::shown_path(path).into(),
        what: "writing to a folder, pipe or device".into(),
        advice: "give the path of a regular file".into(),
    }
}

/// The error for an output that exists.
pub(super) fn exists(path: &Path) -> Error {
    Error::Exists { file: urls::shown_path(path).into(), what: "", advice: FORCE }
}

fn other_kind(path: &Path, advice: &'static str) -> Error {
    let what = ", and is not what would replace it";
    Error::Exists { file: urls::shown_path(path).into(), what, advice }
}

/// The error for a sidecar where a link is.
fn is_link(path: &Path) -> Error {
    let file = urls::shown_path(path).into();
    Error::Exists { file, what: " as a symbolic link", advice: "remove the link" }
}

/// The error for a new file or folder that did not get its path: another appeared there while it
/// was written, or the system refused.
pub(super) fn not_renamed(file: &Arc<str>, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return Error::io(file, "finishing", error);
    }
    let what = "; it appeared while the new file was written";
    Error::Exists { file: file.clone(), what, advice: "it was kept, and the new file was removed" }
}
