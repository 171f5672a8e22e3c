//! The folder on this machine where written bytes wait until the store has them.
//!
//! Each mount has a folder of its own, `STAGING/BUCKET/MOUNT`, which it locks as long as it lives.
//! A draft with the number 7 is the file `7.data` with its bytes, and `7.json`, the record that
//! says what they are. Whoever mounts the same URL later, or recovers it, takes over the drafts of
//! mounts that have ended: those that were closed go to the store, and the bytes of those that were
//! still open go to `STAGING/BUCKET/unfinished`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use thalweg_codec::splitmix::checksum;
use thalweg_io::open::ObjectVersion;
use thalweg_io::urls::{canonical, shown};
use thalweg_io::{Error, Result};
use thalweg_object::PartsUpload;

use crate::attributes::Attributes;
use crate::parts::{Completion, LARGEST};

/// The version of [`Record`].
const SCHEMA: u32 = 2;
/// Unless the user says otherwise, this part of the file system stays free, and at most so many
/// bytes.
const FREE_SHARE: u64 = 20;
const MOST_FREE: u64 = 16 << 30;
/// So many bytes are written between two looks at how much is free.
const LOOK: u64 = 16 << 20;

/// The folder of a mount.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: PathBuf,
    /// Locked while the mount lives.
    _lock: File,
    limit: u64,
    free: Option<u64>,
    used: AtomicU64,
    /// Bytes that may be written before the next look at how much is free.
    unlooked: AtomicU64,
    next: AtomicU64,
    /// Another mount may have the folder.
    has_ended: AtomicBool,
}

/// What the bytes of a draft are, for whoever comes after a crash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    /// The URL that is mounted.
    pub(crate) url: String,
    /// How the marks of all objects begin that it became.
    pub(crate) mark: String,
    /// The key of the object that it becomes.
    pub(crate) key: String,
    /// Whether it was closed: it goes to the store.
    pub(crate) is_closed: bool,
    pub(crate) size: u64,
    pub(crate) modified: Option<(i64, u32)>,
    /// The bytes that are in the file with its data: where they begin and end.
    pub(crate) local: Vec<(u64, u64)>,
    /// The object that has the other bytes, up to an offset.
    pub(crate) base: Option<(Named, u64)>,
    /// The object that it replaces.
    pub(crate) found: Option<Named>,
    pub(crate) attributes: Attributes,
    pub(crate) parts: Option<SavedParts>,
    /// The number of its last change.
    pub(crate) change: u64,
    /// The object that was last to be made of parts.
    pub(crate) completion: Option<Completion>,
    /// The number of the next mark.
    pub(crate) marks: u64,
    /// How the marks begin of the draft whose name it has got, which nobody stores any more.
    pub(crate) replaces: Option<String>,
}

/// A version of an object, by its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) key: Arc<str>,
    size: u64,
    tag: String,
    modified: Option<i64>,
}

impl Named {
    pub(crate) fn new(key: Arc<str>, version: ObjectVersion) -> Self {
        let ObjectVersion { size, tag, modified } = version;
        Self { key, size, tag, modified }
    }

    pub(crate) fn version(&self) -> ObjectVersion {
        ObjectVersion { size: self.size, tag: self.tag.clone(), modified: self.modified }
    }
}

/// The parts of a draft that the store has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedParts {
    pub(crate) upload: PartsUpload,
    pub(crate) tags: Vec<Option<String>>,
    /// The attributes that the upload began with.
    pub(crate) attributes: Attributes,
}

/// A draft of a mount that has ended.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) id: u64,
    pub(crate) record: Record,
    pub(crate) file: File,
}

