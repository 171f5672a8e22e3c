//! Datasets: type, shape, layout, fill value and filters (sections IV.A.2.e to IV.A.2.l).

use super::chunk_index::{ChunkGrid, ChunkIndex};
use super::cursor::{Cursor, until_nul};
use super::dataspace::Dataspace;
use super::datatype::{Bits, ByteOrder, Class, Datatype, TypeMessage};
use super::header::{
    DATASPACE, DATATYPE, EXTERNAL_FILES, FILL, LAYOUT, OLD_FILL, Object, PIPELINE,
};
use super::heap::{GlobalId, Local};
use super::{NOWHERE, Reader, Refused, Result, damaged, foreign};
use crate::filter::{Filter, Pipeline};
use crate::types::{Chunk, SampleDataset, Storage};

/// The most filters of a dataset (`H5Z_MAX_NFILTERS`).
const MOST_FILTERS: u8 = 32;

/// What the header of a dataset says.
#[derive(Debug)]
pub struct DatasetHeader {
    /// The type of its elements.
    pub datatype: Datatype,
    /// The message of this type.
    pub type_message: TypeMessage,
    /// Its shape.
    pub space: Dataspace,
    /// Where its elements lie.
    pub(crate) layout: Layout,
    /// The value of elements that are not stored.
    pub fill: FillMessage,
    /// The filters of its chunks.
    pub filters: Vec<FilterMessage>,
    /// The pieces of other files that its elements are in.
    pub external: Vec<ExternalPiece>,
}

/// Where the elements of a dataset lie.
#[derive(Debug)]
pub(crate) enum Layout {
    /// In the header.
    Compact(Vec<u8>),
    /// In one run from this address on.
    Contiguous(u64),
    /// In chunks.
    Chunked(ChunkGrid),
    /// In other datasets. The mappings are this object of a global heap; it is [`NOWHERE`] if there
    /// are none.
    Virtual(GlobalId),
}

/// The value of elements that are not stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FillMessage {
    /// The value, as it would be stored, empty for zeros; `None` if it is undefined.
    pub value: Option<Vec<u8>>,
    /// When space is allocated: 1 at once, 2 at the first write, 3 for each chunk.
    pub allocation_time: Option<u8>,
    /// When the value is written: 0 on allocation, 1 never, 2 on allocation if a user set it.
    pub write_time: Option<u8>,
}

/// A filter of a pipeline, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterMessage {
    /// Its number.
    pub number: u16,
    /// Its name, if one is stored.
    pub name: String,
    /// Whether a chunk may be stored without it.
    pub is_optional: bool,
    /// Its client data.
    pub values: Vec<u32>,
}

/// A piece of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalPiece {
    /// The path of the file.
    pub file: Vec<u8>,
    /// Its first byte in that file.
    pub offset: u64,
    /// Its bytes; `u64::MAX` for a file that may grow.
    pub size: u64,
}

impl DatasetHeader {
    /// The value, as it would be stored, of elements that are not stored; empty for zeros.
    pub fn fill_value(&self) -> &[u8] {
        self.fill.value.as_deref().unwrap_or_default()
    }

    /// The pipeline.
    pub(crate) fn pipeline(&self) -> Pipeline {
        pipeline(&self.filters)
    }
}

/// The pipeline of these filters.
pub(super) fn pipeline(filters: &[FilterMessage]) -> Pipeline {
    let filter = |filter: &FilterMessage| {
        Filter::new(i32::from(filter.number), &filter.name, &filter.values)
            .unwrap_or_else(Filter::Unknown)
    };
    Pipeline(filters.iter().map(filter).collect())
}

