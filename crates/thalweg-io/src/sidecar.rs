//! Paths of index files: beside the data file, or in the user's cache folder if the data file's
//! folder is read-only.

use std::fs;
use std::path::{Path, PathBuf};

/// The path where slow5tools and thalweg look for the index of a file: beside the file, such as
/// `reads.blow5.idx`.
pub fn index_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".idx");
    name.into()
}

/// The paths where the index of a file may be, preferred first: beside the file, then in the user's
/// cache folder.
pub fn index_places(path: &Path) -> impl Iterator<Item = PathBuf> {
    [Some(index_path(path)), in_cache(path)].into_iter().flatten()
}

/// The path of the index in the user's cache folder. The name encodes the file's full path.
fn in_cache(path: &Path) -> Option<PathBuf> {
    let full = fs::canonicalize(path).ok()?;
    let name = full.to_string_lossy().replace(['/', '\\'], "%");
    Some(crate::cache_folder()?.join("index").join(format!("{name}.idx")))
}

/// Whether `index` was modified no earlier than `data`, the file that it indexes.
pub fn is_current(index: &Path, data: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    changed(index).zip(changed(data)).is_some_and(|(index, data)| index >= data)
}
