//! Where the chunks of a dataset lie: version 1 and 2 B-trees, fixed and extensible arrays, chunks
//! without an index, single chunks (sections III.A, III.C and VII of the specification).

use super::btree::{Tree1, version2};
use super::checksum::verified;
use super::cursor::Cursor;
use super::dataspace::Dataspace;
use super::{NOWHERE, Reader, Result, at_once, damaged, foreign};
use crate::types::Chunk;

/// The most chunks whose addresses are computed, not read.
const MOST_IMPLICIT: u64 = 1 << 24;

/// The chunks of a dataset.
#[derive(Debug)]
pub(crate) struct ChunkGrid {
    /// The shape of a chunk.
    pub(crate) chunk: Vec<u64>,
    /// Bytes of a chunk before filters.
    bytes: u64,
    index: ChunkIndex,
    /// Whether chunks that reach over the end of the dataset went through no filter.
    pub(crate) are_edges_plain: bool,
}

/// How the chunks are found.
#[derive(Debug)]
pub(super) enum ChunkIndex {
    /// A version 1 B-tree.
    Tree1(u64),
    /// One chunk; its size and mask if filters were applied.
    Single(u64, Option<(u64, u32)>),
    /// Chunks one after the other.
    Implicit(u64),
    /// A fixed array.
    Fixed(u64),
    /// An extensible array.
    Extensible(u64),
    /// A version 2 B-tree.
    Tree2(u64),
}

impl ChunkIndex {
    /// Parses the end of a layout message of version 4 or 5 with these flags.
    pub(super) fn parse(layout: &mut Cursor<'_>, flags: u8) -> Result<Self> {
        let at = layout.at();
        Ok(match layout.u8()? {
            1 => {
                let stored =
                    if flags & 2 == 0 { None } else { Some((layout.length()?, layout.u32()?)) };
                Self::Single(layout.address()?, stored)
            }
            2 => Self::Implicit(layout.address()?),
            3 => {
                layout.skip(1)?;
                Self::Fixed(layout.address()?)
            }
            4 => {
                layout.skip(5)?;
                Self::Extensible(layout.address()?)
            }
            5 => {
                layout.skip(6)?;
                Self::Tree2(layout.address()?)
            }
            kind => return damaged(at, format!("an index of chunks of type {kind}"), "1 to 5"),
        })
    }
}

/// A chunk as an index has it.
struct Entry<'a> {
    /// For each dimension, the number of the chunk along it.
    scaled: &'a [u64],
    at: u64,
    size: u64,
    mask: u32,
}

impl ChunkGrid {
    /// The grid of chunks of these lengths. The last length is the number of bytes of an element.
    pub(super) fn new(
        mut lengths: Vec<u64>,
        rank: usize,
        element: u64,
        at: u64,
        index: ChunkIndex,
    ) -> Result<Self> {
        let last = lengths.pop();
        if lengths.len() != rank || rank == 0 || last != Some(element) || lengths.contains(&0) {
            let found = format!("chunks of {lengths:?} elements of {} bytes", last.unwrap_or(0));
            return damaged(at, found, format!("{rank} lengths, elements of {element} bytes"));
        }
        let bytes = lengths.iter().try_fold(element, |bytes, &length| bytes.checked_mul(length));
        let Some(bytes) = bytes else {
            return damaged(at, format!("chunks of {lengths:?} elements"), "smaller chunks");
        };
        Ok(Self { chunk: lengths, bytes, index, are_edges_plain: false })
    }

    /// The same grid, whose chunks at the edge went through no filter if `are_plain`.
    pub(super) fn with_plain_edges(self, are_plain: bool) -> Self {
        Self { are_edges_plain: are_plain, ..self }
    }