impl Object {
    /// The header of a dataset; `None` if the object is not a dataset.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn dataset(&self, reader: &Reader<'_>) -> Result<Option<DatasetHeader>> {
        if !self.has(LAYOUT) {
            return Ok(None);
        }
        let (Some(kind), Some(space)) =
            (self.get(reader, DATATYPE).await?, self.get(reader, DATASPACE).await?)
        else {
            return damaged(self.address, "a dataset without type or shape", "both");
        };
        let datatype = Datatype::parse(&mut kind.cursor())?;
        let type_message = kind.type_message();
        let space = Dataspace::parse(&mut space.cursor())?;
        let Some(layout) = self.get(reader, LAYOUT).await? else {
            return damaged(self.address, "a dataset without a layout", "it");
        };
        let layout = layout_of(layout.cursor(), &datatype, &space)?;
        let filters = match self.get(reader, PIPELINE).await? {
            Some(body) => filters(body.cursor())?,
            None => Vec::new(),
        };
        let fill = if let Some(body) = self.get(reader, FILL).await? {
            fill(body.cursor())?
        } else if let Some(body) = self.get(reader, OLD_FILL).await? {
            let mut cursor = body.cursor();
            let size = cursor.u32()? as usize;
            let value = Some(cursor.take(size)?.to_vec()).filter(|value| !value.is_empty());
            FillMessage { value, ..FillMessage::default() }
        } else {
            FillMessage::default()
        };
        if let Some(value) = &fill.value
            && !value.is_empty()
            && value.len() != datatype.size
        {
            let found = format!("a fill value of {} bytes", value.len());
            return damaged(self.address, found, format!("{}", datatype.size));
        }
        let external = match self.find(EXTERNAL_FILES) {
            Some(message) => external(reader, message?).await?,
            None => Vec::new(),
        };
        Ok(Some(DatasetHeader { datatype, type_message, space, layout, fill, filters, external }))
    }

    /// A dataset of 16-bit samples, and where they lie. Every range that it names is inside the
    /// file.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn samples(&self, reader: &Reader<'_>) -> Result<SampleDataset> {
        let Some(header) = self.dataset(reader).await? else {
            let found = if self.is_group() { "a group" } else { "an object of another kind" };
            return damaged(self.address, found, "a dataset");
        };
        let bits = Bits { offset: 0, precision: 16 };
        let order = ByteOrder::Little;
        if header.datatype
            != (Datatype { size: 2, class: Class::Integer { order, signed: true, bits } })
            || !header.external.is_empty()
        {
            return foreign("samples other than little-endian 16-bit integers of this file");
        }
        let Dataspace::Simple { shape, .. } = &header.space else {
            return foreign("a signal without samples");
        };
        let &[len] = &shape[..] else {
            return foreign("a signal of other than one dimension");
        };
        let pipeline = header.pipeline();
        if let Some(filter) = pipeline.unknown() {
            return foreign(filter.to_owned());
        }
        let base = reader.superblock().base;
        let storage = match &header.layout {
            Layout::Compact(bytes) => {
                let samples =
                    usize::try_from(len).ok().and_then(|len| bytes.get(..len.checked_mul(2)?));
                let Some(samples) = samples else {
                    let found = format!("{} bytes", bytes.len());
                    return damaged(self.address, found, format!("{len} samples"));
                };
                let sample = |pair: &[u8]| i16::from_le_bytes([pair[0], pair[1]]);
                Storage::Inline(samples.chunks_exact(2).map(sample).collect())
            }
            Layout::Contiguous(at) => {
                Storage::Contiguous((*at != NOWHERE).then(|| at.saturating_add(base)))
            }
            Layout::Chunked(grid) => {
                let chunk = grid.chunk[0];
                let chunks = grid.chunks(reader, &header.space, pipeline.0.len()).await?;
                let placed = |stored: Chunk| Chunk { first: stored.first * chunk, ..stored };
                Storage::Chunked(chunk, chunks.into_iter().map(placed).collect())
            }
            Layout::Virtual(_) => return foreign("a virtual dataset"),
        };
        let fill = match *header.fill_value() {
            [low, high] => i16::from_le_bytes([low, high]),
            _ => 0,
        };
        if header.fill.value.is_none() && SampleDataset::stored(len, &storage) < len {
            return foreign("an undefined fill value");
        }
        let dataset = SampleDataset { len, fill, storage, pipeline };
        dataset.check_inside(reader.source.size()).map_err(Refused::Damaged)?;
        Ok(dataset)
    }
}

