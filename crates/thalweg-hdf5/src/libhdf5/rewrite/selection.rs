//! Makes spaces, and selections of their elements.

use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5s::{
    H5S_class_t, H5S_seloper_t, H5Screate, H5Screate_simple, H5Sget_simple_extent_ndims,
    H5Sselect_all, H5Sselect_elements, H5Sselect_hyperslab, H5Sselect_none,
};

use crate::libhdf5::handle::{Id, LibraryRefusal, status};
use crate::mapping::{UNLIMITED, end_of};
use crate::metadata::dataspace::Dataspace;
use crate::metadata::selection::{Selected, block_len};
use crate::slab::Slab;

/// The space of a dataset or an attribute. The lock is held.
pub(super) fn space_of(space: &Dataspace) -> Result<Id, LibraryRefusal> {
    match space {
        // SAFETY: under the lock.
        Dataspace::Null => Id::new(unsafe { H5Screate(H5S_class_t::H5S_NULL) }),
        Dataspace::Simple { shape, most } => simple(shape, most),
    }
}

/// The space of elements of this shape, which may grow to another. The lock is held.
pub(super) fn simple(shape: &[u64], most: &[u64]) -> Result<Id, LibraryRefusal> {
    debug_assert_eq!(shape.len(), most.len());
    // SAFETY: under the lock; both shapes are as long as the call is given.
    Id::new(unsafe {
        if shape.is_empty() {
            H5Screate(H5S_class_t::H5S_SCALAR)
        } else {
            H5Screate_simple(shape.len() as i32, shape.as_ptr(), most.as_ptr())
        }
    })
}

/// Selects elements of a space. The lock is held.
pub(super) fn select(space: &Id, selected: &Selected) -> Result<(), LibraryRefusal> {
    let at = space.raw();
    // SAFETY: under the lock, an open space; each coordinate list has as many numbers as the space
    // has dimensions, which `check_rank` and `hyperslab` verify.
    unsafe {
        match selected {
            Selected::All => status(H5Sselect_all(at)).map(drop),
            Selected::Nothing => status(H5Sselect_none(at)).map(drop),
            Selected::Slabs(slabs) => hyperslab(at, H5S_seloper_t::H5S_SELECT_SET, slabs),
            Selected::Blocks(blocks) => {
                status(H5Sselect_none(at))?;
                blocks.iter().try_for_each(|block| {
                    let slabs: Vec<Slab> = block.iter().cloned().map(Slab::from).collect();
                    hyperslab(at, H5S_seloper_t::H5S_SELECT_OR, &slabs)
                })
            }
            Selected::Points(points) if points.is_empty() => status(H5Sselect_none(at)).map(drop),
            Selected::Points(points) => {
                points.iter().try_for_each(|point| check_rank(at, point.len()))?;
                let all = points.concat();
                let set = H5S_seloper_t::H5S_SELECT_SET;
                status(H5Sselect_elements(at, set, points.len(), all.as_ptr())).map(drop)
            }
        }
    }
}

/// Selects a slab in each dimension. The lock is held.
fn hyperslab(space: hid_t, how: H5S_seloper_t, slabs: &[Slab]) -> Result<(), LibraryRefusal> {
    check_rank(space, slabs.len())?;
    let list = |of: fn(&Slab) -> u64| slabs.iter().map(of).collect::<Vec<u64>>();
    let (start, step) = (list(|slab| slab.start), list(|slab| slab.step.max(1)));
    let (count, block) = (list(|slab| slab.count), list(|slab| slab.block));
    // SAFETY: under the lock; the lists are as long as the space has dimensions.
    status(unsafe {
        let start = start.as_ptr();
        let step = step.as_ptr();
        H5Sselect_hyperslab(space, how, start, step, count.as_ptr(), block.as_ptr())
    })
    .map(drop)
}

/// Checks that a space has this many dimensions.
fn check_rank(space: hid_t, rank: usize) -> Result<(), LibraryRefusal> {
    // SAFETY: under the lock, an open space.
    let found = status(unsafe { H5Sget_simple_extent_ndims(space) })?;
    if usize::try_from(found).is_ok_and(|found| found == rank) {
        return Ok(());
    }
    Err(LibraryRefusal(format!("a selection of {rank} dimensions in a space of {found}")))
}

/// A space with the selected elements of the source of a mapping. A file does not say the shape of
/// the source, so this is the smallest shape that holds them. `target` are the elements of the
/// virtual dataset, which has this shape. The lock is held.
pub(super) fn source_space(
    selected: &Selected,
    target: &Selected,
    shape: &[u64],
) -> Result<Id, LibraryRefusal> {
    let (shape, most) = match selected {
        Selected::Slabs(slabs) => {
            let end = |slab: &Slab| end_of(slab).unwrap_or(slab.start + 1).max(1);
            let most = |slab: &Slab| end_of(slab).map_or(UNLIMITED, |end| end.max(1));
            (slabs.iter().map(end).collect(), slabs.iter().map(most).collect())
        }
        Selected::Blocks(blocks) => {
            let mut ends: Vec<u64> = Vec::new();
            for block in blocks {
                ends.resize(ends.len().max(block.len()), 1);
                ends.iter_mut().zip(block).for_each(|(end, range)| *end = range.end.max(*end));
            }
            (ends.clone(), ends)
        }
        Selected::All | Selected::Nothing | Selected::Points(_) => {
            let count = vec![elements(target, shape).max(1)];
            (count.clone(), count)
        }
    };
    let space = simple(&shape, &most)?;
    select(&space, selected)?;
    Ok(space)
}

/// How many elements are selected; those of one block where there is no limit.
fn elements(selected: &Selected, shape: &[u64]) -> u64 {
    let of_slab = |slab: &Slab| match (slab.count, slab.block) {
        (UNLIMITED, block) => block,
        (_, UNLIMITED) => 1,
        (count, block) => count.saturating_mul(block),
    };
    match selected {
        Selected::All => shape.iter().copied().fold(1, u64::saturating_mul),
        Selected::Nothing => 0,
        Selected::Slabs(slabs) => slabs.iter().map(of_slab).fold(1, u64::saturating_mul),
        Selected::Blocks(blocks) => {
            blocks.iter().map(|block| block_len(block)).fold(0, u64::saturating_add)
        }
        Selected::Points(points) => points.len() as u64,
    }
}