    /// The chunks that are stored, by their place in the grid, with `first` as that place. Their
    /// offsets are those in the file. `filters` is the number of filters.
    pub(super) async fn chunks(
        &self,
        reader: &Reader<'_>,
        space: &Dataspace,
        filters: usize,
    ) -> Result<Vec<Chunk>> {
        let Dataspace::Simple { shape, most } = space else { return Ok(Vec::new()) };
        if shape.contains(&0) {
            return Ok(Vec::new());
        }
        let all = 1u32.checked_shl(filters as u32).map_or(u32::MAX, |bit| bit - 1);
        let mut gathered = Gathered {
            shape,
            chunk: &self.chunk,
            edge_mask: if self.are_edges_plain { all } else { 0 },
            is_tree1: false,
            base: reader.superblock().base,
            cells: cells(shape, &self.chunk),
            chunks: Vec::new(),
        };
        let filtered = filters > 0;
        if self.at() == NOWHERE {
            return Ok(Vec::new());
        }
        match self.index {
            ChunkIndex::Tree1(root) => {
                gathered.is_tree1 = true;
                self.tree1(reader, root, &mut gathered).await?;
            }
            ChunkIndex::Single(at, stored) => {
                if filtered && stored.is_none() && !self.are_edges_plain {
                    return foreign("a single chunk whose filters are unclear");
                }
                let (size, mask) = stored.unwrap_or((self.bytes, 0));
                gathered.take(at, Entry { scaled: &vec![0; shape.len()], at, size, mask })?;
            }
            ChunkIndex::Implicit(at) => {
                self.implicit(at, most, reader.size(), &mut gathered)?;
            }
            ChunkIndex::Fixed(at) => {
                let entries = fixed(reader, at, filtered).await?;
                self.array(at, entries, most, None, &mut gathered)?;
            }
            ChunkIndex::Extensible(at) => {
                let entries = extensible(reader, at, filtered).await?;
                // The array counts as if the dimension that grows were the first.
                let grows = most.iter().position(|&most| most == u64::MAX);
                self.array(at, entries, most, grows.or(Some(0)), &mut gathered)?;
            }
            ChunkIndex::Tree2(at) => self.tree2(reader, at, filtered, &mut gathered).await?,
        }
        gathered.finish(self.at())
    }

    /// The address of the index.
    fn at(&self) -> u64 {
        let (ChunkIndex::Tree1(at)
        | ChunkIndex::Single(at, _)
        | ChunkIndex::Implicit(at)
        | ChunkIndex::Fixed(at)
        | ChunkIndex::Extensible(at)
        | ChunkIndex::Tree2(at)) = self.index;
        at
    }

    async fn tree1(
        &self,
        reader: &Reader<'_>,
        root: u64,
        gathered: &mut Gathered<'_>,
    ) -> Result<()> {
        let key = 4 + 4 + 8 * (self.chunk.len() + 1);
        let tree = Tree1 { kind: 1, key, k: reader.superblock().chunk_k };
        let (size, entries) = tree.entries(reader, root).await?;
        gathered.chunks.reserve_exact(entries.len() / size);
        let mut scaled = vec![0; self.chunk.len()];
        for entry in entries.chunks_exact(size) {
            let mut entry = reader.cursor(entry, root);
            let size = u64::from(entry.u32()?);
            let mask = entry.u32()?;
            for (scaled, &chunk) in scaled.iter_mut().zip(&self.chunk) {
                let first = entry.u64()?;
                if !first.is_multiple_of(chunk) {
                    let found = format!("a chunk at the element {first} of a dimension");
                    return damaged(root, found, format!("a multiple of {chunk}"));
                }
                *scaled = first / chunk;
            }
            // The last offset counts the bytes of an element.
            entry.skip(8)?;
            let at = entry.address()?;
            gathered.take(root, Entry { scaled: &scaled, at, size, mask })?;
        }
        Ok(())
    }

    async fn tree2(
        &self,
        reader: &Reader<'_>,
        at: u64,
        filtered: bool,
        gathered: &mut Gathered<'_>,
    ) -> Result<()> {
        const PLAIN: u8 = 10;
        const FILTERED: u8 = 11;
        let rank = self.chunk.len();
        let plain = usize::from(reader.superblock().widths.address) + 8 * rank;
        let (kind, sizes) = if filtered {
            (FILTERED, plain + 4 + 1..=plain + 4 + 8)
        } else {
            (PLAIN, plain..=plain)
        };
        let (size, records) = version2(reader, at, kind, sizes).await?;
        let mut scaled = vec![0; rank];
        for record in records.chunks_exact(size) {
            let mut cursor = reader.cursor(record, at);
            let address = cursor.address()?;
            let (stored, mask) = if filtered {
                (cursor.uint(size - plain - 4)?, cursor.u32()?)
            } else {
                (self.bytes, 0)
            };
            for scaled in &mut scaled {
                *scaled = cursor.u64()?;
            }
            gathered.take(at, Entry { scaled: &scaled, at: address, size: stored, mask })?;
        }
        Ok(())
    }

