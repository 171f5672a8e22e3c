//! How many mappings are read for a tile of a virtual dataset that shows virtual datasets.

use thalweg_io::sync::{Mutex, MutexGuard, PoisonError};

/// The most mappings of virtual datasets that are read for one tile of another virtual dataset:
/// so many, and so many more for each element of the tile. A tile reads whole rows of each dataset
/// that it shows, so their number grows with every level.
const MOST_NESTED: (u64, u64) = (1 << 16, 8);

/// Mappings that may still be read for the tiles that are being read. Tiles that different threads
/// read share what they may take, so that none takes what another needs.
#[derive(Debug, Default)]
pub(in crate::arrays) struct NestedAllowance(Mutex<Left>);

#[derive(Debug, Default)]
struct Left {
    mappings: u64,
    /// How many tiles are being read.
    tiles: usize,
}

/// A tile that is being read. Dropping it ends that.
pub(super) struct Tile<'a>(&'a NestedAllowance);

impl NestedAllowance {
    /// Begins a tile of so many elements.
    pub(super) fn of_tile(&self, elements: u64) -> Tile<'_> {
        let (most, each) = MOST_NESTED;
        let mut left = self.left();
        left.tiles += 1;
        let more = each.saturating_mul(elements).saturating_add(most);
        left.mappings = left.mappings.saturating_add(more);
        drop(left);
        Tile(self)
    }

    /// Takes so many mappings. Returns false if there are not as many left.
    pub(super) fn take(&self, count: u64) -> bool {
        let mut left = self.left();
        let fewer = left.mappings.checked_sub(count);
        left.mappings = fewer.unwrap_or(left.mappings);
        fewer.is_some()
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tile<'_> {
    fn drop(&mut self) {
        let mut left = self.0.left();
        left.tiles -= 1;
        if left.tiles == 0 {
            left.mappings = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_NESTED, NestedAllowance};

    #[test]
    fn tiles_do_not_take_what_others_need() {
        let (most, each) = MOST_NESTED;
        let nested = NestedAllowance::default();
        assert!(!nested.take(1), "no tile is being read");
        let large = nested.of_tile(1000);
        assert!(nested.take(most));
        let small = nested.of_tile(1);
        assert!(nested.take(1000 * each + most + each), "of both");
        drop(small);
        assert!(!nested.take(1));
        drop(large);
        let tile = nested.of_tile(0);
        assert!(nested.take(most) && !nested.take(1), "nothing is left of earlier tiles");
        drop(tile);
    }
}
