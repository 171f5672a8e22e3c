//! Requests for wanted extents, in offset order.

use std::cmp::Reverse;
use std::ops::Range;

use super::GapRule;
use crate::extent::{Fetch, Wanted};

/// Fetches for `wanted` (in delivery order), in offset order within windows of about `window`
/// stored bytes.
///
/// The rule decides for each window which gaps are read; a fetch is at most `block` bytes, unless
/// one extent is longer. Overlapping and repeated extents are fetched once.
///
/// ```
/// use thalweg_io::{model::StoreModel, plan::{GapRule, gather}};
///
/// let rule = GapRule::new(&StoreModel::LOCAL).or_given(Some(5));
/// let fetches: Vec<_> = gather([100..110, 10..20, 25..30], rule, 1000, u64::MAX).collect();
/// assert_eq!((fetches[0].range.clone(), fetches[1].range.clone()), (10..30, 100..110));
/// ```
pub fn gather<I>(wanted: I, rule: GapRule, block: usize, window: u64) -> Gather<I::IntoIter>
where
    I: IntoIterator<Item = Range<u64>>,
{
    Gather {
        wanted: wanted.into_iter(),
        ordinal: 0,
        rule,
        gap: 0,
        block,
        window,
        sorted: Vec::new(),
    }
}

/// The iterator of [`gather`].
#[derive(Debug)]
pub struct Gather<I> {
    wanted: I,
    ordinal: u64,
    rule: GapRule,
    /// The gap of the current window.
    gap: u64,
    block: usize,
    window: u64,
    /// The rest of the current window, last first.
    sorted: Vec<Wanted>,
}

impl<I: Iterator<Item = Range<u64>>> Gather<I> {
    fn fill(&mut self) {
        let mut bytes = 0;
        while bytes < self.window {
            let Some(range) = self.wanted.next() else { break };
            bytes += range.end - range.start;
            self.sorted.push(Wanted { range, ordinal: self.ordinal });
            self.ordinal += 1;
        }
        self.gap = sort(&mut self.sorted, &self.rule, self.block);
    }
}

impl<I: Iterator<Item = Range<u64>>> Iterator for Gather<I> {
    type Item = Fetch;

    fn next(&mut self) -> Option<Fetch> {
        if self.sorted.is_empty() {
            self.fill();
        }
        merge(&mut self.sorted, self.gap, self.block as u64, usize::MAX)
    }
}

/// Fetches for all of `wanted`, in offset order, as one window of [`gather`].
pub fn in_order(
    mut wanted: Vec<Wanted>,
    rule: &GapRule,
    block: usize,
) -> impl Iterator<Item = Fetch> + Send + use<> {
    let gap = sort(&mut wanted, rule, block);
    std::iter::from_fn(move || merge(&mut wanted, gap, block as u64, usize::MAX))
}

/// Sorts by descending offset, the order that [`merge`] needs. Returns the gap that the rule
/// chooses.
pub fn sort(wanted: &mut [Wanted], rule: &GapRule, block: usize) -> u64 {
    wanted.sort_unstable_by_key(|w| Reverse((w.range.start, w.range.end, w.ordinal)));
    rule.gap(wanted.iter().rev().map(|w| &w.range), block)
}

/// Takes the extents of the next fetch off the end of `sorted`, which is in descending order (see
/// [`sort`]): at most `most` extents, at most `gap` bytes apart, in at most `block` bytes. `None`
/// if `sorted` is empty.
pub fn merge(sorted: &mut Vec<Wanted>, gap: u64, block: u64, most: usize) -> Option<Fetch> {
    let first = sorted.pop()?;
    let mut range = first.range.clone();
    let mut extents = vec![first];
    while let Some(next) = sorted.last().filter(|_| extents.len() < most) {
        let near = next.range.start <= range.end.saturating_add(gap);
        let inside = next.range.end <= range.end;
        let fits = next.range.end.saturating_sub(range.start) <= block;
        if !(inside || near && fits) {
            break;
        }
        range.end = range.end.max(next.range.end);
        extents.extend(sorted.pop());
    }
    Some(Fetch { range, extents })
}
