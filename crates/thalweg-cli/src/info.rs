//! `thalweg info`: what is in a file, how it is stored, and how much of it is in memory; or a run
//! in a few figures.

pub(crate) mod findings;
mod reads;
mod run;

use std::io::Write;
use std::path::{Path, PathBuf};

use thalweg::reads::is_many;
use thalweg::{Identified, Opened, OpenedStore, Options};
use thalweg_gauge::cache::{Method, Residency, residency, residency_of};
use thalweg_io::urls::{self, url};

use crate::cache::CacheArgs;
use crate::common::{Failure, VerbResult, ended, go_on_after, output};
use crate::open::TimeoutArgs;
use crate::options::{Kind, check as check_options};
use crate::signals::cancel_on_signal;
use crate::{arrays, fastq};

/// Show what is in a file: version, compression, columns, reads, layout findings, and what is
/// cached of it
///
/// The number of reads comes from the index, if there is one; otherwise --count reads the file.
///
/// A folder, a pattern, or files with --run are summarised as one run: reads, samples, bytes, N50,
/// acquisitions, end reasons. That goes through all files, but decodes no signal. Files that cannot
/// be read are named and left out, and the exit code is 1.
///
/// Example: thalweg info reads.blow5
///
/// Example: thalweg info run/ --json
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Summarise all files as one run
    #[arg(long, conflicts_with = "count")]
    run: bool,
    /// Print one JSON line a file, or one about the run
    #[arg(long)]
    json: bool,
    /// Count the reads by reading the file if it has no index; that beside an object is fetched
    #[arg(long)]
    count: bool,
    /// Show all attributes of a file of reads, and not only those of the acquisition
    #[arg(long)]
    all: bool,
    /// HDF5: trust the file; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
    #[command(flatten)]
    timeout: TimeoutArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

pub(crate) fn run(args: &InfoArgs) -> VerbResult {
    let control = cancel_on_signal();
    let (timeout, cache) = (args.timeout.timeout(), args.cache.cache());
    let options = Options { control, timeout, cache, ..Options::default() };
    let mut is_run = args.run;
    for path in &args.files {
        is_run = is_run || is_many(path, &options.control)?;
    }
    if is_run {
        if let Some(path) = args.files.first() {
            check_options(path, Kind::Run)?;
        }
        return run::run(&args.files, args.json, &options);
    }
    let mut out = output();
    let mut failed = false;
    for path in &args.files {
        match described(path, args, &options) {
            Ok((words, is_partial)) => {
                write!(out, "{words}")?;
                failed |= is_partial;
            }
            Err(failure) => {
                go_on_after(failure)?;
                failed = true;
            }
        }
    }
    out.flush()?;
    ended(failed)
}

/// A file, as a line of JSON or in words, and whether something in it could not be read.
fn described(path: &Path, args: &InfoArgs, options: &Options) -> Result<(String, bool), Failure> {
    let opened = OpenedStore::unthrottled(path, options)?;
    // This comes first, because reading the file brings parts of it into memory.
    let cached = cached(path, &opened)?;
    let identified = Identified::from_store(path, opened)?.trusted(args.trusted);
    match identified.open(options.clone())? {
        Opened::Arrays(file) => {
            check_options(path, Kind::Arrays)?;
            arrays::describe(path, &file, &cached, args.json)
        }
        Opened::Fastq(file) => {
            check_options(path, Kind::Fastq)?;
            Ok((fastq::describe(path, &file, &cached, args.json, args.count)?, false))
        }
        other => {
            let file = other.into_reads()?;
            check_options(path, Kind::Reads)?;
            Ok((reads::describe(path, file, cached, args, &options.control)?, false))
        }
    }
}

/// How much of a file is in memory.
fn cached(path: &Path, opened: &OpenedStore) -> Result<Residency, Failure> {
    if url(path).is_some() {
        return Ok(Residency {
            pages_total: 0,
            pages_resident: None,
            method: Method::Unknown("an object has no page cache".into()),
        });
    }
    let Some(file) = &opened.file else { return Ok(residency(path)?) };
    let asked = residency_of(file);
    Ok(asked.map_err(|e| {
        thalweg::Error::io(&urls::shown_path(path).into(), "asking what is cached of", e)
    })?)
}
