//! What is noted of a draft for whoever comes after a crash, and drafts of such notes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::SystemTime;

use thalweg_io::open::ObjectVersion;
use thalweg_io::{Error, Result};

use super::{Base, Draft, Place, State};
use crate::attributes::Attributes;
use crate::parts::Parts;
use crate::ranges::Ranges;
use crate::reading::Reading;
use crate::staging::{Left, Named, Record, SavedParts, Staging};

/// A mount may have given so many numbers that it did not record before it ended.
const UNRECORDED: u64 = 1 << 32;

impl Draft {
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
                written_once: false,
                ..State::new(place, record.key.into(), record.attributes)
            }),
            changed: Condvar::new(),
        };
        Ok(Arc::new(draft))
    }

    /// Notes that its bytes change, before they do: after a crash they are not those that were
    /// closed.
    pub(super) fn reopen(&self, state: &mut State) -> Result<()> {
        let was_closed = std::mem::replace(&mut state.is_closed, false);
        self.note(state, was_closed && !state.is_removed)
    }

    /// Writes its record if there is none of a draft with these changes, or always.
    pub(super) fn note(&self, state: &mut State, always: bool) -> Result<()> {
        if state.is_removed || state.has_record && !always {
            return Ok(());
        }
        state.has_record = true;
        self.staging.write(self.id, &self.record(state), state.lasts && state.is_closed)
    }

    /// Writes its record again, if there is one.
    pub(super) fn note_again(&self, state: &mut State) -> Result<()> {
        if state.has_record { self.note(state, true) } else { Ok(()) }
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
        self.check_bytes(&state)?;
        (state.is_closed, state.lasts) = (true, lasts);
        self.note(&mut state, true)
    }
}
