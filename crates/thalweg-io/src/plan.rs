//! The planner: turns wanted ranges into requests, sizes and a predicted time.
//!
//! Every reader of thalweg uses this module: for records, tiles of arrays, pages of a network and
//! whole files to repack. It consists of pure functions of the wanted ranges, the [`StoreModel`]
//! and the [`Budget`]: no I/O, no clock, no state. What it decides:
//!
//! | decision | function | from |
//! |---|---|---|
//! | which gaps between ranges are read | [`GapRule`] | bandwidth, request rate |
//! | requests, in offset order | [`gather`], [`in_order`], [`merge`] | the gap, the block |
//! | sizes of a run | [`shape`], [`shape_of_list`], [`listed`] | depth, block, memory, threads |
//! | memory of a read | [`long_line_memory`] | bandwidth, latency |
//! | requests of readers beside the engine | [`side_depth`], [`side_threads`] | latency, depth |
//! | predicted time | [`Load::predicted`], [`in_rounds`], [`overlapped`] | all of the model |
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
pub use load::{Load, in_rounds, in_turn, overlapped};

/// Bytes of memory that a read may use by default.
pub const DEFAULT_MEMORY: usize = 192 << 20;

/// Bytes of memory that a read from a long line may use by default, if the machine has four times
/// as many: more are read while one answer is slow. Measured (docs/remote.md).
const LONG_LINE_MEMORY: usize = 384 << 20;

/// In bytes. A line that holds as many is long.
const LONG_LINE: f64 = 16e6;

/// The smallest block, in bytes, that a budget can lead to. Smaller requests cost more time than
/// the transfer of their bytes.
const MIN_BLOCK: usize = 64 << 10;

/// A run may raise its depth to this multiple of the model's depth.
const GROWTH: usize = 8;

/// The fewest small requests in flight. With fewer, a store that does not read ahead is partly
/// idle.
const LEAST_SMALL: usize = 4;

/// The most small requests in flight at the start of a run. The run may raise the depth later.
const MOST_SMALL: usize = 32;

/// A block is as long as the longest range, up to the memory budget divided by this number.
const LONGEST_SHARE: usize = 16;

/// In seconds. From this latency on, as many small requests are in flight as the store takes in
/// during one latency. A store that is nearer is a local disc, where more requests in flight take
/// as much processor time as they save.
const FAR_S: f64 = 1e-3;

/// In seconds. A store with a smaller latency answers before another thread has started: the start
/// of a thread takes 10 to 20 us on Linux.
const QUICK_S: f64 = 20e-6;

/// Readers that do not use the engine keep this multiple of the model's depth in flight, because
/// their requests are small and the model's depth is for whole blocks.
pub const SIDE_FACTOR: usize = 4;

/// The resources that a caller grants a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Decode workers.
    pub threads: usize,
    /// Bytes of buffers, batches and codec state.
    pub memory: usize,
}

impl Budget {
    /// The threads that there is memory for.
    pub fn threads_within(self) -> usize {
        self.threads.clamp(1, (self.memory / THREAD).max(1))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self { threads: crate::engine::default_threads(), memory: DEFAULT_MEMORY }
    }
}

/// Bytes of the budget for each decode worker. A worker that also encodes takes about as much, with
/// its batch and the state of its codecs.
const THREAD: usize = 4 << 20;

/// The sizes of a run that keeps the depth of `model` in flight and stays within `budget`.
///
/// Half of the budget goes to block buffers, a quarter to batches, a quarter to codec state. With
/// [`Delivery::Worker`] there are no batches, and their share goes to block buffers. If the budget
/// is too small for the model's block and depth, the blocks shrink first, then the depth. If it is
/// too small for the threads, there are fewer.
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
    let threads = budget.threads_within();
    let share = match delivery {
        Delivery::Worker => budget.memory / 4 * 3,
        Delivery::Ordered | Delivery::AsTheyCome => budget.memory / 2,
    };
    let mut block = model.block.max(MIN_BLOCK).next_multiple_of(MIN_BLOCK);
    // Headroom of a quarter of a block lets all but the longest extents be completed without
    // another buffer.
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
        flight_bytes: flight_bytes(model, block),
        flight_requests: flight_requests(model),
        block,
        usual: None,
        headroom: block / 4,
        buffers,
        // Several groups per block, so that all workers have work once the first block has arrived.
        group: (block / 4).max(MIN_BLOCK),
        batches: threads * 2 + 2,
        delivery,
    }
}

