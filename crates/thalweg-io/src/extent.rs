//! Extents: runs of stored bytes that can be decoded on their own, and where they come from.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::store::{AlignedBuf, Store};

/// Finds extents in bytes that stream by, for formats without an index of them (BLOW5, SLOW5,
/// FASTQ).
pub trait Framer: Send {
    /// Looks at `bytes`, which start at byte `at` of the file; `last` says that no more follow.
    /// Appends the whole extents found, as ranges of `bytes`, in order.
    ///
    /// # Errors
    /// Whatever shows that the file is malformed or cut short. Extents found before the defect are
    /// kept.
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step>;
}

/// How far a [`Framer`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The first `used` bytes are dealt with; the extent that starts there is `need` bytes long (0:
    /// not known yet). The framer has checked that the file can hold so many.
    More {
        /// Bytes dealt with.
        used: usize,
        /// Bytes of the unfinished extent, its part that is here included.
        need: usize,
    },
    /// The file's data end here.
    End,
}

/// Extents that were known beforehand and are fetched in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// The bytes to fetch: the extents and the gaps between them.
    pub range: Range<u64>,
    /// The extents in it, by offset.
    pub extents: Vec<Wanted>,
}

/// One extent that the caller asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Where it is.
    pub range: Range<u64>,
    /// Its place in the selection.
    pub ordinal: u64,
}

/// How a format's extents come to the engine.
pub enum Source {
    /// Found while streaming over a range of the file.
    Framed {
        /// The bytes to stream over.
        range: Range<u64>,
        /// What finds the extents.
        framer: Box<dyn Framer>,
    },
    /// Planned beforehand: see [`crate::plan`].
    Planned(Box<dyn Iterator<Item = Fetch> + Send>),
}

/// Fetched bytes, shared by the groups of extents that lie in them.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) data: Data,
    /// Offset in the file of the first byte of `data`; wrapping, because headroom can reach back
    /// past the start.
    pub(crate) origin: u64,
}

#[derive(Debug)]
pub(crate) enum Data {
    /// A pooled buffer.
    Buf(AlignedBuf),
    /// The store's own bytes.
    View(Arc<dyn Store>),
    /// A buffer of its own size, for what does not fit a pooled one.
    Whole(Vec<u8>),
}

impl Block {
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.data {
            Data::Buf(buf) => buf,
            Data::View(store) => store.bytes().unwrap_or_default(),
            Data::Whole(vec) => vec,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) range: Range<usize>,
    pub(crate) ordinal: u64,
}

/// Neighbouring extents in one block: what a decode worker takes at a time.
#[derive(Debug)]
pub struct Group {
    pub(crate) block: Arc<Block>,
    pub(crate) places: Vec<Place>,
}

/// One extent's stored bytes.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    /// Where it starts in the file.
    pub offset: u64,
    /// Its place in the file, or in the selection.
    pub ordinal: u64,
    /// Its stored bytes.
    pub bytes: &'a [u8],
}

impl Group {
    /// How many extents it has.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has none; the engine hands out no such group.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The extent at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<Extent<'_>> {
        let place = self.places.get(index)?;
        Some(Extent {
            offset: self.block.origin.wrapping_add(place.range.start as u64),
            ordinal: place.ordinal,
            bytes: &self.block.bytes()[place.range.clone()],
        })
    }
}
