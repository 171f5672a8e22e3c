//! Extents: runs of stored bytes that can be decoded on their own, and where they come from.

use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use crate::error::Result;
use crate::store::{AlignedBuf, Store};

/// Finds extents in a stream of bytes, for formats that need not have an index of them (BLOW5,
/// SLOW5, FASTQ).
pub trait Framer: Send {
    /// Searches `bytes`, which start at byte `at` of the file, and appends the complete extents to
    /// `found`, in order, as ranges of `bytes`. `last` is true if no bytes follow.
    ///
    /// # Errors
    /// A file that is malformed or cut short. Extents before the defect stay in `found`.
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step>;
}

/// How far a [`Framer`] got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The framer is done with the first `used` bytes. The extent that starts after them is `need`
    /// bytes long, or of unknown length if `need` is 0. The framer has checked that the file is
    /// large enough for `need` bytes.
    More {
        /// Bytes that the framer is done with.
        used: usize,
        /// Length in bytes of the unfinished extent, including the part that has already arrived.
        need: usize,
    },
    /// The file's data end here.
    End,
}

/// Extents with known locations that one request fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The bytes to fetch: the extents and the gaps between them.
    pub range: Range<u64>,
    /// The extents in `range`, sorted by offset.
    pub extents: Vec<Wanted>,
}

/// One extent that the caller asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its byte range in the file.
    pub range: Range<u64>,
    /// Its index in the selection.
    pub ordinal: u64,
}

/// Where the engine gets the extents of a format from.
pub enum Source {
    /// A framer finds the extents while the engine streams over a range of the file.
    Framed {
        /// The bytes to stream over.
        range: Range<u64>,
        /// Finds the extents.
        framer: Box<dyn Framer>,
    },
    /// The fetches are planned beforehand: see [`crate::plan`].
    Planned(Box<dyn Plan>),
}

/// Fetches, in the order in which they are made. Every iterator over fetches is one.
pub trait Plan: Send {
    /// The next fetch, or `None` if no more will come. [`Poll::Pending`] if another thread has yet
    /// to plan it. Does not wait.
    fn poll(&mut self) -> Poll<Option<Fetch>>;

    /// Waits until [`Plan::poll`] is ready, for at most `most`.
    fn wait(&mut self, most: Duration);
}

impl<I: Iterator<Item = Fetch> + Send> Plan for I {
    fn poll(&mut self) -> Poll<Option<Fetch>> {
        Poll::Ready(self.next())
    }

    fn wait(&mut self, _most: Duration) {}
}

/// Fetched bytes, shared by the groups of extents that lie in them.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) data: Data,
    /// Offset in the file of the first byte of `data`. It wraps around below 0, because headroom
    /// can begin before the start of the file.
    pub(crate) origin: u64,
}

#[derive(Debug)]
pub(crate) enum Data {
    /// A pooled buffer.
    Buf(AlignedBuf),
    /// The store's own bytes.
    View(Arc<dyn Store>),
    /// A buffer of any size, for extents that are longer than a pooled buffer.
    Whole(Vec<u8>),
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Buf(buf) => buf,
            // A store that has its bytes never loses them (`Store::bytes`).
            Data::View(store) => store.bytes().unwrap_or_default(),
            Data::Whole(vec) => vec,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The place of its block in the group.
    pub(crate) block: usize,
    pub(crate) range: Range<usize>,
    pub(crate) ordinal: u64,
}

/// Extents that follow each other. A decode worker takes one group at a time.
#[derive(Debug)]
pub struct Group {
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) places: Vec<Place>,
}

/// One extent's stored bytes.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    /// Offset in the file of its first byte.
    pub offset: u64,
    /// Its index in the file, or in the selection.
    pub ordinal: u64,
    /// Its stored bytes.
    pub bytes: &'a [u8],
}

impl Group {
    /// The number of extents.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the group has no extents. The engine never hands out an empty group.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The extent at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<Extent<'_>> {
        let place = self.places.get(index)?;
        let block = self.blocks.get(place.block)?;
        Some(Extent {
            offset: block.origin.wrapping_add(place.range.start as u64),
            ordinal: place.ordinal,
            bytes: &block.bytes()[place.range.clone()],
        })
    }

    /// Stored bytes of the extents from `index` on.
    pub fn bytes_from(&self, index: usize) -> usize {
        self.places.iter().skip(index).map(|place| place.range.len()).sum()
    }

    /// Takes over the extents of the group that follows. Returns its empty list of places.
    pub(crate) fn append(&mut self, mut next: Self) -> Vec<Place> {
        let before = self.blocks.len();
        self.blocks.append(&mut next.blocks);
        let moved = |place: Place| Place { block: place.block + before, ..place };
        self.places.extend(next.places.drain(..).map(moved));
        next.places
    }
}
