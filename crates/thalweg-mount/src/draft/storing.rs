//! What the store has of a draft, and what it gets.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::fs::{FallocateFlags, fallocate};
use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};
use thalweg_object::PartsUpload;

use super::{Base, Draft, Place, State, full};
use crate::attributes::Attributes;
use crate::parts::{self, Completion, PART, Parts};
use crate::ranges::Ranges;
use crate::reading::Reading;
use crate::staging::Named;

/// What is to be stored, and under which condition.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) key: Arc<str>,
    pub(crate) attributes: Attributes,
    pub(crate) found: Option<ObjectVersion>,
    /// Whether bytes are to be stored, and not just attributes.
    pub(crate) has_bytes: bool,
    pub(crate) size: u64,
    change: u64,
    bytes: u64,
    /// The upload whose parts it is made of.
    upload: Option<PartsUpload>,
}

impl Draft {
    /// Begins to store it, once nobody else does. `None` if there is nothing to store. `since` is
    /// what [`Draft::last_change`] gave: later changes need not be stored.
    ///
    /// # Errors
    /// [`Error::Io`] if it lacks bytes.
    pub(crate) fn begin_storing(&self, since: u64) -> Result<Option<Snapshot>> {
        let mut state = self.when(|state| !state.is_publishing);
        if !state.is_dirty() || state.stored >= since {
            return Ok(None);
        }
        if let Err(error) = self.check_bytes(&state) {
            state.failure = Some(error.clone());
            return Err(error);
        }
        state.is_publishing = true;
        Ok(Some(Snapshot {
            key: state.key.clone(),
            attributes: state.attributes.clone(),
            found: state.found.clone(),
            has_bytes: state.has_new_bytes(),
            size: state.size,
            change: state.change,
            bytes: state.bytes,
            upload: None,
        }))
    }

    pub(crate) fn last_change(&self) -> u64 {
        self.lock().change
    }

    /// Whether parts of it have been sent, or it is too large to be sent as a whole.
    pub(crate) fn goes_in_parts(&self) -> bool {
        let state = self.lock();
        state.parts.is_some() || state.is_beginning || state.size > PART
    }

    /// All bytes, and in the snapshot what they are a state of.
    ///
    /// # Errors
    /// Those of [`Draft::read`].
    pub(crate) fn whole(&self, snapshot: &mut Snapshot) -> Result<Vec<u8>> {
        let mut has_bytes = Ok(());
        let bytes = self.read_noting(0..u64::MAX, |state| {
            has_bytes = self.check_bytes(state);
            snapshot.is_of(state.size, state.change, state.bytes);
            snapshot.attributes = state.attributes.clone();
        })?;
        has_bytes.map(|()| bytes)
    }

    /// A mark for the object that a snapshot becomes.
    pub(crate) fn mark_of(&self, snapshot: &Snapshot) -> String {
        self.next_mark(snapshot.change)
    }

    /// The bytes of a range, for who stores it.
    ///
    /// # Errors
    /// Those of [`Draft::read`].
    pub(crate) fn read_to_send(&self, range: Range<u64>) -> Result<Vec<u8>> {
        self.read_noting(range, |_| ())
    }

    /// The upload in parts. If there is none, `begin` begins it, with attributes and a mark. `None`
    /// if it gets another name just now, or is removed, and nobody is storing it.
    ///
    /// # Errors
    /// Those of `begin`.
    pub(crate) fn upload(
        &self,
        begin: impl FnOnce(&str, &Attributes, &str) -> Result<PartsUpload>,
    ) -> Result<Option<(Arc<str>, PartsUpload)>> {
        let mut state = self.when(|state| !state.is_beginning);
        if let Some(parts) = &state.parts {
            return Ok(Some((state.key.clone(), parts.upload.clone())));
        }
        if state.is_held || !state.is_dirty() {
            return Ok(None);
        }
        state.is_beginning = true;
        let (key, attributes) = (state.key.clone(), state.attributes.clone());
        drop(state);
        let begun = begin(&key, &attributes, &self.next_mark(0));
        let mut state = self.lock();
        state.is_beginning = false;
        self.changed.notify_all();
        let upload = begun?;
        state.parts = Some(Parts::new(upload.clone(), attributes));
        // Whoever comes after a crash gives it up.
        self.note(&mut state, true)?;
        Ok(Some((key, upload)))
    }

