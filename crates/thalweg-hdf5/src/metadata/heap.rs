//! Heaps: local ones for the names of symbol tables, global ones for strings of any length, fractal
//! ones for dense storage.

use super::btree::{bytes_for, check_filters};
use super::checksum::{lookup3, verified};
use super::cursor::{Cursor, until_nul};
use super::{ByteSource, NOWHERE, Reader, Result, damaged, foreign};

/// The names of a symbol table.
pub(super) struct Local {
    bytes: Vec<u8>,
    at: u64,
}

impl Local {
    pub(super) fn read<S: ByteSource + ?Sized>(reader: &Reader<'_, S>, at: u64) -> Result<Self> {
        let head = reader.get(at, 32)?;
        let mut cursor = Cursor::new(&head, at);
        cursor.magic("HEAP")?;
        cursor.version(0, "a local heap")?;
        cursor.skip(3)?;
        let (size, _, at) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        Ok(Self { bytes: reader.get(at, size)?.into_owned(), at })
    }

    /// The name at an offset.
    pub(super) fn name(&self, offset: u64) -> Result<&[u8]> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..))
            .unwrap_or_default();
        Cursor::new(rest, self.at.saturating_add(offset)).text()
    }
}

/// The most bytes of a string of a global heap.
const MOST_OBJECT: u64 = 64 << 20;

/// The text of an object of a global heap, up to its first NUL.
pub(super) fn global_text<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    at: u64,
    index: u32,
    len: u64,
) -> Result<String> {
    let head = reader.get(at, 16)?;
    let mut cursor = Cursor::new(&head, at);
    cursor.magic("GCOL")?;
    cursor.version(1, "a global heap")?;
    cursor.skip(3)?;
    let size = cursor.u64()?;
    reader.check(at, size)?;
    let end = at + size;
    let mut here = at + 16;
    while here + 16 <= end {
        let head = reader.get(here, 16)?;
        let mut cursor = Cursor::new(&head, here);
        let found = cursor.u16()?;
        cursor.skip(6)?;
        let size = cursor.u64()?;
        let next = size.checked_next_multiple_of(8).and_then(|size| (here + 16).checked_add(size));
        // Object 0 is the free space at the end of the heap. Its size includes its own head.
        let Some(next) = next.filter(|&next| next <= end && found != 0) else { break };
        if u32::from(found) == index {
            if len > size || len > MOST_OBJECT {
                return damaged(here, format!("an object of {size} bytes"), format!("{len}"));
            }
            let bytes = reader.get(here + 16, len)?;
            return Ok(String::from_utf8_lossy(until_nul(&bytes)).into_owned());
        }
        here = next;
    }
    damaged(at, format!("a global heap without object {index}"), "it")
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
    /// Blocks of a row of an indirect block.
    width: u64,
    /// Bytes of a block of the first row.
    start: u64,
    /// The most bytes of a direct block.
    direct: u64,
    /// Bits of the heap's address space.
    bits: u16,
    /// Whether direct blocks have checksums.
    summed: bool,
    root: u64,
    /// Rows of the root block; 0 if the root is a direct block.
    rows: u16,
    /// The block that was read last: its offset in the heap, its place in the file, its bytes.
    block: Option<(u64, u64, Vec<u8>)>,
    /// The indirect block of each depth that was read last.
    tables: Vec<(u64, Vec<u64>)>,
}

/// The most bytes of a block. The library's own blocks have 64 KiB.
const MOST_BLOCK: u64 = 16 << 20;
/// The most entries of an indirect block.
const MOST_ENTRIES: u64 = 1 << 16;

