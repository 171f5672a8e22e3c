//! The planner: from what is wanted to requests, sizes, and a predicted time.
//!
//! Every reader of thalweg asks this module, whether it reads records, tiles of arrays, pages of a
//! network or whole files for repacking. It consists of pure functions of the wanted ranges, the
//! [`StoreModel`] and the [`Budget`]: no I/O, no clock, no state. What it decides:
//!
//! | decision | function | from |
//! |---|---|---|
//! | which gaps between ranges are read | [`GapRule`] | bandwidth, request rate |
//! | requests, in offset order | [`gather`], [`in_order`], [`merge`] | the gap, the block |
//! | sizes of a run, depth included | [`shape`], [`listed`] | depth, block, memory, threads |
//! | requests of readers beside the engine | [`side_depth`], [`side_threads`] | latency, depth |
//! | predicted time | [`Load::predicted`], [`overlapped`], [`in_turn`] | all of the model |
//!
//! Sizes and gaps are in bytes, times in seconds, rates per second. `docs/planner.md` holds
//! predicted times against measured ones.

mod gap;
mod gather;
mod load;

use std::ops::Range;

use crate::engine::{Delivery, Shape, blocks_alive};
use crate::model::StoreModel;

pub use gap::{GapRule, is_one_extent};
pub use gather::{Gather, gather, in_order, merge, sort};
pub use load::{Load, in_turn, overlapped};

/// Bytes of memory that a read may use unless the caller says otherwise.
pub const DEFAULT_MEMORY: usize = 192 << 20;

/// Bytes. No block is made smaller than this to fit a budget: below it, requests cost more than
/// their bytes.
const MIN_BLOCK: usize = 64 << 10;

/// A run that finds the model's depth too small may go this many times as deep.
const GROWTH: usize = 8;

/// Fewer small requests in flight than this leave a store idle that does not read ahead.
const LEAST_SMALL: usize = 4;

/// The most small requests that a run starts with; it may go deeper by itself.
const MOST_SMALL: usize = 32;

/// A block grows with the longest range up to this part of the memory budget.
const LONGEST_SHARE: usize = 16;

/// Seconds. A store that answers sooner has answered before another thread has started: the start
/// of a thread takes 10 to 20 us on Linux.
const QUICK_S: f64 = 20e-6;

/// Readers beside the engine ask for so many times the model's depth: their requests are small,
/// and the depth is that of whole blocks.
const SIDE_FACTOR: usize = 4;

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

/// Sizes of a run that keeps `model`'s depth in flight and stays within `budget`.
///
/// Half of the budget goes to block buffers, a quarter to batches, a quarter to codec state. Where
/// that is too little, the blocks shrink first, then the depth.
///
/// ```
/// use thalweg_io::engine::Delivery;
/// use thalweg_io::model::StoreModel;
/// use thalweg_io::plan::{Budget, shape};
///
/// let budget = Budget { threads: 4, memory: 64 << 20 };
/// let shape = shape(&StoreModel::NETWORK, budget, Delivery::Ordered);
/// assert_eq!((shape.block, shape.depth), (1 << 20, 8));
/// assert!(shape.buffers * (shape.block + shape.headroom) <= 32 << 20);
/// ```
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

/// What [`listed`] decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPlan {
    /// Bytes: gaps up to this are read.
    pub gap: u64,
    /// The requests and bytes that come of it.
    pub load: Load,
    /// The sizes of the run.
    pub shape: Shape,
}

/// The gap, the load and the sizes of a run over `ranges`, which are in offset order and all known
/// before it starts: chunks of arrays, pages of a network.
///
/// Where requests are smaller than the model's blocks, more are in flight: as many as hold the
/// model's bytes in flight, from 4 to 32. A block is as long as the longest range, up to a
/// sixteenth of the memory, because a range longer than a block gets a buffer of its own each time.
/// `alignment` is what a request may begin before its range, in bytes; 0 where ranges are aligned.
pub fn listed(
    ranges: &[Range<u64>],
    rule: &GapRule,
    budget: Budget,
    delivery: Delivery,
    alignment: usize,
) -> ListPlan {
    let model = rule.model();
    let longest = ranges.iter().map(|range| range.end - range.start).max().unwrap_or(0) as usize;
    let block = model.block.max(longest.min(budget.memory / LONGEST_SHARE)) + alignment;
    let gap = rule.gap(ranges, block);
    let load = Load::of(ranges, gap, block);
    let usual = load.usual();
    let depth = model.depth.max(small_depth(model, usual));
    let shape = shape(&StoreModel { block, depth, ..*model }, budget, delivery);
    ListPlan { gap, load, shape: Shape { usual: Some(usual), ..shape } }
}

/// Requests of `usual` bytes that hold as many bytes in flight as the model's depth of blocks.
fn small_depth(model: &StoreModel, usual: usize) -> usize {
    (model.block * model.depth / usual.max(1)).clamp(LEAST_SMALL, MOST_SMALL)
}

/// Requests that a reader beside the engine keeps in flight, each with a thread of its own: tables
/// of metadata that must be read before a run can start. At most `most`.
///
/// ```
/// use thalweg_io::model::StoreModel;
/// use thalweg_io::plan::side_depth;
/// assert_eq!(side_depth(&StoreModel::MEMORY, 32), 1, "a thread takes longer than an answer");
/// assert_eq!(side_depth(&StoreModel::LOCAL, 32), 8);
/// assert_eq!(side_depth(&StoreModel::S3, 32), 32);
/// ```
pub fn side_depth(model: &StoreModel, most: usize) -> usize {
    if model.latency_s < QUICK_S {
        return 1;
    }
    model.depth.saturating_mul(SIDE_FACTOR).clamp(1, most.max(1))
}

/// Threads of a reader beside the engine that fetch and parse in turn, at most `most`: the model's
/// depth, because each computes while others wait for the store.
pub fn side_threads(model: &StoreModel, most: usize) -> usize {
    model.depth.clamp(1, most.max(1))
}

#[cfg(test)]
mod tests;
