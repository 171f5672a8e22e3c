//! Heaps: local ones for the names of symbol tables (section III.D), global ones for strings and
//! lists of any length (III.E), fractal ones for dense storage (III.G).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::btree::{bytes_for, version2};
use super::checksum::{lookup3, verified};
use super::cursor::{Cursor, Widths};
use super::dataset::{filters, pipeline};
use super::{NOWHERE, Reader, Result, at_once, both, damaged, foreign};
use crate::filter::{Contexts, Pipeline};

/// The names of a symbol table.
pub(super) struct Local {
    bytes: Vec<u8>,
    at: u64,
}

impl Local {
    pub(super) async fn read(reader: &Reader<'_>, at: u64) -> Result<Self> {
        let widths = reader.superblock().widths;
        let len = 8 + 2 * u64::from(widths.length) + u64::from(widths.address);
        let head = reader.get(at, len).await?;
        let mut cursor = reader.cursor(&head, at);
        cursor.magic("HEAP")?;
        cursor.version(0, "a local heap")?;
        cursor.skip(3)?;
        let size = cursor.length()?;
        let _ = cursor.length()?;
        let at = cursor.address()?;
        if size > MOST_NAMES {
            return foreign(format!("names of {size} bytes in a symbol table"));
        }
        Ok(Self { bytes: reader.get(at, size).await?.into_owned(), at })
    }

    /// The text at an offset.
    pub(super) fn text(&self, offset: u64) -> Result<&[u8]> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..))
            .unwrap_or_default();
        let at = self.at.saturating_add(offset);
        Cursor::new(rest, at, Widths::default()).text()
    }
}

/// Bytes of a collection that are asked for at first: the least, and the size of most.
const USUAL_COLLECTION: u64 = 4096;
/// The most bytes of a collection.
const MOST_COLLECTION: u64 = 256 << 20;
/// The most bytes of the names of a symbol table.
const MOST_NAMES: u64 = 256 << 20;

/// The address and the index of an object in a global heap.
pub(super) type GlobalId = (u64, u32);

/// The number of items of a string or list of any length, and the object that holds them. The
/// address of an object that does not exist is 0.
pub(super) fn reference(cursor: &mut Cursor<'_>) -> Result<(u64, GlobalId)> {
    let count = u64::from(cursor.u32()?);
    Ok((count, (cursor.address()?, cursor.u32()?)))
}

/// Collections of a global heap.
#[derive(Debug, Default)]
pub(super) struct Collections(HashMap<u64, Collection>);

#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    objects: HashMap<u32, Range<usize>>,
}

impl Collections {
    /// Reads the collections that hold these objects.
    pub(super) async fn read(
        reader: &Reader<'_>,
        ids: impl IntoIterator<Item = GlobalId>,
    ) -> Result<Self> {
        let places: BTreeSet<u64> = ids.into_iter().map(|(at, _)| at).collect();
        let places: Vec<u64> = places.into_iter().collect();
        let heads = reader.get_up_to(&places, USUAL_COLLECTION).await?;
        let mut whole = Vec::new();
        let mut long = Vec::new();
        for (head, &at) in heads.into_iter().zip(&places) {
            let mut cursor = reader.cursor(&head, at);
            cursor.magic("GCOL")?;
            cursor.version(1, "a global heap")?;
            cursor.skip(3)?;
            let size = cursor.length()?;
            reader.check(at, size)?;
            if size < USUAL_COLLECTION {
                let expected = format!("at least {USUAL_COLLECTION}");
                return damaged(at, format!("a global heap of {size} bytes"), expected);
            }
            if size > MOST_COLLECTION {
                return foreign(format!("a global heap of {size} bytes"));
            }
            if size <= head.len() as u64 {
                let bytes = head.get(..size as usize).unwrap_or_default().to_vec();
                whole.push((at, bytes));
            } else {
                long.push((at, size));
            }
        }
        for (bytes, &(at, _)) in reader.get_all(&long).await?.into_iter().zip(&long) {
            whole.push((at, bytes.into_owned()));
        }
        let parsed = whole.into_iter().map(|(at, bytes)| {
            let objects = objects(reader.cursor(&bytes, at))?;
            Ok((at, Collection { bytes, objects }))
        });
        parsed.collect::<Result<_>>().map(Self)
    }

