//! Datasets of one dimension: their type, where their elements lie, and which filters were applied.

use super::attribute::{AttributeKind, Type, dimensions};
use super::btree::version1;
use super::checksum::verified;
use super::cursor::{Cursor, until_nul};
use super::header::{
    DATASPACE, DATATYPE, EXTERNAL_FILES, FILL, LAYOUT, OLD_FILL, Object, PIPELINE,
};
use super::{ByteSource, NOWHERE, Reader, Refused, Result, damaged, foreign};
use crate::filter::{Filter, Pipeline};
use crate::types::{Chunk, SampleDataset, Storage, in_order};

/// Bytes of a sample.
const SAMPLE: u64 = 2;

/// Bytes of a key of a tree of chunks of one dimension: size, mask, and two offsets, one more than
/// there are dimensions.
const KEY: usize = 4 + 4 + 2 * 8;

/// How chunks are found.
enum ChunkIndexType {
    Tree(u64),
    /// One chunk; its size and mask if filters were applied.
    Single(u64, Option<(u64, u32)>),
    /// Chunks one after the other.
    Implicit(u64),
    FixedArray(u64),
}

impl Object {
    /// A dataset of 16-bit samples, and where they lie. Every range that it names is inside the
    /// file.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn samples<S: ByteSource + ?Sized>(&self, reader: &Reader<'_, S>) -> Result<SampleDataset> {
        let (Some(kind), Some(space), Some(layout)) =
            (self.find(DATATYPE), self.find(DATASPACE), self.find(LAYOUT))
        else {
            return damaged(
                0,
                if self.is_group() { "a group" } else { "an object of another kind" },
                "a dataset",
            );
        };
        let kind = Type::parse(&mut kind?)?;
        if (kind
            != Type { kind: AttributeKind::Integer { signed: true, big_endian: false }, size: 2 })
            || self.find(EXTERNAL_FILES).is_some()
        {
            return foreign("samples other than little-endian 16-bit integers of this file");
        }
        let Some(&[len]) = dimensions(&mut space?)?.as_deref() else {
            return foreign("a signal of other than one dimension");
        };
        let pipeline = self
            .find(PIPELINE)
            .map_or_else(|| Ok(Pipeline::default()), |message| pipeline(message?))?;
        let mut layout = layout?;
        let storage = match (layout.u8()?, layout.u8()?) {
            (3..=5, 0) => Storage::Inline(compact(&mut layout, len)?),
            (3..=5, 1) => {
                let offset = layout.u64()?;
                let size = layout.u64()?;
                if len.checked_mul(SAMPLE) != Some(size) {
                    return foreign("a signal that does not fill its room");
                }
                Storage::Contiguous((offset != NOWHERE).then_some(offset))
            }
            (3, 2) => {
                rank(&mut layout)?;
                let tree = layout.u64()?;
                let chunk = u64::from(layout.u32()?);
                let element = u64::from(layout.u32()?);
                chunked(reader, len, (chunk, element), &pipeline, &ChunkIndexType::Tree(tree))?
            }
            (4..=5, 2) => {
                let flags = layout.u8()?;
                rank(&mut layout)?;
                let width = usize::from(layout.u8()?);
                let chunk = layout.uint(width)?;
                let element = layout.uint(width)?;
                let index = chunk_index(&mut layout, flags)?;
                // Chunks at the edge may be stored without filters.
                if flags & 1 != 0 && !pipeline.0.is_empty() {
                    return foreign("edges that went through no filter");
                }
                chunked(reader, len, (chunk, element), &pipeline, &index)?
            }
            (version, class) => {
                return foreign(format!("version {version} of a layout of class {class}"));
            }
        };
        let fill = if SampleDataset::stored(len, &storage) < len { self.fill()? } else { 0 };
        let dataset = SampleDataset { len, fill, storage, pipeline };
        dataset.check_inside(reader.size()).map_err(Refused::Damaged)?;
        Ok(dataset)
    }

    /// The value of samples that are not stored.
    fn fill(&self) -> Result<i16> {
        let value = if let Some(message) = self.find(FILL) {
            let mut message = message?;
            match message.u8()? {
                1..=2 => {
                    message.skip(2)?;
                    if message.u8()? == 0 {
                        return foreign("an undefined fill value");
                    }
                    message.u32().map(|size| (size, message))?
                }
                3 => match message.u8()? & 0x30 {
                    0x20 => message.u32().map(|size| (size, message))?,
                    0 => (0, message),
                    _ => return foreign("an undefined fill value"),
                },
                version => return foreign(format!("version {version} of a fill value")),
            }
        } else if let Some(message) = self.find(OLD_FILL) {
            let mut message = message?;
            message.u32().map(|size| (size, message))?
        } else {
            return Ok(0);
        };
        match value {
            (0, _) => Ok(0),
            (2, mut message) => message.u16().map(u16::cast_signed),
            (size, _) => foreign(format!("a fill value of {size} bytes")),
        }
    }
}

