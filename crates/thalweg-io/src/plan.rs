//! From what is wanted to requests: pure functions of the layout, the store model and the budget.
//!
//! [`gather`] turns extents in delivery order into fetches in offset order, window by window;
//! [`shape`] turns a memory budget into buffer sizes. Neither does I/O, both can be printed.

use std::ops::Range;

use crate::engine::{Delivery, Shape, blocks_alive};
use crate::extent::{Fetch, Wanted};
use crate::model::StoreModel;

/// Memory that a read may use unless the caller says otherwise.
pub const DEFAULT_MEMORY: usize = 192 << 20;

/// No block is made smaller than this to fit a budget: below it, requests cost more than their
/// bytes.
const MIN_BLOCK: usize = 64 << 10;

/// A run that finds the model's depth too small may go this many times as deep.
const GROWTH: usize = 8;

/// What a caller can set about a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Decode workers.
    pub threads: usize,
    /// Bytes of buffers, batches and codec state.
    pub memory: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { threads: crate::engine::default_threads(), memory: DEFAULT_MEMORY }
    }
}

/// Sizes of a run that keep `model`'s depth in flight and stay within `budget`.
///
/// Half of the budget goes to block buffers, a quarter to batches, a quarter to codec state. Where
/// that is too little, the blocks shrink first, then the depth.
pub fn shape(model: &StoreModel, budget: Budget, delivery: Delivery) -> Shape {
    let threads = budget.threads.max(1);
    let share = budget.memory / 2;
    let mut block = model.block.max(MIN_BLOCK).next_multiple_of(MIN_BLOCK);
    // A quarter of a block completes all but the longest extents without a copy.
    let buffer = |block: usize| block + block / 4;
    let wanted = blocks_alive(model.depth.max(1), threads);
    while block > MIN_BLOCK && wanted * buffer(block) > share {
        block /= 2;
    }
    let block = block.next_multiple_of(MIN_BLOCK);
    let grown = model.depth.max(1).saturating_mul(GROWTH);
    let buffers = (share / buffer(block)).clamp(3, blocks_alive(grown, threads));
    Shape {
        threads,
        depth: model.depth.clamp(1, buffers - 1),
        max_depth: grown.clamp(1, buffers - 1),
        block,
        usual: None,
        headroom: block / 4,
        buffers,
        // Several groups a block, so that all workers have something when the first block is there.
        group: (block / 4).max(MIN_BLOCK),
        batches: threads * 2 + 2,
        delivery,
    }
}

/// Bytes that one batch may hold before it is handed over.
pub fn batch_bytes(shape: &Shape, budget: Budget) -> usize {
    (budget.memory / 4 / shape.batches.max(1)).max(MIN_BLOCK)
}

/// Fetches for `wanted` (in delivery order), in offset order within windows of about `window`
/// stored bytes.
///
/// Extents less than `gap` bytes apart are fetched together, up to `block` bytes; overlapping and
/// repeated ones are fetched once.
pub fn gather<I>(wanted: I, gap: u64, block: usize, window: u64) -> Gather<I::IntoIter>
where
    I: IntoIterator<Item = Range<u64>>,
{
    Gather {
        wanted: wanted.into_iter(),
        ordinal: 0,
        gap,
        block: block as u64,
        window,
        sorted: Vec::new(),
    }
}

/// What a store has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Requests.
    pub requests: u64,
    /// Bytes, of gaps that are read too.
    pub bytes: u64,
}

impl Load {
    /// What [`gather`] makes of ranges that are in order.
    pub fn of(ranges: &[Range<u64>], gap: u64, block: usize) -> Self {
        let mut load = Self { requests: 0, bytes: 0 };
        let mut here: Option<Range<u64>> = None;
        for range in ranges {
            match &mut here {
                Some(here)
                    if range.end <= here.end
                        || range.start <= here.end.saturating_add(gap)
                            && range.end - here.start <= block as u64 =>
                {
                    let end = here.end.max(range.end);
                    load.bytes += end - here.end;
                    here.end = end;
                }
                _ => {
                    load.requests += 1;
                    load.bytes += range.end - range.start;
                    here = Some(range.clone());
                }
            }
        }
        load
    }

    /// Seconds that it takes a store: as long as the bytes or the requests take, whichever is
    /// longer. What the other takes is not quite hidden.
    pub fn seconds(self, model: &StoreModel) -> f64 {
        self.with(model, NOT_HIDDEN)
    }