impl Fractal {
    pub(super) fn open<S: ByteSource + ?Sized>(reader: &Reader<'_, S>, at: u64) -> Result<Self> {
        let bytes = reader.get(at, 146)?;
        let mut cursor = Cursor::new(&bytes, at);
        cursor.magic("FRHP")?;
        cursor.version(0, "a fractal heap")?;
        let id = cursor.u16()?;
        check_filters(cursor.u16()?)?;
        let flags = cursor.u8()?;
        let most = u64::from(cursor.u32()?);
        cursor.skip(12 * 8)?;
        let width = u64::from(cursor.u16()?);
        let start = cursor.u64()?;
        let direct = cursor.u64()?;
        let bits = cursor.u16()?;
        cursor.skip(2)?;
        let root = cursor.u64()?;
        let rows = cursor.u16()?;
        verified(&bytes, at)?;
        let sound = start.is_power_of_two()
            && direct.is_power_of_two()
            && width.is_power_of_two()
            && start <= direct
            && direct <= MOST_BLOCK
            && (1..=64).contains(&bits)
            && rows <= 64;
        if !sound {
            return damaged(at, "a fractal heap of an impossible shape", "blocks that double");
        }
        let offset = usize::from(bits).div_ceil(8);
        let length = (direct.ilog2() as usize).div_ceil(8).min(bytes_for(most));
        let summed = flags & 2 != 0;
        let id = usize::from(id);
        Ok(Self {
            at,
            id,
            offset,
            length,
            width,
            start,
            direct,
            bits,
            summed,
            root,
            rows,
            block: None,
            tables: Vec::new(),
        })
    }

    /// The offset of the object with an id in the heap's address space, and its length.
    pub(super) fn place(&self, id: &[u8], at: u64) -> Result<(u64, u64)> {
        let mut cursor = Cursor::new(id, at);
        if id.len() != self.id {
            return damaged(
                at,
                format!("an id of {} bytes", id.len()),
                format!("{}, as the heap says", self.id),
            );
        }
        match cursor.u8()? {
            0 => Ok((cursor.uint(self.offset)?, cursor.uint(self.length)?)),
            kind => foreign(format!("objects of dense storage of kind {kind:#x}")),
        }
    }

    /// The bytes of an object, and their address in the file. Reads the object's block unless it is
    /// the one that was read last.
    pub(super) fn object<S: ByteSource + ?Sized>(
        &mut self,
        reader: &Reader<'_, S>,
        (offset, len): (u64, u64),
    ) -> Result<(&[u8], u64)> {
        let at_hand = |block: &Option<(u64, u64, Vec<u8>)>| {
            let (first, _, bytes) = block.as_ref()?;
            let start = usize::try_from(offset.checked_sub(*first)?).ok()?;
            (start < bytes.len()).then_some(start)
        };
        if at_hand(&self.block).is_none() {
            let (first, at, size) = self.locate(reader, offset)?;
            let bytes = self.read_block(reader, first, at, size)?;
            self.block = Some((first, at, bytes));
        }
        let start = at_hand(&self.block).unwrap_or(usize::MAX);
        let (at, bytes) =
            self.block.as_ref().map_or((0, &[][..]), |(_, at, bytes)| (*at, &bytes[..]));
        let object =
            usize::try_from(len).ok().and_then(|len| bytes.get(start..start.checked_add(len)?));
        match object {
            Some(object) => Ok((object, at + start as u64)),
            None => damaged(
                at,
                format!("{len} bytes at {offset} of a fractal heap"),
                "an object inside its block",
            ),
        }
    }

    /// The direct block that holds an offset of the heap: its own offset in the heap, its address
    /// in the file, and its size.
    fn locate<S: ByteSource + ?Sized>(
        &mut self,
        reader: &Reader<'_, S>,
        offset: u64,
    ) -> Result<(u64, u64, u64)> {
        if self.rows == 0 {
            return Ok((0, self.root, self.start));
        }
        let (mut at, mut rows, mut first) = (self.root, u64::from(self.rows), 0u64);
        // The rows of a block below hold less than the row that leads to it, so the loop ends.
        for depth in 0.. {
            let span = self.width * self.start;
            let within = offset - first;
            let row = if within < span { 0 } else { u64::from((within / span).ilog2()) + 1 };
            let (Some(size), Some(row_start)) = (self.size(row), self.row_start(row)) else {
                break;
            };
            let column = (within - row_start) / size;
            if row >= rows || column >= self.width {
                break;
            }
            let child = self.child(reader, (at, rows), depth, first, row * self.width + column)?;
            first += row_start + column * size;
            if child == NOWHERE {
                break;
            }
            if size <= self.direct {
                return Ok((first, child, size));
            }
            rows = u64::from((size / span).checked_ilog2().unwrap_or(0)) + 1;
            at = child;
        }
        damaged(
            self.at,
            format!("an object at {offset} of a fractal heap"),
            "a block that holds it",
        )
    }

