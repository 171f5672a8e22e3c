//! The part of a mount that changes the bucket: its drafts, and what has them open.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, SystemTime};

use fuser::Errno;
use thalweg_io::Result;
use thalweg_io::open::ObjectVersion;

use crate::attributes::Attributes;
use crate::bucket::Kind;
use crate::changes::Changes;
use crate::draft::{Draft, Place};
use crate::moving::remove_copied;
use crate::names;
use crate::staging::{Copied, Leavings, Staging};
use crate::storing::Storer;
use crate::tree::Node;

/// The bit that tells handles of drafts from those of files that are only read.
pub(crate) const DRAFT: u64 = 1 << 63;
/// Objects whose attributes are remembered.
const MOST_KNOWN: usize = 1 << 16;

/// What is promised when a file is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The object is visible.
    Durable,
    /// The bytes are on this machine's disc, and will be brought to the store.
    Staged,
}

/// What is known of an object that lists do not tell: the tag of its version, its attributes, and
/// when it was changed.
type Known = (String, Attributes, Option<SystemTime>);

/// The part of a mount that changes the bucket.
pub(crate) struct Writing {
    pub(crate) storer: Arc<Storer>,
    pub(crate) staging: Arc<Staging>,
    pub(crate) changes: Changes,
    /// The URL that is mounted.
    pub(crate) url: Arc<str>,
    pub(crate) close: Close,
    pub(crate) handles: Mutex<HashMap<u64, Handle>>,
    next: AtomicU64,
    /// All drafts, by their ids, whether they have a name or not.
    drafts: Mutex<HashMap<u64, Weak<Draft>>>,
    /// Drafts that nothing has open any more, the oldest first.
    pub(crate) closed: Mutex<VecDeque<Arc<Draft>>>,
    known: Mutex<HashMap<Arc<str>, Known>>,
    /// When names in folders have changed.
    touched: Mutex<HashMap<Arc<str>, SystemTime>>,
    /// Held while a folder gets another name.
    pub(crate) moving: RwLock<()>,
    /// Held while a file becomes a draft, or a draft a file. Files with these numbers do not become
    /// drafts: they get another name, or are removed.
    pub(crate) turning: Mutex<HashSet<u64>>,
    turned: Condvar,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A draft that a program has open.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) draft: Arc<Draft>,
    pub(crate) writes: bool,
    /// The process that has opened it, if that is known.
    opener: Option<u32>,
}

/// The process of a thread, if this process can see it.
fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

impl Handle {
    /// Whether a thread closes it for good. A process that starts another one shares its handles
    /// with it for a moment, and that one closes them, or has them for good.
    pub(crate) fn is_closed_by(&self, thread: u32) -> bool {
        let (Some(opener), Some(process)) = (self.opener, process_of(thread)) else { return true };
        process == opener || !Path::new("/proc").join(opener.to_string()).exists()
    }
}

/// A file that does not become a draft.
pub(crate) struct KeptClosed<'a> {
    writing: &'a Writing,
    number: u64,
}

impl Drop for KeptClosed<'_> {
    fn drop(&mut self) {
        lock(&self.writing.turning).remove(&self.number);
        self.writing.turned.notify_all();
    }
}

/// What was found of other mounts of a URL.
#[derive(Debug)]
pub(crate) struct TakenOver {
    /// What is to be told.
    pub(crate) told: Vec<String>,
    /// How many of these are failures.
    pub(crate) failures: usize,
    /// What the store may lack of processes that have not ended.
    pub(crate) living: Vec<String>,
}