/// The samples of a compact dataset, which are in its layout message.
fn compact(layout: &mut Cursor<'_>, len: u64) -> Result<Vec<i16>> {
    let size = usize::from(layout.u16()?);
    let at = layout.at();
    let bytes = layout.take(size)?;
    let samples = usize::try_from(len).ok().and_then(|len| bytes.get(..len.checked_mul(2)?));
    let Some(samples) = samples else {
        return damaged(at, format!("{size} bytes"), format!("{len} samples"));
    };
    let sample = |pair: &[u8]| i16::from_le_bytes([pair[0], pair[1]]);
    Ok(samples.chunks_exact(2).map(sample).collect())
}

/// The index of chunks in a layout message of version 4 or 5.
fn chunk_index(layout: &mut Cursor<'_>, flags: u8) -> Result<ChunkIndexType> {
    Ok(match layout.u8()? {
        1 => {
            let filtered = if flags & 2 == 0 { None } else { Some((layout.u64()?, layout.u32()?)) };
            ChunkIndexType::Single(layout.u64()?, filtered)
        }
        2 => ChunkIndexType::Implicit(layout.u64()?),
        3 => {
            layout.skip(1)?;
            ChunkIndexType::FixedArray(layout.u64()?)
        }
        kind => return foreign(format!("an index of chunks of type {kind}")),
    })
}

/// Checks the number of dimensions of chunks: one, and one more for the bytes of an element.
fn rank(layout: &mut Cursor<'_>) -> Result<()> {
    match layout.u8()? {
        2 => Ok(()),
        _ => foreign("chunks of other than one dimension"),
    }
}

fn chunked<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    len: u64,
    (chunk, element): (u64, u64),
    pipeline: &Pipeline,
    index: &ChunkIndexType,
) -> Result<Storage> {
    let Some(bytes) = chunk.checked_mul(SAMPLE).filter(|&bytes| bytes > 0 && element == SAMPLE)
    else {
        return foreign(format!("chunks of {chunk} elements of {element} bytes"));
    };
    let mut chunks = Vec::new();
    let filtered = !pipeline.0.is_empty();
    if len > 0 {
        match *index {
            ChunkIndexType::Tree(NOWHERE)
            | ChunkIndexType::Single(NOWHERE, _)
            | ChunkIndexType::Implicit(NOWHERE)
            | ChunkIndexType::FixedArray(NOWHERE) => {}
            ChunkIndexType::Tree(root) => {
                for (key, offset) in version1(reader, root, 1, KEY, 24 + (KEY as u64 + 8))? {
                    let mut key = Cursor::new(&key, root);
                    let (size, mask, first) = (key.u32()?, key.u32()?, key.u64()?);
                    // The tree has no checksum: damage shows only in the coordinates.
                    if first >= len || chunks.last().is_some_and(|last: &Chunk| last.first >= first)
                    {
                        let expected = format!("chunks in order, inside the {len} samples");
                        return damaged(root, format!("a chunk at the sample {first}"), expected);
                    }
                    chunks.push(Chunk { first, offset, size: u64::from(size), mask });
                }
            }
            ChunkIndexType::Single(offset, stored) => {
                if filtered != stored.is_some() {
                    return foreign("a chunk whose filters are unclear");
                }
                let (size, mask) = stored.unwrap_or((bytes, 0));
                chunks.push(Chunk { first: 0, offset, size, mask });
            }
            ChunkIndexType::Implicit(start) => {
                if filtered || len.div_ceil(chunk) > MOST_PLAIN {
                    return foreign("chunks without an index");
                }
                for i in 0..len.div_ceil(chunk) {
                    let offset = i.checked_mul(bytes).and_then(|after| after.checked_add(start));
                    let Some(offset) = offset else {
                        return damaged(start, "chunks beyond all addresses", "chunks");
                    };
                    chunks.push(Chunk { first: i * chunk, offset, size: bytes, mask: 0 });
                }
            }
            ChunkIndexType::FixedArray(at) => {
                fixed_array(reader, at, chunk, filtered.then_some(()), bytes, &mut chunks)?;
            }
        }
    }
    in_order(&mut chunks, len, chunk).map_err(Refused::Damaged)?;
    Ok(Storage::Chunked(chunk, chunks))
}

