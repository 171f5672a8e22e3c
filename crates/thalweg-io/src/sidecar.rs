//! Paths of index files: beside the data file, or in the user's cache folder if the data file's
//! folder is read-only. The index of an object at a URL is in the cache folder, too; its name has
//! the version of the object.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use thalweg_codec::splitmix::checksum;

use crate::urls::{canonical, is_web, url};

/// Where an index is kept that is made on the way. Those that are there are used in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeepIndex {
    /// Beside the file, or in the user's cache folder where that cannot be written.
    #[default]
    Beside,
    /// In the user's cache folder.
    InCache,
    /// Nowhere.
    No,
}

/// A version of an object, and when it was changed.
type Noted = (String, Option<i64>);

/// The versions of the objects that were opened, by their URLs.
static VERSIONS: LazyLock<Mutex<HashMap<String, Noted>>> = LazyLock::new(Mutex::default);

/// Notes the version of the object at a URL, such as its tag, when it is opened. Only an index of
/// this version is current. `modified`: when it was changed, in seconds since 1970.
pub fn note_version(url: &str, version: &str, modified: Option<i64>) {
    let mut versions = VERSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    versions.insert(url.to_owned(), (version.to_owned(), modified));
}

fn noted(url: &str) -> Option<Noted> {
    VERSIONS.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned()
}

/// The version that was noted last.
pub fn version(url: &str) -> Option<String> {
    noted(url).map(|(version, _)| version)
}

/// When the version that was noted last was changed, in seconds since 1970.
pub fn modified(url: &str) -> Option<i64> {
    noted(url)?.1
}

/// The path where slow5tools and thalweg look for the index of a file: beside the file, such as
/// `reads.blow5.idx`.
pub fn index_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".idx");
    name.into()
}

/// The paths where the index of a file may be, preferred first: beside the file, unless its name is
/// too long there, then in the user's cache folder.
pub fn index_places(path: &Path) -> impl Iterator<Item = PathBuf> {
    let beside = Some(index_path(path)).filter(|place| url(path).is_none() && fits(place));
    [beside, in_cache(path)].into_iter().flatten()
}

/// The paths where a new index of a file may be kept, preferred first.
pub fn places_to_keep(path: &Path, keep: KeepIndex) -> impl Iterator<Item = PathBuf> {
    let all = index_places(path).filter(move |_| keep == KeepIndex::Beside);
    all.chain(in_cache(path).filter(|_| keep == KeepIndex::InCache))
}

/// The path where the index of a file belongs: the first of [`index_places`].
pub fn index_place(path: &Path) -> PathBuf {
    index_places(path).next().unwrap_or_else(|| index_path(path))
}

/// Whether the file system allows a name of this length.
fn fits(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    !found.is_err_and(|error| error.kind() == ErrorKind::InvalidFilename)
}

/// The path of the index in the user's cache folder.
fn in_cache(path: &Path) -> Option<PathBuf> {
    let full = match url(path) {
        // What follows the path of a URL may be a signature, which is another one each time.
        Some(url) => {
            let plain = if is_web(url) { url.split('?').next()? } else { url };
            PathBuf::from(format!("{}/{}", version(url)?, canonical(plain)))
        }
        None => fs::canonicalize(path).ok()?,
    };
    Some(crate::cache_folder()?.join("index").join(name_in_cache(&full)))
}

/// The name of the index of the file with the path `full`. A hash of the whole path tells files of
/// the same name apart, and the file's own name is for people who look into the folder.
fn name_in_cache(full: &Path) -> String {
    /// Bytes of the file's own name. File systems allow names of 255 bytes.
    const MOST: usize = 200;
    let hash = checksum(full.as_os_str().as_encoded_bytes());
    let name = full.file_name().unwrap_or_default().to_string_lossy();
    let fits = |&(at, c): &(usize, char)| at + c.len_utf8() <= MOST;
    let name: String = name.char_indices().take_while(fits).map(|(_, c)| c).collect();
    format!("{hash:016x}-{name}.idx")
}

/// The indexes beside an output that was replaced. They belong to the old file, and slow5lib looks
/// up reads in any index that it finds. Links, and files that `is_index` does not know by their
/// first bytes, are left out.
pub fn old_indexes(output: &Path, is_index: fn(&[u8]) -> bool) -> Vec<PathBuf> {
    /// The first bytes of a file that say whether it is an index.
    const HEAD: u64 = 4096;
    // Beside an object no index is looked for.
    if url(output).is_some() {
        return Vec::new();
    }
    let is_index_file = |path: &PathBuf| {
        let mut head = Vec::new();
        let is_file = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
        let read = |file: File| file.take(HEAD).read_to_end(&mut head);
        is_file && File::open(path).and_then(read).is_ok() && is_index(&head)
    };
    // An index may be beside a link, and beside the file that the link leads to.
    let target = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
    let mut indexes = vec![index_path(output), index_path(&target)];
    indexes.retain(is_index_file);
    // One path may be absolute, and the other one not.
    indexes.dedup_by_key(|path| fs::canonicalize(path).ok());
    indexes
}

/// Whether `index` was modified no earlier than `data`, the file that it indexes. The name of the
/// index of an object says which version it is of.
pub fn is_current(index: &Path, data: &Path) -> bool {
    if url(data).is_some() {
        return index.is_file();
    }
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    changed(index).zip(changed(data)).is_some_and(|(index, data)| index >= data)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{index_path, index_places, name_in_cache};

    #[test]
    fn each_path_has_an_index_of_its_own() {
        let name = |path: &str| name_in_cache(Path::new(path));
        assert_ne!(name("/d/a%b.blow5"), name("/d/a/b.blow5"));
        assert_ne!(name("/d/a/b.blow5"), name("/d/c/b.blow5"));
        assert!(name("/d/b.blow5").ends_with("-b.blow5.idx"), "{}", name("/d/b.blow5"));
    }

    #[test]
    fn an_index_is_not_beside_a_file_where_its_name_is_too_long() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        for (len, is_beside) in [(251, true), (252, false), (255, false)] {
            let path = folder.path().join("x".repeat(len));
            std::fs::write(&path, "")?;
            let found = index_places(&path).any(|place| place == index_path(&path));
            assert_eq!(found, is_beside, "{len}");
        }
        Ok(())
    }

    #[test]
    fn names_fit_into_a_file_system() {
        let deep = format!("/{}/{}", "folder/".repeat(100), "é".repeat(127));
        let name = name_in_cache(Path::new(&deep));
        assert!(name.len() <= 255, "{} bytes", name.len());
    }
}