/// What mounts that have ended left behind.
#[derive(Debug, Default)]
pub(crate) struct Leavings {
    pub(crate) closed: Vec<Left>,
    /// The bytes of files that were still open, by the keys of these files.
    pub(crate) unfinished: Vec<(String, PathBuf)>,
    /// Uploads of these, which nobody will complete.
    pub(crate) uploads: Vec<(String, PartsUpload)>,
    /// Folders that were about to get another name, and the files that say so.
    pub(crate) moves: Vec<(Move, PathBuf)>,
    /// What could not be taken over, and why.
    pub(crate) failed: Vec<String>,
    /// What the store does not have of processes that have not ended: other mounts of the URL, and
    /// those that recover it.
    pub(crate) living: Vec<String>,
}

/// A folder that gets another name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) url: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// All objects that were in it, once all of them have been copied.
    pub(crate) copies: Option<Vec<Copied>>,
}

/// An object that was copied when its folder got another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// What its key has after that of the folder.
    pub(crate) rest: String,
    pub(crate) size: u64,
    pub(crate) tag: String,
    pub(crate) modified: Option<i64>,
    /// The tag of the copy.
    pub(crate) copy: String,
}

impl Copied {
    /// A copy of a version of an object.
    pub(crate) fn new(rest: String, version: ObjectVersion, copy: String) -> Self {
        let ObjectVersion { size, tag, modified } = version;
        Self { rest, size, tag, modified, copy }
    }

    /// Copies by what follows the key of the folder.
    pub(crate) fn by_rest(copies: &[Self]) -> HashMap<&str, &Self> {
        copies.iter().map(|copied| (&*copied.rest, copied)).collect()
    }

    /// The version of the copy, which is shown with the time of what was copied.
    pub(crate) fn version(&self) -> ObjectVersion {
        ObjectVersion { size: self.size, tag: self.copy.clone(), modified: self.modified }
    }
}

impl Move {
    pub(crate) fn new(url: &str, from: &str, to: &str) -> Self {
        Self { url: url.to_owned(), from: from.to_owned(), to: to.to_owned(), copies: None }
    }

    /// The copy of a version of an object.
    pub(crate) fn copy_of(&self, rest: &str, version: &ObjectVersion) -> Option<ObjectVersion> {
        let copies = self.copies.as_ref()?;
        let is_of = |copied: &&Copied| copied.rest == rest && copied.tag == version.tag;
        copies.iter().find(is_of).map(Copied::version)
    }

    /// Gives the record of a draft in the folder its other name.
    fn apply(&self, record: &mut Record) {
        let Some(rest) = record.key.strip_prefix(&self.from).map(str::to_owned) else { return };
        if self.copies.is_none() {
            return;
        }
        record.key = format!("{}{rest}", self.to);
        let copy = |named: &Named| {
            let rest = named.key.strip_prefix(&self.from)?;
            let copy = self.copy_of(rest, &named.version())?;
            Some(Named::new(format!("{}{rest}", self.to).into(), copy))
        };
        if let Some((base, _)) = &mut record.base
            && let Some(copy) = copy(base)
        {
            *base = copy;
        }
        if let Some(found) = &mut record.found
            && let Some(copy) = copy(found)
        {
            *found = copy;
        }
    }
}

/// The folder for staging unless the user names one.
pub(crate) fn usual_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME");
    let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Some(state?.join("thalweg/staging"))
}

