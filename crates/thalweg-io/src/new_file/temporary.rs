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
//!
//! The lock begins with the line [`RECORD`], and names the folders among its temporary files:
//! `folder 1`. What is not recorded so is not removed, whatever its name is.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::urls::url;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

const PREFIX: &str = ".thalweg-";
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".tmp";
/// The first line of a lock.
const RECORD: &str = "thalweg: the owner of temporary files";
/// The word before the number of a folder.
const FOLDER: &str = "folder ";
/// Locks are shorter than this, in bytes.
const LONGEST_LOCK: u64 = 1 << 20;

/// How often another name is tried for a lock that another process took in between.
const TRIES: usize = 16;

/// The owners of temporary files of this process, by folder. A folder stays listed, because stale
/// files are looked for once a folder only: listing a large folder takes long.
static OWNERS: Mutex<BTreeMap<PathBuf, Weak<Owner>>> = Mutex::new(BTreeMap::new());

/// A temporary file or folder. It is removed on drop, unless it got its final path.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    is_folder: bool,
    is_renamed: bool,
    _owner: Arc<Owner>,
}

/// The owner of the temporary files of this process in one folder: a locked file.
#[derive(Debug)]
struct Owner {
    folder: PathBuf,
    id: u64,
    lock: PathBuf,
    /// The lock, which is held while it is open.
    file: File,
    /// The number of the next temporary file.
    next: AtomicU64,
}

impl Temporary {
    /// Creates a file in the folder of `beside`.
    pub(super) fn file(beside: &Path) -> io::Result<(Self, File)> {
        let (owner, _, path) = Owner::place(beside)?;
        let file = File::create_new(&path)?;
        Ok((Self { path, is_folder: false, is_renamed: false, _owner: owner }, file))
    }

    /// Creates a file in the folder for temporary files.
    pub(super) fn aside() -> io::Result<(Self, File)> {
        Self::file(&std::env::temp_dir().join("aside"))
    }

    /// Creates a folder in the folder of `beside`.
    pub(super) fn folder(beside: &Path) -> io::Result<Self> {
        let (owner, number, path) = Owner::place(beside)?;
        (&owner.file).write_all(format!("{FOLDER}{number}\n").as_bytes())?;
        fs::create_dir(&path)?;
        Ok(Self { path, is_folder: true, is_renamed: false, _owner: owner })
    }