    /// Begins to send a part: its bytes. `None` if the store has it, or somebody sends it.
    pub(crate) fn begin_part(&self, upload: &PartsUpload, number: usize) -> Option<Range<u64>> {
        let mut state = self.lock();
        let size = state.size;
        if state.is_removed || number >= parts::count(size) {
            return None;
        }
        let parts = state.parts.as_mut().filter(|parts| parts.upload == *upload)?;
        let range = parts::part(number);
        parts.begin(number).then_some(range.start..range.end.min(size))
    }

    /// Ends sending a part.
    pub(crate) fn end_part(&self, upload: &PartsUpload, number: usize, sent: Result<String>) {
        let mut state = self.lock();
        // The upload may have been given up meanwhile.
        if let Some(parts) = state.parts.as_mut().filter(|parts| parts.upload == *upload) {
            let (tag, failure) = match sent {
                Ok(tag) => (Some(tag), None),
                Err(error) => (None, Some(error)),
            };
            parts.end(number, tag);
            state.failure = failure.or(state.failure.take());
        }
        self.changed.notify_all();
    }

    /// The parts that the store does not have, once nobody sends any. Without any, the tags of all,
    /// and writers wait from now on.
    ///
    /// # Errors
    /// [`Error::Io`] if it lacks bytes.
    pub(crate) fn unsent(&self, freezes: bool) -> Result<Unsent> {
        let is_idle = |state: &State| state.parts.as_ref().is_none_or(|parts| !parts.is_sending());
        let mut state = self.when(is_idle);
        self.check_bytes(&state)?;
        state.is_frozen |= freezes;
        let (size, change, bytes) = (state.size, state.change, state.bytes);
        let Some(parts) = &state.parts else {
            return Ok(Unsent::Parts((0..parts::count(size)).collect()));
        };
        if let Some(tags) = parts.tags(size) {
            let attributes = state.attributes.clone();
            let has_attributes = parts.attributes == attributes;
            state.is_frozen = true;
            return Ok(Unsent::None { tags, attributes, has_attributes, size, change, bytes });
        }
        let is_unsent =
            |number: &usize| parts.list.get(*number).is_none_or(|part| part.tag.is_none());
        Ok(Unsent::Parts((0..parts::count(size)).filter(is_unsent).collect()))
    }