    /// Chunks one after the other from `at` on.
    fn implicit(
        &self,
        at: u64,
        most: &[u64],
        size: u64,
        gathered: &mut Gathered<'_>,
    ) -> Result<()> {
        let places = Places::new(most, &self.chunk, None);
        let count = places.count().filter(|&count| count <= MOST_IMPLICIT);
        let Some(count) = count else {
            return foreign(format!("more than {MOST_IMPLICIT} chunks without an index"));
        };
        if count.checked_mul(self.bytes).is_none_or(|bytes| bytes > size) {
            let found = format!("{count} chunks of {} bytes, one after the other", self.bytes);
            return damaged(at, found, format!("chunks in the {size} bytes of the file"));
        }
        let mut scaled = vec![0; self.chunk.len()];
        for number in 0..count {
            let offset = number.checked_mul(self.bytes).and_then(|after| after.checked_add(at));
            let Some(offset) = offset else {
                return damaged(at, "chunks beyond all addresses", "chunks");
            };
            places.scale(number, &mut scaled);
            gathered.take(at, Entry { scaled: &scaled, at: offset, size: self.bytes, mask: 0 })?;
        }
        Ok(())
    }

    /// The entries of an array: for each number an address, a size and a mask.
    fn array(
        &self,
        at: u64,
        entries: Vec<(u64, ArrayEntry)>,
        most: &[u64],
        grows: Option<usize>,
        gathered: &mut Gathered<'_>,
    ) -> Result<()> {
        let places = Places::new(most, &self.chunk, grows);
        let mut scaled = vec![0; self.chunk.len()];
        for (number, entry) in entries {
            let (size, mask) = entry.stored.unwrap_or((self.bytes, 0));
            places.scale(number, &mut scaled);
            gathered.take(at, Entry { scaled: &scaled, at: entry.at, size, mask })?;
        }
        Ok(())
    }
}

/// How many chunks there are in each dimension: one at least.
fn cells(lengths: &[u64], chunk: &[u64]) -> Vec<u64> {
    lengths.iter().zip(chunk).map(|(length, chunk)| length.div_ceil(*chunk).max(1)).collect()
}

/// The places of the chunks that an array or no index numbers.
struct Places {
    /// The dimension that grows, if it is not to be counted in its own place.
    grows: Option<usize>,
    /// The most chunks in each dimension.
    cells: Vec<u64>,
}

impl Places {
    fn new(most: &[u64], chunk: &[u64], grows: Option<usize>) -> Self {
        Self { grows, cells: cells(most, chunk) }
    }

    /// The number of places; `None` if 64 bits do not hold it.
    fn count(&self) -> Option<u64> {
        self.cells.iter().try_fold(1u64, |count, &cells| count.checked_mul(cells))
    }

    /// Sets `scaled` to the place of the chunk with this number.
    fn scale(&self, number: u64, scaled: &mut [u64]) {
        let mut rest = number;
        for dimension in (0..scaled.len()).rev().filter(|&dimension| Some(dimension) != self.grows)
        {
            // The first dimension takes what is left.
            let is_last = dimension == 0 && self.grows.is_none();
            let cells = if is_last { u64::MAX } else { self.cells[dimension] };
            scaled[dimension] = rest % cells;
            rest /= cells;
        }
        if let Some(grows) = self.grows {
            scaled[grows] = rest;
        }
    }
}

