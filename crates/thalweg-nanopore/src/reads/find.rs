//! Finding the files of reads at paths, in folders and of patterns.

mod objects;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use thalweg_io::control::Control;
use thalweg_io::urls::{self, url};
use thalweg_io::{Error, Result};

use crate::format::Format;

/// The files of reads at these paths, sorted and without duplicates. Folders are searched at any
/// depth for files with the extension of a [`Format`]. A path that does not exist and contains one
/// of `*?[` is a pattern; `**` matches folders at any depth. The same holds for URLs of buckets;
/// that of a folder ends in `/`.
///
/// # Errors
/// [`Error::NotFound`] for a folder without such files and for a pattern that matches nothing;
/// [`Error::Io`] for a folder that can't be listed; [`Error::Unsupported`] for a folder of a web
/// server; [`Error::Cancelled`].
pub fn find<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    control: &Control,
) -> Result<Vec<PathBuf>> {
    let is_wanted = |name: &Path| Format::of_path(name).is_some();
    find_named(paths, &WantedNames { is_wanted, ends: Format::extensions(".") }, control)
}

/// The files that are looked for in folders.
#[derive(Debug, Clone)]
pub struct WantedNames {
    /// Whether a file of this name is one of them.
    pub is_wanted: fn(&Path) -> bool,
    /// How their names end, in words.
    pub ends: String,
}

/// [`find`] for files of other names in folders.
///
/// # Errors
/// Those of [`find`].
pub fn find_named<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    wanted: &WantedNames,
    control: &Control,
) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        let path = path.as_ref();
        match (url(path), pattern(path)) {
            (Some(url), _) => objects::add(url, wanted, control, &mut found)?,
            (None, Some(pattern)) => expand(pattern, wanted, &mut found)?,
            (None, None) => add(path, wanted, &mut found)?,
        }
    }
    found.sort_unstable_by(|a, b| a.cmp(b).then_with(|| a.as_os_str().cmp(b.as_os_str())));
    // In URLs, `a//b` and `a/b` are two objects.
    found.dedup_by(|a, b| a == b && (url(a).is_none() || a.as_os_str() == b.as_os_str()));
    Ok(found)
}

/// Whether a path stands for any number of files: a folder or a pattern.
///
/// # Errors
/// Those of [`find`] about what is at a URL.
pub fn is_many(path: &Path, control: &Control) -> Result<bool> {
    match url(path) {
        Some(url) => Ok(!matches!(objects::Named::of(url, control)?, objects::Named::Object)),
        None => Ok(path.is_dir() || pattern(path).is_some()),
    }
}

/// The path as a pattern of paths, if it is one: with `*`, `?` or `[`, and without a file of that
/// name. URLs are none; [`is_many`] is about these, too.
pub fn pattern(path: &Path) -> Option<&str> {
    let is_pattern = |text: &&str| text.contains(['*', '?', '[']) && !path.exists();
    path.to_str().filter(|text| url(path).is_none() && is_pattern(text))
}

fn expand(pattern: &str, wanted: &WantedNames, found: &mut Vec<PathBuf>) -> Result<()> {
    let name: Arc<str> = pattern.into();
    let paths = glob::glob(pattern)
        .map_err(|e| Error::Usage(format!("{pattern}: not a pattern: {e}").into()))?;
    let mut none = true;
    for path in paths {
        add(&path.map_err(|e| Error::io(&name, "listing", io::Error::from(e)))?, wanted, found)?;
        none = false;
    }
    if none {
        let what = "files that match".into();
        return Err(Error::NotFound { file: name, what, advice: "try the pattern with ls".into() });
    }
    Ok(())
}

fn add(path: &Path, wanted: &WantedNames, found: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let before = found.len();
    search(path, wanted, found)?;
    if found.len() == before {
        return Err(Error::NotFound {
            file: urls::shown_path(path).into(),
            what: format!("files that end in {}", wanted.ends).into(),
            advice: "name the files themselves if they are called otherwise".into(),
        });
    }
    Ok(())
}

/// Finds files of reads below a folder. Links to folders are not followed, because they may form a
/// cycle.
fn search(folder: &Path, wanted: &WantedNames, found: &mut Vec<PathBuf>) -> Result<()> {
    let name: Arc<str> = urls::shown_path(folder).into();
    let failed = |e| Error::io(&name, "listing", e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(failed)?;
        // A link that leads nowhere is a file that is missing, as on a disc that is not mounted:
        // opening it says so.
        let is_missing = || kind.is_symlink() && !path.exists();
        if kind.is_dir() {
            search(&path, wanted, found)?;
        } else if (wanted.is_wanted)(&path) && (path.is_file() || is_missing()) {
            found.push(path);
        }
    }
    Ok(())
}
