//! A file that is being written: its bytes are in the staging folder, until the store has them.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};
use thalweg_object::Head;

use crate::attributes::{Attributes, FileType};
use crate::errors::io_kind;
use crate::parts::{self, Completion, LARGEST, PART, Parts};
use crate::ranges::Ranges;
use crate::reading::Reading;
use crate::staging::{Left, Named, Record, SavedParts, Staging};

mod storing;

pub(crate) use storing::{Held, Snapshot, Target, Unsent};

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

/// A mount may have given so many numbers that it did not record before it ended.
const UNRECORDED: u64 = 1 << 32;

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
    handles: usize,
    writers: usize,
    is_removed: bool,
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
    /// How the marks begin of the draft whose name it has got.
    replaces: Option<String>,
    is_beginning: bool,
    /// All writes so far were in order, and ended here.
    in_order: Option<u64>,
    /// The next part to send while it is written.
    next_early: usize,
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

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// There is no room for so many bytes.
    NoRoom(u64),
    /// It is done, and these parts can go to the store.
    Done(Range<usize>),
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

    /// The object that has the bytes that are not here.
    fn base_object(&self) -> Option<Named> {
        self.base.as_ref().map(|base| base.object.clone())
    }
}

/// What no other draft has, but by chance.
pub(crate) fn mark() -> String {
    format!("{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
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
            state.in_order = None;
            state.found = Some(version);
            let set_len = draft.file.set_len(len);
            set_len.map_err(|error| Error::io(&draft.url_of(&state.key), "staging", error))?;
        }
        Ok(Arc::new(draft))
    }

    /// A draft that a mount has left which has ended. `open` reads an object.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn left(
        staging: &Arc<Staging>,
        url: &Arc<str>,
        place: Place,
        left: Left,
        open: impl FnOnce(&str, &ObjectVersion) -> Result<Arc<Reading>>,
    ) -> Result<Arc<Self>> {
        let Left { id, record, file } = left;
        let base = match record.base {
            Some((object, len)) => {
                let reading = open(&object.key, &object.version())?;
                Some(Base { object, reading, len })
            }
            None => None,
        };
        let local: Ranges = record.local.into_iter().collect();
        let modified =
            record.modified.map(|time| Attributes { mtime: Some(time), ..Attributes::default() });
        let parts = record.parts.map(|SavedParts { upload, tags, attributes }| {
            let mut parts = Parts::new(upload, attributes);
            for (number, tag) in tags.into_iter().enumerate() {
                parts.begin(number);
                parts.end(number, tag);
            }
            parts
        });
        // What is neither here nor in the object are parts that were sent.
        let base_len = base.as_ref().map_or(0, |base: &Base| base.len);
        let dropped = local.gaps(base_len..record.size.max(base_len));
        let draft = Self {
            id,
            number: AtomicU64::new(0),
            staging: staging.clone(),
            url: url.clone(),
            // Not one of those that it had before.
            marks: AtomicU64::new(record.marks.saturating_add(UNRECORDED)),
            mark: record.mark,
            queued: AtomicU64::new(0),
            file,
            state: Mutex::new(State {
                size: record.size,
                modified: modified
                    .and_then(|attributes| attributes.modified())
                    .unwrap_or_else(SystemTime::now),
                base,
                dropped: dropped.into_iter().map(|gap| (gap.start, gap.end)).collect(),
                held: local.clone(),
                local,
                change: record.change,
                bytes: record.change,
                // Its mount may have made changes that it did not record.
                least_change: record.change.saturating_add(UNRECORDED),
                is_closed: true,
                has_record: true,
                lasts: true,
                found: record.found.map(|found| found.version()),
                is_unsure: true,
                parts,
                completion: record.completion,
                replaces: record.replaces,
                in_order: None,
                ..State::new(place, record.key.into(), record.attributes)
            }),
            changed: Condvar::new(),
        };
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
        let state = self.lock();
        state.local.gaps(0..state.size).is_empty()
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

    /// Whether bytes were changed since it was stored.
    pub(crate) fn has_new_bytes(&self) -> bool {
        let state = self.lock();
        state.bytes > state.stored_bytes || state.found.is_none()
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

    /// Takes back changes of attributes, if nothing else was changed since it was stored, and if
    /// nobody has it open. Returns whether it did.
    pub(crate) fn undo_change(&self, before: Attributes) -> bool {
        let mut state = self.when(|state| !state.is_publishing);
        if state.handles > 0 || state.bytes > state.stored_bytes || state.found.is_none() {
            return false;
        }
        state.attributes = before;
        state.change = state.stored;
        state.failure = None;
        self.staging.forget(self.id);
        state.has_record = false;
        true
    }

    /// The bytes of a range, up to the end of the file.
    ///
    /// # Errors
    /// Those of the file and of the store.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        loop {
            let mut of = None;
            let read = self.read_noting(range.clone(), |state| of = state.base_object());
            let Err(error) = &read else { return read };
            if io_kind(error) != Some(io::ErrorKind::StaleNetworkFileHandle) {
                return read;
            }
            // The object that is replaced just now may be replaced by this draft.
            if self.when(|state| !state.is_publishing).base_object() == of {
                return read;
            }
        }
    }

    /// [`Draft::read`] for who stores it. It tells what the bytes are a state of.
    fn read_noting(&self, range: Range<u64>, note: impl FnOnce(&State)) -> Result<Vec<u8>> {
        let state = self.lock();
        note(&state);
        let end = range.end.min(state.size);
        let start = range.start.min(end);
        let mut bytes = vec![0; (end - start) as usize];
        let inside = |part: &Range<u64>| (part.start - start) as usize..(part.end - start) as usize;
        if state.dropped.touches(start..end) {
            let why = "these bytes have been sent to the store, which does not give them before \
                       the file is closed, and there was no room to keep them here";
            return Err(full(&self.url_of(&state.key), why));
        }
        let mut far = Vec::new();
        for (part, is_local) in state.local.split(start..end) {
            if is_local {
                let read = self.file.read_exact_at(&mut bytes[inside(&part)], part.start);
                let name = self.url_of(&state.key);
                read.map_err(|error| Error::io_at(&name, "reading staged", part.start, error))?;
            } else {
                far.push(part);
            }
        }
        let base = state.base.clone();
        drop(state);
        for part in far {
            let Some(base) = &base else { continue };
            let part = part.start.min(base.len)..part.end.min(base.len);
            let at = inside(&part);
            let start = part.start;
            let is_whole = base.reading.read(part, |read| {
                let is_whole = read.len() == at.len();
                bytes[at.start..][..read.len()].copy_from_slice(read);
                is_whole
            });
            let is_gone = match is_whole {
                Ok(is_whole) => !is_whole,
                Err(error) if io_kind(&error) == Some(io::ErrorKind::NotFound) => true,
                Err(error) => return Err(error),
            };
            if is_gone {
                let why = "another program has removed the object that has these bytes";
                let why = io::Error::new(io::ErrorKind::StaleNetworkFileHandle, why);
                return Err(Error::io_at(&self.url_of(&base.object.key), "reading", start, why));
            }
        }
        Ok(bytes)
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// Those of the system, and for files that are too large.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Result<Written> {
        let mut state = self.when(|state| !state.is_frozen);
        let end = offset.saturating_add(data.len() as u64);
        self.check_size(&state, end)?;
        let range = offset..end;
        if state.dropped.touches(range.clone()) {
            let why = "a file that is larger than the room for staging is written in order, and \
                       these bytes have been sent: give more room (--staging)";
            return Err(full(&self.url_of(&state.key), why));
        }
        let new = end - offset - state.held.count(range.clone());
        self.reopen(&mut state)?;
        if !self.staging.take(new) {
            return Ok(Written::NoRoom(new));
        }
        if let Err(error) = self.file.write_all_at(data, offset) {
            self.staging.give(new);
            return Err(Error::io_at(&self.url_of(&state.key), "staging", offset, error));
        }
        state.held.add(range.clone());
        let old = state.size;
        if offset > old {
            state.local.add(old..offset);
        }
        state.local.add(range.clone());
        state.size = old.max(end);
        let size = state.size;
        if let Some(parts) = &mut state.parts {
            if size != old {
                parts.resize(old, size);
            }
            parts.change(range);
        }
        state.in_order = state.in_order.filter(|at| *at == offset).map(|_| end);
        state.touch_bytes();
        let ready = match state.in_order {
            Some(_) if size >= 2 * PART && !state.is_removed => {
                let ready = state.next_early..parts::part_at(end).max(state.next_early);
                state.next_early = ready.end;
                ready
            }
            _ => 0..0,
        };
        Ok(Written::Done(ready))
    }

    fn check_size(&self, state: &State, size: u64) -> Result<()> {
        if size <= LARGEST {
            return Ok(());
        }
        let why = format!("a file has {LARGEST} bytes at most");
        let why = io::Error::new(io::ErrorKind::FileTooLarge, why);
        Err(Error::io(&self.url_of(&state.key), "writing", why))
    }

    /// Sets the size. New bytes are zeros.
    ///
    /// # Errors
    /// Those of the system, and for files that are too large.
    pub(crate) fn set_size(&self, size: u64) -> Result<()> {
        let mut state = self.when(|state| !state.is_frozen);
        self.check_size(&state, size)?;
        let old = state.size;
        // The part that becomes shorter is sent again.
        let shortened = parts::part(parts::part_at(size)).start..size.min(old);
        if size < old && !shortened.is_empty() && state.dropped.touches(shortened) {
            let why = "the new size is in a part that has been sent, and there was no room to keep \
                       it here: give more room (--staging)";
            return Err(full(&self.url_of(&state.key), why));
        }
        self.reopen(&mut state)?;
        let set = self.file.set_len(size);
        set.map_err(|error| Error::io(&self.url_of(&state.key), "staging", error))?;
        if size < old {
            state.local.remove(size..old);
            self.staging.give(state.held.count(size..old));
            state.held.remove(size..old);
            state.dropped.remove(size..old);
            if let Some(base) = &mut state.base {
                base.len = base.len.min(size);
            }
            if size == 0 {
                state.base = None;
                state.in_order = Some(0);
                state.next_early = 0;
            }
        } else {
            state.local.add(old..size);
            state.in_order = None;
        }
        state.size = size;
        if let Some(parts) = &mut state.parts {
            parts.resize(old, size);
        }
        state.touch_bytes();
        self.note(&mut state, false)
    }

    /// Makes it empty, as if it had been made anew.
    ///
    /// # Errors
    /// Those of [`Draft::set_size`].
    pub(crate) fn empty(&self) -> Result<()> {
        self.set_size(0)?;
        let mut state = self.lock();
        state.made = state.change;
        Ok(())
    }

    /// Changes attributes.
    ///
    /// # Errors
    /// Those of the staging folder; if S3 takes no so many bytes of metadata.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Attributes)) -> Result<()> {
        let mut state = self.lock();
        let mut attributes = state.attributes.clone();
        change(&mut attributes);
        if attributes.metadata(FileType::Regular).is_none() {
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

    /// Notes that its bytes change, before they do: after a crash they are not those that were
    /// closed.
    fn reopen(&self, state: &mut State) -> Result<()> {
        let was_closed = std::mem::replace(&mut state.is_closed, false);
        self.note(state, was_closed && !state.is_removed)
    }

    /// Writes its record if there is none of a draft with these changes, or always.
    fn note(&self, state: &mut State, always: bool) -> Result<()> {
        if state.is_removed || state.has_record && !always {
            return Ok(());
        }
        state.has_record = true;
        self.staging.write(self.id, &self.record(state), state.lasts && state.is_closed)
    }

    fn record(&self, state: &State) -> Record {
        let mut modified = Attributes::default();
        modified.set_modified(state.modified);
        let parts = state.parts.as_ref().map(|parts| SavedParts {
            upload: parts.upload.clone(),
            tags: parts.list.iter().map(|part| part.tag.clone()).collect(),
            attributes: parts.attributes.clone(),
        });
        Record {
            is_closed: state.is_closed,
            size: state.size,
            modified: modified.mtime,
            local: state.local.iter().collect(),
            base: state.base.as_ref().map(|base| (base.object.clone(), base.len)),
            found: state.found.clone().map(|found| Named::new(state.key.clone(), found)),
            attributes: state.attributes.clone(),
            parts,
            mark: self.mark.clone(),
            change: state.change,
            completion: state.completion.clone(),
            marks: self.marks.load(Ordering::Relaxed),
            replaces: state.replaces.clone(),
            ..Record::new(&self.url, &state.key)
        }
    }

    /// Notes that it was closed: whoever comes after a crash stores it. If it `lasts`, that is so
    /// even after a crash of the machine.
    ///
    /// # Errors
    /// Those of the staging folder.
    pub(crate) fn stage(&self, lasts: bool) -> Result<()> {
        let mut state = self.lock();
        if !state.is_dirty() || state.is_closed && !lasts {
            return Ok(());
        }
        if lasts {
            // Others go on meanwhile.
            let change = state.change;
            drop(state);
            let mut synced = self.file.sync_data();
            state = self.lock();
            if state.change != change {
                synced = synced.and_then(|()| self.file.sync_data());
            }
            synced.map_err(|error| Error::io(&self.url_of(&state.key), "staging", error))?;
            if !state.is_dirty() {
                return Ok(());
            }
        }
        (state.is_closed, state.lasts) = (true, lasts);
        self.note(&mut state, true)
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
            handles: 0,
            writers: 0,
            is_removed: false,
            is_publishing: false,
            is_frozen: false,
            failure: None,
            is_unsure: false,
            parts: None,
            completion: None,
            replaces: None,
            is_held: false,
            lasts: false,
            least_change: 0,
            is_beginning: false,
            in_order: Some(0),
            next_early: 0,
            verified: Instant::now(),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.staging.give(state.held.count(0..u64::MAX));
        // What the store does not have stays for whoever comes later.
        if state.is_removed || !state.is_dirty() {
            self.staging.remove(self.id);
        }
    }
}
