//! How verbs open the paths of their arguments: one file by its content, many files as a data set,
//! and the options for both.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use thalweg::control::Control;
use thalweg::fastq::is_fastq_name;
use thalweg::format::Format;
use thalweg::graph::Network;
use thalweg::reads::{KeepIndex, ReadFile, ReadSet, WantedNames, find, find_named, is_many};
use thalweg::store::throttled::Limits;
use thalweg::{Error, Identified, Options, StoreKind};
use thalweg_io::open::set_timeout_of_urls;
use thalweg_io::urls::{self, url};

use crate::cache::CacheArgs;
use crate::common::{Failure, MEASURING, complain, counted, parse_bytes, parse_size};
use crate::done::say;
use crate::options::{Kind, check as check_options};
use crate::output_name::is_hdf5_name;
use crate::signals::cancel_on_signal;

/// How the library calls a file of arrays where files of reads are wanted.
pub(crate) const WITHOUT_READS: &str = "an HDF5 file without reads";

/// The options of every verb that reads files.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadArgs {
    /// Decode threads (default: all cores that this process may use)
    #[arg(long, short = 't', value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory for buffers, batches and codecs, as in 64MiB or 1GB (default: 192MiB, and up to
    /// 384MiB for objects at URLs)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<usize>,
    /// How bytes are read
    #[arg(long, value_enum, default_value_t, overrides_with = "store")]
    store: StoreChoice,
    #[command(flatten)]
    cache: CacheArgs,
    /// Slow the store down, as in bandwidth=150MB/s,latency=2ms,requests=2000/s,parallel=8 (any of
    /// them, or none)
    #[arg(long, value_name = "LIMITS", help_heading = MEASURING, overrides_with = "throttle")]
    throttle: Option<Limits>,
    /// HDF5: read gaps of up to SIZE between chunks instead of skipping them (default: the size
    /// that suits the store best)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, overrides_with = "gap")]
    #[arg(help_heading = MEASURING)]
    gap: Option<u64>,
    /// HDF5: find chunks through the file's own indexes, even if `thalweg index` has saved where
    /// they lie
    #[arg(long, help_heading = MEASURING, overrides_with = "no_index")]
    no_index: bool,
    #[command(flatten)]
    index: IndexPlaceArgs,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// Where indexes are kept.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct IndexPlaceArgs {
    /// Where new indexes (.idx) are kept; those that are there are used in any case. The variable
    /// THALWEG_INDEX says it for all runs
    #[arg(long, value_enum, value_name = "PLACE", env = "THALWEG_INDEX", hide_env = true)]
    #[arg(default_value_t, overrides_with = "index_in")]
    index_in: IndexPlace,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum IndexPlace {
    /// Beside the file, or in your cache folder where that cannot be written
    #[default]
    Beside,
    /// In your cache folder
    Cache,
    /// Nowhere: a verb that needs one makes it again each time
    None,
}

impl IndexPlaceArgs {
    /// The choice, for the library.
    pub(crate) fn keep(self) -> KeepIndex {
        match self.index_in {
            IndexPlace::Beside => KeepIndex::Beside,
            IndexPlace::Cache => KeepIndex::InCache,
            IndexPlace::None => KeepIndex::No,
        }
    }
}

/// Says where an index was kept, the first time. A verb may make thousands.
fn say_index(place: &Path) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let why = "an index, to find reads sooner; --index-in cache or none keeps none here";
        say(&format!("{}: {why}", urls::shown_path(place)));
    }
}

/// How long a read of an object waits.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct TimeoutArgs {
    /// URLs: fail after SECONDS without progress, all tries included (default: 30)
    #[arg(long, value_name = "SECONDS", overrides_with = "timeout", value_parser = parse_timeout)]
    timeout: Option<u32>,
}

/// The longest time-out: a day.
const LONGEST_TIMEOUT_S: u32 = 86_400;

/// Parses a time-out.
fn parse_timeout(text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=LONGEST_TIMEOUT_S).contains(seconds));
    seconds.ok_or_else(|| {
        format!("{text:?} is no whole number of seconds from 1 to {LONGEST_TIMEOUT_S}")
    })
}