/// Gathers the chunks of an index.
struct Gathered<'a> {
    shape: &'a [u64],
    chunk: &'a [u64],
    /// The mask of the filters that chunks at the edge skip.
    edge_mask: u32,
    /// Whether the index is a version 1 B-tree. It stores coordinates without a checksum, so damage
    /// shows only in the coordinates. Its chunks come in C order.
    is_tree1: bool,
    /// The offset of address 0 in the file.
    base: u64,
    /// How many chunks there are in each dimension.
    cells: Vec<u64>,
    chunks: Vec<Chunk>,
}

impl Gathered<'_> {
    /// Takes the next chunk of the index at `index`.
    fn take(&mut self, index: u64, entry: Entry<'_>) -> Result<()> {
        if entry.at == NOWHERE {
            return Ok(());
        }
        let fail = |expected: String| {
            damaged(index, format!("a chunk at the place {:?} of the grid", entry.scaled), expected)
        };
        let mut number = 0u64;
        let mut mask = entry.mask;
        let dimensions = self.shape.iter().zip(self.chunk).zip(&self.cells);
        for (&at, ((&len, &chunk), &cells)) in entry.scaled.iter().zip(dimensions) {
            let first = at.saturating_mul(chunk);
            if first >= len {
                // The other indexes are those of files that are read while they are written. Their
                // chunks are written before the dataset grows.
                if self.is_tree1 {
                    return fail(format!("chunks inside the shape {:?}", self.shape));
                }
                return Ok(());
            }
            mask |= if len - first < chunk { self.edge_mask } else { 0 };
            number = number.wrapping_mul(cells).wrapping_add(at);
        }
        if self.is_tree1 && self.chunks.last().is_some_and(|last| last.first >= number) {
            return fail("chunks in C order, each once".into());
        }
        let offset = entry.at.saturating_add(self.base);
        self.chunks.push(Chunk { first: number, offset, size: entry.size, mask });
        Ok(())
    }

    /// The chunks by their place in the grid.
    fn finish(mut self, index: u64) -> Result<Vec<Chunk>> {
        self.chunks.sort_unstable_by_key(|chunk| chunk.first);
        let is_twice = |pair: &[Chunk]| matches!(pair, [one, two] if one.first == two.first);
        if self.chunks.windows(2).any(is_twice) {
            let expected = format!("chunks of {:?} elements", self.chunk);
            return damaged(index, "chunks that overlap", expected);
        }
        Ok(self.chunks)
    }
}

/// An entry of a fixed or extensible array.
struct ArrayEntry {
    at: u64,
    /// The stored size and the mask, if filters were applied.
    stored: Option<(u64, u32)>,
}

/// How the entries of an array are laid out.
#[derive(Clone, Copy)]
struct EntryForm {
    filtered: bool,
    /// Bytes of an entry.
    bytes: u64,
    /// Bytes of a size.
    width: usize,
}

impl EntryForm {
    fn new(bytes: u8, filtered: bool, address: u8, at: u64) -> Result<Self> {
        let rest = if filtered { 4 } else { 0 };
        let width = usize::from(bytes).checked_sub(usize::from(address) + rest);
        match width {
            Some(width) if (1..=8).contains(&width) == filtered && (filtered || width == 0) => {
                Ok(Self { filtered, bytes: bytes.into(), width })
            }
            _ => damaged(at, format!("entries of {bytes} bytes"), "an address, a size and a mask"),
        }
    }

    /// Parses `count` entries, of which the first has the number `first`. Those without an address
    /// are left out.
    fn take(
        self,
        cursor: &mut Cursor<'_>,
        first: u64,
        count: u64,
        entries: &mut Vec<(u64, ArrayEntry)>,
    ) -> Result<()> {
        for number in 0..count {
            let at = cursor.address()?;
            let stored =
                if self.filtered { Some((cursor.uint(self.width)?, cursor.u32()?)) } else { None };
            if at != NOWHERE {
                entries.push((first + number, ArrayEntry { at, stored }));
            }
        }
        Ok(())
    }
}

/// The most entries of an array in a file of `size` bytes, as each takes a byte or more.
fn check_count(reader: &Reader<'_>, at: u64, count: u64, bytes: u64) -> Result<()> {
    if count.checked_mul(bytes).is_some_and(|bytes| bytes <= reader.size()) {
        return Ok(());
    }
    let expected = format!("as many as {} bytes hold", reader.size());
    damaged(at, format!("an array of {count} entries"), expected)
}

