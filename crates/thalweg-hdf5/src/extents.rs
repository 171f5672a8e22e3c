//! An index of a file, saved beside it: its metadata (names, types, shapes, attributes), and the
//! offsets of its chunks. With it, a reader need not follow links from group to group, nor search
//! the B-trees and arrays in which HDF5 keeps the offsets.
//!
//! ```text
//! "TWHDF5IX"  u64 version
//! u64 size of the file  i64 when it was modified (ns)  u64 checksum of its first 4096 bytes
//! u64 datasets  u64 bytes of all below  u64 checksum of the above
//! for each dataset:
//!   object address, minus the one before
//!   number of dimensions; for each: its length, the chunk's length
//!   number of chunks, bytes of their entries; for each chunk:
//!     number in the grid, minus the next expected
//!     offset, minus the end of the chunk before
//!     size, minus the size of the chunk before
//!     filter mask
//! number of ranges of metadata; for each: its offset, minus the end of the one before; its length
//! the bytes of these ranges, as a zstd frame
//! u64 checksum of the datasets and the metadata
//! ```
//!
//! Little-endian; the datasets and the ranges are LEB128 numbers. The two differences that may be
//! negative are zigzag numbers.
//! Each chunk takes at least four bytes, so the size of an index bounds the memory that parsing it
//! takes.

use std::ops::Range;

use thalweg_codec::splitmix::{checksum, word};
use thalweg_codec::zigzag::{unzigzag_64, zigzag_64};
use thalweg_codec::zstd::{ZstdCompressor, ZstdDecompressor};
use thalweg_io::Fault;

use crate::types::Chunk;

/// The first bytes of an index.
pub const MAGIC: &[u8; 8] = b"TWHDF5IX";
const VERSION: u64 = 2;
const HEAD: usize = 64;
const SUM: usize = 8;

/// The index holds a checksum of this many bytes at the start of the file. They include the
/// superblock.
pub const START: u64 = 4096;

/// The most dimensions: HDF5's 32, and those of array types.
const MOST_DIMENSIONS: usize = 64;
/// The least bytes of a chunk in the index.
const LEAST: usize = 4;

/// The most bytes of metadata in an index.
pub(crate) const MOST_METADATA: u64 = 64 << 20;

/// Bytes of a file that hold metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SavedMetadata {
    /// Where they are in the file, in order and apart from each other, and where in `bytes`.
    ranges: Vec<(Range<u64>, usize)>,
    bytes: Vec<u8>,
}