    /// The bytes of all collections.
    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|collection| collection.bytes.len() as u64).sum()
    }

    /// An object.
    pub(super) fn object(&self, (at, index): GlobalId) -> Result<&[u8]> {
        let found = self
            .0
            .get(&at)
            .and_then(|collection| collection.bytes.get(collection.objects.get(&index)?.clone()));
        found.map_or_else(|| damaged(at, format!("a global heap without object {index}"), "it"), Ok)
    }
}

/// Where the objects of a collection lie in its bytes.
fn objects(mut cursor: Cursor<'_>) -> Result<HashMap<u32, Range<usize>>> {
    let all = cursor.rest().len();
    // Heads are padded to a multiple of eight bytes, whatever the width of lengths is.
    let padding = 8 - usize::from(cursor.widths().length).min(8);
    cursor.skip(8)?;
    cursor.length()?;
    cursor.skip(padding)?;
    let mut objects = HashMap::new();
    let head = 16;
    while cursor.rest().len() >= head {
        let index = u32::from(cursor.u16()?);
        cursor.skip(6)?;
        let size = cursor.length()?;
        cursor.skip(padding)?;
        // Object 0 is the free space at the end of the collection.
        if index == 0 {
            break;
        }
        let start = all - cursor.rest().len();
        let at = cursor.at();
        let Some(size) = usize::try_from(size).ok().filter(|&size| size <= cursor.rest().len())
        else {
            return damaged(at, format!("an object of {size} bytes"), "one inside its heap");
        };
        cursor.skip(size.next_multiple_of(8).min(cursor.rest().len()))?;
        objects.insert(index, start..start + size);
    }
    Ok(objects)
}

/// A fractal heap, which holds the objects of dense storage.
pub(super) struct Fractal {
    at: u64,
    /// Bytes of an id.
    id: usize,
    /// Bytes of an offset in an id.
    offset: usize,
    /// Bytes of a length in an id.
    length: usize,
    /// Whether direct blocks have checksums.
    summed: bool,
    /// The tree of the objects that are too large for blocks.
    huge: u64,
    /// The filters of direct blocks and of objects that are too large for them.
    filters: Option<Pipeline>,
    /// The direct blocks, in the order of their offsets in the heap.
    blocks: Vec<HeapBlock>,
}

/// A direct block.
#[derive(Debug, Clone, Copy)]
struct HeapBlock {
    /// Its offset in the heap.
    first: u64,
    /// Its bytes, once its filters are undone.
    size: u64,
    stored: Stored,
}

/// Where a block or an object is in the file.
#[derive(Debug, Clone, Copy)]
struct Stored {
    at: u64,
    /// Stored bytes.
    len: u64,
    /// A bit for each filter that was skipped.
    mask: u32,
}

/// How the blocks of a heap double from row to row.
struct Doubling {
    /// Blocks of a row.
    width: u64,
    /// Bytes of a block of the first row.
    start: u64,
    /// The most bytes of a direct block.
    direct: u64,
}

impl Doubling {
    /// The bytes of a block of a row.
    fn size(&self, row: u64) -> Option<u64> {
        1u64.checked_shl(u32::try_from(row.saturating_sub(1)).ok()?)?.checked_mul(self.start)
    }

    /// The first rows, whose blocks are direct. The first two rows have blocks of the same size.
    fn direct_rows(&self) -> u64 {
        u64::from(self.direct.ilog2() - self.start.ilog2()) + 2
    }

    /// The rows of an indirect block of this size.
    fn rows(&self, size: u64) -> u64 {
        u64::from((size / (self.width * self.start)).checked_ilog2().unwrap_or(0)) + 1
    }
}

/// The most bytes of a direct block. The library's own blocks have 64 KiB.
const MOST_BLOCK: u64 = 16 << 20;
/// The most bytes of direct blocks that are fetched before it is known which are wanted.
const MOST_HINTED: u64 = 256 << 10;
/// The most entries of an indirect block.
const MOST_ENTRIES: u64 = 1 << 16;

