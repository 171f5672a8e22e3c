//! Files that programs have open and write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::Errno;
use thalweg_io::{Error, Result};

use crate::attributes::Attributes;
use crate::bucket::Kind;
use crate::draft::{Draft, Handles, Written};
use crate::view::BucketFs;
use crate::writing::{Close, Handle, lock};

/// Drafts that stay here after the store has them, so that they are read from here.
const MOST_KEPT: usize = 64;
/// Drafts that may wait to be stored. Who closes another one stores it at once.
const MOST_WAITING: usize = 256;
/// Closed drafts that are looked at after each close.
const LOOK_AT: usize = 64;
/// How often a writer that waits for room looks for some, and how long it waits without any.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const MOST_WAIT: Duration = Duration::from_secs(60);

/// What a kernel that writes back may have written out of order. It throttles writers of which more
/// than a part of this is unwritten.
pub(crate) const WRITTEN_BACK: u64 = 64 << 20;

impl BucketFs {
    /// Writes bytes. If they come `late`, the program that wrote them has gone on, and gets an
    /// error when it closes the file.
    pub(crate) fn write_at(
        &self,
        handle: u64,
        offset: u64,
        data: &[u8],
        late: bool,
    ) -> Result<(), Errno> {
        let Handle { draft, writes, .. } = self.writing()?.handle(handle)?;
        // The kernel writes back in no order: the room for what comes between must not be taken.
        if self.settings.writes_back && self.writing()?.staging.is_short(WRITTEN_BACK) {
            self.make_room(data.len() as u64)?;
        }
        let written = if writes { self.write_to(&draft, offset, data) } else { Err(Errno::EBADF) };
        written.inspect_err(|_| {
            if late {
                draft.lose_bytes();
            }
        })
    }

