//! HDF5 files of arrays and neutron events: what each verb does with them.
//!
//! Builds without libhdf5 have `no_hdf5.rs` in the place of this module: the same functions, and
//! groups of arguments without arguments.

mod checksum;
mod events;
mod index;
mod info;
mod inspect;
mod plot;
mod ranks;
mod read;
mod repack;
mod select;
mod table;

pub(crate) use checksum::WordSum;
pub(crate) use events::EventArgs;
pub(crate) use index::{KerchunkArgs, write_index, write_references};
pub(crate) use info::describe;
pub(crate) use inspect::{inspect_as_child, inspect_first};
pub(crate) use plot::event_panels;
pub(crate) use read::{ArrayArgs, ReadJob, read, survey};
pub(crate) use repack::{RepackArgs, RepackJob, repack};
pub(crate) use thalweg::arrays::is_index;

use crate::common::VerbResult;

/// Whether this build writes FAST5.
///
/// # Errors
/// [`Failure::Usage`](crate::common::Failure::Usage) if it does not.
pub(crate) fn check_fast5() -> VerbResult {
    Ok(())
}

/// A shape, as in `37x53`.
pub(crate) fn shape_in_words(lengths: &[u64]) -> String {
    lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
