//! One dimension of a hyperslab.

use std::ops::Range;

/// One dimension of a hyperslab: `count` blocks of `block` elements. Each block begins `step`
/// elements after the one before (HDF5 user guide, "Dataspaces": start, stride, count and block).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slab {
    /// Where the first block begins.
    pub start: u64,
    /// The number of blocks.
    pub count: u64,
    /// Elements from the start of a block to the start of the next; at least [`Slab::block`].
    pub step: u64,
    /// Elements of a block.
    pub block: u64,
}

impl From<Range<u64>> for Slab {
    fn from(range: Range<u64>) -> Self {
        let block = range.end.saturating_sub(range.start);
        Self { start: range.start, count: u64::from(block > 0), step: block.max(1), block }
    }
}

impl Slab {
    /// The number of selected elements.
    pub fn len(&self) -> u64 {
        self.count * self.block
    }

    /// Whether it selects no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the blocks do not overlap, and lie inside a dimension of `length` elements.
    pub(crate) fn check(&self, dimension: usize, length: u64) -> Result<(), String> {
        if self.count == 0 || self.block == 0 {
            return Ok(());
        }
        if self.step < self.block && self.count > 1 {
            let Self { step, block, .. } = self;
            return Err(format!("blocks of {block} that begin {step} apart overlap"));
        }
        let last = (self.count - 1)
            .checked_mul(self.step)
            .and_then(|at| at.checked_add(self.block - 1)?.checked_add(self.start));
        match last {
            Some(last) if last < length => Ok(()),
            last => Err(beyond(last.unwrap_or(u64::MAX).max(self.start), dimension, length)),
        }
    }

    /// This slab in smaller units, `times` for each element, with as few blocks as possible.
    pub(crate) fn scaled(self, times: u64) -> Self {
        let Self { start, count, step, block } = self;
        if count <= 1 || step == block {
            let len = count * block * times;
            return Self {
                start: start * times,
                count: u64::from(len > 0),
                step: len.max(1),
                block: len,
            };
        }
        Self { start: start * times, count, step: step * times, block: block * times }
    }

    /// The selected elements whose places in the selection are in `places`, as slabs whose elements
    /// follow each other: part of a block, whole blocks, and part of a block.
    pub(crate) fn parts(self, places: Range<u64>) -> impl Iterator<Item = Self> {
        let Self { start, step, block, .. } = self.scaled(1);
        let Range { start: mut from, end } = places;
        std::iter::from_fn(move || {
            let left = end.checked_sub(from).filter(|&left| left > 0)?;
            let number = from / block;
            let inside = from % block;
            let begin = start + number * step + inside;
            let part = if inside == 0 && left >= block {
                Self { start: begin, count: left / block, step, block }
            } else {
                Self::from(begin..begin + left.min(block - inside))
            };
            from += part.len();
            Some(part)
        })
    }

    /// Whether it selects all of `length` elements in one block.
    pub(crate) fn is_whole(&self, length: u64) -> bool {
        self.start == 0 && self.count == 1 && self.block == length
    }

    /// The first selected element that is not before `at`.
    pub(crate) fn first_from(&self, at: u64) -> Option<u64> {
        let number = at.saturating_sub(self.start) / self.step;
        let begin = self.start + number * self.step;
        let (number, found) = if at < begin + self.block {
            (number, at.max(begin))
        } else {
            (number + 1, begin.saturating_add(self.step))
        };
        (number < self.count && self.block > 0).then_some(found)
    }

    /// The last selected element before `end`.
    fn last_before(&self, end: u64) -> Option<u64> {
        if end <= self.start || self.is_empty() {
            return None;
        }
        let number = ((end - 1 - self.start) / self.step).min(self.count - 1);
        Some((self.start + number * self.step + self.block).min(end) - 1)
    }

    /// The range from the first to the last element selected in `range`.
    pub(crate) fn within(&self, range: Range<u64>) -> Option<Range<u64>> {
        let first = self.first_from(range.start).filter(|first| *first < range.end)?;
        Some(first..self.last_before(range.end)? + 1)
    }

    /// The runs of elements selected in `range`: the first element of each run, its place in the
    /// selection, and the length of the run.
    pub(crate) fn runs(self, range: Range<u64>) -> impl Iterator<Item = (u64, u64, u64)> {
        let mut at = self.within(range.clone()).map(|range| range.start);
        std::iter::from_fn(move || {
            let first = at?;
            let number = (first - self.start) / self.step;
            let begin = self.start + number * self.step;
            let end = (begin + self.block).min(range.end);
            at = self.first_from(end).filter(|next| *next < range.end);
            Some((first, number * self.block + (first - begin), end - first))
        })
    }
}

/// What is wrong with the place `at` in a dimension of `length` elements.
pub(crate) fn beyond(at: u64, dimension: usize, length: u64) -> String {
    format!("{at} is beyond dimension {dimension}, which has {length}")
}

#[cfg(test)]
impl Slab {
    /// The selected elements, one by one.
    pub(crate) fn elements(&self) -> Vec<u64> {
        let block = |i| (0..self.block).map(move |j| self.start + i * self.step + j);
        (0..self.count).flat_map(block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_elements_at_these_places(
            start in 0..20_u64, count in 1..6_u64, block in 1..5_u64, apart in 0..4_u64,
            from in 0..30_u64, len in 0..30_u64,
        ) {
            let slab = Slab { start, count, step: block + apart, block };
            let all = slab.elements();
            let places = from.min(slab.len())..(from + len).min(slab.len());
            let wanted = &all[places.start as usize..places.end as usize];
            let parts: Vec<Slab> = slab.parts(places).collect();
            let found: Vec<u64> = parts.iter().flat_map(Slab::elements).collect();
            prop_assert_eq!(found, wanted);
            prop_assert!(parts.len() <= 3);
        }
    }
}