    fn write_to(&self, draft: &Arc<Draft>, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let writing = self.writing()?;
        let mut waiting: Option<(Instant, u64)> = None;
        loop {
            match self.or_failed(draft.write(offset, data))? {
                Written::Done(parts) => {
                    writing.storer.send_soon(draft, parts);
                    return Ok(());
                }
                Written::NoRoom(bytes) => {
                    // What ends just now has made room.
                    let was_busy = writing.storer.is_busy();
                    if self.make_room(bytes)? {
                        continue;
                    }
                    let used = writing.staging.used();
                    let (since, least) = waiting.unwrap_or((Instant::now(), used));
                    let since = if used < least { Instant::now() } else { since };
                    waiting = Some((since, used.min(least)));
                    if let Some(error) = draft.failure() {
                        return Err(self.failed(&error));
                    }
                    let has_looked = since.elapsed() > 2 * LOOK_AGAIN;
                    if !was_busy && has_looked || since.elapsed() > MOST_WAIT {
                        let why = format!(
                            "there is no more room for staging in {}, where {} bytes wait for the \
                             store (--staging SIZE,free=SIZE)",
                            writing.staging.folder().display(),
                            writing.staging.used()
                        );
                        let why = std::io::Error::new(std::io::ErrorKind::StorageFull, why);
                        let url = format!("{}{}", writing.url, draft.key());
                        return Err(self.failed(&Error::io(&url.into(), "writing", why)));
                    }
                    std::thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }

    /// Takes the permission from a file that was written to run as its owner.
    pub(crate) fn end_privileges(&self, handle: u64) -> Result<(), Errno> {
        let Handle { draft, .. } = self.writing()?.handle(handle)?;
        match draft.has_privileges() {
            true => self.or_failed(draft.change(Attributes::end_privileges)),
            false => Ok(()),
        }
    }

    /// Makes room for bytes in the staging folder. Returns whether it has freed any.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<bool, Errno> {
        let writing = self.writing()?;
        let before = writing.staging.used();
        let is_enough = || before.saturating_sub(writing.staging.used()) >= bytes;
        let mut closed = std::mem::take(&mut *lock(&writing.closed));
        let mut left = VecDeque::new();
        while let Some(draft) = closed.pop_front() {
            if is_enough() || !self.retire(&draft) {
                left.push_back(draft);
            }
        }
        {
            let mut closed = lock(&writing.closed);
            left.append(&mut closed);
            *closed = left;
        }
        if !is_enough() {
            for draft in writing.drafts() {
                self.or_failed(draft.drop_sent())?;
            }
        }
        Ok(writing.staging.used() < before)
    }

    /// Makes a draft that the store has a file again, whose bytes are in the store alone.
    pub(crate) fn retire(&self, draft: &Arc<Draft>) -> bool {
        let Ok(writing) = self.writing() else { return false };
        let _turning = lock(&writing.turning);
        if !draft.is_free() {
            return false;
        }
        if draft.is_removed() {
            return true;
        }
        let Some(version) = draft.stored() else { return false };
        let (place, key) = (draft.place(), draft.key());
        let modified = Some(draft.modified());
        writing.know(&key, &version, draft.attributes(), modified);
        let own = Kind::Draft(draft.clone());
        if writing.changes.is_draft(&place.folder, &place.name, draft) {
            let kind = Some(Kind::File(version.clone()));
            writing.changes.set(&place.folder, &place.name, kind);
        }
        let number = draft.number();
        if self.tree.node(number).is_some_and(|node| node.kind == own) {
            let kind = Kind::File(version.clone());
            return self.becomes(number, &key, &version, kind).is_ok();
        }
        true
    }

    /// Keeps a draft that was closed, and makes files of old ones that the store has.
    pub(crate) fn was_closed(&self, draft: Arc<Draft>) {
        let Ok(writing) = self.writing() else { return };
        let mut old = Vec::new();
        {
            let mut closed = lock(&writing.closed);
            if !closed.contains(&draft) {
                closed.push_back(draft);
            }
            let over = closed.len().saturating_sub(MOST_KEPT).min(LOOK_AT);
            old.extend(closed.drain(..over));
        }
        let kept = old.into_iter().filter(|draft| !self.retire(draft));
        let kept: Vec<_> = kept.collect();
        lock(&writing.closed).extend(kept);
    }

    /// Does what is promised when a file is closed.
    pub(crate) fn flush_handle(&self, handle: u64, thread: u32) -> Result<(), Errno> {
        let handle = self.writing()?.handle(handle)?;
        let Handle { draft, writes, .. } = &handle;
        // A shell closes its own copy of a handle before the program writes that gets the
        // other one.
        if !writes || !draft.is_dirty() || !handle.is_closed_by(thread) {
            return Ok(());
        }
        if draft.is_as_made() {
            // It is stored when nobody has it open, but a mount that is killed has it from now on.
            return self.or_failed(draft.stage(false));
        }
        self.keep_promise(draft)
    }

    pub(crate) fn keep_promise(&self, draft: &Arc<Draft>) -> Result<(), Errno> {
        let writing = self.writing()?;
        if writing.close == Close::Staged && writing.storer.waiting() < MOST_WAITING {
            self.or_failed(draft.stage(true))?;
            writing.storer.store_later(draft);
            return Ok(());
        }
        self.or_failed(draft.stage(false))?;
        let stored = writing.storer.store(draft);
        self.or_failed(stored)
    }

    /// Brings a file to the store.
    pub(crate) fn sync(&self, handle: u64) -> Result<(), Errno> {
        let writing = self.writing()?;
        let Handle { draft, .. } = writing.handle(handle)?;
        let stored = writing.storer.store(&draft);
        self.or_failed(stored)
    }

    /// Closes a handle of a draft.
    pub(crate) fn release_handle(&self, handle: u64) {
        let Ok(writing) = self.writing() else { return };
        let Some(handle) = lock(&writing.handles).remove(&handle) else { return };
        let Handle { draft, writes, .. } = handle;
        let left = draft.close(writes);
        self.was_released(draft, left);
    }

    /// Has a draft stored that nobody writes any more, after [`Draft::close`].
    pub(crate) fn was_released(&self, draft: Arc<Draft>, left: Handles) {
        let Ok(writing) = self.writing() else { return };
        if draft.is_removed() {
            return;
        }
        // It was only made, or could not be stored when it was closed.
        let is_unwritten = left.all == 0 || left.writers == 0 && !draft.is_as_made();
        if draft.is_dirty() && is_unwritten {
            if let Err(error) = draft.stage(writing.close == Close::Staged) {
                self.failed(&error);
            }
            // Each draft that waits has a file open.
            if writing.storer.waiting() < MOST_WAITING {
                writing.storer.store_later(&draft);
            } else if let Err(error) = writing.storer.store(&draft) {
                self.failed(&error);
                writing.storer.store_later(&draft);
            }
        }
        if left.all == 0 {
            self.was_closed(draft);
        }
    }
}
