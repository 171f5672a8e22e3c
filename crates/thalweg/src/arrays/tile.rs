//! An array as a grid of tiles: its chunks, or pieces of its one run of bytes.

use std::ops::Range;

use crate::format::hdf5::{Array, Chunk, Place};

/// Where the tiles of an array are, in the file and in the array.
#[derive(Debug)]
pub(super) struct Tiling {
    /// Elements in each dimension. Dimensions that no chunk divides are one with the one before.
    shape: Vec<u64>,
    /// Elements of a tile in each.
    tile: Vec<u64>,
    /// Bytes of an element.
    size: u64,
    /// The tiles that are stored, by number: C order of the grid.
    stored: Vec<Chunk>,
    /// Whether a tile at the edge is stored whole, as chunks are.
    is_padded: bool,
}

impl Tiling {
    /// The tiles of an array that has elements; one run of bytes is cut into pieces of about `piece` bytes.
    pub(super) fn new(array: &Array, piece: u64) -> Self {
        let size = array.dtype.size() as u64;
        match &array.place {
            Place::Chunked(chunk, chunks) => {
                let (mut shape, mut tile) = (Vec::new(), Vec::new());
                for (&length, &part) in array.shape.iter().zip(chunk) {
                    match (shape.last_mut(), tile.last_mut()) {
                        (Some(outer), Some(outer_part)) if part == length => {
                            *outer *= length;
                            *outer_part *= part;
                        }
                        _ => {
                            shape.push(length);
                            tile.push(part);
                        }
                    }
                }
                Self { shape, tile, size, stored: chunks.clone(), is_padded: true }
            }
            Place::Contiguous(at) => {
                let (elements, tile) = (array.len(), (piece / size).max(1));
                let count = if at.is_some() { elements.div_ceil(tile) } else { 0 };
                let stored = (0..count).map(|first| Chunk {
                    first,
                    offset: at.unwrap_or(0) + first * tile * size,
                    size: tile.min(elements - first * tile) * size,
                    mask: 0,
                });
                Self { shape: vec![elements], tile: vec![tile], size, stored: stored.collect(), is_padded: false }
            }
            Place::Inline(_) | Place::Library(_) => {
                Self { shape: vec![0], tile: vec![1], size, stored: Vec::new(), is_padded: false }
            }
        }
    }

    /// Tiles in each dimension but the first, multiplied.
    fn tiles_a_band(&self) -> u64 {
        self.shape.iter().zip(&self.tile).skip(1).map(|(length, tile)| length.div_ceil(*tile)).product()
    }

    /// Bytes of an element of the first dimension.
    fn row_bytes(&self) -> u64 {
        self.shape.iter().skip(1).product::<u64>() * self.size
    }

    /// Ranges of tiles whose elements follow each other in the array, of about `bytes` decoded bytes: whole bands of tiles
    /// that lie side by side.
    pub(super) fn windows(&self, bytes: u64) -> impl Iterator<Item = Range<u64>> + Clone + use<> {
        let (rows, tile) = (self.shape[0], self.tile[0]);
        let bands = rows.div_ceil(tile);
        let step = (bytes / (self.row_bytes() * tile).max(1)).max(1);
        let band = self.tiles_a_band();
        (0..bands.div_ceil(step)).map(move |i| i * step * band..(i + 1).saturating_mul(step).min(bands) * band)
    }

    /// The rows of such a range.
    fn rows(&self, tiles: &Range<u64>) -> Range<u64> {
        let band = self.tiles_a_band();
        let row = |tile: u64| (tile / band).saturating_mul(self.tile[0]).min(self.shape[0]);
        row(tiles.start)..row(tiles.end)
    }

    /// Decoded bytes of such a range.
    pub(super) fn bytes(&self, tiles: &Range<u64>) -> u64 {
        let rows = self.rows(tiles);
        (rows.end - rows.start) * self.row_bytes()
    }

    /// Which stored tiles are in a range of tiles, by their places in the list.
    pub(super) fn stored_in(&self, tiles: &Range<u64>) -> Range<usize> {
        let place = |number: u64| self.stored.partition_point(|chunk| chunk.first < number);
        place(tiles.start)..place(tiles.end)
    }