    /// The longer of transfer and requests, and such a part of the shorter.
    fn with(self, model: &StoreModel, part: f64) -> f64 {
        let transfer = self.bytes as f64 / model.bandwidth.max(1.0);
        let rate = self.requests as f64 / model.request_rate.max(1.0);
        transfer.max(rate) + transfer.min(rate) * part
    }
}

/// The part of the shorter of transfer and requests that is seen in the time.
const NOT_HIDDEN: f64 = 0.125;

/// The same for choosing between them: each takes the processor's time too, whether or not the
/// store can do both at once.
const WORTH: f64 = 0.5;

/// The longest gap between ranges, which are in order, that is read rather than skipped: what takes
/// the store least time, or what the caller says.
pub fn gap(ranges: &[Range<u64>], model: &StoreModel, given: Option<u64>, block: usize) -> u64 {
    given.unwrap_or_else(|| lean_gap(ranges, model, block, 1.0))
}

/// The shortest gap of those with which reading takes at most so many times the least time: the
/// fewest bytes that nobody wants.
pub fn lean_gap(ranges: &[Range<u64>], model: &StoreModel, block: usize, times: f64) -> u64 {
    let doublings = (12..u64::BITS - 1).flat_map(|log| [1 << log, 3 << (log - 1)]);
    let steps = std::iter::once(0).chain(doublings.take_while(|gap| *gap <= block as u64));
    let costs: Vec<(u64, f64)> =
        steps.map(|gap| (gap, Load::of(ranges, gap, block).with(model, WORTH))).collect();
    let least = costs.iter().map(|cost| cost.1).fold(f64::INFINITY, f64::min);
    costs.iter().find(|cost| cost.1 <= least * times).map_or(0, |cost| cost.0)
}

/// The iterator of [`gather`].
#[derive(Debug)]
pub struct Gather<I> {
    wanted: I,
    ordinal: u64,
    gap: u64,
    block: u64,
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
        last_first(&mut self.sorted);
    }
}

impl<I: Iterator<Item = Range<u64>>> Iterator for Gather<I> {
    type Item = Fetch;

    fn next(&mut self) -> Option<Fetch> {
        if self.sorted.is_empty() {
            self.fill();
        }
        merge(&mut self.sorted, self.gap, self.block, usize::MAX)
    }
}

/// Fetches for all that is wanted, in offset order, as one window of [`gather`].
pub fn in_order(
    mut wanted: Vec<Wanted>,
    gap: u64,
    block: usize,
) -> impl Iterator<Item = Fetch> + Send {
    last_first(&mut wanted);
    std::iter::from_fn(move || merge(&mut wanted, gap, block as u64, usize::MAX))
}

fn last_first(wanted: &mut [Wanted]) {
    wanted.sort_unstable_by_key(|w| std::cmp::Reverse((w.range.start, w.range.end, w.ordinal)));
}

