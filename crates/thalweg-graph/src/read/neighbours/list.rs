//! A sorted list of neighbours that others are merged into.

use std::ops::Range;

use thalweg_io::Result;

use crate::storage::lists::ListsReader;
use crate::storage::segment::SegmentPages;

/// The other end of an edge, with its number or without.
pub(super) trait EdgeEnd: Copy + Ord {
    fn of(end: (u64, u64)) -> Self;
    fn id(self) -> u64;
    /// Replaces `out` by a range of the lists.
    fn read(
        lists: &ListsReader,
        segment: &SegmentPages,
        range: Range<u64>,
        out: &mut SortedEnds<Self>,
    ) -> Result<()>;
}

impl EdgeEnd for u64 {
    fn of(end: (u64, u64)) -> Self {
        end.0
    }

    fn id(self) -> u64 {
        self
    }

    fn read(
        lists: &ListsReader,
        segment: &SegmentPages,
        range: Range<u64>,
        out: &mut SortedEnds<Self>,
    ) -> Result<()> {
        let out = out.resize((range.end - range.start) as usize);
        lists.ids.read(segment, range, out)
    }
}

impl EdgeEnd for (u64, u64) {
    fn of(end: (u64, u64)) -> Self {
        end
    }

    fn id(self) -> u64 {
        self.0
    }

    fn read(
        lists: &ListsReader,
        segment: &SegmentPages,
        range: Range<u64>,
        out: &mut SortedEnds<Self>,
    ) -> Result<()> {
        let mut ids = vec![0; (range.end - range.start) as usize];
        let mut numbers = vec![0; ids.len()];
        lists.ids.read(segment, range.clone(), &mut ids)?;
        if let Some(edges) = &lists.edges {
            edges.read(segment, range, &mut numbers)?;
        }
        out.resize(ids.len())
            .iter_mut()
            .zip(ids.into_iter().zip(numbers))
            .for_each(|(out, end)| *out = end);
        Ok(())
    }
}

/// Ends of edges, ascending. The vector never shrinks: filling it with zeros for each longer list
/// would take time.
#[derive(Debug, Default)]
pub(super) struct SortedEnds<T> {
    held: Vec<T>,
    pub(super) len: usize,
}

impl<T: EdgeEnd> SortedEnds<T> {
    pub(super) fn all(&self) -> &[T] {
        &self.held[..self.len]
    }

    /// Changes the length; elements before it stay.
    fn resize(&mut self, len: usize) -> &mut [T] {
        if self.held.len() < len {
            self.held.resize(len, T::of((0, 0)));
        }
        self.len = len;
        &mut self.held[..len]
    }

    pub(super) fn set(&mut self, ends: &[(u64, u64)]) -> &[T] {
        let own = self.resize(ends.len());
        own.iter_mut().zip(ends).for_each(|(own, end)| *own = T::of(*end));
        own
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(T) -> bool) {
        let mut kept = 0;
        for place in 0..self.len {
            let end = self.held[place];
            if keep(end) {
                self.held[kept] = end;
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Removes each element of `gone` once.
    pub(super) fn subtract(&mut self, gone: &[T]) {
        if gone.is_empty() {
            return;
        }
        let mut gone = gone.iter().peekable();
        self.retain(|end| {
            while gone.next_if(|next| **next < end).is_some() {}
            gone.next_if(|next| **next == end).is_none()
        });
    }

    /// Merges `more` into the list.
    pub(super) fn merge(&mut self, more: &[T]) {
        let mut old = self.len;
        let list = self.resize(old + more.len());
        // From the end, so that no element is overwritten before it is moved.
        let mut place = list.len();
        for end in more.iter().rev() {
            let from = match list[..old].last() {
                Some(last) if last > end => list[..old].partition_point(|known| known <= end),
                _ => old,
            };
            list.copy_within(from..old, place - (old - from));
            place -= old - from + 1;
            old = from;
            list[place] = *end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_are_equal_in_batches_and_one_by_one(
            mut a in prop::collection::vec(0..50_u64, 0..80),
            mut b in prop::collection::vec(0..50_u64, 0..80),
        ) {
            a.sort_unstable();
            b.sort_unstable();
            // The elements beyond `len` must have no effect.
            let mut both = SortedEnds { held: [a.clone(), vec![7; 20]].concat(), len: a.len() };
            both.merge(&b);
            let mut expected = [a.clone(), b.clone()].concat();
            expected.sort_unstable();
            prop_assert_eq!(both.all(), &expected);
            both.subtract(&b);
            prop_assert_eq!(both.all(), &a);
        }
    }
}