/// The name of a folder for a URL.
fn folder_of(url: &str) -> String {
    let url = canonical(url);
    let readable = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let words: String = url.split("://").last().unwrap_or_default().chars().map(readable).collect();
    let words: String = words.trim_matches('_').chars().take(64).collect();
    let sum = checksum(url.as_bytes());
    format!("{words}-{sum:016x}")
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

impl Staging {
    /// Makes the folder of a mount of `url` below `root`. Between `limit` and the bytes of the file
    /// system that stay free, whichever is reached first ends what is written.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be made.
    pub(crate) fn new(
        root: &Path,
        url: &str,
        limit: Option<u64>,
        free: Option<u64>,
    ) -> Result<Arc<Self>> {
        let folder = root.join(folder_of(url));
        let failed = |error| Error::io(&folder.to_string_lossy().into(), "staging in", error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let (own, lock) = own_folder(&folder).map_err(failed)?;
        Ok(Arc::new(Self {
            folder: own,
            _lock: lock,
            limit: limit.unwrap_or(u64::MAX),
            free,
            used: AtomicU64::new(0),
            unlooked: AtomicU64::new(0),
            next: AtomicU64::new(1),
            has_ended: AtomicBool::new(false),
        }))
    }

    /// The bytes of drafts here.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes room for bytes, if there is some.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        let take = |left: u64| left.checked_sub(bytes);
        if self.unlooked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return true;
        }
        let left = self.left_free();
        if left < bytes {
            self.give(bytes);
            return false;
        }
        self.unlooked.store((left - bytes).min(LOOK), Ordering::Relaxed);
        true
    }

    /// Whether fewer bytes than this are left.
    pub(crate) fn is_short(&self, bytes: u64) -> bool {
        self.used().saturating_add(bytes) > self.limit || self.left_free() < bytes
    }

    /// Takes room for a few bytes, whether there is some or not.
    pub(crate) fn force(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives room back.
    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of the file system that may still be taken.
    fn left_free(&self) -> u64 {
        let Ok(stat) = rustix::fs::statvfs(&self.folder) else { return u64::MAX };
        let total = stat.f_blocks * stat.f_frsize;
        let floor = self.free.unwrap_or_else(|| (total / FREE_SHARE).min(MOST_FREE));
        (stat.f_bavail * stat.f_frsize).saturating_sub(floor)
    }

    fn data(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id}.data"))
    }

    fn record(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the file of a new draft.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn create(&self) -> Result<(u64, File)> {
        let id = self.next();
        let path = self.data(id);
        let file = private().read(true).write(true).create_new(true).open(&path);
        Ok((id, file.map_err(|error| failed(&path, error))?))
    }

    /// Writes the record of a draft, in place of an older one. If it `lasts`, a crash of the
    /// machine does not lose it.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn write(&self, id: u64, record: &Record, lasts: bool) -> Result<()> {
        let path = self.record(id);
        let text = serde_json::to_vec(record).unwrap_or_default();
        replace(&path, &text, lasts).map_err(|error| failed(&path, error))
    }

    /// Removes the record of a draft: the store has all of it.
    pub(crate) fn forget(&self, id: u64) {
        let _ = fs::remove_file(self.record(id));
    }

    /// Removes a draft.
    pub(crate) fn remove(&self, id: u64) {
        if self.has_ended.load(Ordering::SeqCst) {
            return;
        }
        // The record first: it must not tell of bytes that are gone.
        self.forget(id);
        let _ = fs::remove_file(self.data(id));
    }

    /// A file for the record of a folder that gets another name.
    pub(crate) fn new_move(&self) -> PathBuf {
        self.folder.join(format!("{}.move", self.next()))
    }

    /// Notes how far a folder has got another name.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn note_move(&self, path: &Path, moved: &Move) -> Result<()> {
        let text = serde_json::to_vec(moved).unwrap_or_default();
        replace(path, &text, true).map_err(|error| failed(path, error))
    }

    /// Notes that a folder has its other name, or has not got it.
    pub(crate) fn end_move(&self, path: &Path) {
        let _ = fs::remove_file(path);
    }

    /// Removes the folder if nothing is left in it. Nothing is removed after it.
    pub(crate) fn end(&self) {
        if self.has_ended.swap(true, Ordering::SeqCst) {
            return;
        }
        let has_none = |folder: &Path| {
            let entries = fs::read_dir(folder).ok()?;
            Some(entries.flatten().all(|entry| entry.file_name() == LOCK))
        };
        if has_none(&self.folder) == Some(true) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    /// Takes over what mounts of the same URL have left that have ended.
    pub(crate) fn take_over(&self, url: &str) -> Leavings {
        let mut leavings = Leavings::default();
        let Some(all) = self.folder.parent() else { return leavings };
        let Ok(entries) = fs::read_dir(all) else { return leavings };
        for folder in entries.flatten().map(|entry| entry.path()) {
            if folder == self.folder || folder.file_name().is_some_and(|name| name == UNFINISHED) {
                continue;
            }
            let Ok(lock) = private().read(true).write(true).open(folder.join(LOCK)) else {
                continue;
            };
            if lock.try_lock().is_err() {
                leavings.living.extend(unstored_by(&folder));
                continue;
            }
            if let Err(error) = self.take_over_from(&folder, url, &mut leavings) {
                leavings.failed.push(format!("{}: {error}", folder.display()));
            }
        }
        leavings
    }

    fn take_over_from(&self, folder: &Path, url: &str, leavings: &mut Leavings) -> io::Result<()> {
        let (mut ids, mut moves) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "move") {
                moves.push(path.clone());
            }
            let id = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            if let Some(id) = id.filter(|_| path.extension().is_some_and(|kind| kind == "data")) {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        let mut has_all = true;
        let mut moved_here = Vec::new();
        for path in moves {
            let moved = serde_json::from_slice::<Move>(&fs::read(&path)?);
            has_all = false;
            match moved {
                Ok(moved) if canonical(&moved.url) == canonical(url) => {
                    moved_here.push(moved.clone());
                    leavings.moves.push((moved, path));
                }
                Ok(moved) => {
                    let other = shown(&moved.url);
                    leavings.failed.push(format!("{}: it belongs to {other}", path.display()));
                }
                Err(error) => leavings.failed.push(format!("{}: {error}", path.display())),
            }
        }
        for id in ids {
            let (data, record) =
                (folder.join(format!("{id}.data")), folder.join(format!("{id}.json")));
            let taken = match read(&record, url) {
                // The store has all of it, or nothing was written.
                Ok(None) => fs::remove_file(&data),
                Ok(Some(mut found)) => {
                    // It was not noted before the mount ended.
                    let key = found.key.clone();
                    moved_here.iter().for_each(|moved| moved.apply(&mut found));
                    let noted = match found.key == key {
                        true => Ok(()),
                        false => serde_json::to_vec(&found)
                            .map_err(io::Error::other)
                            .and_then(|text| replace(&record, &text, true)),
                    };
                    noted.and_then(|()| self.take_draft(&data, &record, found, leavings))
                }
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                has_all = false;
                leavings.failed.push(format!("{}: {error}", data.display()));
            }
        }
        if has_all { fs::remove_dir_all(folder) } else { Ok(()) }
    }

    fn take_draft(
        &self,
        data: &Path,
        path: &Path,
        record: Record,
        leavings: &mut Leavings,
    ) -> io::Result<()> {
        if !record.is_closed {
            if let Some(SavedParts { upload, .. }) = record.parts {
                leavings.uploads.push((record.key.clone(), upload));
            }
            // Its record is older than its last bytes.
            if fs::metadata(data)?.blocks() == 0 {
                fs::remove_file(data)?;
                return fs::remove_file(path);
            }
            let kept = unfinished(data, &record.key)?;
            leavings.unfinished.push((record.key, kept));
            return fs::remove_file(path);
        }
        record.check(fs::metadata(data)?.len())?;
        let id = self.next();
        // The record last: until it is here, the draft is still there.
        let own = self.data(id);
        fs::hard_link(data, &own)?;
        fs::rename(path, self.record(id))?;
        fs::remove_file(data)?;
        let file = private().read(true).write(true).open(&own)?;
        let bytes: u64 = record.local.iter().map(|(start, end)| end - start).sum();
        self.force(bytes);
        leavings.closed.push(Left { id, record, file });
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.end();
    }
}

