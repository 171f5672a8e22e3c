//! Virtual datasets: which elements of other datasets they show.

use std::borrow::Cow;
use std::sync::Arc;

use crate::slab::Slab;

/// A length without a limit (`H5S_UNLIMITED`).
pub(crate) const UNLIMITED: u64 = u64::MAX;

/// Elements of another dataset that a virtual dataset shows (HDF5 specification, section IV.A.2.i,
/// "virtual storage"). Both selections have as many elements; these correspond to each other in C
/// order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The name of the other file; `.` for the same file. In a mapping without a limit, `%b` stands
    /// for the number of a block.
    pub file: Arc<[u8]>,
    /// The path of the other dataset, with `%b` as in `file`.
    pub dataset: Arc<[u8]>,
    /// The elements of the other dataset.
    pub(crate) source: Chosen,
    /// The elements of the virtual dataset.
    pub(crate) target: Chosen,
}

/// Elements of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// All of them.
    All,
    /// A slab in each dimension. One of them may have [`UNLIMITED`] blocks, or a block that is.
    Slabs(Vec<Slab>),
    /// Single elements by their coordinates, in this order.
    Points(Vec<Vec<u64>>),
}

impl Chosen {
    /// The dimension without a limit, if there is one.
    pub(crate) fn unlimited(&self) -> Option<usize> {
        let Self::Slabs(slabs) = self else { return None };
        slabs.iter().position(|slab| slab.count == UNLIMITED || slab.block == UNLIMITED)
    }

    /// The slabs of a selection of a dataset of this shape; `None` for single elements.
    pub(crate) fn slabs(&self, shape: &[u64]) -> Option<Cow<'_, [Slab]>> {
        match self {
            Self::All => Some(shape.iter().map(|&length| Slab::from(0..length)).collect()),
            Self::Slabs(slabs) => Some(slabs.into()),
            Self::Points(_) => None,
        }
    }

    /// The end of the selection in each dimension, itself `None` in a dimension without a limit.
    ///
    /// `None` if the selection has not as many dimensions as the shape.
    pub(crate) fn ends(&self, shape: &[u64]) -> Option<Vec<Option<u64>>> {
        let rank = shape.len();
        match self {
            Self::All => Some(shape.iter().copied().map(Some).collect()),
            Self::Slabs(slabs) => (slabs.len() == rank).then(|| slabs.iter().map(end_of).collect()),
            Self::Points(points) => {
                let end = |dimension: usize| {
                    let places = points.iter().map(|point| point[dimension]);
                    Some(places.max().map_or(0, |last| last.saturating_add(1)))
                };
                let fits = points.iter().all(|point| point.len() == rank);
                fits.then(|| (0..rank).map(end).collect())
            }
        }
    }
}

/// The end of a slab; `None` if it has no limit.
pub(crate) fn end_of(slab: &Slab) -> Option<u64> {
    if slab.count == UNLIMITED || slab.block == UNLIMITED {
        return None;
    }
    if slab.is_empty() {
        return Some(0);
    }
    let last = (slab.count - 1).saturating_mul(slab.step).saturating_add(slab.start);
    Some(last.saturating_add(slab.block))
}

/// The elements of a slab without a limit that lie before `end`, as the number of whole blocks and
/// the elements of a block behind them.
pub(crate) fn elements_before(slab: &Slab, end: u64) -> (u64, u64) {
    let room = end.saturating_sub(slab.start);
    if slab.block == UNLIMITED {
        return (0, room);
    }
    let begun = room.div_ceil(slab.step.max(1));
    let rest = room.saturating_sub(begun.saturating_sub(1) * slab.step);
    if begun > 0 && rest < slab.block { (begun - 1, rest) } else { (begun, 0) }
}

/// The first `count` elements of a slab without a limit; `None` if they end inside a block.
pub(crate) fn first_elements(slab: &Slab, count: u64) -> Option<Slab> {
    // Blocks that follow each other are one, of any length; a single block has no next one.
    if slab.block == UNLIMITED || slab.step == slab.block || count == slab.block {
        return Some(Slab::from(slab.start..slab.start.checked_add(count)?));
    }
    if slab.block == 0 || !count.is_multiple_of(slab.block) {
        return (count < slab.block).then(|| Slab::from(slab.start..slab.start + count));
    }
    Some(Slab { count: count / slab.block, ..*slab })
}
