//! HDF5 files of arrays and neutron events: what each verb does with them.
//!
//! A build without libhdf5 repacks nothing and writes no FAST5.

mod checksum;
mod events;
mod index;
mod info;
#[cfg(not(feature = "hdf5"))]
mod no_libhdf5;
mod plot;
mod ranks;
mod read;
#[cfg(feature = "hdf5")]
mod repack;
mod select;
mod table;

pub(crate) use checksum::WordSum;
pub(crate) use events::EventArgs;
pub(crate) use index::{KerchunkArgs, write_index, write_references};
pub(crate) use info::describe;
#[cfg(not(feature = "hdf5"))]
pub(crate) use no_libhdf5::{RepackArgs, check_fast5, repack};
pub(crate) use plot::event_panels;
pub(crate) use read::{ArrayArgs, ReadJob, read, survey, warn_of_fill_values};
#[cfg(feature = "hdf5")]
pub(crate) use repack::{RepackArgs, repack};
pub(crate) use thalweg::arrays::is_index;

use std::path::{Path, PathBuf};

use thalweg::Options;

#[cfg(feature = "hdf5")]
use crate::common::VerbResult;

/// What `thalweg convert --repack` is asked to do.
#[cfg_attr(not(feature = "hdf5"), expect(dead_code, reason = "no file is ever repacked"))]
pub(crate) struct RepackJob<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) output: &'a Path,
    pub(crate) verify: bool,
    pub(crate) as_json: bool,
    pub(crate) options: Options,
}

/// Whether this build writes FAST5.
///
/// # Errors
/// [`Failure::Usage`](crate::common::Failure::Usage) if it does not.
#[cfg(feature = "hdf5")]
pub(crate) fn check_fast5() -> VerbResult {
    Ok(())
}

/// A shape, as in `37x53`.
pub(crate) fn shape_in_words(lengths: &[u64]) -> String {
    lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}