/// The entries of a fixed array (section VII.C).
async fn fixed(reader: &Reader<'_>, at: u64, filtered: bool) -> Result<Vec<(u64, ArrayEntry)>> {
    let widths = reader.superblock().widths;
    let address = u64::from(widths.address);
    let length = u64::from(widths.length);
    let header = reader.get(at, 8 + length + address + 4).await?;
    let mut cursor = reader.cursor(verified(&header, at)?, at);
    cursor.magic("FAHD")?;
    cursor.version(0, "a fixed array")?;
    cursor.version(u8::from(filtered), "a fixed array's entries")?;
    let form = EntryForm::new(cursor.u8()?, filtered, widths.address, at)?;
    let bits = cursor.u8()?;
    let count = cursor.length()?;
    let block = cursor.address()?;
    let mut entries = Vec::new();
    if block == NOWHERE {
        return Ok(entries);
    }
    check_count(reader, at, count, form.bytes)?;
    let page = 1u64.checked_shl(bits.into()).unwrap_or(u64::MAX);
    let prefix = 4 + 1 + 1 + address;
    if count <= page {
        let bytes = reader.get(block, prefix + count * form.bytes + 4).await?;
        let mut cursor = reader.cursor(verified(&bytes, block)?, block);
        check_head(&mut cursor, "FADB", filtered, at)?;
        form.take(&mut cursor, 0, count, &mut entries)?;
        return Ok(entries);
    }
    let pages = count.div_ceil(page);
    let bitmap = pages.div_ceil(8);
    let bytes = reader.get(block, prefix + bitmap + 4).await?;
    let mut cursor = reader.cursor(verified(&bytes, block)?, block);
    check_head(&mut cursor, "FADB", filtered, at)?;
    let written = cursor.take(bitmap as usize)?;
    let stride = page * form.bytes + 4;
    let mut places = Vec::new();
    for number in (0..pages).filter(|&number| is_set(written, number)) {
        let here = page.min(count - number * page);
        let at = block + prefix + bitmap + 4 + number * stride;
        places.push((at, number * page, here));
    }
    pages_of(reader, form, &places, &mut entries).await?;
    Ok(entries)
}

/// Whether a bit is set. The first bit is the highest of the first byte.
fn is_set(bitmap: &[u8], number: u64) -> bool {
    bitmap.get((number / 8) as usize).is_some_and(|byte| byte & (0x80 >> (number % 8)) != 0)
}

/// Parses pages: the address, the number of the first entry, and the number of entries of each.
async fn pages_of(
    reader: &Reader<'_>,
    form: EntryForm,
    pages: &[(u64, u64, u64)],
    entries: &mut Vec<(u64, ArrayEntry)>,
) -> Result<()> {
    let longest = pages.iter().map(|(.., count)| count * form.bytes + 4).max().unwrap_or(1);
    for pages in pages.chunks(at_once(longest)) {
        let places: Vec<(u64, u64)> =
            pages.iter().map(|&(at, _, count)| (at, count * form.bytes + 4)).collect();
        for (bytes, &(at, first, count)) in reader.get_all(&places).await?.iter().zip(pages) {
            let mut cursor = reader.cursor(verified(bytes, at)?, at);
            form.take(&mut cursor, first, count, entries)?;
        }
    }
    Ok(())
}

/// Checks the head of a block: its signature, version, kind of entries, and its array's address.
fn check_head(
    cursor: &mut Cursor<'_>,
    magic: &'static str,
    filtered: bool,
    array: u64,
) -> Result<()> {
    cursor.magic(magic)?;
    cursor.version(0, "an array's block")?;
    cursor.version(u8::from(filtered), "an array's entries")?;
    let at = cursor.at();
    match cursor.address()? {
        found if found == array => Ok(()),
        found => damaged(at, format!("a block of the array at {found}"), format!("{array}")),
    }
}

