//! Selections of elements, as virtual datasets and references to regions have them (section
//! VIII.B).

use std::ops::Range;

use super::cursor::Cursor;
use super::{Result, damaged};
use crate::array::MOST_RANK;
use crate::mapping::UNLIMITED;
use crate::slab::Slab;

/// Elements that are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selected {
    /// None.
    Nothing,
    /// All of them.
    All,
    /// A slab in each dimension. A slab may have [`UNLIMITED`] blocks, or a block that is.
    Slabs(Vec<Slab>),
    /// Blocks, each with a range in each dimension.
    Blocks(Vec<Vec<Range<u64>>>),
    /// Single elements by their coordinates.
    Points(Vec<Vec<u64>>),
}

/// How many elements a block has.
pub(crate) fn block_len(block: &[Range<u64>]) -> u64 {
    block.iter().map(|range| range.end - range.start).fold(1, u64::saturating_mul)
}

/// Parses a selection.
pub(super) fn selection(cursor: &mut Cursor<'_>) -> Result<Selected> {
    let at = cursor.at();
    match cursor.u32()? {
        0 => {
            cursor.skip(12)?;
            Ok(Selected::Nothing)
        }
        1 => points(cursor),
        2 => hyperslab(cursor),
        3 => {
            cursor.skip(12)?;
            Ok(Selected::All)
        }
        kind => damaged(at, format!("a selection of the kind {kind}"), "0 to 3"),
    }
}

fn rank(cursor: &mut Cursor<'_>) -> Result<usize> {
    let at = cursor.at();
    match cursor.u32()? as usize {
        0 => damaged(at, "a selection of no dimensions", "dimensions"),
        rank if rank > MOST_RANK => {
            damaged(at, format!("{rank} dimensions"), format!("at most {MOST_RANK}"))
        }
        rank => Ok(rank),
    }
}

/// The bytes of a number, which the selection says itself.
fn width(cursor: &mut Cursor<'_>) -> Result<usize> {
    let at = cursor.at();
    match cursor.u8()? {
        width @ (2 | 4 | 8) => Ok(width.into()),
        width => damaged(at, format!("numbers of {width} bytes"), "2, 4 or 8"),
    }
}

fn coordinates(cursor: &mut Cursor<'_>, rank: usize, width: usize) -> Result<Vec<u64>> {
    (0..rank).map(|_| cursor.uint(width)).collect()
}

fn points(cursor: &mut Cursor<'_>) -> Result<Selected> {
    let at = cursor.at();
    let width = match cursor.u32()? {
        1 => {
            cursor.skip(8)?;
            4
        }
        2 => width(cursor)?,
        version => return damaged(at, format!("version {version} of points"), "1 or 2"),
    };
    let rank = rank(cursor)?;
    let count = cursor.uint(width)?;
    (0..count)
        .map(|_| coordinates(cursor, rank, width))
        .collect::<Result<_>>()
        .map(Selected::Points)
}

fn hyperslab(cursor: &mut Cursor<'_>) -> Result<Selected> {
    let at = cursor.at();
    let (is_regular, width) = match cursor.u32()? {
        1 => {
            cursor.skip(8)?;
            (false, 4)
        }
        2 => {
            let flags = cursor.u8()?;
            cursor.skip(4)?;
            (flags & 1 != 0, 8)
        }
        3 => {
            let flags = cursor.u8()?;
            (flags & 1 != 0, width(cursor)?)
        }
        version => return damaged(at, format!("version {version} of a hyperslab"), "1 to 3"),
    };
    let rank = rank(cursor)?;
    if is_regular {
        return regular(cursor, rank, width).map(Selected::Slabs);
    }
    let count = cursor.uint(width)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let first = coordinates(cursor, rank, width)?;
        let last = coordinates(cursor, rank, width)?;
        let range = |(&first, &last): (&u64, &u64)| match last.checked_add(1) {
            Some(end) if end > first => Ok(first..end),
            _ => damaged(at, format!("a block from {first} to {last}"), "elements in it"),
        };
        blocks.push(first.iter().zip(&last).map(range).collect::<Result<_>>()?);
    }
    Ok(Selected::Blocks(blocks))
}

/// A slab in each dimension.
fn regular(cursor: &mut Cursor<'_>, rank: usize, width: usize) -> Result<Vec<Slab>> {
    let at = cursor.at();
    let unlimited = u64::MAX >> (64 - 8 * width);
    let limit = |number: u64| if number == unlimited { UNLIMITED } else { number };
    let mut slabs = Vec::with_capacity(rank);
    for _ in 0..rank {
        let start = cursor.uint(width)?;
        let step = cursor.uint(width)?;
        let count = limit(cursor.uint(width)?);
        let block = limit(cursor.uint(width)?);
        // A single block has no next one.
        let step = if count <= 1 { block.max(1) } else { step.max(1) };
        let slab = Slab { start, count, step, block };
        if !is_sound(&slab) {
            let found = format!("{count} blocks of {block} elements that begin {step} apart");
            return damaged(at, found, "blocks that do not overlap, and end before 2^63");
        }
        slabs.push(slab);
    }
    Ok(slabs)
}

/// Whether the blocks of a slab do not overlap, and end before 2^63.
fn is_sound(slab: &Slab) -> bool {
    let &Slab { start, count, step, block } = slab;
    let limited = |number: u64| if number == UNLIMITED { 1 } else { number };
    let end = (limited(count).max(1) - 1)
        .checked_mul(step)
        .and_then(|last| last.checked_add(start)?.checked_add(limited(block)));
    (step >= block || count <= 1 || block == UNLIMITED)
        && end.is_some_and(|end| end <= u64::MAX >> 1)
}
