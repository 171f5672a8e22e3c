//! Temporary files and folders beside the paths that they will get.
//!
//! ```text
//! .thalweg-0123456789abcdef.lock     held locked by the process that owns the next two
//! .thalweg-0123456789abcdef-0.tmp
//! .thalweg-0123456789abcdef-1.tmp
//! ```
//!
//! The number is random: process ids repeat in containers that share a folder. The system releases
//! the lock however the process ends, so the next process that writes into the folder knows which
//! files no process owns any more, and removes these.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

const PREFIX: &str = ".thalweg-";
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".tmp";

/// How often another name is tried for a lock that another process took in between.
const TRIES: usize = 16;

/// The owners of temporary files of this process, by folder. A folder stays listed, because stale
/// files are looked for once a folder only: listing a large folder takes long.
static OWNERS: Mutex<BTreeMap<PathBuf, Weak<Owner>>> = Mutex::new(BTreeMap::new());

/// A temporary file or folder. It is removed on drop, unless it got its final path.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    is_renamed: bool,
    _owner: Arc<Owner>,
}

/// The owner of the temporary files of this process in one folder: a locked file.
#[derive(Debug)]
struct Owner {
    folder: PathBuf,
    id: u64,
    lock: PathBuf,
    /// Open, so that the lock is held.
    _file: File,
    /// The number of the next temporary file.
    next: AtomicU64,
}

impl Temporary {
    /// Creates a file in the folder of `beside`.
    pub(super) fn file(beside: &Path) -> io::Result<(Self, File)> {
        let temporary = Self::new(beside)?;
        let file = File::create_new(&temporary.path)?;
        Ok((temporary, file))
    }

    /// Creates a folder in the folder of `beside`.
    pub(super) fn folder(beside: &Path) -> io::Result<Self> {
        let temporary = Self::new(beside)?;
        fs::create_dir(&temporary.path)?;
        Ok(temporary)
    }

    fn new(beside: &Path) -> io::Result<Self> {
        let owner = Owner::of(parent(beside))?;
        let number = owner.next.fetch_add(1, Ordering::Relaxed);
        let path = owner.folder.join(format!("{PREFIX}{:016x}-{number}{TEMPORARY}", owner.id));
        Ok(Self { path, is_renamed: false, _owner: owner })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its final path. With `replaces`, what is there is replaced; otherwise it is an
    /// error of kind `AlreadyExists`.
    pub(super) fn rename(mut self, to: &Path, replaces: bool) -> io::Result<()> {
        if replaces {
            fs::rename(&self.path, to)?;
        } else {
            rename_to_free(&self.path, to)?;
        }
        self.is_renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.is_renamed {
            remove(&self.path);
        }
    }
}

impl Owner {
    /// The owner in a folder. The first one in a folder removes what dead processes left there.
    fn of(folder: &Path) -> io::Result<Arc<Self>> {
        let folder = fs::canonicalize(folder)?;
        let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = owners.get(&folder);
        if let Some(owner) = known.and_then(Weak::upgrade) {
            return Ok(owner);
        }
        if known.is_none() {
            remove_stale(&folder);
        }
        let owner = Arc::new(Self::new(folder.clone())?);
        owners.insert(folder, Arc::downgrade(&owner));
        Ok(owner)
    }

    fn new(folder: PathBuf) -> io::Result<Self> {
        for _ in 0..TRIES {
            let id = random();
            let lock = folder.join(format!("{PREFIX}{id:016x}{LOCK}"));
            let file = match File::create_new(&lock) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // A process that looks for stale files may have found this one before it was locked.
            // Then that process removes it. A file system without locks is used without.
            let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && lock.try_exists()? {
                return Ok(Self { folder, id, lock, _file: file, next: AtomicU64::new(0) });
            }
        }
        Err(io::Error::other("other processes remove each new lock"))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock);
    }
}

/// A number that no other process draws, but by chance.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Creates a file in the folder of `beside` and unlinks it at once. The system deletes it when it
/// is closed, however the process ends.
///
/// # Errors
/// Those of the system, as in a folder that cannot be written.
pub fn nameless(beside: &Path) -> io::Result<File> {
    let path = parent(beside).join(format!("{PREFIX}{:016x}{TEMPORARY}", random()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// The folder of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// Renames a file or folder to a path where nothing is.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system or the kernel has no such call.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        done => return Ok(done?),
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Removes what processes that have ended left in a folder. Errors do not matter: what cannot be
/// removed stays.
fn remove_stale(folder: &Path) {
    let names = |found: fs::ReadDir| -> Vec<String> {
        found
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(PREFIX))
            .collect()
    };
    let names = fs::read_dir(folder).map(names).unwrap_or_default();
    for lock in names.iter().filter(|name| name.ends_with(LOCK)) {
        let path = folder.join(lock);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        let Some(file) = is_file.then(|| File::open(&path).ok()).flatten() else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        let own = format!("{}-", lock.trim_end_matches(LOCK));
        names.iter().filter(|name| name.starts_with(&own)).for_each(|name| {
            remove(&folder.join(name));
        });
        let _ = fs::remove_file(&path);
    }
}

/// Removes a file, or a folder with what is in it. A link is removed, not followed.
fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn names_differ_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (first, _) = Temporary::file(&path).unwrap();
        let (second, _) = Temporary::file(&path).unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!(names(folder.path()).len(), 3, "two files and their lock");
        first.rename(&path, false).unwrap();
        drop(second);
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn what_appeared_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (temporary, _) = Temporary::file(&path).unwrap();
        fs::write(&path, "other").unwrap();
        let error = temporary.rename(&path, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"other");
        Temporary::file(&path).unwrap().0.rename(&path, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn files_of_dead_processes_are_removed_and_those_of_others_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at(".thalweg-00000000000000aa.lock"), "").unwrap();
        fs::write(at(".thalweg-00000000000000aa-0.tmp"), "dead").unwrap();
        fs::create_dir(at(".thalweg-00000000000000aa-1.tmp")).unwrap();
        fs::write(at(".thalweg-00000000000000aa-1.tmp/a.npy"), "dead").unwrap();
        std::os::unix::fs::symlink(at("kept"), at(".thalweg-00000000000000aa-2.tmp")).unwrap();
        fs::write(at("kept"), "kept").unwrap();
        fs::write(at(".thalweg-00000000000000bb-0.tmp"), "without a lock").unwrap();
        let alive = File::create(at(".thalweg-00000000000000cc.lock")).unwrap();
        alive.try_lock().unwrap();
        fs::write(at(".thalweg-00000000000000cc-0.tmp"), "alive").unwrap();
        drop(Temporary::file(&at("out")).unwrap());
        assert_eq!(
            names(folder.path()),
            [
                ".thalweg-00000000000000bb-0.tmp",
                ".thalweg-00000000000000cc-0.tmp",
                ".thalweg-00000000000000cc.lock",
                "kept"
            ]
        );
        assert_eq!(fs::read(at("kept")).unwrap(), b"kept");
    }
}
