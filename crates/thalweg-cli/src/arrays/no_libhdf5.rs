//! What builds without libhdf5 have in place of repacking and writing FAST5.

use super::RepackJob;
use crate::common::{Failure, VerbResult};

/// No options: this build does not repack.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct RepackArgs {}

impl RepackArgs {
    /// Whether --repack is given.
    pub(crate) fn asked(&self) -> bool {
        false
    }
}

/// Does nothing: the option that asks for it does not exist.
pub(crate) fn repack(_args: &RepackArgs, _job: RepackJob<'_>) -> VerbResult {
    Ok(())
}

/// Refuses to write FAST5.
pub(crate) fn check_fast5() -> VerbResult {
    Err(Failure::Usage("this build writes no FAST5: build it with the feature hdf5".into()))
}