impl TimeoutArgs {
    /// The time-out, if it is given. From now on it is that of all requests of this process.
    pub(crate) fn timeout(self) -> Option<Duration> {
        let timeout = self.timeout.map(|seconds| Duration::from_secs(seconds.into()));
        timeout.inspect(|&timeout| set_timeout_of_urls(timeout))
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum StoreChoice {
    /// Past the page cache for files too large to stay in it, otherwise through it
    #[default]
    Auto,
    /// Through the page cache, several reads in flight
    Buffered,
    /// Past the page cache (O_DIRECT)
    Direct,
    /// Past the page cache, with io_uring where that is allowed
    Uring,
    /// Through a map of the file, which no program may change meanwhile
    Mmap,
    /// For measurements: from memory, where all of the file is put before the clock starts; the
    /// budget does not count it
    Memory,
}

/// Bytes of memory for each thread below which blocks that the allocator keeps count.
const LITTLE_MEMORY: usize = 4 << 20;

impl ReadArgs {
    /// The library's options, with Ctrl-C connected.
    pub(crate) fn options(&self) -> Options {
        let usual = Options::limited(self.threads(), self.memory);
        let budget = usual.budget;
        if budget.memory / budget.threads.max(1) < LITTLE_MEMORY {
            thalweg_io::return_large_blocks();
        }
        Options {
            store: match self.store {
                StoreChoice::Auto => StoreKind::Auto,
                StoreChoice::Buffered => StoreKind::Buffered,
                StoreChoice::Direct => StoreKind::Direct,
                StoreChoice::Uring => StoreKind::Uring,
                StoreChoice::Mmap => StoreKind::Mmap,
                StoreChoice::Memory => StoreKind::Memory,
            },
            control: cancel_on_signal(),
            throttle: self.throttle.filter(|limits| *limits != Limits::default()),
            gap: self.gap,
            own_index: self.no_index,
            keep_index: self.index.keep(),
            index_kept: Some(say_index),
            timeout: self.timeout.timeout(),
            cache: self.cache.cache(),
            ..usual
        }
    }

    /// The number of decode threads, if --threads is given.
    pub(crate) fn threads(&self) -> Option<usize> {
        self.threads.map(usize::from)
    }
}

/// Finds out what the file at a path holds. `None` for folders and patterns, and if there is no
/// file.
pub(crate) fn identify(
    path: &Path,
    is_trusted: bool,
    options: &Options,
) -> thalweg::Result<Option<Identified>> {
    let is_none =
        if url(path).is_some() { is_many(path, &options.control)? } else { !path.is_file() };
    if is_none {
        return Ok(None);
    }
    Ok(Some(Identified::new(path, options)?.trusted(is_trusted)))
}

/// Prints the warning about a file of reads, if there is one.
pub(crate) fn print_note(path: &Path, file: &ReadFile) {
    if let Some(note) = file.note() {
        complain(&format!("{}: {note}", urls::shown_path(path)));
    }
}

/// Opens files and folders as one data set, and prints warnings about them.
pub(crate) fn open_set(paths: &[PathBuf], options: Options) -> Result<ReadSet, Failure> {
    open_set_with(paths, None, options)
}

/// Opens files and folders as one data set. `known`: one of the files, if it is open already.
pub(crate) fn open_set_with(
    paths: &[PathBuf],
    known: Option<ReadFile>,
    options: Options,
) -> Result<ReadSet, Failure> {
    if let Some(path) = paths.first() {
        check_options(path, Kind::Reads)?;
    }
    let set = ReadSet::open_with(paths, known, options);
    let set = set.map_err(|error| about_arrays(paths, about_others(paths, error)))?;
    for (path, note) in set.notes() {
        complain(&format!("{}: {note}", urls::shown_path(path)));
    }
    Ok(set)
}

/// The files of reads at paths, in folders, and of patterns.
pub(crate) fn find_reads(paths: &[PathBuf], control: &Control) -> Result<Vec<PathBuf>, Failure> {
    Ok(find(paths, control).map_err(|error| about_others(paths, error))?)
}

/// The files that `check` looks for in folders: those of reads, FASTQ and arrays.
pub(crate) fn find_all(paths: &[PathBuf], control: &Control) -> Result<Vec<PathBuf>, Failure> {
    let wanted = WantedNames {
        is_wanted: |path| {
            Format::of_path(path).is_some() || is_fastq_name(path) || is_hdf5_name(path)
        },
        ends: format!("{}, .fastq, .fq (.gz), .nxs, .h5 or .hdf5", Format::extensions(".")),
    };
    Ok(find_named(paths, &wanted, control).map_err(|error| about_others(paths, error))?)
}

fn fastq_names() -> WantedNames {
    WantedNames { is_wanted: is_fastq_name, ends: ".fastq or .fq".into() }
}

/// The error for several paths of which one is a file of arrays.
fn about_arrays(paths: &[PathBuf], error: Error) -> Error {
    match error {
        Error::Unsupported { file, what, .. }
            if paths.len() > 1 && what.starts_with(WITHOUT_READS) =>
        {
            let advice = "name it alone: files of arrays are taken one by one".into();
            Error::Unsupported { file, what, advice }
        }
        error => error,
    }
}

/// The error for paths without reads: it names the verbs for networks or FASTQ if one of the paths
/// is such.
fn about_others(paths: &[PathBuf], error: Error) -> Error {
    if let Error::Malformed { file, .. } = &error
        && is_fastq_name(Path::new(&**file))
    {
        return Error::Unsupported {
            file: file.clone(),
            what: "FASTQ in place of signal".into(),
            advice: "`thalweg info`, `read`, `check`, `convert` and `filter` read FASTQ".into(),
        };
    }
    if let (Error::NotFound { .. }, [folder]) = (&error, paths)
        && folder.is_dir()
        && !Network::is_at(folder)
        && let Ok(files) = find_named(paths, &fastq_names(), &Control::default())
    {
        return Error::Unsupported {
            file: urls::shown_path(folder).into(),
            what: format!(
                "a folder of FASTQ ({}) in place of signal",
                counted(files.len() as u64, "file")
            )
            .into(),
            advice: "`thalweg check` takes the folder; the other verbs for FASTQ take one file"
                .into(),
        };
    }
    match paths.iter().find(|path| Network::is_at(path)) {
        Some(path) if !matches!(error, Error::Cancelled) => Error::Unsupported {
            file: urls::shown_path(path).into(),
            what: "a network in place of reads".into(),
            advice: "`thalweg graph info` describes it, and `thalweg graph` has the other verbs"
                .into(),
        },
        _ => error,
    }
}