/// An object of a fractal heap.
#[derive(Debug, Clone)]
enum Place {
    /// In the id itself.
    Tiny(Vec<u8>),
    /// In a direct block: the offset in the heap.
    Managed(u64, u64),
    /// Alone in the file: where, and its bytes once its filters are undone.
    Huge(Stored, u64),
}

/// Reads dense storage: the heap at `heap` with the objects, and the records of the version 2
/// B-tree at `tree`, which says what is in the heap. Returns also the bytes of a record.
pub(super) async fn dense(
    reader: &Reader<'_>,
    (heap, tree): (u64, u64),
    kind: u8,
    sizes: std::ops::RangeInclusive<usize>,
) -> Result<(Fractal, usize, Vec<u8>)> {
    let opened = async {
        let heap = Fractal::open(reader, heap).await?;
        // They come with the next node of the tree.
        if heap.blocks.iter().map(|block| block.size).sum::<u64>() <= MOST_HINTED {
            heap.blocks.iter().for_each(|block| reader.hint(&[block.stored.at], block.stored.len));
        }
        Ok(heap)
    };
    let (heap, (size, records)) = both(opened, version2(reader, tree, kind, sizes)).await?;
    Ok((heap, size, records))
}

impl Fractal {
    /// Reads the header, and the addresses of all direct blocks.
    pub(super) async fn open(reader: &Reader<'_>, at: u64) -> Result<Self> {
        let widths = reader.superblock().widths;
        let len = 26 + 12 * u64::from(widths.length) + 3 * u64::from(widths.address);
        let mut bytes = reader.get(at, len).await?;
        let mut cursor = reader.cursor(&bytes, at);
        cursor.magic("FRHP")?;
        cursor.version(0, "a fractal heap")?;
        let id = usize::from(cursor.u16()?);
        // The list of filters comes last, so the header is longer than it seemed.
        let listed = usize::from(cursor.u16()?);
        if listed > 0 {
            let more = u64::from(widths.length) + 4 + listed as u64;
            bytes = reader.get(at, len + more).await?;
            cursor = reader.cursor(&bytes, at);
            cursor.skip(4 + 1 + 2 + 2)?;
        }
        let flags = cursor.u8()?;
        let most = u64::from(cursor.u32()?);
        cursor.length()?;
        let huge = cursor.address()?;
        cursor.length()?;
        cursor.address()?;
        cursor.skip(8 * usize::from(widths.length))?;
        let doubling = Doubling {
            width: u64::from(cursor.u16()?),
            start: cursor.length()?,
            direct: cursor.length()?,
        };
        let bits = cursor.u16()?;
        cursor.skip(2)?;
        let root = cursor.address()?;
        let rows = u64::from(cursor.u16()?);
        verified(&bytes, at)?;
        let mut root = Stored { at: root, len: doubling.start, mask: 0 };
        let mut pipeline_of_heap = None;
        if listed > 0 {
            (root.len, root.mask) = (cursor.length()?, cursor.u32()?);
            let list = Cursor::new(cursor.take(listed)?, at, widths);
            let pipeline = pipeline(&filters(list)?);
            if let Some(unknown) = pipeline.unknown() {
                return foreign(format!("dense storage with {unknown}"));
            }
            pipeline_of_heap = Some(pipeline);
        }
        let sound = doubling.start.is_power_of_two()
            && doubling.direct.is_power_of_two()
            && doubling.width.is_power_of_two()
            && doubling.start <= doubling.direct
            && doubling.direct <= MOST_BLOCK
            && (1..=64).contains(&bits)
            && rows <= 64;
        if !sound {
            return damaged(at, "a fractal heap of an impossible shape", "blocks that double");
        }
        let mut heap = Self {
            at,
            id,
            offset: usize::from(bits).div_ceil(8),
            length: (doubling.direct.ilog2() as usize).div_ceil(8).min(bytes_for(most)),
            summed: flags & 2 != 0,
            huge,
            filters: pipeline_of_heap,
            blocks: Vec::new(),
        };
        drop(bytes);
        match (root.at, rows) {
            (NOWHERE, _) => {}
            (_, 0) => heap.blocks.push(HeapBlock { first: 0, size: doubling.start, stored: root }),
            (at, rows) => heap.find_blocks(reader, &doubling, (at, rows)).await?,
        }
        heap.blocks.sort_unstable_by_key(|block| block.first);
        Ok(heap)
    }