/// The sizes of a run over a list of small ranges, such as reads by id. As [`shape`], but on a
/// store that is far away the blocks shrink until there are buffers for as many requests as are
/// made during one latency.
///
/// ```
/// use thalweg_io::engine::Delivery;
/// use thalweg_io::model::StoreModel;
/// use thalweg_io::plan::{Budget, shape, shape_of_list};
///
/// let (model, budget) = (StoreModel::S3, Budget::default());
/// let list = shape_of_list(&model, budget, Delivery::Ordered);
/// assert!(list.flight_requests < list.max_depth);
/// assert!(list.block < shape(&model, budget, Delivery::Ordered).block);
/// ```
pub fn shape_of_list(model: &StoreModel, budget: Budget, delivery: Delivery) -> Shape {
    let mut model = *model;
    loop {
        let shape = shape(&model, budget, delivery);
        if shape.max_depth >= shape.flight_requests || shape.block <= MIN_BLOCK {
            return Shape { headroom: LIST_HEADROOM, ..shape };
        }
        model.block = shape.block / 2;
    }
}

/// Whether a store is far away: a latency is long in comparison with the work between requests.
///
/// ```
/// use thalweg_io::{model::StoreModel, plan::is_far};
/// assert!(is_far(&StoreModel::S3) && !is_far(&StoreModel::LOCAL));
/// ```
pub fn is_far(model: &StoreModel) -> bool {
    model.latency_s >= FAR_S
}

/// Whether a store transfers many bytes during one latency, as object stores do.
///
/// ```
/// use thalweg_io::{model::StoreModel, plan::is_long_line};
/// assert!(is_long_line(&StoreModel::S3) && !is_long_line(&StoreModel::NETWORK));
/// ```
pub fn is_long_line(model: &StoreModel) -> bool {
    model.latency_s * model.bandwidth >= LONG_LINE
}

/// Bytes of memory that suit a read from a [long line](is_long_line) on this machine.
pub fn long_line_memory() -> usize {
    let room = crate::residency::cache_room().unwrap_or(u64::MAX);
    let share = usize::try_from(room / 4).unwrap_or(usize::MAX);
    LONG_LINE_MEMORY.min(share).max(DEFAULT_MEMORY)
}

/// Bytes in flight that fill a line with a long latency: those that wait for one latency, and as
/// many blocks as the store transfers at a time. 0 if the store is near.
fn flight_bytes(model: &StoreModel, block: usize) -> usize {
    if !is_far(model) {
        return 0;
    }
    (model.latency_s * model.bandwidth) as usize + model.depth * block.min(model.block)
}

/// Requests that a store with a long latency takes in during one latency. 0 if the store is near.
fn flight_requests(model: &StoreModel) -> usize {
    if is_far(model) { (model.latency_s * model.request_rate).ceil() as usize } else { 0 }
}

/// The requests that the model lets a run have in flight.
fn most_in_flight(model: &StoreModel) -> u64 {
    flight_requests(model).max(model.depth) as u64
}

/// Bytes that one batch may hold before it is delivered.
pub fn batch_bytes(shape: &Shape, budget: Budget) -> usize {
    (budget.memory / 4 / shape.batches.max(1)).max(MIN_BLOCK)
}

/// The plan that [`listed`] makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPlan {
    /// The longest gap that is read, in bytes.
    pub gap: u64,
    /// The resulting requests and bytes.
    pub load: Load,
    /// The sizes of the run.
    pub shape: Shape,
}

/// Room before the data of a request for ranges that are known: none of them begins in an earlier
/// request. Small requests would clear more memory for the room than they read.
const LIST_HEADROOM: usize = 0;

/// Plans a run over `ranges`, which are in offset order and all known before the run starts, such
/// as chunks of arrays or pages of a network.
///
/// If requests are smaller than the model's blocks, more of them are in flight: enough to keep as
/// many bytes in flight as the model does, within 4 to 32 requests. A block is at least as long as
/// the longest range, up to a sixteenth of the memory, because each range longer than a block needs
/// its own buffer. `alignment` is the number of bytes that a request may start before its range; 0
/// if ranges are aligned.
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
    ListPlan { gap, load, shape: Shape { usual: Some(usual), headroom: LIST_HEADROOM, ..shape } }
}

/// The number of requests of `usual` bytes that keep as many bytes in flight as the model's depth
/// of blocks, within [`LEAST_SMALL`] and [`MOST_SMALL`].
fn small_depth(model: &StoreModel, usual: usize) -> usize {
    (model.block * model.depth / usual.max(1)).clamp(LEAST_SMALL, MOST_SMALL)
}

/// The number of requests that a reader outside of the engine keeps in flight, at most `most`. Such
/// readers read tables of metadata before a run can start.
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

/// The number of threads of a reader outside of the engine, at most `most`. Each thread alternates
/// between fetching and parsing. The number is the model's depth, because some threads compute
/// while others wait for the store.
pub fn side_threads(model: &StoreModel, most: usize) -> usize {
    model.depth.clamp(1, most.max(1))
}

#[cfg(test)]
mod tests;
