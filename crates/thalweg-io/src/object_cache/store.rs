//! A store in front of which the cache stands.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ObjectCache;
use super::around::Around;
use super::blocks::Blocks;
use super::header::{BLOCK, ObjectId};
use super::section::Wait;
use crate::error::Result;
use crate::model::{Origin, StoreModel};
use crate::store::{Store, check_inside};

/// The part of an object that has to be there for the model of the disc to apply. With fewer, what
/// is missing would be fetched in the small requests that suit a disc, and take longer than all the
/// rest.
const WARM: f64 = 0.99;
/// Writing may take so much longer than fetching, summed over all threads. With the 32 of an object
/// store this is a second.
const SLACK: Duration = Duration::from_secs(30);
/// The most ranges of blocks that are remembered because the disc did not take them.
const MOST_UNKEPT: usize = 4096;

/// An object whose blocks are kept on a local disc.
///
/// A read takes from the disc what is there, and fetches the rest with one request: from the first
/// missing block to the last. It waits until these blocks are handed to the system, and not until
/// they are on the disc.
#[derive(Debug)]
pub struct CachedStore {
    inner: Arc<dyn Store>,
    cache: ObjectCache,
    blocks: Blocks,
    /// What reads have waited so far for the store and for writes to the cache, in nanoseconds.
    fetching: AtomicU64,
    writing: AtomicU64,
    /// Blocks that were fetched while nothing could be written.
    unkept: Mutex<Vec<Range<u64>>>,
}

impl CachedStore {
    /// Puts a cache in front of `inner`, which must have the bytes of `id` and no others.
    pub fn new(inner: Arc<dyn Store>, cache: &ObjectCache, id: ObjectId) -> Self {
        let blocks = Blocks::new(cache, id);
        let (fetching, writing, unkept) = Default::default();
        Self { inner, cache: cache.clone(), blocks, fetching, writing, unkept }
    }

    /// The model to plan with, if that of the store behind is `model`: that of the disc if nearly
    /// all of the object is there.
    pub fn model(&self, model: (StoreModel, Origin)) -> (StoreModel, Origin) {
        match self.blocks.share() {
            Some((share, of_disc)) if share >= WARM => (of_disc, Origin::Cache),
            _ => model,
        }
    }

    /// Fetches blocks around a read, and adds them to the cache.
    fn fetch(&self, around: &mut Around<'_>, blocks: Range<u64>) -> Result<()> {
        let started = Instant::now();
        let mut parts: Vec<&mut [u8]> =
            around.pieces(blocks.clone()).map(|(_, memory)| memory).collect();
        self.inner.read_parts(blocks.start * BLOCK, &mut parts)?;
        let add = |sum: &AtomicU64, since: Instant| {
            sum.fetch_add(since.elapsed().as_nanos() as u64, Ordering::Relaxed);
        };
        add(&self.fetching, started);
        if self.may_write() {
            let started = Instant::now();
            around.pieces(blocks).for_each(|(first, memory)| self.blocks.add(first, memory));
            add(&self.writing, started);
        } else {
            self.leave(blocks);
        }
        Ok(())
    }

    /// Notes blocks that are not kept.
    fn leave(&self, blocks: Range<u64>) {
        let mut unkept = self.lock_unkept();
        if let Some(last) = unkept.last_mut().filter(|last| last.end == blocks.start) {
            last.end = blocks.end;
        } else if unkept.len() < MOST_UNKEPT {
            unkept.push(blocks);
        }
    }

    fn lock_unkept(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.unkept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes at most so many blocks from those that are not kept.
    fn take_unkept(&self, most: u64) -> Option<Range<u64>> {
        let mut unkept = self.lock_unkept();
        let first = unkept.first_mut()?;
        let taken = first.start..first.end.min(first.start + most);
        first.start = taken.end;
        if first.is_empty() {
            unkept.remove(0);
        }
        Some(taken)
    }

    /// A disc that is slower than the network must not hold up the read: it gets what it can take
    /// in the time that fetching takes.
    fn may_write(&self) -> bool {
        let of = |sum: &AtomicU64| Duration::from_nanos(sum.load(Ordering::Relaxed));
        of(&self.writing) <= of(&self.fetching) + SLACK
    }

    /// Has nothing be written any more while blocks are read.
    #[cfg(test)]
    pub(super) fn pretend_to_be_slow(&self) {
        self.writing.store(u64::MAX / 2, Ordering::Relaxed);
    }

    /// Fills `buf`, which lies inside the object, as far as that needs no fetching.
    fn fill(&self, offset: u64, buf: &mut [u8], wait: Wait) -> Result<bool> {
        let (offset, buf) = self.cache.recent().fill(self.blocks.id(), offset, buf);
        if buf.is_empty() {
            return Ok(true);
        }
        let mut around = Around::new(self.size(), offset, buf);
        let missing = self.blocks.fill(&mut around, wait);
        if !missing.is_empty() {
            if wait == Wait::No {
                return Ok(false);
            }
            self.fetch(&mut around, missing)?;
        }
        for (block, bytes) in around.finish() {
            self.cache.recent().put(self.blocks.id(), block, bytes);
        }
        Ok(true)
    }
}

impl Store for CachedStore {
    fn name(&self) -> &Arc<str> {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_inside(self.name(), self.size(), offset, buf.len())?;
        if buf.is_empty() || self.inner.read_at_hand(offset, buf) {
            return Ok(());
        }
        self.fill(offset, buf, Wait::Yes).map(drop)
    }

    fn read_at_hand(&self, offset: u64, buf: &mut [u8]) -> bool {
        if check_inside(self.name(), self.size(), offset, buf.len()).is_err() {
            return false;
        }
        buf.is_empty()
            || self.inner.read_at_hand(offset, buf)
            || self.fill(offset, buf, Wait::No).is_ok_and(|is_full| is_full)
    }

    fn head(&self) -> u64 {
        self.inner.head()
    }

    /// The file of the blocks, if all of them are there, and this process has compared or written
    /// each of them. It stays when it is evicted, for as long as it is open.
    fn local_copy(&self) -> Option<File> {
        self.blocks.whole()
    }

    fn unkept(&self) -> u64 {
        self.lock_unkept().iter().map(|blocks| (blocks.end - blocks.start) * BLOCK).sum()
    }

    fn keep_more(&self, room: &mut [u8]) -> bool {
        let Some(taken) = self.take_unkept(room.len() as u64 / BLOCK) else { return false };
        // Another read may have kept some of them.
        let blocks = self.blocks.missing(taken.clone());
        let (start, end) = (blocks.start * BLOCK, (blocks.end * BLOCK).min(self.size()));
        if blocks.is_empty() {
            return true;
        }
        if !self.blocks.has_room(end - start) {
            return false;
        }
        let bytes = &mut room[..(end - start) as usize];
        if self.inner.read_at(start, bytes).is_err() {
            self.leave(taken);
            return false;
        }
        self.blocks.add(blocks.start, bytes);
        self.blocks.missing(blocks).is_empty()
    }

    fn missing(&self, range: Range<u64>) -> Range<u64> {
        if range.is_empty() || range.end <= self.inner.head() {
            return range.end..range.end;
        }
        let blocks = self.blocks.missing(range.start / BLOCK..range.end.div_ceil(BLOCK));
        (blocks.start * BLOCK).min(self.size())..(blocks.end * BLOCK).min(self.size())
    }
}