    /// Finds the direct blocks below an indirect block, level by level.
    async fn find_blocks(
        &mut self,
        reader: &Reader<'_>,
        doubling: &Doubling,
        (root, rows): (u64, u64),
    ) -> Result<()> {
        let widths = reader.superblock().widths;
        let address = u64::from(widths.address);
        let before = 4 + 1 + address + self.offset as u64;
        // An entry for a direct block also has its stored bytes and its mask.
        let more = if self.filters.is_some() { u64::from(widths.length) + 4 } else { 0 };
        let direct_rows = doubling.direct_rows();
        let mut level = vec![(root, rows, 0u64)];
        // The blocks of a level are smaller than those above, so the loop ends.
        while !level.is_empty() {
            let mut places = Vec::new();
            for &(at, rows, _) in &level {
                let entries = rows * doubling.width;
                if entries > MOST_ENTRIES {
                    let found = format!("{entries} blocks below one");
                    return damaged(at, found, format!("at most {MOST_ENTRIES}"));
                }
                let direct = rows.min(direct_rows) * doubling.width;
                places.push((at, before + entries * address + direct * more + 4));
            }
            let all = reader.get_all(&places).await?;
            let mut below = Vec::new();
            for (bytes, &(at, rows, first)) in all.iter().zip(&level) {
                let mut cursor = reader.cursor(verified(bytes, at)?, at);
                cursor.magic("FHIB")?;
                self.check_head(&mut cursor, first)?;
                let mut next = first;
                for row in 0..rows {
                    let Some(size) = doubling.size(row) else {
                        return damaged(at, format!("{rows} rows of blocks"), "fewer");
                    };
                    for _ in 0..doubling.width {
                        let child = cursor.address()?;
                        let mut stored = Stored { at: child, len: size, mask: 0 };
                        if row < direct_rows && self.filters.is_some() {
                            (stored.len, stored.mask) = (cursor.length()?, cursor.u32()?);
                        }
                        let here = next;
                        next = next.saturating_add(size);
                        if child == NOWHERE {
                            continue;
                        }
                        if row < direct_rows {
                            self.blocks.push(HeapBlock { first: here, size, stored });
                        } else {
                            below.push((child, doubling.rows(size), here));
                        }
                    }
                }
            }
            level = below;
        }
        Ok(())
    }

    /// Checks the head of a block behind its signature: the heap's address, the block's offset.
    fn check_head(&self, cursor: &mut Cursor<'_>, first: u64) -> Result<()> {
        let at = cursor.at();
        cursor.version(0, "a fractal heap's block")?;
        let heap = cursor.address()?;
        let offset = cursor.uint(self.offset)?;
        if (heap, offset) == (self.at, first) {
            return Ok(());
        }
        damaged(
            at,
            format!("a block at {offset} of the heap at {heap}"),
            format!("{first} of {}", self.at),
        )
    }

    /// The bytes of the object with this id, and their address. The id is at `at`.
    pub(super) async fn object(
        &self,
        reader: &Reader<'_>,
        id: &[u8],
        at: u64,
    ) -> Result<(Vec<u8>, u64)> {
        let mut objects = self.objects(reader, &[id], at).await?;
        Ok(objects.pop().unwrap_or_default())
    }