/// Takes extents that are fetched together off the end of `sorted` (last first): at most `most`,
/// less than `gap` bytes apart, up to `block` bytes.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn merges_over_small_gaps_only() {
        let wanted = [10..20, 25..30, 100..110];
        let fetches: Vec<Fetch> = gather(wanted, 5, 1000, u64::MAX).collect();
        assert_eq!(fetches.len(), 2);
        assert_eq!(fetches[0].range, 10..30);
        assert_eq!(fetches[1].range, 100..110);
        assert_eq!(gather([10..20, 25..30], 4, 1000, u64::MAX).count(), 2);
        assert_eq!(
            gather([10..20, 20..30], 0, 15, u64::MAX).count(),
            2,
            "a request is not longer than a block"
        );
    }

    #[test]
    fn the_gap_is_what_the_store_is_quickest_with() {
        // A range of 10 kB each 100 kB.
        let ranges: Vec<Range<u64>> =
            (0..1000).map(|i| i * 100_000..i * 100_000 + 10_000).collect();
        let best = |bandwidth, request_rate| {
            let model = StoreModel { bandwidth, request_rate, ..StoreModel::LOCAL };
            Load::of(&ranges, gap(&ranges, &model, None, 1 << 20), 1 << 20)
        };
        assert_eq!(
            best(150e6, 20_000.0),
            Load { requests: 1000, bytes: 10_000_000 },
            "a request costs less than a gap"
        );
        let swept = best(150e6, 100.0);
        assert!(swept.requests < 110 && swept.bytes > 90_000_000, "{swept:?}");
        assert_eq!(gap(&ranges, &StoreModel::LOCAL, Some(7), 1 << 20), 7);
        assert_eq!(gap(&[], &StoreModel::LOCAL, None, 1 << 20), 0);
    }

    #[test]
    fn a_lean_gap_leaves_bytes_that_save_little_time() {
        // A range of 10 kB, then one each 14 kB and one each 60 kB.
        let near = (0..500).map(|i| i * 14_000);
        let ranges: Vec<Range<u64>> = near
            .chain((0..500).map(|i| 7_000_000 + i * 60_000))
            .map(|at| at..at + 10_000)
            .collect();
        let model = StoreModel { bandwidth: 1e9, request_rate: 14_000.0, ..StoreModel::LOCAL };
        let load = |gap| Load::of(&ranges, gap, 1 << 20);
        let (best, lean) =
            (gap(&ranges, &model, None, 1 << 20), lean_gap(&ranges, &model, 1 << 20, 1.25));
        assert_eq!(lean_gap(&ranges, &model, 1 << 20, 1.0), best);
        assert!(load(lean).bytes < load(best).bytes / 2, "{best} {lean}");
        assert!(load(lean).with(&model, WORTH) <= load(best).with(&model, WORTH) * 1.25);
        assert!(load(lean).requests < load(0).requests, "gaps that are worth it are read");
    }

    proptest! {
        /// What a plan is thought to cost is what it costs.
        #[test]
        fn loads_are_those_of_the_fetches(
            starts in prop::collection::vec((0..100_000u64, 1..900u64), 1..200), gap in 0..3000u64, block in 1..9000usize,
        ) {
            let mut ranges: Vec<Range<u64>> = starts.iter().map(|(s, l)| *s..s + l).collect();
            ranges.sort_unstable_by_key(|range| (range.start, range.end));
            let fetches: Vec<Fetch> = gather(ranges.clone(), gap, block, u64::MAX).collect();
            let bytes = fetches.iter().map(|fetch| fetch.range.end - fetch.range.start).sum();
            prop_assert_eq!(Load::of(&ranges, gap, block), Load { requests: fetches.len() as u64, bytes });
        }

        #[test]
        fn every_extent_is_fetched_once_inside_its_fetch(
            starts in prop::collection::vec((0..10_000u64, 1..500u64), 0..200),
            gap in 0..300u64, block in 1..2000usize, window in 1..5000u64,
        ) {
            let wanted: Vec<Range<u64>> = starts.iter().map(|(s, l)| *s..s + l).collect();
            let longest = wanted.iter().map(|r| r.end - r.start).max().unwrap_or(0);
            let mut seen = vec![false; wanted.len()];
            let mut latest = 0;
            for fetch in gather(wanted.clone(), gap, block, window) {
                prop_assert!(fetch.range.end - fetch.range.start <= longest.max(block as u64));
                for extent in &fetch.extents {
                    let i = extent.ordinal as usize;
                    prop_assert!(!std::mem::replace(&mut seen[i], true));
                    prop_assert_eq!(&extent.range, &wanted[i]);
                    prop_assert!(extent.range.start >= fetch.range.start && extent.range.end <= fetch.range.end);
                }
                // A window ends before the next begins, so nothing overtakes more than a window's
                // bytes.
                for extent in &fetch.extents {
                    let i = extent.ordinal as usize;
                    latest = latest.max(i);
                    let overtaken: u64 = wanted[i..latest].iter().map(|r| r.end - r.start).sum();
                    prop_assert!(overtaken <= window + longest);
                }
            }
            prop_assert!(seen.into_iter().all(|s| s));
        }

        #[test]
        fn shapes_stay_within_the_budget(threads in 1..64usize, mib in 16..512usize, depth in 1..64usize, log in 12..24u32) {
            let model = StoreModel { depth, block: 1 << log, ..StoreModel::LOCAL };
            let budget = Budget { threads, memory: mib << 20 };
            let shape = shape(&model, budget, Delivery::Ordered);
            prop_assert!(shape.buffers * (shape.block + shape.headroom) <= budget.memory / 2);
            prop_assert!(shape.depth <= shape.max_depth && shape.max_depth < shape.buffers && shape.depth >= 1);
            prop_assert!(shape.block.is_multiple_of(crate::store::PAGE));
            prop_assert!(shape.headroom.is_multiple_of(crate::store::PAGE));
        }
    }
}