/// How the blocks of an extensible array grow (section VII.D).
struct Growth {
    form: EntryForm,
    /// Bits of the largest number of an entry.
    bits: u8,
    /// Entries in the index block.
    in_index: u64,
    /// The least entries of a data block.
    least: u64,
    /// The least data blocks of a secondary block.
    least_blocks: u64,
    /// The most entries of a page of a data block.
    page: u64,
    /// The address of the array.
    at: u64,
}

/// A data block.
struct DataBlock {
    at: u64,
    /// The number of its first entry.
    first: u64,
    /// The number of its entries.
    count: u64,
    /// The numbers of its pages that were written; none if it has no pages.
    written: Vec<u64>,
}

impl Growth {
    /// For a secondary block, the number of its data blocks, and of the entries of each.
    fn blocks(&self, secondary: u32) -> (u64, u64) {
        (1 << (secondary / 2), (1 << secondary.div_ceil(2)) * self.least)
    }

    /// Bytes of the number of an entry in a block.
    fn offset_width(&self) -> u64 {
        u64::from(self.bits).div_ceil(8)
    }
}

/// The entries of an extensible array.
async fn extensible(
    reader: &Reader<'_>,
    at: u64,
    filtered: bool,
) -> Result<Vec<(u64, ArrayEntry)>> {
    let widths = reader.superblock().widths;
    let address = u64::from(widths.address);
    let length = u64::from(widths.length);
    let header = reader.get(at, 12 + 6 * length + address + 4).await?;
    let mut cursor = reader.cursor(verified(&header, at)?, at);
    cursor.magic("EAHD")?;
    cursor.version(0, "an extensible array")?;
    cursor.version(u8::from(filtered), "an extensible array's entries")?;
    let form = EntryForm::new(cursor.u8()?, filtered, widths.address, at)?;
    let bits = cursor.u8()?;
    let in_index = u64::from(cursor.u8()?);
    let least = u64::from(cursor.u8()?);
    let least_blocks = u64::from(cursor.u8()?);
    let page = 1u64.checked_shl(cursor.u8()?.into()).unwrap_or(u64::MAX);
    cursor.skip(4 * widths.length as usize)?;
    let most_set = cursor.length()?;
    cursor.length()?;
    let index = cursor.address()?;
    let is_sound = bits <= 64
        && least.is_power_of_two()
        && least_blocks.is_power_of_two()
        && u32::from(bits) >= least.ilog2();
    if !is_sound {
        return damaged(at, "an extensible array of an impossible shape", "blocks that double");
    }
    let mut entries = Vec::new();
    if index == NOWHERE || most_set == 0 {
        return Ok(entries);
    }
    let growth = Growth { form, bits, in_index, least, least_blocks, page, at };
    let blocks = index_block(reader, &growth, index, most_set, &mut entries).await?;
    data_blocks(reader, &growth, &blocks, &mut entries).await?;
    Ok(entries)
}