    /// Where the stored tiles of such a range lie.
    pub(super) fn ranges(&self, places: Range<usize>) -> impl Iterator<Item = Range<u64>> {
        self.stored[places].iter().map(|chunk| chunk.offset..chunk.offset + chunk.size)
    }

    /// The number and the filter mask of a stored tile.
    pub(super) fn stored(&self, place: u64) -> (u64, u32) {
        let chunk = self.stored[place as usize];
        (chunk.first, chunk.mask)
    }

    /// Decoded bytes of a tile.
    pub(super) fn tile_bytes(&self, number: u64) -> usize {
        let elements: u64 = if self.is_padded {
            self.tile.iter().product()
        } else {
            let (start, extent) = self.area(number);
            start.iter().zip(&extent).map(|(_, extent)| extent).product()
        };
        (elements * self.size) as usize
    }

    /// The first element of a tile in each dimension, and how many it has inside the array.
    fn area(&self, mut number: u64) -> (Vec<u64>, Vec<u64>) {
        let mut start = vec![0; self.shape.len()];
        for (dimension, start) in start.iter_mut().enumerate().rev() {
            let count = self.shape[dimension].div_ceil(self.tile[dimension]);
            *start = number % count * self.tile[dimension];
            number /= count;
        }
        let extent = start
            .iter()
            .zip(&self.shape)
            .zip(&self.tile)
            .map(|((&at, &length), &tile)| tile.min(length - at))
            .collect();
        (start, extent)
    }
}

/// Consecutive elements of an array, while they are put together.
#[derive(Debug, Default)]
pub(super) struct Region {
    bytes: Vec<u8>,
    first_row: u64,
}

impl Region {
    /// Makes room for the elements of a range of tiles; where no tile is stored stands `fill`, or zeros where that is empty.
    pub(super) fn start(&mut self, tiling: &Tiling, tiles: &Range<u64>, fill: &[u8]) {
        self.first_row = tiling.rows(tiles).start;
        self.bytes.resize(tiling.bytes(tiles) as usize, 0);
        if (tiling.stored_in(tiles).len() as u64) < tiles.end - tiles.start {
            if fill.iter().all(|&byte| byte == 0) {
                self.bytes.fill(0);
            } else {
                self.bytes.chunks_exact_mut(fill.len()).for_each(|element| element.copy_from_slice(fill));
            }
        }
    }

