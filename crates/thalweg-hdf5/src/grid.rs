//! An array as a grid of tiles: chunks, or slices of a contiguous array.

/// The grid of tiles of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepackGrid {
    shape: Vec<u64>,
    tile: Vec<u64>,
    /// Bytes of an element.
    element: u64,
    /// Whether a tile at the edge is stored whole, as chunks are.
    is_padded: bool,
}

/// A box of elements in an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Area {
    /// Its first element in each dimension.
    pub(crate) start: Vec<u64>,
    /// Its length in each dimension.
    pub(crate) extent: Vec<u64>,
}

impl RepackGrid {
    /// The grid of the chunks of an array.
    pub(crate) fn chunks(shape: &[u64], chunk: &[u64], element: usize) -> Self {
        Self {
            shape: shape.to_vec(),
            tile: chunk.to_vec(),
            element: element as u64,
            is_padded: true,
        }
    }

    /// The grid of a contiguous array, cut into slices of at most `bytes`, or of one element.
    pub(crate) fn run(shape: &[u64], element: usize, bytes: u64) -> Self {
        let mut shape = shape.to_vec();
        if shape.is_empty() {
            shape.push(1);
        }
        let mut tile = shape.clone();
        let mut left = (bytes / element.max(1) as u64).max(1);
        for (part, &length) in tile.iter_mut().zip(&shape).rev() {
            *part = length.min(left).max(1);
            // If a dimension is cut, the dimensions before it have tiles of length 1.
            left = if *part < length { 1 } else { left / length.max(1) }.max(1);
        }
        Self { shape, tile, element: element as u64, is_padded: false }
    }

    /// The elements of a stored tile that are in the array, without padding.
    pub(crate) fn inside(&self, number: u64, tile: &[u8]) -> Vec<u8> {
        let mut inside = vec![0; self.bytes_inside(number) as usize];
        self.copy(number, tile, &Self { is_padded: false, ..self.clone() }, number, &mut inside);
        inside
    }

    /// The shape of a tile.
    pub(crate) fn tile(&self) -> &[u64] {
        &self.tile
    }

    fn counts(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.shape.iter().zip(&self.tile).map(|(length, tile)| length.div_ceil(*tile))
    }

    /// The number of tiles.
    pub(crate) fn count(&self) -> u64 {
        self.counts().fold(1, u64::saturating_mul)
    }

    /// The elements of a tile that are in the array.
    pub(crate) fn area(&self, mut number: u64) -> Area {
        let mut start = vec![0; self.shape.len()];
        for ((start, count), tile) in start.iter_mut().zip(self.counts()).zip(&self.tile).rev() {
            *start = number % count.max(1) * tile;
            number /= count.max(1);
        }
        let extent = start.iter().zip(&self.shape).zip(&self.tile);
        let extent =
            extent.map(|((&at, &length), &tile)| tile.min(length.saturating_sub(at))).collect();
        Area { start, extent }
    }

    /// The dimensions of a tile as stored, padding included.
    fn stored(&self, area: &Area) -> Vec<u64> {
        if self.is_padded { self.tile.clone() } else { area.extent.clone() }
    }

    /// Bytes of a tile as stored, without filters.
    pub(crate) fn bytes(&self, number: u64) -> u64 {
        self.stored(&self.area(number)).iter().product::<u64>() * self.element
    }

    /// Bytes from the start of a stored tile to the end of its last element in the array.
    pub(crate) fn needed_bytes(&self, number: u64) -> u64 {
        let area = self.area(number);
        let lengths = self.stored(&area);
        let last = |extent: &u64| extent.saturating_sub(1);
        let places = area.extent.iter().map(last).zip(lengths);
        (places.fold(0, |at, (place, length)| at * length + place) + 1) * self.element
    }

    /// Bytes of the elements of a tile that are in the array, without padding.
    pub(crate) fn bytes_inside(&self, number: u64) -> u64 {
        self.area(number).extent.iter().product::<u64>() * self.element
    }

    /// Offset of a slice in the contiguous array.
    pub(crate) fn offset(&self, number: u64) -> u64 {
        let start = self.area(number).start;
        start.iter().zip(&self.shape).fold(0, |at, (start, length)| at * length + start)
            * self.element
    }

    /// The numbers of the tiles that share elements with an area.
    pub(crate) fn over(&self, area: &Area) -> Vec<u64> {
        let mut numbers = vec![0];
        let dimensions = area.start.iter().zip(&area.extent).zip(&self.tile).zip(self.counts());
        for (((&start, &extent), &tile), count) in dimensions {
            let first = start / tile;
            let end = (start + extent).div_ceil(tile);
            numbers = numbers
                .iter()
                .flat_map(|number| (first..end).map(move |at| number * count + at))
                .collect();
        }
        numbers
    }

