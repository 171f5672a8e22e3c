//! What a mount shows: names, and what they stand for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};
use std::time::{Duration, Instant, SystemTime};

use fuser::{Errno, FileAttr, FileType, INodeNo};
use thalweg_io::open::counts_of_urls;
use thalweg_io::{Error, Result};

use crate::ahead::Ahead;
use crate::attributes::Attributes;
use crate::bucket::{Bucket, Kind};
use crate::draft::Draft;
use crate::errors::errno;
use crate::fetcher::Fetcher;
use crate::files::Files;
use crate::kernel::Forgetter;
use crate::status::{Counters, METRICS, STATUS, Status};
use crate::tree::{Listing, Node, ROOT, Tree, entry, key};
use crate::writing::Writing;

/// The longest path to which a link leads (`PATH_MAX`).
const LONGEST_TARGET: u64 = 4096;
/// Bytes of a block that programs are told to read by (`st_blksize`).
pub(crate) const BLOCK: u32 = 1 << 20;

/// Failures that the status tells.
const MOST_FAILURES: usize = 20;
/// The longest name, in bytes.
pub(crate) const LONGEST_NAME: usize = 255;
/// A folder of more names is not listed for one of them.
const MOST_LISTED: usize = 10_000;
/// The permissions of files and folders, less those that nobody has.
pub(crate) const FILE_MODE: u32 = 0o666;
pub(crate) const FOLDER_MODE: u32 = 0o777;
pub(crate) const LINK_MODE: u32 = 0o777;
/// The permissions that nobody has where nothing can be written.
const WRITES: u32 = 0o222;

/// How the files look, and what the kernel is told of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether what users make is theirs, and not of the user and the group above.
    pub(crate) has_makers_uid: bool,
    pub(crate) has_makers_gid: bool,
    /// The bits that files and folders do not have.
    pub(crate) umask: u32,
    pub(crate) ttl: Duration,
    pub(crate) passes_through: bool,
    /// Whether the kernel collects writes.
    pub(crate) writes_back: bool,
    /// Whether each lookup asks for the attributes of a file.
    pub(crate) asks: bool,
    pub(crate) warn: fn(&str),
}

/// The objects of a bucket as files.
pub(crate) struct BucketFs {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) settings: Settings,
    pub(crate) tree: Tree,
    pub(crate) files: Files,
    /// `None` if the bucket can only be read.
    pub(crate) writing: Option<Arc<Writing>>,
    pub(crate) fetcher: Arc<Fetcher>,
    pub(crate) ahead: Ahead,
    pub(crate) folders: Mutex<HashMap<u64, Listing>>,
    pub(crate) next: AtomicU64,
    pub(crate) forgetter: Forgetter,
    started: SystemTime,
}

impl BucketFs {
    pub(crate) fn new(
        bucket: Arc<Bucket>,
        fetcher: Arc<Fetcher>,
        writing: Option<Arc<Writing>>,
        forgetter: Forgetter,
        settings: Settings,
    ) -> Self {
        Self {
            bucket,
            writing,
            settings,
            tree: Tree::new(settings.ttl),
            files: Files::new(fetcher.clone()),
            fetcher,
            ahead: Ahead::default(),
            folders: Mutex::default(),
            next: AtomicU64::new(1),
            forgetter,
            started: SystemTime::now(),
        }
    }