/// The file that a mount locks.
const LOCK: &str = "lock";
/// The folder for bytes of files that were never closed.
const UNFINISHED: &str = "unfinished";

/// Makes a folder that no other mount has, and locks it.
fn own_folder(all: &Path) -> io::Result<(PathBuf, File)> {
    for number in 1.. {
        let folder = all.join(number.to_string());
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        let path = folder.join(LOCK);
        let lock = private().read(true).write(true).create(true).truncate(false).open(path)?;
        match lock.try_lock() {
            Ok(()) => {
                // For those who wait for it.
                (&lock).write_all(std::process::id().to_string().as_bytes())?;
                return Ok((folder, lock));
            }
            // Another mount took it for one of a mount that has ended.
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::QuotaExceeded.into())
}

/// What a process that has not ended has in its folder, in words, if there is something.
fn unstored_by(folder: &Path) -> Option<String> {
    let is_record =
        |entry: &fs::DirEntry| Path::new(&entry.file_name()).extension() == Some("json".as_ref());
    let files = fs::read_dir(folder).ok()?.flatten().filter(is_record).count();
    let process = fs::read_to_string(folder.join(LOCK)).unwrap_or_default();
    let noun = if files == 1 { "file" } else { "files" };
    let words = format!(
        "{files} {noun} of process {process}, which has not ended, may not be in the store yet"
    );
    (files > 0).then_some(words)
}

/// Moves the bytes of a file that was never closed to where its user finds them.
fn unfinished(data: &Path, key: &str) -> io::Result<PathBuf> {
    let all = data.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    let folder = all.join(UNFINISHED);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let readable = |c: char| if c == '/' || c.is_control() { '_' } else { c };
    let name: String = key.chars().map(readable).take(60).collect();
    for number in 1.. {
        let path = folder.join(format!("{name}.{number}"));
        match fs::hard_link(data, &path) {
            Ok(()) => {
                fs::remove_file(data)?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::QuotaExceeded.into())
}

/// Reads a record. `None` if there is none.
fn read(path: &Path, url: &str) -> io::Result<Option<Record>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let record: Record = serde_json::from_slice(&text)
        .map_err(|error| io::Error::other(format!("the record cannot be read: {error}")))?;
    if record.schema != SCHEMA {
        let why = format!("the record is of version {}, and not {SCHEMA}", record.schema);
        return Err(io::Error::other(why));
    }
    if canonical(&record.url) != canonical(url) {
        return Err(io::Error::other(format!("it belongs to {}", shown(&record.url))));
    }
    Ok(Some(record))
}

/// Writes a file in place of an older one. If it `lasts`, a crash of the machine does not lose it.
fn replace(path: &Path, text: &[u8], lasts: bool) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = private().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(text)?;
    if lasts {
        file.sync_all()?;
    }
    fs::rename(&new, path)?;
    match path.parent().filter(|_| lasts) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::io(&path.to_string_lossy().into(), "staging in", error)
}

impl Record {
    /// Fails for a record that cannot be of a file with so many bytes.
    fn check(&self, len: u64) -> io::Result<()> {
        let base = self.base.as_ref().map_or(0, |(object, len)| object.size.min(*len));
        let is_base = self.base.as_ref().is_none_or(|(object, len)| *len <= object.size);
        let mut end = 0;
        let is_in_order = self.local.iter().all(|(start, stop)| {
            let is_next = *start >= end && start < stop;
            end = *stop;
            is_next
        });
        let has_all = end <= self.size.min(len);
        if is_base && is_in_order && has_all && base <= self.size && self.size <= LARGEST {
            return Ok(());
        }
        let why = format!("the record does not fit the {len} bytes of the file with its data");
        Err(io::Error::other(why))
    }

    /// The record of a draft of nothing.
    pub(crate) fn new(url: &str, key: &str) -> Self {
        Self {
            schema: SCHEMA,
            url: url.to_owned(),
            mark: String::new(),
            key: key.to_owned(),
            is_closed: false,
            size: 0,
            modified: None,
            local: Vec::new(),
            base: None,
            found: None,
            attributes: Attributes::default(),
            parts: None,
            change: 0,
            completion: None,
            marks: 0,
            replaces: None,
        }
    }
}