    /// Why a part could not be sent, since it was last asked.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.lock().failure.take()
    }

    /// The upload of which an object was about to be made before, so that it may be there.
    pub(crate) fn completed_upload(&self) -> Option<PartsUpload> {
        let state = self.lock();
        let upload = state.parts.as_ref().map(|parts| parts.upload.clone())?;
        let last = state.completion.as_ref()?;
        (last.mark == upload.mark()).then_some(upload)
    }

    /// Notes that an object is about to be made of an upload, and whether it is all of a snapshot:
    /// it may lack attributes.
    ///
    /// # Errors
    /// Those of the staging folder.
    pub(crate) fn completes(
        &self,
        upload: &PartsUpload,
        snapshot: &mut Snapshot,
        is_all: bool,
    ) -> Result<()> {
        snapshot.is_made_of(upload);
        let mut state = self.lock();
        let change = if is_all { snapshot.change } else { 0 };
        let next = self.marks.load(Ordering::Relaxed);
        state.completion = Some(Completion { mark: upload.mark().to_owned(), change, next });
        // Whoever comes after a crash recognises it.
        self.note_again(&mut state)
    }

    /// Whether an object with this mark, which it became, is all of a snapshot.
    pub(crate) fn is_all(&self, mark: &str, snapshot: &Snapshot) -> bool {
        let change = match &self.lock().completion {
            Some(last) if last.mark == mark => Some(last.change),
            _ => self.parts_of(mark).map(|(change, _)| change),
        };
        change == Some(snapshot.change)
    }

    /// Goes on from an object with this mark, which it became, and of which the store did not tell.
    /// Its bytes that are not here have not changed since.
    ///
    /// # Errors
    /// Those of `open`, which reads the object.
    pub(crate) fn goes_on_from(
        &self,
        (mark, version): (&str, ObjectVersion),
        snapshot: &mut Snapshot,
        open: impl FnOnce(&str, &ObjectVersion) -> Result<Arc<Reading>>,
    ) -> Result<()> {
        let number = self.parts_of(mark).map(|(_, number)| number);
        let mut state = self.when(|state| !state.is_beginning);
        snapshot.found = Some(version.clone());
        (state.found, state.is_others) = (Some(version.clone()), false);
        let has_sent = state
            .completion
            .as_ref()
            .is_some_and(|last| last.mark == mark || number.is_some_and(|at| at >= last.next));
        state.rebase(&snapshot.key, version, has_sent, open)?;
        self.note_again(&mut state)
    }

    /// Forgets the upload in parts. Fails if bytes are lost with it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn forget_parts(&self) -> Result<Option<PartsUpload>> {
        let is_idle = |state: &State| {
            !state.is_beginning && state.parts.as_ref().is_none_or(|parts| !parts.is_sending())
        };
        let mut state = self.when(is_idle);
        if !state.dropped.is_empty() {
            let why = "parts of it have been sent, and there was no room to keep them here: it can \
                       be renamed or stored again once it is in the store";
            return Err(full(&self.url_of(&state.key), why));
        }
        Ok(state.forget_parts())
    }

    /// Ends storing it. `open` reads the object that was stored.
    pub(crate) fn end_storing(
        &self,
        snapshot: &Snapshot,
        stored: Result<ObjectVersion>,
        open: impl FnOnce(&str, &ObjectVersion) -> Result<Arc<Reading>>,
    ) -> Result<()> {
        let mut state = self.lock();
        state.is_publishing = false;
        state.is_frozen = false;
        self.changed.notify_all();
        let version = match stored {
            Ok(version) => version,
            Err(error) => {
                state.failure = Some(error.clone());
                state.is_unsure = true;
                return Err(error);
            }
        };
        (state.failure, state.is_unsure) = (None, false);
        state.stored = snapshot.change;
        if snapshot.has_bytes {
            state.stored_bytes = snapshot.bytes;
        }
        (state.found, state.is_others) = (Some(version.clone()), false);
        state.copied_over = None;
        state.verified = Instant::now();
        // Parts of an upload that has begun meanwhile are of later bytes.
        let has_sent = snapshot.upload.is_some()
            && snapshot.upload.as_ref() == state.parts.as_ref().map(|parts| &parts.upload);
        // The old version is gone. The new one has the same bytes.
        state.rebase(&snapshot.key, version, has_sent, open)?;
        if state.is_dirty() {
            return self.note(&mut state, true);
        }
        self.staging.forget(self.id);
        state.has_record = false;
        Ok(())
    }

    /// Has nobody store it, until what this gives is dropped, and no upload begin.
    pub(crate) fn hold(&self) -> Held<'_> {
        let mut state = self.when(|state| !state.is_publishing && !state.is_beginning);
        (state.is_publishing, state.is_held) = (true, true);
        Held(self)
    }

    /// Holds it to be removed: what is being stored ends soon.
    pub(crate) fn hold_to_remove(&self) -> Held<'_> {
        self.lock().is_removed = true;
        self.hold()
    }

    /// Notes that another object is under its key, which it replaces. Returns `false` if it cannot,
    /// for the store had its bytes.
    pub(crate) fn replaces(&self, found: ObjectVersion) -> bool {
        let mut state = self.lock();
        if !state.is_dirty() && !state.is_whole() {
            return false;
        }
        (state.found, state.is_others) = (Some(found), true);
        state.touch();
        state.bytes = state.change;
        // Without its record, it is told after a crash that the object is another one.
        let _ = self.note(&mut state, true);
        true
    }

    /// Gives it another place. It is held meanwhile, and has no upload in parts.
    ///
    /// # Errors
    /// Those of `open`, which reads what has moved, and of the staging folder. It stays where it is
    /// then.
    pub(crate) fn rename(
        &self,
        target: Target<'_>,
        open: impl FnOnce(&str, &ObjectVersion) -> Result<Arc<Reading>>,
    ) -> Result<()> {
        let Target { place, key, found, has_moved, replaces } = target;
        let mut state = self.lock();
        let old = (state.place.clone(), state.key.clone(), state.found.clone(), state.is_others);
        let (base, bytes, old_replaces) =
            (state.base.clone(), (state.change, state.bytes), state.replaces.clone());
        if let Some(version) = found.clone().filter(|_| has_moved) {
            state.rebase(&key, version, false, open)?;
        } else {
            // All of it is to be stored there.
            state.touch();
            state.bytes = state.change;
        }
        (state.place, state.key, state.found, state.is_others) = (place, key, found, !has_moved);
        if let Some(replaced) = replaces {
            state.replaces = Some(replaced.mark.clone());
        }
        let noted = self.note_again(&mut state);
        if noted.is_ok() {
            state.verified = Instant::now();
        } else {
            (state.place, state.key, state.found, state.is_others) = old;
            ((state.change, state.bytes), state.base) = (bytes, base);
            state.replaces = old_replaces;
        }
        noted
    }

    /// Frees bytes that were sent, of a file whose parts are written once. Returns how many.
    ///
    /// # Errors
    /// Those of the staging folder.
    pub(crate) fn drop_sent(&self) -> Result<u64> {
        let mut state = self.lock();
        let Some(parts) = state.parts.as_ref().filter(|_| state.written_once) else { return Ok(0) };
        let is_sent = |(number, part): (usize, &parts::Part)| {
            let is_early = part.tag.is_some() && state.early.contains(&number);
            is_early.then(|| parts::part(number))
        };
        let sent: Vec<_> = parts.list.iter().enumerate().filter_map(is_sent).collect();
        let mut freed = 0;
        for range in sent {
            for (part, is_local) in state.local.split(range) {
                if is_local {
                    freed += state.held.count(part.clone());
                    state.held.remove(part.clone());
                    state.local.remove(part.clone());
                    state.dropped.add(part);
                }
            }
        }
        if freed == 0 {
            return Ok(0);
        }
        self.staging.give(freed);
        // The record first: it must not tell of bytes that are gone.
        self.note(&mut state, true)?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for (start, end) in state.dropped.iter() {
            let punched = fallocate(&self.file, flags, start, end - start);
            punched.map_err(|error| Error::io(&self.url_of(&state.key), "staging", error))?;
        }
        Ok(freed)
    }
}