    /// Has no folder get another name meanwhile.
    pub(crate) fn still(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let moving = self.writing.as_ref().map(|writing| writing.moving.read());
        moving.map(|moving| moving.unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn writing(&self) -> Result<&Arc<Writing>, Errno> {
        self.writing.as_ref().ok_or(Errno::EROFS)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.fetcher.counters
    }

    pub(crate) fn folders(&self) -> MutexGuard<'_, HashMap<u64, Listing>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an error for the kernel. The error itself is written down.
    pub(crate) fn failed(&self, error: &Error) -> Errno {
        let text = error.to_string();
        (self.settings.warn)(&text);
        self.counters().failed(text);
        errno(error)
    }

    pub(crate) fn or_failed<T>(&self, result: Result<T>) -> Result<T, Errno> {
        result.map_err(|error| self.failed(&error))
    }

    pub(crate) fn node(&self, number: INodeNo) -> Result<Node, Errno> {
        self.tree.node(number.0).ok_or(Errno::ESTALE)
    }

    pub(crate) fn folder(&self, number: INodeNo) -> Result<Node, Errno> {
        let node = self.node(number)?;
        if node.kind == Kind::Folder { Ok(node) } else { Err(Errno::ENOTDIR) }
    }

    /// The entries of a folder: those that are known, or those of a new list.
    pub(crate) fn listing(&self, number: u64, node: &Node) -> Result<Listing, Errno> {
        let merged = |(since, listing): (Instant, Listing)| match &self.writing {
            Some(writing) => writing.changes.merge(&node.key, since, listing),
            None => listing,
        };
        if let Some(known) = self.tree.listing(number) {
            return Ok(merged(known));
        }
        let since = Instant::now();
        let entries = match self.bucket.list(&node.key) {
            Ok(entries) => entries,
            // It is one that only this mount knows.
            Err(error) if errno(&error) == Errno::ENOENT && self.writing.is_some() => Vec::new(),
            Err(error) => return Err(self.failed(&error)),
        };
        Ok(merged((since, self.tree.keep(number, since, entries))))
    }

    /// What has a name in a folder, if something has.
    pub(crate) fn kind_of(
        &self,
        parent: u64,
        folder: &Node,
        name: &str,
    ) -> Result<Option<Kind>, Errno> {
        let changes = self.writing.as_ref().map(|writing| &writing.changes);
        let find = || {
            let found = self.or_failed(self.bucket.find(&folder.key, name))?;
            // What waits for a bucket has a name as long as it waits, though the bucket be gone.
            let is_bucket = self.bucket.has_buckets(&folder.key);
            let waits =
                || is_bucket && changes.is_some_and(|all| all.has_any_below(&format!("{name}/")));
            Ok(found.or_else(|| waits().then_some(Kind::Folder)))
        };
        if let Some(changes) = changes
            && let Some(kind) = changes.get(&folder.key, name)
        {
            // Another program may have replaced what this mount has stored.
            if let Some(Kind::Draft(draft)) = &kind
                && draft.verified().elapsed() >= self.settings.ttl
                && let Some(stored) = draft.stored()
            {
                let found = find()?;
                let is_same = match &found {
                    Some(Kind::File(found)) => found.tag == stored.tag,
                    // The folder has the name, and the object may be there.
                    Some(Kind::Folder) => true,
                    _ => false,
                };
                if is_same || self.is_own(draft)? {
                    draft.verify();
                } else if key(&folder.key, name, "")
                    .is_some_and(|key| draft.supersede(&key, &stored))
                {
                    changes.forget_draft(&folder.key, name, draft);
                    return Ok(found);
                }
            }
            return Ok(kind);
        }
        let in_list = |listing: &Listing| match entry(listing, name) {
            Some(found) => Ok(Some(found.kind.clone())),
            // Lists have one's own buckets only.
            None if self.bucket.has_buckets(&folder.key) => find(),
            None => Ok(None),
        };
        match self.tree.listing(parent) {
            Some((_, listing)) => in_list(&listing),
            None if self.tree.ask(parent) => {
                let since = Instant::now();
                let listed = self.bucket.list_up_to(&folder.key, MOST_LISTED);
                match listed {
                    Ok(Some(entries)) => in_list(&self.tree.keep(parent, since, entries)),
                    // It has many names, or is one that only this mount knows.
                    Ok(None) | Err(_) => find(),
                }
            }
            None => find(),
        }
    }

    /// Whether the object of a draft is one that it became though the store did not tell.
    fn is_own(&self, draft: &Draft) -> Result<bool, Errno> {
        let Some(writing) = self.writing.as_ref().filter(|_| draft.is_unsure()) else {
            return Ok(false);
        };
        let object = self.or_failed(writing.object_of(draft))?;
        let Some(version) = object else { return Ok(false) };
        let open = |key: &str, version: &_| writing.storer.open(key, version);
        self.or_failed(draft.has_become(version, open)).map(|()| true)
    }

    pub(crate) fn find(&self, parent: INodeNo, name: &OsStr) -> Result<(u64, FileAttr), Errno> {
        let folder = self.folder(parent)?;
        if name.len() > LONGEST_NAME {
            return Err(Errno::ENAMETOOLONG);
        }
        let name = name.to_str().ok_or(Errno::ENOENT)?;
        let kind = self.kind_of(parent.0, &folder, name)?.ok_or(Errno::ENOENT)?;
        self.found(parent.0, name, kind)
    }

    /// Gives what has a name in a folder its number.
    pub(crate) fn found(
        &self,
        parent: u64,
        name: &str,
        kind: Kind,
    ) -> Result<(u64, FileAttr), Errno> {
        let (number, node) = self.tree.lookup(parent, name, kind).ok_or(Errno::ESTALE)?;
        if self.settings.asks {
            self.attributes_of(&node).inspect_err(|_| self.tree.forget(number, 1))?;
        }
        Ok((number, self.attributes(number, &node)))
    }

    pub(crate) fn attributes(&self, number: u64, node: &Node) -> FileAttr {
        let since = |seconds: i64| {
            let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            SystemTime::UNIX_EPOCH + seconds
        };
        let (known, modified) = self.known(node);
        let umask = self.settings.umask;
        let (kind, usual, nlink, size, modified) = match &node.kind {
            Kind::Folder => (FileType::Directory, FOLDER_MODE & !umask, 2, 0, modified),
            Kind::Link(version) => {
                let modified = modified.or(version.modified.map(since));
                (FileType::Symlink, LINK_MODE, 1, version.size, modified)
            }
            Kind::File(version) => {
                let modified = modified.or(version.modified.map(since));
                (FileType::RegularFile, FILE_MODE & !umask, 1, version.size, modified)
            }
            Kind::Draft(draft) => {
                let nlink = u32::from(!draft.is_removed());
                (FileType::RegularFile, FILE_MODE & !umask, nlink, draft.size(), modified)
            }
        };
        let perm = known.mode.unwrap_or(usual);
        let perm = if self.writing.is_some() { perm } else { perm & !WRITES };
        let time = modified.unwrap_or(self.started);
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: known.changed().map_or(time, |changed| changed.max(time)),
            crtime: time,
            kind,
            perm: perm as u16,
            nlink,
            uid: known.uid.unwrap_or(self.settings.uid),
            gid: known.gid.unwrap_or(self.settings.gid),
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        }
    }

    /// What is known of the attributes of a file or a folder without asking, and when it was
    /// changed.
    fn known(&self, node: &Node) -> (Attributes, Option<SystemTime>) {
        if let Kind::Draft(draft) = &node.kind {
            return (draft.attributes(), Some(draft.modified()));
        }
        let known = self.writing.as_ref().and_then(|writing| writing.known_of(node));
        let (_, attributes, modified) = known.unwrap_or_default();
        let touched = match (&node.kind, &self.writing) {
            (Kind::Folder, Some(writing)) => writing.touched(&node.key),
            _ => None,
        };
        let modified = touched.or(attributes.modified()).or(modified);
        (attributes, modified)
    }

    pub(crate) fn known_attributes(&self, node: &Node) -> Attributes {
        self.known(node).0
    }

    /// The attributes of a file or a folder, which may be asked for. Those of a folder are asked
    /// for once.
    pub(crate) fn attributes_of(&self, node: &Node) -> Result<Attributes, Errno> {
        if let Kind::Draft(draft) = &node.kind {
            return Ok(draft.attributes());
        }
        let Some(writing) = &self.writing else { return Ok(Attributes::default()) };
        if let Some((_, attributes, _)) = writing.known_of(node) {
            return Ok(attributes);
        }
        // The folder that is mounted has no mark, and no bucket has one.
        let head = match self.bucket.is_top(&node.key) {
            true => None,
            false => self.or_failed(writing.storer.bucket().head(&node.key))?,
        };
        let attributes =
            head.as_ref().map(|head| Attributes::of(&head.metadata)).unwrap_or_default();
        match head {
            // It may have no mark.
            _ if node.kind == Kind::Folder => writing.know_folder(&node.key, attributes.clone()),
            Some(head) => writing.know(&node.key, &head.version, attributes.clone(), None),
            None => return Err(Errno::ENOENT),
        }
        Ok(attributes)
    }

    /// Where a link leads.
    pub(crate) fn target(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        let node = self.node(number)?;
        let Kind::Link(version) = &node.kind else { return Err(Errno::EINVAL) };
        if version.size > LONGEST_TARGET {
            return Err(Errno::EIO);
        }
        let mut target = vec![0; version.size as usize];
        let store = self.bucket.open(&node.key, version);
        let read = store.and_then(|store| store.read_at(0, &mut target));
        read.map_err(|error| self.failed(&error))?;
        Ok(target)
    }

    /// Brings all that was written to the store.
    pub(crate) fn flush_all(&self) -> Result<(), Errno> {
        let failures = self.writing()?.flush();
        for failure in &failures {
            (self.settings.warn)(failure);
        }
        if failures.is_empty() { Ok(()) } else { Err(Errno::EIO) }
    }

    /// Fetches the small files that will probably be opened after a file.
    pub(crate) fn fetch_next(&self, node: &Node) {
        let listing = self.tree.listing(node.parent);
        let Some(((_, listing), folder)) = listing.zip(self.tree.node(node.parent)) else { return };
        for next in self.ahead.opened(node.parent, &listing, &node.name) {
            let key: Arc<str> = format!("{}{}", folder.key, next.part).into();
            let open = || self.bucket.open(&key, &next.version);
            // Whoever opens it gets the error.
            let _ = self.files.expect((key.clone(), next.version.clone()), open);
        }
    }

    /// The status of the mount.
    pub(crate) fn status(&self) -> Status {
        let (open, passed) = self.files.count();
        let (in_flight, oldest) = self.fetcher.in_flight();
        let memory = &self.fetcher.memory;
        let cache = self.bucket.options().cache.as_ref();
        let cache = cache.map(|cache| (cache.folder().display().to_string(), cache.limit()));
        let (cache_folder, cache_limit_bytes) = cache.unzip();
        let store = counts_of_urls();
        let unstored = self.writing.as_ref().map(|writing| writing.unstored());
        let mut unstored = unstored.unwrap_or_default();
        let unstored_failed = unstored.failures.len() as u64;
        unstored.failures.truncate(MOST_FAILURES);
        Status {
            unstored_files: unstored.files,
            unstored_bytes: unstored.bytes,
            unstored_failed,
            unstored_errors: unstored.failures,
            staged_bytes: self.writing.as_ref().map_or(0, |writing| writing.staging.used()),
            source: thalweg_io::urls::shown(self.bucket.url()),
            open_files: open as u64,
            open_files_passed_through: passed as u64,
            nodes: self.tree.len() as u64,
            in_flight: in_flight as u64,
            in_flight_oldest_s: oldest.unwrap_or_default().as_secs_f64(),
            waiting: self.fetcher.waiting() as u64,
            memory_bytes: memory.used(),
            memory_limit_bytes: memory.limit(),
            requests: store.requests,
            retries: store.retries,
            retries_refused: store.reasons.refused,
            retries_unconnected: store.reasons.unconnected,
            retries_late: store.reasons.late,
            retries_broken: store.reasons.broken,
            hedges: store.hedges,
            bytes_fetched: store.bytes,
            cache_folder,
            cache_limit_bytes,
            ..self.counters().status()
        }
    }

    pub(crate) fn attribute(&self, number: INodeNo, name: &OsStr) -> Option<String> {
        if number.0 != ROOT {
            let node = self.tree.node(number.0)?;
            return match name.to_str()? {
                "user.thalweg.key" => Some(node.key.to_string()),
                "user.thalweg.etag" => Some(match &node.kind {
                    Kind::Draft(draft) => draft.stored()?.tag,
                    _ => node.version()?.tag.clone(),
                }),
                _ => None,
            };
        }
        match name.to_str()? {
            STATUS => serde_json::to_string(&self.status()).ok(),
            METRICS => Some(self.status().metrics()),
            _ => None,
        }
    }
}