/// The body of a layout message.
fn layout_of(mut layout: Cursor<'_>, datatype: &Datatype, space: &Dataspace) -> Result<Layout> {
    let at = layout.at();
    let rank = match space {
        Dataspace::Null => 0,
        Dataspace::Simple { shape, .. } => shape.len(),
    };
    let element = datatype.size as u64;
    match (layout.u8()?, layout.u8()?) {
        (1..=2, dimensions) => {
            let class = layout.u8()?;
            layout.skip(5)?;
            let address = if class == 0 { NOWHERE } else { layout.address()? };
            let lengths = (0..dimensions).map(|_| layout.u32().map(u64::from));
            let lengths: Vec<u64> = lengths.collect::<Result<_>>()?;
            match class {
                0 => {
                    let size = layout.u32()? as usize;
                    Ok(Layout::Compact(layout.take(size)?.to_vec()))
                }
                1 => Ok(Layout::Contiguous(address)),
                2 => ChunkGrid::new(lengths, rank, element, at, ChunkIndex::Tree1(address))
                    .map(Layout::Chunked),
                class => damaged(at, format!("layout class {class}"), "0 to 2"),
            }
        }
        (3..=5, 0) => {
            let size = usize::from(layout.u16()?);
            Ok(Layout::Compact(layout.take(size)?.to_vec()))
        }
        (3..=5, 1) => {
            let address = layout.address()?;
            let size = layout.length()?;
            let wanted = space.count().and_then(|count| count.checked_mul(element));
            // Of a dataset in other files, the size is not set.
            if address != NOWHERE && wanted.is_none_or(|wanted| size < wanted) {
                let found = format!("{size} bytes");
                return damaged(at, found, format!("{space:?} of {element} bytes"));
            }
            Ok(Layout::Contiguous(address))
        }
        (3, 2) => {
            let dimensions = layout.u8()?;
            let address = layout.address()?;
            let lengths = (0..dimensions).map(|_| layout.u32().map(u64::from));
            let lengths: Vec<u64> = lengths.collect::<Result<_>>()?;
            ChunkGrid::new(lengths, rank, element, at, ChunkIndex::Tree1(address))
                .map(Layout::Chunked)
        }
        (4..=5, 2) => {
            let flags = layout.u8()?;
            let dimensions = layout.u8()?;
            let width = usize::from(layout.u8()?);
            let lengths = (0..dimensions).map(|_| layout.uint(width));
            let lengths: Vec<u64> = lengths.collect::<Result<_>>()?;
            let index = ChunkIndex::parse(&mut layout, flags)?;
            let grid = ChunkGrid::new(lengths, rank, element, at, index)?;
            Ok(Layout::Chunked(grid.with_plain_edges(flags & 1 != 0)))
        }
        (4..=5, 3) => Ok(Layout::Virtual((layout.address()?, layout.u32()?))),
        (version, class) => foreign(format!("version {version} of a layout of class {class}")),
    }
}

/// Parses the body of a fill value message.
fn fill(mut message: Cursor<'_>) -> Result<FillMessage> {
    let at = message.at();
    let (times, is_undefined, has_value) = match message.u8()? {
        1..=2 => {
            let times = (message.u8()?, message.u8()?);
            let is_undefined = message.u8()? == 0;
            (times, is_undefined, !is_undefined)
        }
        3 => {
            let flags = message.u8()?;
            let is_undefined = !matches!(flags & 0x30, 0 | 0x20);
            ((flags & 3, flags >> 2 & 3), is_undefined, flags & 0x30 == 0x20)
        }
        version => return damaged(at, format!("version {version} of a fill value"), "1 to 3"),
    };
    let value = if is_undefined {
        None
    } else if has_value {
        let size = message.u32()?;
        // A negative size stands for the default.
        let size = usize::try_from(size.cast_signed()).unwrap_or(0);
        Some(message.take(size)?.to_vec())
    } else {
        Some(Vec::new())
    };
    Ok(FillMessage { value, allocation_time: Some(times.0), write_time: Some(times.1) })
}

/// The filters of a dataset, or of a heap.
pub(super) fn filters(mut cursor: Cursor<'_>) -> Result<Vec<FilterMessage>> {
    let at = cursor.at();
    let version = cursor.u8()?;
    let count = cursor.u8()?;
    match version {
        1 => cursor.skip(6)?,
        2 => {}
        version => return damaged(at, format!("version {version} of a list of filters"), "1 or 2"),
    }
    if count > MOST_FILTERS {
        return damaged(at, format!("{count} filters"), format!("at most {MOST_FILTERS}"));
    }
    let mut filters = Vec::new();
    for _ in 0..count {
        let number = cursor.u16()?;
        let name = if version == 1 || number >= 256 { usize::from(cursor.u16()?) } else { 0 };
        let is_optional = cursor.u16()? & 1 != 0;
        let values = usize::from(cursor.u16()?);
        let name = if version == 1 { name.next_multiple_of(8) } else { name };
        let name = String::from_utf8_lossy(until_nul(cursor.take(name)?)).into_owned();
        let values: Vec<u32> = (0..values).map(|_| cursor.u32()).collect::<Result<_>>()?;
        if version == 1 && values.len() % 2 == 1 {
            cursor.skip(4)?;
        }
        filters.push(FilterMessage { number, name, is_optional, values });
    }
    Ok(filters)
}

/// The pieces of an external file list (section IV.A.2.h).
async fn external(reader: &Reader<'_>, mut message: Cursor<'_>) -> Result<Vec<ExternalPiece>> {
    message.version(1, "a list of external files")?;
    message.skip(3 + 2)?;
    let used = message.u16()?;
    let names = Local::read(reader, message.address()?).await?;
    let mut pieces = Vec::new();
    for _ in 0..used {
        let file = names.text(message.length()?)?.to_vec();
        let offset = message.length()?;
        let size = message.length()?;
        pieces.push(ExternalPiece { file, offset, size });
    }
    Ok(pieces)
}