    /// The bytes of a block of a row.
    fn size(&self, row: u64) -> Option<u64> {
        1u64.checked_shl(u32::try_from(row.saturating_sub(1)).ok()?)?.checked_mul(self.start)
    }

    /// The offset of a row within its indirect block.
    fn row_start(&self, row: u64) -> Option<u64> {
        if row == 0 { Some(0) } else { self.size(row)?.checked_mul(self.width) }
    }

    /// The address in an entry of an indirect block. The block is read unless it was the last of
    /// its depth.
    fn child<S: ByteSource + ?Sized>(
        &mut self,
        reader: &Reader<'_, S>,
        (at, rows): (u64, u64),
        depth: usize,
        first: u64,
        entry: u64,
    ) -> Result<u64> {
        if self.tables.get(depth).is_none_or(|(known, _)| *known != at) {
            let entries = rows * self.width;
            if entries > MOST_ENTRIES {
                return damaged(
                    at,
                    format!("{entries} blocks below one"),
                    format!("at most {MOST_ENTRIES}"),
                );
            }
            let bytes = reader.get(at, 4 + 1 + 8 + self.offset as u64 + entries * 8 + 4)?;
            let mut cursor = Cursor::new(verified(&bytes, at)?, at);
            cursor.magic("FHIB")?;
            self.check_head(&mut cursor, first)?;
            let table = (0..entries).map(|_| cursor.u64()).collect::<Result<_>>()?;
            self.tables.truncate(depth);
            self.tables.push((at, table));
        }
        let table = self.tables.get(depth).map(|(_, table)| &table[..]).unwrap_or_default();
        Ok(table.get(entry as usize).copied().unwrap_or(NOWHERE))
    }

    fn check_head(&self, cursor: &mut Cursor<'_>, first: u64) -> Result<()> {
        let at = cursor.at();
        cursor.version(0, "a fractal heap's block")?;
        let heap = cursor.u64()?;
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

    fn read_block<S: ByteSource + ?Sized>(
        &self,
        reader: &Reader<'_, S>,
        first: u64,
        at: u64,
        size: u64,
    ) -> Result<Vec<u8>> {
        let mut bytes = reader.get(at, size)?.into_owned();
        let mut cursor = Cursor::new(&bytes, at);
        cursor.magic("FHDB")?;
        self.check_head(&mut cursor, first)?;
        if self.summed {
            let place = (cursor.at() - at) as usize;
            let stored = cursor.u32()?;
            if let Some(sum) = bytes.get_mut(place..place + 4) {
                sum.fill(0);
            }
            let computed = lookup3(&bytes);
            if stored != computed {
                return damaged(
                    at,
                    format!("the checksum {stored:08x}"),
                    format!("{computed:08x}, as of the block"),
                );
            }
        }
        debug_assert!(self.bits > 0);
        Ok(bytes)
    }

    /// Announces that the blocks of these offsets will be read. The offsets must ascend.
    pub(super) fn expect<S: ByteSource + ?Sized>(
        &mut self,
        reader: &Reader<'_, S>,
        offsets: impl Iterator<Item = u64>,
    ) -> Result<()> {
        let (mut places, mut end, mut largest) = (Vec::new(), 0, 0);
        for offset in offsets {
            if offset >= end {
                let (first, at, size) = self.locate(reader, offset)?;
                (end, largest) = (first.saturating_add(size), size.max(largest));
                places.push(at);
            }
        }
        reader.expect(&places, largest)
    }
}