/// Parses the index block, and returns the data blocks below it. Blocks whose entries are all
/// beyond `most_set` were never written.
async fn index_block(
    reader: &Reader<'_>,
    growth: &Growth,
    index: u64,
    most_set: u64,
    entries: &mut Vec<(u64, ArrayEntry)>,
) -> Result<Vec<DataBlock>> {
    let address = u64::from(reader.superblock().widths.address);
    let all = 1 + u32::from(growth.bits) - growth.least.ilog2();
    // The data blocks of the first secondary blocks are listed in the index block itself.
    let direct = (2 * growth.least_blocks.ilog2()).min(all);
    let listed = 2 * (growth.least_blocks - 1);
    let secondary = u64::from(all - direct);
    let len = 4
        + 1
        + 1
        + address
        + growth.in_index * growth.form.bytes
        + (listed + secondary) * address
        + 4;
    let bytes = reader.get(index, len).await?;
    let mut cursor = reader.cursor(verified(&bytes, index)?, index);
    check_head(&mut cursor, "EAIB", growth.form.filtered, growth.at)?;
    growth.form.take(&mut cursor, 0, growth.in_index, entries)?;
    let mut blocks = Vec::new();
    let mut next = growth.in_index;
    for number in 0..direct {
        let (count, in_each) = growth.blocks(number);
        for _ in 0..count {
            let at = cursor.address()?;
            if in_each > growth.page {
                let found = format!("{in_each} entries of a block that has no map of pages");
                return damaged(index, found, format!("at most {}", growth.page));
            }
            if at != NOWHERE {
                blocks.push(DataBlock { at, first: next, count: in_each, written: Vec::new() });
            }
            next = next.saturating_add(in_each);
        }
    }
    // The first entry of each secondary block, and its number.
    let mut below = Vec::new();
    for number in direct..all {
        let at = cursor.address()?;
        if at != NOWHERE && next < most_set {
            below.push((at, next, number));
        }
        let (count, in_each) = growth.blocks(number);
        next = next.saturating_add(count.saturating_mul(in_each));
    }
    let maps = |in_each: u64| {
        if in_each > growth.page { in_each.div_ceil(growth.page).div_ceil(8) } else { 0 }
    };
    let size = |&(_, _, number): &(u64, u64, u32)| {
        let (count, in_each) = growth.blocks(number);
        4 + 1 + 1 + address + growth.offset_width() + count * (maps(in_each) + address) + 4
    };
    let places: Vec<(u64, u64)> = below.iter().map(|block| (block.0, size(block))).collect();
    for (bytes, &(at, first, number)) in reader.get_all(&places).await?.iter().zip(&below) {
        let mut cursor = reader.cursor(verified(bytes, at)?, at);
        check_head(&mut cursor, "EASB", growth.form.filtered, growth.at)?;
        cursor.uint(growth.offset_width() as usize)?;
        let (count, in_each) = growth.blocks(number);
        // The bits of all data blocks come before their addresses, without gaps between blocks;
        // only the room for them is rounded up for each block (H5EA.c, `page_init_idx`).
        let map = cursor.take((maps(in_each) * count) as usize)?;
        let pages = if in_each > growth.page { in_each / growth.page } else { 0 };
        let mut next = first;
        for number in 0..count {
            let at = cursor.address()?;
            if at != NOWHERE {
                let is_written = |page: &u64| is_set(map, number * pages + page);
                let written = (0..pages).filter(is_written).collect();
                blocks.push(DataBlock { at, first: next, count: in_each, written });
            }
            next = next.saturating_add(in_each);
        }
    }
    Ok(blocks)
}

/// Parses data blocks, with or without pages.
async fn data_blocks(
    reader: &Reader<'_>,
    growth: &Growth,
    blocks: &[DataBlock],
    entries: &mut Vec<(u64, ArrayEntry)>,
) -> Result<()> {
    let address = u64::from(reader.superblock().widths.address);
    let prefix = 4 + 1 + 1 + address + growth.offset_width();
    let form = growth.form;
    let has_pages = |block: &DataBlock| block.count > growth.page;
    let plain: Vec<&DataBlock> = blocks.iter().filter(|block| !has_pages(block)).collect();
    let size = |block: &DataBlock| prefix + block.count * form.bytes + 4;
    let longest = plain.iter().map(|block| size(block)).max().unwrap_or(1);
    for blocks in plain.chunks(at_once(longest)) {
        let places: Vec<(u64, u64)> = blocks.iter().map(|block| (block.at, size(block))).collect();
        for (bytes, block) in reader.get_all(&places).await?.iter().zip(blocks) {
            let mut cursor = reader.cursor(verified(bytes, block.at)?, block.at);
            check_head(&mut cursor, "EADB", form.filtered, growth.at)?;
            cursor.uint(growth.offset_width() as usize)?;
            form.take(&mut cursor, block.first, block.count, entries)?;
        }
    }
    // The head of a block with pages has a checksum of its own. Pages that were not written are
    // zeros, whose checksums are wrong.
    let mut pages = Vec::new();
    for block in blocks.iter().filter(|block| has_pages(block)) {
        for number in &block.written {
            let before = prefix + 4 + number * (growth.page * form.bytes + 4);
            let at = block.at.saturating_add(before);
            pages.push((at, block.first + number * growth.page, growth.page));
        }
    }
    pages_of(reader, form, &pages, entries).await
}
