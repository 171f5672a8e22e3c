//! A file that is being written: its bytes are in the staging folder, until the store has them.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FileType, Mode};
use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};
use thalweg_object::Head;

use crate::attributes::Attributes;
use crate::parts::{Completion, Parts};
use crate::ranges::Ranges;
use crate::reading::Reading;
use crate::staging::{Named, Staging};

mod content;
mod record;
mod storing;

pub(crate) use content::Written;
pub(crate) use storing::{Held, Snapshot, Target, Unsent};

/// The longest time in which the kernel writes back.
const LONGEST_WRITE_BACK: Duration = Duration::from_secs(120);

/// A file that is being written.
pub(crate) struct Draft {
    /// Tells it from all other drafts of the mount.
    pub(crate) id: u64,
    /// The number of its node, or 0.
    number: AtomicU64,
    staging: Arc<Staging>,
    /// The URL that is mounted.
    url: Arc<str>,
    /// How the marks of all objects begin that it became.
    mark: String,
    /// The number of the next mark.
    marks: AtomicU64,
    /// How often it was to be stored later.
    queued: AtomicU64,
    file: File,
    state: Mutex<State>,
    changed: Condvar,
}

/// Where a draft is: a folder, by what its keys begin with, and the name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) folder: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// The object that has the bytes of a draft that are not here.
#[derive(Clone)]
pub(crate) struct Base {
    pub(crate) object: Named,
    pub(crate) reading: Arc<Reading>,
    /// Its bytes up to here are those of the draft.
    pub(crate) len: u64,
}

struct State {
    place: Place,
    key: Arc<str>,
    size: u64,
    modified: SystemTime,
    attributes: Attributes,
    /// The bytes that are in the file.
    local: Ranges,
    base: Option<Base>,
    /// Bytes that only the parts have which were sent.
    dropped: Ranges,
    /// Bytes for which it has taken room in the staging folder: those here that are no hole.
    held: Ranges,
    /// Numbers of changes: the last one, the last one of bytes, the one that the store has, and the
    /// one of bytes that the store has.
    change: u64,
    bytes: u64,
    stored: u64,
    stored_bytes: u64,
    /// The number of the change that made it: nothing was written after it.
    made: u64,
    is_closed: bool,
    has_record: bool,
    /// Whether its record is to outlive a crash of the machine.
    lasts: bool,
    /// The next change has no smaller number.
    least_change: u64,
    /// The object under its key.
    found: Option<ObjectVersion>,
    /// This object is another file's, which this one replaces once it is stored.
    is_others: bool,
    handles: usize,
    writers: usize,
    is_removed: bool,
    /// Another program's object has its name.
    is_superseded: bool,
    is_publishing: bool,
    /// It gets another name, or is removed: no upload begins.
    is_held: bool,
    /// The last parts are being put together: writers wait.
    is_frozen: bool,
    failure: Option<Error>,
    /// A request has failed that may have made an object all the same.
    is_unsure: bool,
    parts: Option<Parts>,
    /// The object that was last to be made of parts.
    completion: Option<Completion>,
    /// The object that a failed rename may have copied over this file's object.
    copied_over: Option<ObjectVersion>,
    /// How the marks begin of the draft whose name it has got.
    replaces: Option<String>,
    is_beginning: bool,
    /// No write so far was to a part of `early`.
    written_once: bool,
    /// Parts that are sent while it is written.
    early: HashSet<usize>,
    /// Bytes that a program has written were not taken here.
    lacks_bytes: bool,
    /// When the store was last asked about its key.
    verified: Instant,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Draft({}, {})", self.id, self.lock().key)
    }
}

impl PartialEq for Draft {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Draft {}

/// How many handles a draft has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handles {
    pub(crate) all: usize,
    pub(crate) writers: usize,
}

impl State {
    fn touch(&mut self) {
        self.change = (self.change + 1).max(self.least_change);
    }

    fn touch_bytes(&mut self) {
        self.touch();
        self.bytes = self.change;
        self.is_closed = false;
        self.modified = SystemTime::now();
        self.attributes.mtime = None;
    }

    fn is_dirty(&self) -> bool {
        !self.is_removed && self.change > self.stored
    }

    /// Whether all its bytes are here.
    fn is_whole(&self) -> bool {
        self.local.gaps(0..self.size).is_empty()
    }

    /// Whether the store lacks bytes of it, and not just attributes.
    fn has_new_bytes(&self) -> bool {
        self.bytes > self.stored_bytes || self.found.is_none()
    }