impl Writing {
    pub(crate) fn new(
        storer: Arc<Storer>,
        staging: Arc<Staging>,
        url: Arc<str>,
        close: Close,
        ttl: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            storer,
            staging,
            changes: Changes::new(ttl),
            url,
            close,
            handles: Mutex::default(),
            next: AtomicU64::new(0),
            closed: Mutex::default(),
            known: Mutex::default(),
            touched: Mutex::default(),
            drafts: Mutex::default(),
            moving: RwLock::default(),
            turning: Mutex::default(),
            turned: Condvar::new(),
        })
    }

    /// Has a file with a number not become a draft, until what this gives is dropped.
    pub(crate) fn keep_closed(&self, number: Option<u64>) -> Option<KeptClosed<'_>> {
        let number = number?;
        lock(&self.turning).insert(number);
        Some(KeptClosed { writing: self, number })
    }

    /// Holds [`Writing::turning`] once a file with a number may become a draft.
    pub(crate) fn turn(&self, number: u64) -> MutexGuard<'_, HashSet<u64>> {
        let mut turning = lock(&self.turning);
        while turning.contains(&number) {
            turning = self.turned.wait(turning).unwrap_or_else(PoisonError::into_inner);
        }
        turning
    }

    /// Notes a new draft.
    pub(crate) fn add(&self, draft: &Arc<Draft>) {
        lock(&self.drafts).insert(draft.id, Arc::downgrade(draft));
    }

    /// All drafts that were not removed, in the order in which they were made.
    pub(crate) fn drafts(&self) -> Vec<Arc<Draft>> {
        let mut drafts = lock(&self.drafts);
        drafts.retain(|_, draft| draft.strong_count() > 0);
        let all = drafts.values().filter_map(Weak::upgrade);
        let mut all: Vec<_> = all.collect();
        drop(drafts);
        all.retain(|draft| !draft.is_removed());
        all.sort_by_key(|draft| draft.id);
        all
    }

    /// The object of a draft in the store, which may have one of which it did not tell.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn object_of(&self, draft: &Draft) -> Result<Option<ObjectVersion>> {
        if !draft.is_unsure() {
            return Ok(draft.found());
        }
        let head = self.storer.bucket().head(&draft.key())?;
        Ok(head.filter(|head| draft.is_own(head)).map(|head| head.version))
    }

    /// A handle for a draft whose handles count this one already ([`Draft::open`]).
    pub(crate) fn open_handle(&self, draft: &Arc<Draft>, by: Option<u32>) -> u64 {
        let writes = by.is_some();
        let number = self.next.fetch_add(1, Ordering::Relaxed) | DRAFT;
        let opener = by.and_then(process_of);
        let handle = Handle { draft: draft.clone(), writes, opener };
        lock(&self.handles).insert(number, handle);
        number
    }

    pub(crate) fn handle(&self, handle: u64) -> Result<Handle, Errno> {
        lock(&self.handles).get(&handle).cloned().ok_or(Errno::EBADF)
    }

    /// What is known of a version of an object.
    pub(crate) fn known(&self, key: &str, version: &ObjectVersion) -> Option<Known> {
        let known = lock(&self.known).get(key).cloned();
        known.filter(|(tag, ..)| *tag == version.tag && version.is_certain())
    }

    /// What is known of a file, a link or a folder, but for drafts.
    pub(crate) fn known_of(&self, node: &Node) -> Option<Known> {
        match &node.kind {
            Kind::Folder => lock(&self.known).get(&node.key).cloned(),
            Kind::File(version) | Kind::Link(version) => self.known(&node.key, version),
            Kind::Draft(_) => None,
        }
    }

    pub(crate) fn know_folder(&self, folder: &Arc<str>, attributes: Attributes) {
        keep(&self.known, folder, (String::new(), attributes, None));
    }

    /// Notes that names in a folder have changed now.
    pub(crate) fn touch_folder(&self, folder: &Arc<str>) {
        keep(&self.touched, folder, SystemTime::now());
    }

    /// When names in a folder last changed here, if no other time was set since.
    pub(crate) fn touched(&self, folder: &str) -> Option<SystemTime> {
        lock(&self.touched).get(folder).copied()
    }

    /// Notes that another time was set of a folder.
    pub(crate) fn end_touch(&self, folder: &str) {
        lock(&self.touched).remove(folder);
    }

    pub(crate) fn forget_known(&self, key: &str) {
        lock(&self.known).remove(key);
    }

    /// Notes that objects have been copied to another folder.
    pub(crate) fn know_copies(&self, from: &str, to: &str, copies: &[Copied]) {
        let mut known = lock(&self.known);
        for Copied { rest, tag, copy, .. } in copies {
            let old = format!("{from}{rest}");
            let is_folder = old.ends_with('/');
            if let Some((of, attributes, modified)) = known.remove(&*old)
                && (is_folder || of == *tag)
            {
                let key: Arc<str> = format!("{to}{rest}").into();
                known.insert(key, (copy.clone(), attributes, modified));
            }
        }
    }

    pub(crate) fn know(
        &self,
        key: &Arc<str>,
        version: &ObjectVersion,
        attributes: Attributes,
        modified: Option<SystemTime>,
    ) {
        keep(&self.known, key, (version.tag.clone(), attributes, modified));
    }

    /// Takes drafts over that mounts have left which have ended, and has them stored.
    pub(crate) fn take_over(self: &Arc<Self>) -> TakenOver {
        let leavings = self.staging.take_over(&self.url);
        let Leavings { mut closed, unfinished, uploads, moves, failed, living } = leavings;
        // The mount ended while a file got the name of another one.
        let replaced: HashSet<String> =
            closed.iter().filter_map(|left| left.record.replaces.clone()).collect();
        closed.retain(|left| {
            let stays = !replaced.contains(&left.record.mark);
            if !stays {
                let upload = left.record.parts.as_ref().map(|parts| parts.upload.clone());
                self.storer.give_up(&left.record.key, upload);
                self.staging.remove(left.id);
            }
            stays
        });
        let mut failures = failed.len();
        let mut told = failed;
        for (moved, path) in moves {
            let (from, to) = (&*moved.from, &*moved.to);
            let copies = moved.copies.as_ref();
            match copies.map(|copies| remove_copied(&self.storer, (from, to), copies)) {
                Some(Ok(())) => self.staging.end_move(&path),
                Some(Err(error)) => {
                    failures += 1;
                    told.push(error.to_string());
                }
                None => {
                    self.staging.end_move(&path);
                    told.push(format!(
                        "{0}{from} was to be named {0}{to} when a mount ended: all of it is where \
                         it was, and there may be copies below the new name",
                        self.url
                    ));
                }
            }
        }
        if !closed.is_empty() {
            let count = closed.len();
            let files = if count == 1 { "file" } else { "files" };
            told.push(format!("storing {count} {files} of a mount that ended before it had"));
        }
        for (key, path) in unfinished {
            told.push(format!(
                "{}{key} was still open when a mount ended: what was written of it is in {}",
                self.url,
                path.display()
            ));
        }
        for (key, upload) in uploads {
            self.storer.give_up(&key, Some(upload));
        }
        for left in closed {
            let key: Arc<str> = left.record.key.as_str().into();
            let (folder, part) = key
                .rsplit_once('/')
                .map_or(("", &*key), |(folder, part)| (&key[..=folder.len()], part));
            let Some(name) = names::name(part) else {
                failures += 1;
                told.push(format!("{}{key} is no name of a file", self.url));
                continue;
            };
            let place = Place { folder: folder.into(), name: (*name).into() };
            let draft =
                Draft::left(&self.staging, &self.url, place.clone(), left, |key, version| {
                    self.storer.open(key, version)
                });
            match draft {
                Ok(draft) => {
                    let kind = Some(Kind::Draft(draft.clone()));
                    self.changes.set(&place.folder, &place.name, kind);
                    self.add(&draft);
                    lock(&self.closed).push_back(draft.clone());
                    self.storer.store_later(&draft);
                }
                Err(error) => {
                    failures += 1;
                    told.push(error.to_string());
                }
            }
        }
        TakenOver { told, failures, living }
    }

    /// Brings everything to the store that is not there. Returns what could not be brought, and
    /// why.
    pub(crate) fn flush(self: &Arc<Self>) -> Vec<String> {
        let mut drafts = self.drafts();
        drafts.retain(|draft| draft.is_dirty());
        let stored = self.storer.store_all(drafts);
        stored.into_iter().filter_map(|stored| Some(stored.err()?.to_string())).collect()
    }

    /// Ends the threads, and removes what is here of files that the store has: a thread may keep a
    /// draft for longer than the process lives.
    pub(crate) fn end(&self) {
        self.storer.end();
        let drafts: Vec<_> = lock(&self.drafts).values().filter_map(Weak::upgrade).collect();
        drafts.iter().for_each(|draft| draft.end());
        self.staging.end();
    }

    pub(crate) fn unstored(&self) -> Unstored {
        let mut drafts = self.drafts();
        drafts.retain(|draft| draft.is_dirty());
        let failures = drafts.iter().filter_map(|draft| Some(draft.failure()?.to_string()));
        Unstored {
            files: drafts.len() as u64,
            bytes: drafts.iter().map(|draft| draft.taken()).sum(),
            failures: failures.collect(),
        }
    }
}

/// Remembers something of an object. What is known of many others is forgotten then.
fn keep<T>(known: &Mutex<HashMap<Arc<str>, T>>, key: &Arc<str>, what: T) {
    let mut known = lock(known);
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
    known.insert(key.clone(), what);
}

/// Drafts that the store does not have.
#[derive(Debug, Default)]
pub(crate) struct Unstored {
    pub(crate) files: u64,
    /// Their bytes here.
    pub(crate) bytes: u64,
    /// Why some of them could not be stored.
    pub(crate) failures: Vec<String>,
}
