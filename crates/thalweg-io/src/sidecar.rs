//! Indexes that lie beside files, or in the user's cache folder where a file's own folder is
//! read-only.

use std::fs;
use std::path::{Path, PathBuf};

/// Where slow5tools and thalweg look for the index of a file: beside it, as `reads.blow5.idx`.
pub fn index_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".idx");
    name.into()
}

/// Where the index of a file may lie, best first: beside it, and in the user's cache folder.
pub fn index_places(path: &Path) -> impl Iterator<Item = PathBuf> {
    [Some(index_path(path)), in_cache(path)].into_iter().flatten()
}

/// A place of the user's own, named after the file's full path.
fn in_cache(path: &Path) -> Option<PathBuf> {
    let full = fs::canonicalize(path).ok()?;
    let name = full.to_string_lossy().replace(['/', '\\'], "%");
    Some(crate::cache_folder()?.join("index").join(format!("{name}.idx")))
}

/// Whether an index is not older than the file that it is of.
pub fn is_current(index: &Path, data: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    changed(index).zip(changed(data)).is_some_and(|(index, data)| index >= data)
}
