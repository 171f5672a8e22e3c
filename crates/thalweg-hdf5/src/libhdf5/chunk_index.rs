//! The offsets of a dataset's chunks, which libhdf5 finds through the dataset's index.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{c_int, c_uint, c_void};

use hdf5_metno_sys::h5d::{
    H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, H5D_CHUNK_IDX_BTREE, H5D_chunk_index_t, H5Dchunk_iter,
    H5Dget_chunk_index_type, H5Dget_create_plist, H5Dget_space,
};
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_chunk_opts, H5Pget_nfilters};
use hdf5_metno_sys::h5s::H5Sget_simple_extent_dims;

use super::array::MOST_RANK;
use super::dataset::DatasetError;
use super::handle::{Id, LibraryRefusal, status};
use super::object::Node;
use crate::metadata::NOWHERE;
use crate::types::Chunk;

/// An index of chunks for one dimension that grows (`H5D_CHUNK_IDX_EARRAY`).
const EXTENSIBLE_ARRAY: H5D_chunk_index_t = 4;

/// A walk through the index of a dataset's chunks.
struct ChunkWalk<'a> {
    shape: &'a [u64],
    chunk: &'a [u64],
    reordered: Option<ReorderedChunks>,
    /// The mask of the filters that chunks at the edge skip.
    edge_mask: u32,
    /// Whether the index is a version 1 B-tree. It stores coordinates without a checksum, so damage
    /// shows only in the coordinates. Its chunks come in C order.
    is_plain_tree: bool,
    chunks: Vec<Chunk>,
    /// The first defect: what was found, and what was expected.
    defect: Option<(String, String)>,
}

impl ChunkWalk<'_> {
    /// Takes the next chunk of the index, whose first element is `first`.
    fn take(&mut self, first: &[u64], mask: u32, offset: u64, size: u64) {
        let placed = self.reordered.as_ref().map(|reordered| reordered.place(first, self.chunk));
        let first = placed.as_deref().unwrap_or(first);
        if offset == NOWHERE {
            return;
        }
        if first.iter().zip(self.shape).any(|(at, len)| at >= len) {
            // The other indexes are those of files that are read while they are written. Their
            // chunks are written before the dataset grows.
            if self.is_plain_tree {
                self.fail(first, format!("chunks inside the shape {:?}", self.shape));
            }
            return;
        }
        let (mut number, mut mask) = (0u64, mask);
        for ((&at, &len), &chunk) in first.iter().zip(self.shape).zip(self.chunk) {
            if !at.is_multiple_of(chunk) {
                self.fail(first, format!("multiples of the chunk's shape {:?}", self.chunk));
            }
            mask |= if len - at < chunk { self.edge_mask } else { 0 };
            number = number.wrapping_mul(len.div_ceil(chunk)).wrapping_add(at / chunk);
        }
        if self.is_plain_tree && self.chunks.last().is_some_and(|last| last.first >= number) {
            self.fail(first, "chunks in C order, each once".into());
        }
        self.chunks.push(Chunk { first: number, offset, size, mask });
    }

    fn fail(&mut self, first: &[u64], expected: String) {
        self.defect.get_or_insert_with(|| (format!("a chunk at the element {first:?}"), expected));
    }

    /// The chunks by their place in the grid.
    fn finish(mut self) -> Result<Vec<Chunk>, DatasetError> {
        self.chunks.sort_unstable_by_key(|chunk| chunk.first);
        let is_twice = |pair: &[Chunk]| matches!(pair, [one, two] if one.first == two.first);
        if self.defect.is_none() && self.chunks.windows(2).any(is_twice) {
            let expected = format!("chunks of {:?} elements", self.chunk);
            self.defect = Some(("chunks that overlap".into(), expected));
        }
        match self.defect {
            Some((found, expected)) => Err(DatasetError::Malformed(0, found, expected)),
            None => Ok(self.chunks),
        }
    }
}

/// Passes a chunk to the [`ChunkWalk`] that `out` points to.
unsafe extern "C" fn visit(
    first: *const u64,
    mask: c_uint,
    offset: u64,
    size: u64,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the caller of the iteration passes a walk; a chunk has a coordinate for each
    // dimension of its dataset.
    unsafe {
        let walk = &mut *out.cast::<ChunkWalk<'_>>();
        walk.take(std::slice::from_raw_parts(first, walk.shape.len()), mask, offset, size);
    }
    0
}