/// The most chunks whose addresses are computed, not read.
const MOST_PLAIN: u64 = 1 << 16;

fn fixed_array<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    at: u64,
    chunk: u64,
    filtered: Option<()>,
    bytes: u64,
    chunks: &mut Vec<Chunk>,
) -> Result<()> {
    let header = reader.get(at, 28)?;
    let mut cursor = Cursor::new(verified(&header, at)?, at);
    cursor.magic("FAHD")?;
    cursor.version(0, "a fixed array")?;
    cursor.version(u8::from(filtered.is_some()), "a fixed array's entries")?;
    let (entry, page, count, block) = (cursor.u8()?, cursor.u8()?, cursor.u64()?, cursor.u64()?);
    if block == NOWHERE {
        return Ok(());
    }
    if count > 1u64.checked_shl(page.into()).unwrap_or(u64::MAX) {
        return foreign("a fixed array in pages");
    }
    let width = usize::from(entry).saturating_sub(if filtered.is_some() { 12 } else { 0 });
    let size =
        count.checked_mul(u64::from(entry)).and_then(|size| size.checked_add(4 + 1 + 1 + 8 + 4));
    let Some(size) = size else { return damaged(at, format!("{count} entries"), "fewer") };
    let data = reader.get(block, size)?;
    let mut cursor = Cursor::new(verified(&data, block)?, block);
    cursor.magic("FADB")?;
    cursor.version(0, "a fixed array's block")?;
    cursor.version(u8::from(filtered.is_some()), "a fixed array's entries")?;
    cursor.skip(8)?;
    for i in 0..count {
        let offset = cursor.u64()?;
        let (size, mask) = match filtered {
            Some(()) => (cursor.uint(width)?, cursor.u32()?),
            None => (bytes, 0),
        };
        let Some(first) = i.checked_mul(chunk) else { break };
        chunks.push(Chunk { first, offset, size, mask });
    }
    Ok(())
}

/// The filters of a dataset.
fn pipeline(mut cursor: Cursor<'_>) -> Result<Pipeline> {
    let version = cursor.u8()?;
    let count = cursor.u8()?;
    match version {
        1 => cursor.skip(6)?,
        2 => {}
        version => return foreign(format!("version {version} of a list of filters")),
    }
    let mut filters = Vec::new();
    for _ in 0..count {
        let number = cursor.u16()?;
        let name = if version == 1 || number >= 256 { usize::from(cursor.u16()?) } else { 0 };
        cursor.skip(2)?;
        let values = usize::from(cursor.u16()?);
        let name = if version == 1 { name.next_multiple_of(8) } else { name };
        let name = String::from_utf8_lossy(until_nul(cursor.take(name)?)).into_owned();
        let values: Vec<u32> = (0..values).map(|_| cursor.u32()).collect::<Result<_>>()?;
        if version == 1 && values.len() % 2 == 1 {
            cursor.skip(4)?;
        }
        match Filter::new(i32::from(number), &name, &values) {
            Ok(filter) => filters.push(filter),
            Err(what) => return foreign(what),
        }
    }
    Ok(Pipeline(filters))
}
