//! The offsets of a dataset's chunks, which libhdf5 finds through the dataset's index.
#![allow(unsafe_code)] // Bindings. Each block states its contract.

use std::ffi::{c_int, c_uint, c_void};

use hdf5_metno_sys::h5d::{
    H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, H5D_chunk_index_t, H5Dchunk_iter,
    H5Dget_chunk_index_type, H5Dget_create_plist, H5Dget_space,
};
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_chunk_opts, H5Pget_nfilters};
use hdf5_metno_sys::h5s::H5Sget_simple_extent_dims;

use super::array::MOST_RANK;
use super::dataset::DatasetError;
use super::handle::{Id, LibraryRefusal, status};
use super::object::Node;
use crate::types::{Chunk, NOWHERE};

/// An index of chunks for one dimension that grows (`H5D_CHUNK_IDX_EARRAY`).
const EXTENSIBLE_ARRAY: H5D_chunk_index_t = 4;

impl Node {
    /// The chunks that are stored, by their place in the grid. The lock is held.
    pub(super) fn grid(&self, shape: &[u64], chunk: &[u64]) -> Result<Vec<Chunk>, DatasetError> {
        struct Seen<'a> {
            shape: &'a [u64],
            chunk: &'a [u64],
            reordered: Option<ReorderedChunks>,
            /// The mask of the filters that chunks at the edge skip.
            edge_mask: u32,
            chunks: Vec<Chunk>,
            is_misaligned: bool,
        }
        unsafe extern "C" fn visit(
            first: *const u64,
            mask: c_uint,
            offset: u64,
            size: u64,
            out: *mut c_void,
        ) -> c_int {
            // SAFETY: `out` is the structure below; a chunk has a coordinate for each dimension of
            // its dataset.
            let seen = unsafe { &mut *out.cast::<Seen<'_>>() };
            // SAFETY: as above.
            let mut first = unsafe { std::slice::from_raw_parts(first, seen.shape.len()) };
            let placed =
                seen.reordered.as_ref().map(|reordered| reordered.place(first, seen.chunk));
            if let Some(placed) = &placed {
                first = placed;
            }
            if offset == NOWHERE || first.iter().zip(seen.shape).any(|(at, len)| at >= len) {
                return 0;
            }
            let mut number = 0u64;
            let mut mask = mask;
            for ((&at, &len), &chunk) in first.iter().zip(seen.shape).zip(seen.chunk) {
                seen.is_misaligned |= !at.is_multiple_of(chunk);
                mask |= if len - at < chunk { seen.edge_mask } else { 0 };
                number = number.wrapping_mul(len.div_ceil(chunk)).wrapping_add(at / chunk);
            }
            seen.chunks.push(Chunk { first: number, offset, size, mask });
            0
        }
        if shape.contains(&0) {
            return Ok(Vec::new());
        }
        if let Some(chunks) = self.saved(shape, chunk) {
            return Ok(chunks);
        }
        // SAFETY: under the lock, an open dataset.
        let creation = Id::new(unsafe { H5Dget_create_plist(self.id.raw()) })?;
        let reordered = self.reordered(chunk)?;
        let edge_mask = edge_mask(&creation)?;
        let mut seen =
            Seen { shape, chunk, reordered, edge_mask, chunks: Vec::new(), is_misaligned: false };
        // SAFETY: under the lock; the structure outlives the call.
        status(unsafe {
            H5Dchunk_iter(self.id.raw(), H5P_DEFAULT, Some(visit), (&raw mut seen).cast())
        })?;
        let Seen { mut chunks, is_misaligned, .. } = seen;
        chunks.sort_unstable_by_key(|chunk| chunk.first);
        if is_misaligned
            || chunks.windows(2).any(|pair| matches!(pair, [one, two] if one.first == two.first))
        {
            return Err(DatasetError::Malformed(
                0,
                "chunks that overlap".into(),
                format!("chunks of {chunk:?} elements"),
            ));
        }
        Ok(chunks)
    }

    /// How to correct the places of chunks that the library reports, if they are wrong. The lock is
    /// held.
    fn reordered(&self, chunk: &[u64]) -> Result<Option<ReorderedChunks>, DatasetError> {
        let (mut kind, mut shape, mut most) = (0, [0; MOST_RANK], [0; MOST_RANK]);
        // SAFETY: under the lock, an open dataset of `chunk.len()` dimensions, for which there is
        // room.
        unsafe {
            status(H5Dget_chunk_index_type(self.id.raw(), &raw mut kind))?;
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