impl SavedMetadata {
    /// Adds bytes that are at this offset, behind those before.
    pub(crate) fn push(&mut self, offset: u64, bytes: &[u8]) {
        self.ranges.push((offset..offset + bytes.len() as u64, self.bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes of a range of the file; `None` if some of them are not saved.
    pub(crate) fn get(&self, range: &Range<u64>) -> Option<&[u8]> {
        let after = self.ranges.partition_point(|(saved, _)| saved.start <= range.start);
        let (saved, at) = self.ranges.get(after.checked_sub(1)?)?;
        if range.end > saved.end {
            return None;
        }
        let start = at + (range.start - saved.start) as usize;
        self.bytes.get(start..start + (range.end - range.start) as usize)
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        push(out, self.ranges.len() as u64);
        let mut end = 0;
        for (range, _) in &self.ranges {
            push(out, range.start - end);
            push(out, range.end - range.start);
            end = range.end;
        }
        let mut coded = Vec::new();
        ZstdCompressor::new(3)?.compress(&self.bytes, &mut coded)?;
        out.extend(coded);
        Ok(())
    }

    /// Parses the metadata of a file of `size` bytes.
    fn parse(mut numbers: Numbers<'_>, size: u64) -> Result<Self, Fault> {
        let start = numbers.at;
        let bad = |found: String| Fault::new(start, found, "ranges inside the file");
        let mut saved = Self::default();
        let mut end = 0u64;
        let mut sum = 0u64;
        for _ in 0..numbers.next()? {
            let gap = numbers.next()?;
            let len = numbers.next()?;
            let first = end.checked_add(gap);
            let range = first.and_then(|first| Some(first..first.checked_add(len)?));
            let Some(range) = range.filter(|range| range.end <= size && len > 0) else {
                return Err(bad(format!("{len} bytes {gap} bytes behind byte {end}")));
            };
            end = range.end;
            saved.ranges.push((range, sum as usize));
            sum += len;
            if sum > MOST_METADATA {
                return Err(bad(format!("{sum} bytes of metadata and more")));
            }
        }
        let coded = numbers.bytes.get(numbers.at..).unwrap_or_default();
        ZstdDecompressor::new()
            .decompress(coded, &mut saved.bytes, sum as usize)
            .map_err(|fault| fault.shifted(numbers.at))?;
        if saved.bytes.len() as u64 != sum {
            return Err(bad(format!("{} bytes of metadata", saved.bytes.len())));
        }
        Ok(saved)
    }
}

/// The state of the file that an index describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedFile {
    /// Size in bytes.
    pub size: u64,
    /// Time of its last modification, in nanoseconds since 1970.
    pub modified: i64,
    /// The result of [`checksum_of_start`].
    pub start: u64,
}

/// The checksum of a file's first [`START`] bytes, or of the whole file if it is shorter.
pub fn checksum_of_start(bytes: &[u8]) -> u64 {
    checksum(bytes)
}

/// The stored chunks of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetChunks {
    /// Address of its object header in the file.
    pub address: u64,
    /// For each dimension, its length and the length of a chunk.
    pub dimensions: Vec<(u64, u64)>,
    /// The stored chunks, sorted by their number in the grid.
    pub chunks: Vec<Chunk>,
}

/// An index that is checked but not unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extents {
    bytes: Vec<u8>,
    state: IndexedFile,
    chunks: u64,
    /// For each dataset, sorted by address: the number of its chunks and their location in `bytes`.
    datasets: Vec<IndexEntry>,
    metadata: SavedMetadata,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct IndexEntry {
    address: u64,
    dimensions: Vec<(u64, u64)>,
    count: usize,
    at: Range<usize>,
}

/// The number of chunks that cover a dataset; `None` if it exceeds 64 bits or a chunk is empty.
fn cells(dimensions: &[(u64, u64)]) -> Option<u64> {
    dimensions.iter().try_fold(1u64, |cells, &(length, chunk)| {
        if chunk == 0 { None } else { cells.checked_mul(length.div_ceil(chunk)) }
    })
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads consecutive LEB128 numbers.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    fn next(&mut self) -> Result<u64, Fault> {
        let start = self.at;
        let mut number = 0u64;
        let mut shift = 0u32;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            if shift >= 64 || bits << shift >> shift != bits {
                return Err(Fault::new(start, "a number of more than 64 bits", "a smaller one"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
        Err(Fault::new(start, "the end", "a number"))
    }

    /// Reads the next chunk. `before` is the previous chunk, or [`NONE`] for the first.
    fn chunk(&mut self, before: &Chunk) -> Result<Chunk, Fault> {
        let at = self.at;
        let far = || Fault::new(at, "a chunk beyond 64 bits", "one inside the file");
        let first = before.first.wrapping_add(1).checked_add(self.next()?).ok_or_else(far)?;
        let offset =
            before.offset.wrapping_add(before.size).wrapping_add_signed(unzigzag_64(self.next()?));
        let size = before.size.wrapping_add_signed(unzigzag_64(self.next()?));
        let mask = u32::try_from(self.next()?).map_err(|_| far())?;
        Ok(Chunk { first, offset, size, mask })
    }
}

/// The chunk that the differences of the first chunk refer to.
const NONE: Chunk = Chunk { first: u64::MAX, offset: 0, size: 0, mask: 0 };

impl Extents {
    /// Makes the index of a file in this state. Datasets with too many dimensions are left out, and
    /// so are datasets that repeat an address.
    ///
    /// # Errors
    /// A compressor that cannot be made.
    pub fn encode(
        state: IndexedFile,
        mut grids: Vec<DatasetChunks>,
        metadata: &SavedMetadata,
    ) -> Result<Vec<u8>, Fault> {
        grids.sort_by_key(|grid| grid.address);
        grids.dedup_by_key(|grid| grid.address);
        grids.retain(|grid| {
            grid.dimensions.len() <= MOST_DIMENSIONS && cells(&grid.dimensions).is_some()
        });
        let mut body = Vec::new();
        let mut chunks = Vec::new();
        let mut address = 0;
        for grid in &grids {
            push(&mut body, grid.address - address);
            address = grid.address;
            push(&mut body, grid.dimensions.len() as u64);
            for &(length, chunk) in &grid.dimensions {
                push(&mut body, length);
                push(&mut body, chunk);
            }
            chunks.clear();
            let mut before = NONE;
            for chunk in &grid.chunks {
                push(&mut chunks, chunk.first.wrapping_sub(before.first.wrapping_add(1)));
                push(
                    &mut chunks,
                    zigzag_64(
                        chunk
                            .offset
                            .wrapping_sub(before.offset.wrapping_add(before.size))
                            .cast_signed(),
                    ),
                );
                push(&mut chunks, zigzag_64(chunk.size.wrapping_sub(before.size).cast_signed()));
                push(&mut chunks, u64::from(chunk.mask));
                before = *chunk;
            }
            push(&mut body, grid.chunks.len() as u64);
            push(&mut body, chunks.len() as u64);
            body.extend(&chunks);
        }
        metadata.encode(&mut body)?;
        let mut bytes = MAGIC.to_vec();
        let IndexedFile { size, modified, start } = state;
        for field in
            [VERSION, size, modified.cast_unsigned(), start, grids.len() as u64, body.len() as u64]
        {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        let sum = checksum(&body);
        bytes.extend(body);
        bytes.extend(sum.to_le_bytes());
        Ok(bytes)
    }

    /// Parses and checks an index. Every chunk lies inside a file of the size that the index
    /// states, and has its own number in the grid of its dataset.
    ///
    /// # Errors
    /// Bytes that are not an index, have another version or are damaged.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Fault> {
        let Some((head, rest)) =
            bytes.split_at_checked(HEAD).filter(|(head, _)| head.starts_with(MAGIC))
        else {
            let found =
                bytes.get(..MAGIC.len().min(bytes.len())).unwrap_or_default().escape_ascii();
            return Err(Fault::new(0, format!("\"{found}\""), "thalweg's index of an HDF5 file"));
        };
        let (fields, sum) = head.split_at(HEAD - SUM);
        let field = |i: usize| word(&fields[i * 8..]);
        if word(sum) != checksum(fields) {
            return Err(Fault::new(HEAD - SUM, "a damaged head", "one with its checksum"));
        }
        if field(1) != VERSION {
            return Err(Fault::new(
                8,
                format!("version {}", field(1)),
                format!("version {VERSION}"),
            ));
        }
        let state =
            IndexedFile { size: field(2), modified: field(3).cast_signed(), start: field(4) };
        let Some((body, sum)) =
            rest.split_last_chunk::<SUM>().filter(|(body, _)| body.len() as u64 == field(6))
        else {
            return Err(Fault::new(
                48,
                format!("{} bytes of datasets", field(6)),
                format!("{} bytes in all", bytes.len()),
            ));
        };
        if u64::from_le_bytes(*sum) != checksum(body) {
            return Err(Fault::new(HEAD, "damaged datasets", "some with their checksum"));
        }
        let (datasets, chunks, metadata) =
            entries(body, field(5), state.size).map_err(|fault| fault.shifted(HEAD))?;
        Ok(Self { bytes, state, chunks, datasets, metadata })
    }

    /// Takes the metadata of the file out of the index.
    pub fn take_metadata(&mut self) -> SavedMetadata {
        std::mem::take(&mut self.metadata)
    }

    /// The state of the file that this index describes.
    pub fn state(&self) -> IndexedFile {
        self.state
    }

    /// The number of chunks in the index.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The chunks of the dataset with the object header at `address`. `None` if the index has no
    /// dataset with this address, shape and chunk shape. Dimensions of an array type may be left
    /// out.
    pub fn get(&self, address: u64, shape: &[u64], chunk: &[u64]) -> Option<Vec<Chunk>> {
        let entry = &self.datasets
            [self.datasets.binary_search_by_key(&address, |entry| entry.address).ok()?];
        let (own, inner) = entry.dimensions.split_at_checked(shape.len())?;
        let same = shape.len() == chunk.len()
            && own.iter().zip(shape.iter().zip(chunk)).all(|(a, b)| *a == (*b.0, *b.1));
        if !same || inner.iter().any(|(length, chunk)| length != chunk) {
            return None;
        }
        let mut numbers = Numbers { bytes: &self.bytes[..entry.at.end], at: entry.at.start };
        let mut chunks = Vec::with_capacity(entry.count);
        let mut before = NONE;
        for _ in 0..entry.count {
            before = numbers.chunk(&before).ok()?;
            chunks.push(before);
        }
        Some(chunks)
    }

    /// The chunks of all datasets, unpacked.
    pub fn grids(&self) -> impl Iterator<Item = DatasetChunks> {
        self.datasets.iter().filter_map(|entry| {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = entry.dimensions.iter().copied().unzip();
            let chunks = self.get(entry.address, &shape, &chunk)?;
            Some(DatasetChunks {
                address: entry.address,
                dimensions: entry.dimensions.clone(),
                chunks,
            })
        })
    }
}

/// Parses the datasets of a file of `size` bytes, and its metadata. Also returns the number of
/// chunks.
fn entries(
    body: &[u8],
    count: u64,
    size: u64,
) -> Result<(Vec<IndexEntry>, u64, SavedMetadata), Fault> {
    let mut numbers = Numbers { bytes: body, at: 0 };
    let mut datasets = Vec::<IndexEntry>::new();
    let mut chunks = 0;
    let mut address = 0u64;
    for _ in 0..count {
        let at = numbers.at;
        let bad = |found: String, expected: &'static str| Fault::new(at, found, expected);
        let step = numbers.next()?;
        address = address
            .checked_add(step)
            .filter(|&address| address < size && (step > 0 || datasets.is_empty()))
            .ok_or_else(|| {
                bad(format!("{step} bytes to the next dataset"), "a dataset further on in the file")
            })?;
        let rank = numbers.next()?;
        if rank > MOST_DIMENSIONS as u64 {
            return Err(bad(format!("{rank} dimensions"), "at most 64"));
        }
        let dimensions: Vec<_> = (0..rank)
            .map(|_| Ok((numbers.next()?, numbers.next()?)))
            .collect::<Result<_, Fault>>()?;
        let Some(cells) = cells(&dimensions) else {
            return Err(bad(
                format!("{dimensions:?}"),
                "lengths, and chunks of one element or more",
            ));
        };
        let count = numbers.next()?;
        let len = numbers.next()?;
        let end = usize::try_from(len).ok().and_then(|len| numbers.at.checked_add(len));
        let Some(end) = end.filter(|&end| end <= body.len() && count <= len / LEAST as u64) else {
            return Err(bad(
                format!("{count} chunks in {len} bytes"),
                "as many as the bytes can hold",
            ));
        };
        let start = numbers.at;
        let mut inside = Numbers { bytes: &body[..end], at: start };
        let mut before = NONE;
        for _ in 0..count {
            let chunk = inside.chunk(&before)?;
            let is_inside = chunk.offset.checked_add(chunk.size).is_some_and(|end| end <= size);
            if chunk.first >= cells || chunk.size == 0 || !is_inside {
                return Err(bad(
                    format!("{chunk:?} of {cells} in {size} bytes"),
                    "chunks of the dataset inside the file",
                ));
            }
            before = chunk;
        }
        if inside.at != end {
            return Err(bad(format!("{} bytes behind the chunks", end - inside.at), "none"));
        }
        numbers.at = end;
        chunks += count;
        datasets.push(IndexEntry {
            address,
            dimensions,
            count: count as usize,
            at: HEAD + start..HEAD + end,
        });
    }
    Ok((datasets, chunks, SavedMetadata::parse(numbers, size)?))
}

#[cfg(test)]
mod tests;