impl Node {
    /// The chunks that are stored, by their place in the grid. The lock is held.
    pub(super) fn grid(&self, shape: &[u64], chunk: &[u64]) -> Result<Vec<Chunk>, DatasetError> {
        if shape.contains(&0) {
            return Ok(Vec::new());
        }
        let mut kind = 0;
        // SAFETY: under the lock, an open dataset.
        let creation = unsafe {
            status(H5Dget_chunk_index_type(self.id.raw(), &raw mut kind))?;
            Id::new(H5Dget_create_plist(self.id.raw()))?
        };
        let mut walk = ChunkWalk {
            shape,
            chunk,
            reordered: self.reordered(kind, chunk)?,
            edge_mask: edge_mask(&creation)?,
            is_plain_tree: kind == H5D_CHUNK_IDX_BTREE,
            chunks: Vec::new(),
            defect: None,
        };
        // SAFETY: under the lock; the walk outlives the call.
        status(unsafe {
            H5Dchunk_iter(self.id.raw(), H5P_DEFAULT, Some(visit), (&raw mut walk).cast())
        })?;
        walk.finish()
    }

    /// How to correct the places of chunks that the library reports, if they are wrong. The lock is
    /// held.
    fn reordered(
        &self,
        kind: H5D_chunk_index_t,
        chunk: &[u64],
    ) -> Result<Option<ReorderedChunks>, DatasetError> {
        let (mut shape, mut most) = ([0; MOST_RANK], [0; MOST_RANK]);
        // SAFETY: under the lock, an open dataset of `chunk.len()` dimensions, for which there is
        // room.
        unsafe {
            let space = Id::new(H5Dget_space(self.id.raw()))?;
            status(H5Sget_simple_extent_dims(space.raw(), shape.as_mut_ptr(), most.as_mut_ptr()))?;
        }
        let most = &most[..chunk.len()];
        let grows =
            most.iter().position(|&most| most == u64::MAX).filter(|_| kind == EXTENSIBLE_ARRAY);
        let cells =
            || most.iter().zip(chunk).map(|(most, chunk)| most.div_ceil(*chunk).max(1)).collect();
        Ok(grows.filter(|&at| at > 0).map(|grows| ReorderedChunks { grows, cells: cells() }))
    }
}

/// The mask of the filters that chunks at the edge skip. Their own masks do not say so. The lock is
/// held; `creation` is the creation property list of a dataset in chunks.
pub(super) fn edge_mask(creation: &Id) -> Result<u32, LibraryRefusal> {
    let mut options = 0;
    // SAFETY: under the lock, an open list.
    let filters = unsafe {
        status(H5Pget_chunk_opts(creation.raw(), &raw mut options))?;
        status(H5Pget_nfilters(creation.raw()))?.cast_unsigned()
    };
    let all = 1u32.checked_shl(filters).map_or(u32::MAX, |bit| bit - 1);
    Ok(if options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS == 0 { 0 } else { all })
}

/// Corrects the places of chunks in an extensible array. The array numbers its chunks as if the
/// dimension that grows were the first. `H5Dchunk_iter` (up to 2.2 at least) turns a number into a
/// place as if the dimensions were in the dataset's own order, so only the number can be used.
struct ReorderedChunks {
    /// The dimension that grows.
    grows: usize,
    /// The most chunks in each dimension.
    cells: Vec<u64>,
}

impl ReorderedChunks {
    /// The first element of a chunk whose first element is `reported` according to the library.
    fn place(&self, reported: &[u64], chunk: &[u64]) -> Vec<u64> {
        let number = (reported.iter().zip(chunk).zip(&self.cells).skip(self.grows))
            .fold(0u64, |number, ((at, chunk), cells)| {
                number.wrapping_mul(*cells).wrapping_add(at / chunk)
            });
        let mut place = vec![0; reported.len()];
        let mut rest = number;
        for dimension in (0..reported.len()).rev().filter(|&dimension| dimension != self.grows) {
            place[dimension] = rest % self.cells[dimension] * chunk[dimension];
            rest /= self.cells[dimension];
        }
        place[self.grows] = rest.saturating_mul(chunk[self.grows]);
        place
    }
}

#[cfg(test)]
mod tests;