    /// Creates a folder in the folder for temporary files, which only its owner may read.
    pub(super) fn aside_folder() -> io::Result<Self> {
        let made = Self::folder(&std::env::temp_dir().join("aside"))?;
        fs::set_permissions(&made.path, fs::Permissions::from_mode(0o700))?;
        Ok(made)
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
            remove(&self.path, self.is_folder);
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

    /// The owner of a new temporary file beside a path, its number, and its path.
    fn place(beside: &Path) -> io::Result<(Arc<Self>, u64, PathBuf)> {
        let owner = Self::of(parent(beside))?;
        let number = owner.next.fetch_add(1, Ordering::Relaxed);
        let path = owner.folder.join(temporary_name(owner.id, number));
        Ok((owner, number, path))
    }

    fn new(folder: PathBuf) -> io::Result<Self> {
        for _ in 0..TRIES {
            let id = random();
            let lock = folder.join(lock_name(id));
            let file = match File::create_new(&lock) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            // A process that looks for stale files may have found this one before it was locked.
            // Then that process removes it. A file system without locks is used without.
            let is_taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_taken && lock.try_exists()? {
                let owner = Self { folder, id, lock, file, next: AtomicU64::new(0) };
                (&owner.file).write_all(format!("{RECORD}\n").as_bytes())?;
                return Ok(owner);
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

fn lock_name(id: u64) -> String {
    format!("{PREFIX}{id:016x}{LOCK}")
}

fn temporary_name(id: u64, number: u64) -> String {
    format!("{PREFIX}{id:016x}-{number}{TEMPORARY}")
}

/// A number that no other process draws, but by chance.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Creates a file in the folder of `beside` and unlinks it at once. The system deletes it when it
/// is closed, however the process ends. If `beside` is a URL, it is in the folder for temporary
/// files ([`std::env::temp_dir`]).
///
/// # Errors
/// Those of the system, as in a folder that cannot be written.
pub fn nameless(beside: &Path) -> io::Result<File> {
    let aside = url(beside).map(|_| std::env::temp_dir());
    let folder = aside.as_deref().unwrap_or_else(|| parent(beside));
    let path = folder.join(format!("{PREFIX}{:016x}{TEMPORARY}", random()));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
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
    for id in names.iter().filter_map(|name| id_of_lock(name)) {
        let path = folder.join(lock_name(id));
        let Some((_lock, record)) = stale_lock(&path) else { continue };
        // A process that ends before it writes the record has made nothing but the lock.
        if !record.is_empty() {
            let mut lines = record.lines();
            if lines.next() != Some(RECORD) {
                continue;
            }
            let folders: Vec<u64> =
                lines.filter_map(|line| line.strip_prefix(FOLDER)?.parse().ok()).collect();
            for number in names.iter().filter_map(|name| number_of_temporary(name, id)) {
                let path = folder.join(temporary_name(id, number));
                remove(&path, folders.contains(&number));
            }
        }
        let _ = fs::remove_file(&path);
    }
}

/// The number in the name of a lock.
fn id_of_lock(name: &str) -> Option<u64> {
    let id = name.strip_prefix(PREFIX)?.strip_suffix(LOCK)?;
    let id = u64::from_str_radix(id, 16).ok()?;
    (lock_name(id) == name).then_some(id)
}

/// The number of the temporary file with this name, if the lock with this number owns it.
fn number_of_temporary(name: &str, id: u64) -> Option<u64> {
    let number = name.strip_suffix(TEMPORARY)?.rsplit_once('-')?.1.parse().ok()?;
    (temporary_name(id, number) == name).then_some(number)
}

/// A lock that no process holds, which this one holds now, and what is in it.
fn stale_lock(path: &Path) -> Option<(File, String)> {
    // Opening a pipe would wait.
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
    file.try_lock().ok()?;
    let mut record = String::new();
    (&file).take(LONGEST_LOCK).read_to_string(&mut record).ok()?;
    Some((file, record))
}

/// Removes a file, or a folder with what is in it. Anything else stays, and no link is followed.
fn remove(path: &Path, is_folder: bool) {
    let Ok(meta) = fs::symlink_metadata(path) else { return };
    if is_folder && meta.is_dir() {
        let _ = fs::remove_dir_all(path);
    } else if !is_folder && meta.is_file() {
        let _ = fs::remove_file(path);
    }
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
        let record = format!("{RECORD}\n{FOLDER}1\n");
        fs::write(at(".thalweg-00000000000000aa.lock"), &record).unwrap();
        fs::write(at(".thalweg-00000000000000aa-0.tmp"), "dead").unwrap();
        fs::create_dir(at(".thalweg-00000000000000aa-1.tmp")).unwrap();
        fs::write(at(".thalweg-00000000000000aa-1.tmp/a.npy"), "dead").unwrap();
        fs::write(at("kept"), "kept").unwrap();
        fs::write(at(".thalweg-00000000000000bb-0.tmp"), "without a lock").unwrap();
        let mut alive = File::create(at(".thalweg-00000000000000cc.lock")).unwrap();
        alive.try_lock().unwrap();
        alive.write_all(record.as_bytes()).unwrap();
        fs::write(at(".thalweg-00000000000000cc-0.tmp"), "alive").unwrap();
        fs::write(at(".thalweg-00000000000000dd.lock"), "").unwrap();
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

    #[test]
    fn what_only_looks_like_a_temporary_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let record = format!("{RECORD}\n{FOLDER}1\n");
        // Names that are not quite ours, and a lock that is somebody else's.
        fs::write(at(".thalweg-notes.lock"), &record).unwrap();
        fs::write(at(".thalweg-aa.lock"), &record).unwrap();
        fs::write(at(".thalweg-00000000000000AA.lock"), &record).unwrap();
        fs::write(at(".thalweg-aaaaaaaaaaaaaaaa.lock"), "somebody's").unwrap();
        fs::write(at(".thalweg-aaaaaaaaaaaaaaaa-0.tmp"), "somebody's").unwrap();
        std::os::unix::fs::symlink(".thalweg-notes.lock", at(".thalweg-00000000000000bb.lock"))
            .unwrap();
        fs::write(at(".thalweg-00000000000000bb-0.tmp"), "behind a link").unwrap();
        // An empty lock owns nothing.
        fs::write(at(".thalweg-dddddddddddddddd.lock"), "").unwrap();
        fs::write(at(".thalweg-dddddddddddddddd-0.tmp"), "somebody's").unwrap();
        // A lock of ours, beside what it does not own.
        let lock = at(".thalweg-cccccccccccccccc.lock");
        fs::write(&lock, &record).unwrap();
        fs::create_dir_all(at(".thalweg-cccccccccccccccc-0.tmp/deep")).unwrap();
        fs::write(at(".thalweg-cccccccccccccccc-1.tmp"), "not a folder").unwrap();
        std::os::unix::fs::symlink("kept", at(".thalweg-cccccccccccccccc-2.tmp")).unwrap();
        fs::write(at(".thalweg-cccccccccccccccc-03.tmp"), "somebody's").unwrap();
        fs::write(at(".thalweg-cccccccccccccccc-notes.tmp"), "somebody's").unwrap();
        let mut before = names(folder.path());
        drop(Temporary::file(&at("out")).unwrap());
        before.retain(|name| {
            ![".thalweg-cccccccccccccccc.lock", ".thalweg-dddddddddddddddd.lock"]
                .contains(&name.as_str())
        });
        assert_eq!(names(folder.path()), before);
        assert!(at(".thalweg-cccccccccccccccc-0.tmp/deep").exists());
    }

    #[test]
    fn the_lock_names_the_folders() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = Temporary::file(&folder.path().join("out")).unwrap();
        let made = Temporary::folder(&folder.path().join("out")).unwrap();
        let lock = fs::read_to_string(&made._owner.lock).unwrap();
        assert_eq!(lock, format!("{RECORD}\n{FOLDER}1\n"));
        drop((file, made));
        assert_eq!(names(folder.path()), [""; 0]);
    }
}