    /// Bytes of a tile, if tiles hold consecutive bytes of the array: only the first dimension is
    /// cut.
    pub(crate) fn band(&self) -> Option<u64> {
        let whole = self.shape.iter().zip(&self.tile).skip(1).all(|(length, tile)| length == tile);
        whole.then(|| self.tile.iter().product::<u64>() * self.element)
    }

    /// Copies the elements that a tile of this grid shares with a tile of another grid.
    pub(crate) fn copy(
        &self,
        number: u64,
        from: &[u8],
        other: &Self,
        other_number: u64,
        to: &mut [u8],
    ) {
        let here = self.area(number);
        let there = other.area(other_number);
        let from_lengths = self.stored(&here);
        let to_lengths = other.stored(&there);
        let rank = self.shape.len();
        let start: Vec<u64> = here.start.iter().zip(&there.start).map(|(a, b)| *a.max(b)).collect();
        let extent: Vec<u64> = (0..rank)
            .map(|d| {
                let end = (here.start[d] + here.extent[d]).min(there.start[d] + there.extent[d]);
                end.saturating_sub(start[d])
            })
            .collect();
        if extent.contains(&0) {
            return;
        }
        let run = (extent[rank - 1] * self.element) as usize;
        // The position in the shared area, in all dimensions but the last.
        let mut at = vec![0; rank - 1];
        loop {
            let mut a = 0;
            let mut b = 0;
            for d in 0..rank {
                let place = start[d] + at.get(d).copied().unwrap_or(0);
                a = a * from_lengths[d] + place - here.start[d];
                b = b * to_lengths[d] + place - there.start[d];
            }
            let a = (a * self.element) as usize;
            let b = (b * self.element) as usize;
            to[b..b + run].copy_from_slice(&from[a..a + run]);
            let Some(next) = (0..rank - 1).rev().find(|&d| at[d] + 1 < extent[d]) else { return };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RepackGrid;
    use proptest::prelude::*;

    /// The bytes of an array of numbers, tile by tile.
    fn tiles(grid: &RepackGrid, array: &[u16]) -> Vec<Vec<u8>> {
        let whole = RepackGrid::run(&grid.shape, 2, u64::MAX);
        let bytes: Vec<u8> = array.iter().flat_map(|value| value.to_le_bytes()).collect();
        (0..grid.count())
            .map(|number| {
                let mut tile = vec![0xee; grid.bytes(number) as usize];
                whole.copy(0, &bytes, grid, number, &mut tile);
                tile
            })
            .collect()
    }

    #[test]
    fn a_chunk_at_the_edge_is_cut() {
        let grid = RepackGrid::chunks(&[5, 7], &[3, 4], 2);
        // The last chunk holds two rows and three columns of the array.
        let area = grid.area(3);
        assert_eq!((&area.start[..], &area.extent[..]), (&[3, 4][..], &[2, 3][..]));
        let bytes: Vec<u8> = (0..24).collect();
        assert_eq!(grid.inside(3, &bytes), [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13]);
        assert_eq!(grid.needed_bytes(3), 2 * (4 + 3));
    }

    proptest! {
        /// Copies from any tiles to any others, and back to the array.
        #[test]
        fn every_element_goes_where_it_belongs(
            dimensions in prop::collection::vec((1..8_u64, 1..8_u64, 1..8_u64), 1..4),
            from_run in any::<bool>(), slice in 1..200_u64,
        ) {
            let shape: Vec<u64> = dimensions.iter().map(|d| d.0).collect();
            let chunk: Vec<u64> = dimensions.iter().map(|d| d.1).collect();
            let other: Vec<u64> = dimensions.iter().map(|d| d.2).collect();
            let array: Vec<u16> = (0..shape.iter().product::<u64>() as u16).collect();
            let from = if from_run {
                RepackGrid::run(&shape, 2, slice)
            } else {
                RepackGrid::chunks(&shape, &chunk, 2)
            };
            let to = RepackGrid::chunks(&shape, &other, 2);
            let sources = tiles(&from, &array);
            let empty = |number| vec![0xee; to.bytes(number) as usize];
            let mut made: Vec<Vec<u8>> = (0..to.count()).map(empty).collect();
            for (number, tile) in (0..).zip(&sources) {
                for over in to.over(&from.area(number)) {
                    from.copy(number, tile, &to, over, &mut made[over as usize]);
                }
            }
            prop_assert_eq!(&made, &tiles(&to, &array));
            if from_run {
                let joined: Vec<u8> = sources.concat();
                let expected: Vec<u8> =
                    array.iter().flat_map(|value| value.to_le_bytes()).collect();
                prop_assert_eq!(joined, expected);
                let mut end = 0;
                for number in 0..from.count() {
                    prop_assert_eq!(from.offset(number), end);
                    end += from.bytes(number);
                }
            }
        }
    }
}
