//! Replaces the module `arrays` in builds without libhdf5.
//!
//! No file of arrays is ever open in such a build: [`ArrayFile`] has no values. The functions that
//! take one are therefore never called; the others do nothing or refuse.

use std::path::{Path, PathBuf};

use thalweg::reads::ReadFile;
use thalweg::{ArrayFile, Identified, Options};
use thalweg_gauge::cache::Residency;

use crate::chart::Panel;
use crate::common::{Failure, VerbResult};
use crate::timing::Started;

/// A group of arguments without arguments. In this build it replaces each group of options for
/// arrays.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct NoArgs {}

pub(crate) use NoArgs as ArrayArgs;
pub(crate) use NoArgs as EventArgs;
pub(crate) use NoArgs as KerchunkArgs;
pub(crate) use NoArgs as RepackArgs;

/// What `thalweg read` is asked to do with a file of arrays.
#[expect(dead_code, reason = "no file of arrays is ever read")]
pub(crate) struct ReadJob<'a> {
    pub(crate) path: &'a Path,
    pub(crate) within: &'a [PathBuf],
    pub(crate) to: Option<&'a Path>,
    pub(crate) digests: bool,
    pub(crate) as_json: bool,
    pub(crate) at_once: bool,
    pub(crate) is_trusted: bool,
    pub(crate) threads: Option<usize>,
    pub(crate) arrays: &'a ArrayArgs,
    pub(crate) events: &'a EventArgs,
    pub(crate) options: &'a Options,
    pub(crate) started: Started,
}

/// What `thalweg convert --repack` is asked to do.
#[expect(dead_code, reason = "no file of arrays is ever made anew")]
pub(crate) struct RepackJob<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) output: &'a Path,
    pub(crate) verify: bool,
    pub(crate) as_json: bool,
    pub(crate) options: Options,
}

impl NoArgs {
    pub(crate) fn asked(&self) -> bool {
        false
    }

    pub(crate) fn output(&self) -> Option<&Path> {
        None
    }
}

pub(crate) fn inspect_first(_options: &Options) {}

pub(crate) fn inspect_as_child(_paths: &[PathBuf], _options: Options) -> VerbResult {
    Ok(())
}

/// Opens a file of reads. Refuses a file of arrays.
pub(crate) fn read(identified: Identified, job: ReadJob<'_>) -> Result<Option<ReadFile>, Failure> {
    Ok(Some(identified.open(job.options.clone())?.into_reads()?))
}

pub(crate) fn repack(_args: &RepackArgs, _job: RepackJob<'_>) -> VerbResult {
    Ok(())
}

pub(crate) fn describe(
    _path: &Path,
    file: &ArrayFile,
    _cached: &Residency,
    _as_json: bool,
) -> Result<(String, bool), Failure> {
    match *file {}
}

pub(crate) fn event_panels(
    file: &ArrayFile,
    _banks: &[String],
    _bars: usize,
) -> Result<(String, Vec<Panel>), Failure> {
    match *file {}
}

pub(crate) fn write_index(_path: &Path, file: &ArrayFile, _out: Option<&Path>) -> VerbResult {
    match *file {}
}

pub(crate) fn write_references(_path: &Path, file: &ArrayFile, _out: &Path) -> VerbResult {
    match *file {}
}

/// Refuses to write FAST5.
pub(crate) fn check_fast5() -> VerbResult {
    Err(Failure::Usage("this build has no FAST5: build it with the feature hdf5".into()))
}

/// Whether a file that begins so is an index of arrays.
pub(crate) fn is_index(_head: &[u8]) -> bool {
    false
}