    /// Lets another program's object have the name, if the store has had all of it. Returns whether
    /// it does.
    fn supersede(&mut self) -> bool {
        self.is_superseded |= !self.is_dirty();
        self.is_superseded
    }

    /// The object that has the bytes that are not here.
    fn base_object(&self) -> Option<Named> {
        self.base.as_ref().map(|base| base.object.clone())
    }
}

/// What no other draft has, but by chance.
pub(crate) fn mark() -> String {
    format!("{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}

/// Whether an object may be a copy of another one.
pub(crate) fn is_alike(one: &ObjectVersion, other: &ObjectVersion) -> bool {
    (&one.tag, one.size) == (&other.tag, other.size)
}

fn full(name: &str, why: &str) -> Error {
    let why = io::Error::new(io::ErrorKind::StorageFull, why.to_owned());
    Error::io(&name.into(), "writing", why)
}

impl Draft {
    /// A draft of a new and empty file.
    ///
    /// # Errors
    /// Those of the staging folder.
    pub(crate) fn new(
        staging: &Arc<Staging>,
        url: &Arc<str>,
        (place, key): (Place, Arc<str>),
        attributes: Attributes,
    ) -> Result<Arc<Self>> {
        let draft = Self::make(staging, url, place, key, attributes)?;
        {
            let mut state = draft.lock();
            state.touch_bytes();
            state.made = state.change;
            draft.note(&mut state, false)?;
        }
        Ok(Arc::new(draft))
    }

    /// A draft with the bytes of an object.
    ///
    /// # Errors
    /// Those of the staging folder.
    pub(crate) fn of_object(
        staging: &Arc<Staging>,
        url: &Arc<str>,
        (place, key): (Place, Arc<str>),
        (version, modified): (ObjectVersion, SystemTime),
        attributes: Attributes,
        reading: Arc<Reading>,
    ) -> Result<Arc<Self>> {
        let draft = Self::make(staging, url, place, key.clone(), attributes)?;
        {
            let mut state = draft.lock();
            state.size = version.size;
            state.modified = modified;
            let object = Named::new(key, version.clone());
            let len = version.size;
            state.base = (len > 0).then_some(Base { object, reading, len });
            state.written_once = false;
            state.found = Some(version);
            let set_len = draft.file.set_len(len);
            set_len.map_err(|error| Error::io(&draft.url_of(&state.key), "staging", error))?;
        }
        Ok(Arc::new(draft))
    }

    fn make(
        staging: &Arc<Staging>,
        url: &Arc<str>,
        place: Place,
        key: Arc<str>,
        attributes: Attributes,
    ) -> Result<Self> {
        let (id, file) = staging.create()?;
        Ok(Self {
            id,
            number: AtomicU64::new(0),
            staging: staging.clone(),
            url: url.clone(),
            mark: mark(),
            marks: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            file,
            state: Mutex::new(State::new(place, key, attributes)),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds.
    fn when(&self, holds: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while !holds(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn url_of(&self, key: &str) -> Arc<str> {
        format!("{}{key}", self.url).into()
    }

    /// A mark for an object that has all changes up to one, or 0 if that is not known yet.
    fn next_mark(&self, change: u64) -> String {
        format!("{}.{change:x}.{:x}", self.mark, self.marks.fetch_add(1, Ordering::Relaxed))
    }

    /// The change and the number in a mark of an object that it became, or `None`.
    fn parts_of(&self, mark: &str) -> Option<(u64, u64)> {
        let rest = mark.strip_prefix(&*self.mark)?.strip_prefix('.')?;
        let (change, number) = rest.split_once('.')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        Some((hexadecimal(change)?, hexadecimal(number)?))
    }

    /// Whether it became an object.
    pub(crate) fn has_made(&self, head: &Head) -> bool {
        head.mark.as_ref().is_some_and(|mark| self.parts_of(mark).is_some())
    }

    /// Whether it became an object, or was made of it.
    pub(crate) fn is_own(&self, head: &Head) -> bool {
        self.found().is_some_and(|found| found.tag == head.version.tag) || self.has_made(head)
    }

    /// Notes that it is to be stored later. Returns a number for [`Draft::is_queued`].
    pub(crate) fn queue(&self) -> u64 {
        self.queued.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether it was not to be stored later once more since a number was given.
    pub(crate) fn is_queued(&self, number: u64) -> bool {
        self.queued.load(Ordering::SeqCst) == number
    }

    /// Whether a request has failed that may have made an object all the same.
    pub(crate) fn is_unsure(&self) -> bool {
        self.lock().is_unsure
    }

    /// Whether it was closed, and the store does not have it: it must not change before it does.
    pub(crate) fn is_promised(&self) -> bool {
        let state = self.lock();
        state.is_closed && state.is_dirty()
    }

    /// Whether all its bytes are here.
    pub(crate) fn is_whole(&self) -> bool {
        self.lock().is_whole()
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    pub(crate) fn set_number(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
    }

    pub(crate) fn key(&self) -> Arc<str> {
        self.lock().key.clone()
    }

    pub(crate) fn place(&self) -> Place {
        self.lock().place.clone()
    }

    pub(crate) fn size(&self) -> u64 {
        self.lock().size
    }

    pub(crate) fn modified(&self) -> SystemTime {
        let state = self.lock();
        state.attributes.modified().unwrap_or(state.modified)
    }

    /// Notes when a program wrote it, which the kernel tells after it has written that back.
    /// Returns `false` if no write can have happened then: a user has set this time.
    pub(crate) fn was_written(&self, at: SystemTime) -> bool {
        let mut state = self.lock();
        // The write came here after the program wrote.
        let least = state.modified.checked_sub(LONGEST_WRITE_BACK);
        let is_so = state.attributes.mtime.is_none()
            && least.is_some_and(|least| at >= least)
            && at <= state.modified;
        if is_so {
            state.modified = at;
        }
        is_so
    }

    pub(crate) fn attributes(&self) -> Attributes {
        self.lock().attributes.clone()
    }

    /// The version under its key, if the store has all of it.
    pub(crate) fn stored(&self) -> Option<ObjectVersion> {
        let state = self.lock();
        state.found.clone().filter(|_| !state.is_dirty())
    }

    /// The object under its key.
    pub(crate) fn found(&self) -> Option<ObjectVersion> {
        self.lock().found.clone()
    }

    /// Whether the object under its key is another file's, which this one replaces once it is
    /// stored.
    pub(crate) fn replaces_other(&self) -> bool {
        let state = self.lock();
        state.is_others && state.found.is_some()
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.lock().is_dirty()
    }

    /// Whether it was made, and nothing was written since.
    pub(crate) fn is_as_made(&self) -> bool {
        let state = self.lock();
        state.made > 0 && state.change == state.made
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.lock().is_removed
    }

    /// Lets another program's object have the name, if the store has a version as all of it under
    /// a key, and if nobody changes that just now. Returns whether it does. Who has it open cannot
    /// write it any more.
    pub(crate) fn supersede(&self, key: &str, stored: &ObjectVersion) -> bool {
        let mut state = self.lock();
        let is_so = !state.is_publishing && &*state.key == key;
        is_so && state.found.as_ref() == Some(stored) && state.supersede()
    }

    /// Goes on from a version that it became, and of which the store did not tell. `open` reads it.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn has_become(
        &self,
        version: ObjectVersion,
        open: impl FnOnce(&str, &ObjectVersion) -> Result<Arc<Reading>>,
    ) -> Result<()> {
        let mut state = self.lock();
        if state.is_publishing || state.is_dirty() {
            return Ok(());
        }
        let key = state.key.clone();
        state.rebase(&key, version.clone(), false, open)?;
        (state.found, state.is_others, state.is_unsure) = (Some(version), false, false);
        Ok(())
    }

    /// Whether another program's object has its name.
    pub(crate) fn is_superseded(&self) -> bool {
        self.lock().is_superseded
    }

    /// Fails if another program's object has its name.
    fn check_name(&self, state: &State) -> Result<()> {
        if !state.is_superseded {
            return Ok(());
        }
        let why = "another program has replaced or removed this file: open it again";
        let why = io::Error::new(io::ErrorKind::StaleNetworkFileHandle, why);
        Err(Error::io(&self.url_of(&state.key), "writing", why))
    }

    /// Notes the object that a failed rename may have copied over this file's object.
    pub(crate) fn may_be_copied_over(&self, by: ObjectVersion) {
        self.lock().copied_over = Some(by);
    }

    /// Whether an object may be that copy.
    pub(crate) fn is_copied_over_by(&self, head: &Head) -> bool {
        self.lock().copied_over.as_ref().is_some_and(|copied| is_alike(copied, &head.version))
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Whether nothing has it open.
    pub(crate) fn is_free(&self) -> bool {
        let state = self.lock();
        state.handles == 0 && !state.is_publishing
    }

    /// Whether somebody has it open for writing.
    pub(crate) fn has_writers(&self) -> bool {
        self.lock().writers > 0
    }

    /// Bytes here.
    pub(crate) fn taken(&self) -> u64 {
        self.lock().held.count(0..u64::MAX)
    }

    /// Notes that the store was asked about its key, and has the same version.
    pub(crate) fn verify(&self) {
        self.lock().verified = Instant::now();
    }

    pub(crate) fn verified(&self) -> Instant {
        self.lock().verified
    }

    /// The handles that it has.
    pub(crate) fn handles(&self) -> Handles {
        let state = self.lock();
        Handles { all: state.handles, writers: state.writers }
    }

    /// Whether the store lacks bytes of it, and not just attributes.
    pub(crate) fn has_new_bytes(&self) -> bool {
        self.lock().has_new_bytes()
    }

    /// Whether who runs it may be its owner, or of its group.
    pub(crate) fn has_privileges(&self) -> bool {
        let bits = Mode::SUID.bits() | Mode::SGID.bits();
        self.lock().attributes.mode.is_some_and(|mode| mode & bits != 0)
    }

    pub(crate) fn open(&self, writes: bool) {
        let mut state = self.lock();
        state.handles += 1;
        state.writers += usize::from(writes);
    }

    /// Closes a handle. Returns those that are left.
    pub(crate) fn close(&self, writes: bool) -> Handles {
        let mut state = self.lock();
        state.handles -= 1;
        state.writers -= usize::from(writes);
        Handles { all: state.handles, writers: state.writers }
    }

    /// Takes back a change of attributes that could not be stored, unless they have changed again.
    pub(crate) fn undo_change(&self, before: Attributes, after: &Attributes) {
        let mut state = self.when(|state| !state.is_publishing);
        if state.attributes != *after {
            return;
        }
        state.attributes = before;
        // The store may have it all the same, under the number that it had.
        state.least_change = state.least_change.max(state.change + 1);
        if state.has_new_bytes() {
            state.touch();
            // After a crash, bytes are stored with the other attributes.
            let _ = self.note_again(&mut state);
            return;
        }
        state.change = state.stored;
        state.failure = None;
        self.staging.forget(self.id);
        state.has_record = false;
    }

    /// Changes attributes.
    ///
    /// # Errors
    /// Those of the staging folder; if S3 takes no so many bytes of metadata.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Attributes)) -> Result<()> {
        let mut state = self.lock();
        self.check_name(&state)?;
        let mut attributes = state.attributes.clone();
        change(&mut attributes);
        if attributes.metadata(FileType::RegularFile).is_none() {
            let why = "an object has 2 KB of extended attributes at most";
            return Err(full(&self.url_of(&state.key), why));
        }
        if attributes != state.attributes {
            attributes.touch();
            state.attributes = attributes;
            state.touch();
            // Its bytes are still those that were closed.
            let is_closed = state.is_closed;
            self.note(&mut state, is_closed)?;
        }
        Ok(())
    }
}

impl State {
    fn new(place: Place, key: Arc<str>, attributes: Attributes) -> Self {
        Self {
            place,
            key,
            size: 0,
            modified: SystemTime::now(),
            attributes,
            local: Ranges::default(),
            base: None,
            dropped: Ranges::default(),
            held: Ranges::default(),
            change: 0,
            bytes: 0,
            stored: 0,
            stored_bytes: 0,
            made: 0,
            is_closed: false,
            has_record: false,
            found: None,
            is_others: false,
            handles: 0,
            writers: 0,
            is_removed: false,
            is_superseded: false,
            is_publishing: false,
            is_frozen: false,
            failure: None,
            is_unsure: false,
            parts: None,
            completion: None,
            copied_over: None,
            replaces: None,
            is_held: false,
            lasts: false,
            least_change: 0,
            is_beginning: false,
            written_once: true,
            early: HashSet::new(),
            lacks_bytes: false,
            verified: Instant::now(),
        }
    }
}

impl Draft {
    /// Removes what is here of it, at the end of the mount. What the store does not have stays for
    /// whoever comes later.
    pub(crate) fn end(&self) {
        if !self.is_dirty() {
            self.staging.remove(self.id);
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.staging.give(state.held.count(0..u64::MAX));
        self.end();
    }
}
