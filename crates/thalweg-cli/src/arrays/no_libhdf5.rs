//! What builds without libhdf5 have in place of repacking, writing FAST5 and inspecting files.

use std::path::PathBuf;

use thalweg::Options;

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

/// Does nothing: no parent of this build asks for it.
pub(crate) fn inspect_as_child(_paths: &[PathBuf], _options: Options) -> VerbResult {
    Ok(())
}

/// Refuses to write FAST5.
pub(crate) fn check_fast5() -> VerbResult {
    Err(Failure::Usage("this build writes no FAST5: build it with the feature hdf5".into()))
}