    /// The bytes of the object with each of these ids, and their addresses. The ids are at `at`.
    pub(super) async fn objects(
        &self,
        reader: &Reader<'_>,
        ids: &[&[u8]],
        at: u64,
    ) -> Result<Vec<(Vec<u8>, u64)>> {
        let places = self.places(reader, ids, at).await?;
        let mut objects = vec![(Vec::new(), at); ids.len()];
        let all = self.blocks.iter().fold(0u64, |sum, block| sum.saturating_add(block.size));
        let wanted = places.iter().fold(0u64, |sum, place| match place {
            Place::Managed(_, len) => sum.saturating_add(*len),
            Place::Tiny(_) | Place::Huge(..) => sum,
        });
        // Each object has one id.
        if wanted > all {
            return damaged(at, format!("objects of {wanted} bytes"), format!("at most {all}"));
        }
        // For each block, the numbers of the objects in it.
        let mut in_blocks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut alone = Vec::new();
        for (number, place) in places.iter().enumerate() {
            match place {
                Place::Tiny(bytes) => objects[number].0.clone_from(bytes),
                Place::Huge(at, len) => alone.push((number, (*at, *len))),
                Place::Managed(offset, len) => {
                    let block = self.block(*offset, *len)?;
                    in_blocks.entry(block).or_default().push(number);
                }
            }
        }
        let mut contexts = Contexts::default();
        let huge: Vec<(u64, u64)> =
            alone.iter().map(|(_, (stored, _))| (stored.at, stored.len)).collect();
        for (bytes, (number, (stored, len))) in reader.get_all(&huge).await?.into_iter().zip(alone)
        {
            let object = self.unfiltered(&mut contexts, &bytes, stored, len)?;
            objects[number] = (object.into_owned(), stored.at);
        }
        let in_blocks: Vec<(usize, Vec<usize>)> = in_blocks.into_iter().collect();
        let largest = self.blocks.iter().map(|block| block.size).max().unwrap_or(1);
        for blocks in in_blocks.chunks(at_once(largest)) {
            let asked: Vec<(u64, u64)> = blocks
                .iter()
                .map(|(block, _)| self.blocks[*block].stored)
                .map(|stored| (stored.at, stored.len))
                .collect();
            let all = reader.get_all(&asked).await?;
            for (bytes, (block, numbers)) in all.iter().zip(blocks) {
                let block = self.blocks[*block];
                let at = block.stored.at;
                let bytes = self.unfiltered(&mut contexts, bytes, block.stored, block.size)?;
                self.check_block(reader.cursor(&bytes, at), &bytes, block.first)?;
                for &number in numbers {
                    let Place::Managed(offset, len) = places[number] else { continue };
                    let start = (offset - block.first) as usize;
                    let object = bytes.get(start..start + len as usize).unwrap_or_default();
                    objects[number] = (object.to_vec(), at.saturating_add(start as u64));
                }
            }
        }
        Ok(objects)
    }

