//! The blocks of one object, over all its sections.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::ObjectCache;
use super::around::Around;
use super::header::{BLOCK, BLOCKS, Header, ObjectId};
use super::section::{Section, Wait};
use crate::model::StoreModel;

/// Sections that are looked at to find out how much of an object is there.
const MOST_LOOKED_AT: u64 = 64;

/// The blocks of one version of an object.
#[derive(Debug)]
pub(super) struct Blocks {
    cache: ObjectCache,
    id: ObjectId,
    /// The count of uses when the object was opened. Sections with this count or a greater one are
    /// not evicted for the object's sake.
    uses: u64,
}

impl Blocks {
    pub(super) fn new(cache: &ObjectCache, id: ObjectId) -> Self {
        let uses = cache.next_use();
        Self { cache: cache.clone(), id, uses }
    }

    fn header(&self, number: u64) -> Header {
        Header { id: self.id.clone(), number }
    }

    /// The section with a number, if it is there.
    fn section(&self, number: u64) -> Option<Arc<Section>> {
        let open = || Section::open(self.cache.folder(), &self.header(number), self.uses);
        let key = (self.id.hash, number, self.uses);
        self.cache.open().get(key).or_else(|| Some(self.cache.open().keep(key, open()?)))
    }

    /// The section with a number, which is made if it is not there, to add blocks to. `None` if it
    /// takes none.
    fn section_to_fill(&self, number: u64) -> std::io::Result<Option<Arc<Section>>> {
        // Another process may have evicted the one that is open.
        if let Some(section) = self.section(number).filter(|section| section.is_there()) {
            return Ok(section.is_writable().then_some(section));
        }
        let made = Section::make(self.cache.folder(), &self.header(number), self.uses)?;
        let made = made.filter(Section::is_writable);
        Ok(made.map(|made| self.cache.open().keep((self.id.hash, number, self.uses), made)))
    }

    /// Fills the blocks around a read with what is there and in order. Returns those that have to
    /// be fetched: from the first that is missing or damaged to the last.
    pub(super) fn fill(&self, around: &mut Around<'_>, wait: Wait) -> Range<u64> {
        let blocks = around.blocks();
        let mut sums = Vec::with_capacity((blocks.end - blocks.start) as usize);
        for (number, part) in by_section(blocks.clone()) {
            match self.section(number) {
                Some(section) => sums.extend(section.sums(part, wait)),
                None => sums.extend(part.map(|_| 0)),
            }
        }
        let mut missing = Span::default();
        (blocks.start..)
            .zip(&sums)
            .filter(|(_, sum)| **sum == 0)
            .for_each(|(at, _)| missing.add(at));
        if wait == Wait::No && missing.0.is_some() {
            return blocks;
        }
        let spans = match missing.0.clone() {
            None => [blocks.clone(), blocks.end..blocks.end],
            Some(missing) => [blocks.start..missing.start, missing.end..blocks.end],
        };
        for span in spans {
            for (first, memory) in around.pieces(span) {
                let sums = &sums[(first - blocks.start) as usize..];
                self.read(first, memory, sums, wait, &mut missing);
            }
        }
        missing.0.unwrap_or(blocks.end..blocks.end)
    }

    /// Those of some blocks that would have to be fetched: from the first that is missing to the
    /// last. The bytes of the others are not looked at.
    pub(super) fn missing(&self, blocks: Range<u64>) -> Range<u64> {
        let mut missing = Span::default();
        for (number, part) in by_section(blocks.clone()) {
            let sums = self.section(number).map(|section| section.sums(part.clone(), Wait::Yes));
            let is_missing = |at: &u64| match &sums {
                Some(sums) => sums[(at - part.start) as usize] == 0,
                None => true,
            };
            part.clone().filter(is_missing).for_each(|at| missing.add(at));
        }
        missing.0.unwrap_or(blocks.end..blocks.end)
    }

    /// Reads blocks from `first` on, and notes which are wrong.
    fn read(&self, first: u64, memory: &mut [u8], sums: &[u64], wait: Wait, wrong: &mut Span) {
        for (number, part, memory) in pieces(first, memory) {
            let sums = &sums[(part.start - first) as usize..];
            match self.section(number) {
                Some(section) => {
                    section.read(part.start, memory, sums, wait).for_each(|at| wrong.add(at));
                }
                None => part.for_each(|at| wrong.add(at)),
            }
        }
    }

    /// Whether so many bytes can be added, for which other objects may be evicted.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.cache.has_room(bytes, self.uses)
    }

    /// Adds blocks, from `first` on. A failure is one of the cache, and not of the read.
    pub(super) fn add(&self, first: u64, memory: &mut [u8]) {
        if let Err(error) = self.cache.make_folder() {
            return self.cache.give_up(&error);
        }
        if !self.cache.has_room(memory.len() as u64, self.uses) {
            return;
        }
        for (number, part, memory) in pieces(first, memory) {
            let added = self.section_to_fill(number).and_then(|section| match section {
                Some(section) => section.add(part.start, memory),
                None => Ok(()),
            });
            if let Err(error) = added {
                return self.cache.give_up(&error);
            }
        }
    }

    /// The part of the object that is there, and the model of the disc that has it. `None` if
    /// nothing is there. Of an object of many sections, some are looked at.
    pub(super) fn share(&self) -> Option<(f64, StoreModel)> {
        let count = self.id.size.div_ceil(BLOCK).div_ceil(BLOCKS);
        let step = count.div_ceil(MOST_LOOKED_AT).max(1);
        let (mut there, mut all, mut model) = (0, 0, None);
        for number in (0..count).step_by(step as usize) {
            let blocks = self.header(number).blocks();
            all += blocks.end - blocks.start;
            let Some(section) = self.section(number) else { continue };
            let sums = section.sums(blocks, Wait::Yes);
            there += sums.iter().filter(|sum| **sum != 0).count();
            model.get_or_insert_with(|| StoreModel::known(&section.table).0);
        }
        Some((there as f64 / all as f64, model?))
    }

    /// The file with a copy of the object, if this process knows that all of it is there and right.
    pub(super) fn whole(&self) -> Option<File> {
        self.section(0)?.whole()
    }

    pub(super) fn id(&self) -> &ObjectId {
        &self.id
    }
}

/// The least range that has all numbers that were added.
#[derive(Debug, Default)]
struct Span(Option<Range<u64>>);

impl Span {
    fn add(&mut self, at: u64) {
        let span = self.0.take().unwrap_or(at..at + 1);
        self.0 = Some(span.start.min(at)..span.end.max(at + 1));
    }
}

/// Blocks, with the number of the section that each run of them is in.
fn by_section(blocks: Range<u64>) -> impl Iterator<Item = (u64, Range<u64>)> {
    let numbers = blocks.start / BLOCKS..blocks.end.div_ceil(BLOCKS);
    numbers.map(move |number| {
        let own = number * BLOCKS..(number + 1) * BLOCKS;
        (number, own.start.max(blocks.start)..own.end.min(blocks.end))
    })
}

/// The memory of blocks from `first` on, cut where a section ends.
fn pieces(first: u64, mut memory: &mut [u8]) -> impl Iterator<Item = (u64, Range<u64>, &mut [u8])> {
    let blocks = first..first + (memory.len() as u64).div_ceil(BLOCK);
    by_section(blocks).map(move |(number, part)| {
        let len = ((part.end - part.start) * BLOCK) as usize;
        let rest = std::mem::take(&mut memory);
        let (piece, rest) = rest.split_at_mut(len.min(rest.len()));
        memory = rest;
        (number, part, piece)
    })
}