impl State {
    /// Forgets the upload in parts.
    fn forget_parts(&mut self) -> Option<PartsUpload> {
        self.early.clear();
        self.parts.take().map(|parts| parts.upload)
    }

    /// Notes that a version of an object has the bytes that are not here, and whether it has those
    /// that were sent in parts.
    pub(super) fn rebase(
        &mut self,
        key: &Arc<str>,
        version: ObjectVersion,
        has_sent: bool,
        open: impl FnOnce(&str, &ObjectVersion) -> Result<Arc<Reading>>,
    ) -> Result<()> {
        let mut len = self.base.as_ref().map_or(0, |base| base.len);
        if has_sent {
            len = self.dropped.iter().map(|(_, end)| end).fold(len, u64::max);
        }
        if len > 0 && !self.local.gaps(0..len).is_empty() {
            let reading = open(key, &version)?;
            self.base = Some(Base { object: Named::new(key.clone(), version), reading, len });
        }
        if has_sent {
            // The service has made an object of them, and forgotten them.
            self.dropped = Ranges::default();
            self.forget_parts();
        }
        Ok(())
    }
}

/// Where a draft gets its place, and what is there.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) place: Place,
    pub(crate) key: Arc<str>,
    /// The object there.
    pub(crate) found: Option<ObjectVersion>,
    /// Whether this object is a copy of the one that was under the old key.
    pub(crate) has_moved: bool,
    /// The draft that had the name.
    pub(crate) replaces: Option<&'a Draft>,
}

/// A draft that nobody stores meanwhile.
pub(crate) struct Held<'a>(&'a Draft);

impl Held<'_> {
    /// Notes that the draft was unlinked. Returns the upload to be given up.
    pub(crate) fn unlink(self) -> Option<PartsUpload> {
        let mut state = self.0.lock();
        state.is_removed = true;
        // Nobody stores it after a crash.
        self.0.staging.forget(self.0.id);
        state.has_record = true;
        state.forget_parts()
    }

    /// Notes that it was not removed.
    pub(crate) fn stays(self) {
        self.0.lock().is_removed = false;
    }

    /// Lets another program's object have the name, if the store has had all of it. Returns whether
    /// it does.
    pub(crate) fn supersede(&self) -> bool {
        self.0.lock().supersede()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        (state.is_publishing, state.is_held) = (false, false);
        if state.parts.is_none() {
            // What was not sent meanwhile is sent with the next bytes.
            state.early.clear();
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

/// What the store does not have of a draft.
#[derive(Debug)]
pub(crate) enum Unsent {
    Parts(Vec<usize>),
    /// It has all parts.
    None {
        tags: Vec<String>,
        attributes: Attributes,
        /// Whether the upload began with these attributes.
        has_attributes: bool,
        size: u64,
        change: u64,
        bytes: u64,
    },
}

impl Snapshot {
    /// Notes the upload whose parts it is made of.
    pub(crate) fn is_made_of(&mut self, upload: &PartsUpload) {
        self.upload = Some(upload.clone());
    }

    /// Notes what it is a snapshot of.
    pub(crate) fn is_of(&mut self, size: u64, change: u64, bytes: u64) {
        (self.size, self.change, self.bytes) = (size, change, bytes);
    }
}