    /// The `len` bytes of a block or an object, with its filters undone.
    fn unfiltered<'b>(
        &self,
        contexts: &mut Contexts,
        bytes: &'b [u8],
        stored: Stored,
        len: u64,
    ) -> Result<Cow<'b, [u8]>> {
        let Some(pipeline) = &self.filters else { return Ok(Cow::Borrowed(bytes)) };
        if len > MOST_BLOCK {
            return foreign(format!("{len} bytes of dense storage that are compressed together"));
        }
        match contexts.undo(pipeline, stored.mask, bytes, len as usize) {
            Ok(plain) => Ok(Cow::Owned(plain.to_vec())),
            Err(fault) => damaged(stored.at.saturating_add(fault.at), fault.found, fault.expected),
        }
    }

    /// The number of the block that holds an object.
    fn block(&self, offset: u64, len: u64) -> Result<usize> {
        let after = self.blocks.partition_point(|block| block.first <= offset);
        let found = after.checked_sub(1).filter(|&number| {
            let block = self.blocks[number];
            let block_end = block.first.saturating_add(block.size);
            offset.checked_add(len).is_some_and(|end| end <= block_end)
        });
        found.map_or_else(
            || {
                let found = format!("{len} bytes at {offset} of a fractal heap");
                damaged(self.at, found, "an object inside a block")
            },
            Ok,
        )
    }

    /// Checks the head and the checksum of a direct block.
    fn check_block(&self, mut cursor: Cursor<'_>, bytes: &[u8], first: u64) -> Result<()> {
        let at = cursor.at();
        cursor.magic("FHDB")?;
        self.check_head(&mut cursor, first)?;
        if !self.summed {
            return Ok(());
        }
        let place = (cursor.at() - at) as usize;
        let stored = cursor.u32()?;
        let mut bytes = bytes.to_vec();
        if let Some(sum) = bytes.get_mut(place..place + 4) {
            sum.fill(0);
        }
        let computed = lookup3(&bytes);
        if stored == computed {
            return Ok(());
        }
        damaged(
            at,
            format!("the checksum {stored:08x}"),
            format!("{computed:08x}, as of the block"),
        )
    }

    /// Where the objects with these ids are.
    async fn places(&self, reader: &Reader<'_>, ids: &[&[u8]], at: u64) -> Result<Vec<Place>> {
        let mut places = Vec::with_capacity(ids.len());
        let mut huge: Option<HashMap<u64, (Stored, u64)>> = None;
        let widths = reader.superblock().widths;
        let filtered = if self.filters.is_some() { 4 + widths.length } else { 0 };
        for id in ids {
            let mut cursor = reader.cursor(id, at);
            if id.len() != self.id {
                let found = format!("an id of {} bytes", id.len());
                return damaged(at, found, format!("{}, as the heap says", self.id));
            }
            let head = cursor.u8()?;
            places.push(match head >> 4 {
                0 => Place::Managed(cursor.uint(self.offset)?, cursor.uint(self.length)?),
                1 if self.id > usize::from(widths.address + widths.length + filtered) => {
                    let (stored, len) = self.huge_object(&mut cursor)?;
                    Place::Huge(stored, len)
                }
                1 => {
                    if huge.is_none() {
                        huge = Some(self.huge_objects(reader).await?);
                    }
                    let number = cursor.uint((self.id - 1).min(8))?;
                    match huge.as_ref().and_then(|huge| huge.get(&number)) {
                        Some(&(stored, len)) => Place::Huge(stored, len),
                        None => {
                            return damaged(at, format!("the large object {number}"), "another");
                        }
                    }
                }
                2 => {
                    let mut len = usize::from(head & 15);
                    if self.id > 18 {
                        len = len << 8 | usize::from(cursor.u8()?);
                    }
                    Place::Tiny(cursor.take(len + 1)?.to_vec())
                }
                _ => return damaged(at, format!("an id of type {head:#x}"), "0x00, 0x10 or 0x20"),
            });
        }
        Ok(places)
    }

    /// The addresses and lengths of the objects that are too large for blocks, by their numbers.
    async fn huge_objects(&self, reader: &Reader<'_>) -> Result<HashMap<u64, (Stored, u64)>> {
        const NUMBERED: u8 = 1;
        const NUMBERED_AND_FILTERED: u8 = 2;
        let widths = reader.superblock().widths;
        let (address, length) = (usize::from(widths.address), usize::from(widths.length));
        let (kind, record) = match self.filters {
            None => (NUMBERED, address + 2 * length),
            Some(_) => (NUMBERED_AND_FILTERED, address + 3 * length + 4),
        };
        let (_, records) = version2(reader, self.huge, kind, record..=record).await?;
        let mut objects = HashMap::new();
        for record in records.chunks_exact(record) {
            let mut cursor = reader.cursor(record, self.huge);
            let place = self.huge_object(&mut cursor)?;
            objects.insert(cursor.length()?, place);
        }
        Ok(objects)
    }

    /// Parses where an object is that is too large for blocks, and its bytes once its filters are
    /// undone.
    fn huge_object(&self, cursor: &mut Cursor<'_>) -> Result<(Stored, u64)> {
        let (at, len) = (cursor.address()?, cursor.length()?);
        match self.filters {
            None => Ok((Stored { at, len, mask: 0 }, len)),
            Some(_) => {
                let mask = cursor.u32()?;
                Ok((Stored { at, len, mask }, cursor.length()?))
            }
        }
    }
}
