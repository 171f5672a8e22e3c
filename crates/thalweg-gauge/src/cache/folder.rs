//! Files and folders. A folder stands for all files in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thalweg_io::control::Control;
use thalweg_io::open::{OpenedStore, Options, list_url};
use thalweg_io::sidecar::modified;
use thalweg_io::urls::{Depth, Entry, Listed, url};

use crate::{Error, Result};

/// The regular files below a folder, in the order of their paths, or `path` itself. Links in a
/// folder are not followed. The objects of a folder at a URL, which ends in `/`, are its files.
///
/// # Errors
/// When a path can't be looked up, and when a folder has no files, because it then gives no
/// evidence.
pub fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    if let Some(url) = url(path) {
        return if url.ends_with('/') { objects_of(url) } else { Ok(vec![path.to_owned()]) };
    }
    if !fs::metadata(path).map_err(io(path, "looking up"))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(io(&folder, "listing"))? {
            let entry = entry.map_err(io(&folder, "listing"))?;
            let kind = entry.file_type().map_err(io(&folder, "listing"))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    sorted(path, files)
}

fn io<'a>(path: &'a Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Error + use<'a> {
    move |e| Error::io(path, doing, e)
}

/// The objects whose URLs begin with that of a folder.
fn objects_of(folder: &str) -> Result<Vec<PathBuf>> {
    let mut objects = Vec::new();
    list_url(folder, Depth::All, &Control::new(), &mut |entry| {
        if let Entry::Object(Listed { url, .. }) = entry
            && !url.ends_with('/')
        {
            objects.push(PathBuf::from(url));
        }
        Ok(true)
    })?;
    sorted(Path::new(folder), objects)
}

fn sorted(folder: &Path, mut files: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    if files.is_empty() {
        let empty =
            std::io::Error::new(std::io::ErrorKind::NotFound, "the folder has no file in it");
        return Err(Error::io(folder, "looking up", empty));
    }
    files.sort();
    Ok(files)
}

/// The size of a file, or of all files of a folder, and their latest modification time, if the
/// system reports it.
///
/// # Errors
/// The errors of [`files_of`].
pub(crate) fn state_of(path: &Path) -> Result<(u64, Option<SystemTime>)> {
    files_of(path)?.iter().try_fold((0, None), |(bytes, latest), file| {
        if let Some(url) = url(file) {
            let size = OpenedStore::unthrottled(file, &Options::default())?.store.size();
            let seconds = modified(url).and_then(|seconds| u64::try_from(seconds).ok());
            let changed = seconds.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
            return Ok((bytes + size, latest.max(changed)));
        }
        let meta = fs::metadata(file).map_err(io(file, "looking up"))?;
        Ok((bytes + meta.len(), latest.max(meta.modified().ok())))
    })
}

/// The file that a probe reads: `path` itself, or the largest file of a folder.
///
/// # Errors
/// The errors of [`files_of`].
pub(crate) fn largest_of(path: &Path) -> Result<PathBuf> {
    let size = |file: &PathBuf| fs::metadata(file).map_or(0, |meta| meta.len());
    Ok(files_of(path)?.into_iter().max_by_key(size).unwrap_or_else(|| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_all_of_its_files() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let store = dir.path().join("s");
        fs::create_dir_all(store.join("b/c"))?;
        assert!(files_of(&store).is_err(), "nothing in it");
        fs::write(store.join("z"), [0; 10])?;
        fs::write(store.join("b/c/y"), [0; 300])?;
        fs::write(dir.path().join("elsewhere"), [0; 5000])?;
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), store.join("link"))?;
        assert_eq!(files_of(&store)?, [store.join("b/c/y"), store.join("z")]);
        assert_eq!(state_of(&store)?.0, 310);
        let latest = fs::metadata(store.join("z"))?
            .modified()?
            .max(fs::metadata(store.join("b/c/y"))?.modified()?);
        assert_eq!(state_of(&store)?.1, Some(latest));
        assert_eq!(largest_of(&store)?, store.join("b/c/y"));
        assert_eq!(files_of(&store.join("z"))?, [store.join("z")]);
        assert!(files_of(&dir.path().join("none")).is_err());
        Ok(())
    }
}