    /// Puts a decoded tile where it belongs.
    pub(super) fn place(&mut self, tiling: &Tiling, number: u64, tile: &[u8]) {
        let (start, extent) = tiling.area(number);
        let width = if tiling.is_padded { &tiling.tile } else { &extent };
        let last = extent.len() - 1;
        let run = (extent[last] * tiling.size) as usize;
        // The place of the run in the tile, all dimensions but the last.
        let mut at = vec![0; last];
        loop {
            let (mut from, mut to) = (0, 0);
            for dimension in 0..=last {
                let here = at.get(dimension).copied().unwrap_or(0);
                let row = if dimension == 0 { start[0] - self.first_row } else { start[dimension] };
                from = from * width[dimension] + here;
                to = to * tiling.shape[dimension] + row + here;
            }
            let (from, to) = ((from * tiling.size) as usize, (to * tiling.size) as usize);
            self.bytes[to..to + run].copy_from_slice(&tile[from..from + run]);
            let Some(next) = (0..last).rev().find(|&dimension| at[dimension] + 1 < extent[dimension]) else { return };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Region, Tiling};
    use crate::format::hdf5::{Array, Chunk, Dtype, Pipeline, Place};
    use proptest::prelude::*;

    const FILL: u16 = 0xabcd;

    /// An array of numbers in chunks, of which those are stored that `is_stored` says.
    fn array(shape: &[u64], chunk: &[u64], is_stored: impl Fn(u64) -> bool) -> Array {
        let count: u64 = shape.iter().zip(chunk).map(|(length, part)| length.div_ceil(*part)).product();
        let chunks = (0..count).filter(|&first| is_stored(first)).map(|first| Chunk {
            first,
            offset: first * 1000,
            size: 1 + first,
            mask: 0,
        });
        Array {
            shape: shape.to_vec(),
            dtype: Dtype::number('u', 2, false),
            fill: FILL.to_le_bytes().to_vec(),
            place: Place::Chunked(chunk.to_vec(), chunks.collect()),
            pipeline: Pipeline::default(),
        }
    }

    /// The place in C order of an element, or of a chunk.
    fn number(at: &[u64], lengths: &[u64]) -> u64 {
        at.iter().zip(lengths).fold(0, |number, (at, length)| number * length + at)
    }

    /// Places in C order.
    fn places(shape: &[u64]) -> Vec<Vec<u64>> {
        shape.iter().fold(vec![Vec::new()], |all, &length| {
            all.iter().flat_map(|at| (0..length).map(move |i| [&at[..], &[i]].concat())).collect()
        })
    }

    proptest! {
        /// Each element stands where it belongs, whatever the chunks, the windows, and what is stored.
        #[test]
        fn tiles_make_the_array(
            dimensions in prop::collection::vec((1..8_u64, 1..8_u64), 1..4),
            window in 1..2000_u64,
            missing in any::<u64>(),
        ) {
            let (shape, chunk): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
            let is_stored = |first: u64| missing >> (first % 64) & 1 == 0;
            let array = array(&shape, &chunk, is_stored);
            let grid: Vec<u64> = shape.iter().zip(&chunk).map(|(length, part)| length.div_ceil(*part)).collect();
            // Chunks as they are stored: whole, with rubbish beyond the edge.
            let tile = |first: u64| -> Vec<u8> {
                let origin = places(&grid).swap_remove(first as usize);
                let value = |inside: Vec<u64>| {
                    let at: Vec<u64> = (0..shape.len()).map(|d| origin[d] * chunk[d] + inside[d]).collect();
                    if at.iter().zip(&shape).all(|(at, length)| at < length) { number(&at, &shape) as u16 } else { 0xffff }
                };
                places(&chunk).into_iter().map(value).flat_map(u16::to_le_bytes).collect()
            };
            let expected: Vec<u8> = places(&shape)
                .iter()
                .map(|at| {
                    let chunk: Vec<u64> = at.iter().zip(&chunk).map(|(at, part)| at / part).collect();
                    if is_stored(number(&chunk, &grid)) { number(at, &shape) as u16 } else { FILL }
                })
                .flat_map(u16::to_le_bytes)
                .collect();

            let tiling = Tiling::new(&array, 64);
            let mut region = Region::default();
            let mut made = Vec::new();
            for tiles in tiling.windows(window) {
                region.start(&tiling, &tiles, &array.fill);
                for place in tiling.stored_in(&tiles).rev() {
                    let (number, _) = tiling.stored(place as u64);
                    let bytes = tile(number);
                    prop_assert_eq!(bytes.len(), tiling.tile_bytes(number));
                    region.place(&tiling, number, &bytes);
                }
                prop_assert_eq!(region.bytes().len() as u64, tiling.bytes(&tiles));
                made.extend_from_slice(region.bytes());
            }
            prop_assert!(made == expected, "shape {:?}, chunks {:?}", shape, chunk);
        }

        /// A run of bytes is cut into pieces that follow each other.
        #[test]
        fn a_run_is_cut_into_pieces(elements in 1..5000_u64, piece in 1..3000_u64, window in 1..9000_u64) {
            let contiguous = Array { place: Place::Contiguous(Some(77)), ..array(&[elements], &[1], |_| false) };
            let tiling = Tiling::new(&contiguous, piece);
            let mut end = 77;
            for tiles in tiling.windows(window) {
                for (place, range) in tiling.stored_in(&tiles).zip(tiling.ranges(tiling.stored_in(&tiles))) {
                    prop_assert_eq!(range.start, end);
                    prop_assert_eq!(tiling.tile_bytes(tiling.stored(place as u64).0) as u64, range.end - range.start);
                    end = range.end;
                }
            }
            prop_assert_eq!(end, 77 + elements * 2);
        }
    }
}
