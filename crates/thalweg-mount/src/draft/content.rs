//! The bytes of a draft: those here, and those of the object that it is made of.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use thalweg_io::{Error, Result};

use super::{Draft, State, full};
use crate::errors::{io_kind, is_stale};
use crate::parts::{self, LARGEST, PART};

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// There is no room for so many bytes.
    NoRoom(u64),
    /// It is done, and these parts can go to the store.
    Done(Vec<usize>),
}

impl Draft {
    /// The bytes of a range, up to the end of the file.
    ///
    /// # Errors
    /// Those of the file and of the store.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        loop {
            let mut of = None;
            let read = self.read_noting(range.clone(), |state| of = state.base_object());
            let Err(error) = &read else { return read };
            if !is_stale(error) {
                return read;
            }
            // The object that is replaced just now may be replaced by this draft.
            if self.when(|state| !state.is_publishing).base_object() == of {
                return read;
            }
        }
    }

    /// [`Draft::read`] for who stores it. It tells what the bytes are a state of.
    pub(super) fn read_noting(
        &self,
        range: Range<u64>,
        note: impl FnOnce(&State),
    ) -> Result<Vec<u8>> {
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
        self.check_name(&state)?;
        let end = offset.saturating_add(data.len() as u64);
        self.check_size(&state, end)?;
        let range = offset..end;
        if state.dropped.touches(range.clone()) {
            let why = "a file that is larger than the room for staging is written once, and these \
                       bytes have been sent: give more room (--staging)";
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
        state.touch_bytes();
        Ok(Written::Done(state.ready(offset..end)))
    }

    /// Notes that bytes that a program has written were not taken: it is not stored before it is
    /// written anew.
    pub(crate) fn lose_bytes(&self) {
        let mut state = self.lock();
        // Nobody stores it any more.
        if state.is_superseded || state.is_removed {
            return;
        }
        state.touch_bytes();
        state.lacks_bytes = true;
        // It is not closed.
        let _ = self.note(&mut state, true);
    }

    /// Whether bytes of it were not taken.
    pub(crate) fn lacks_bytes(&self) -> bool {
        self.lock().lacks_bytes
    }

    /// Fails if bytes of it were not taken.
    pub(super) fn check_bytes(&self, state: &State) -> Result<()> {
        if !state.lacks_bytes || state.is_removed {
            return Ok(());
        }
        let why = "a write to this file failed, so that it lacks bytes: it is not stored before it \
                   is written anew";
        Err(full(&self.url_of(&state.key), why))
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
        self.check_name(&state)?;
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
            state.early.retain(|number| parts::part(*number).end <= size);
            if let Some(base) = &mut state.base {
                base.len = base.len.min(size);
            }
        } else {
            state.local.add(old..size);
            state.written_once = false;
        }
        if size == 0 {
            state.base = None;
            (state.written_once, state.lacks_bytes) = (true, false);
            state.early.clear();
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
}

impl State {
    /// Parts that can be sent after a write to a range, for nothing was written twice so far.
    fn ready(&mut self, range: Range<u64>) -> Vec<usize> {
        let last = parts::part_at(range.end.saturating_sub(1));
        let first = parts::part_at(range.start).min(last);
        self.written_once &= !(first..=last).any(|number| self.early.contains(&number));
        if !self.written_once || self.size < 2 * PART || self.is_removed {
            return Vec::new();
        }
        // What looks like a hole is often written later, by a kernel that writes back.
        let is_whole = |number: &usize| self.held.gaps(parts::part(*number)).is_empty();
        let first = if self.early.is_empty() { 0 } else { first };
        let ready: Vec<usize> = (first..=last).filter(is_whole).collect();
        self.early.extend(&ready);
        ready
    }
}
