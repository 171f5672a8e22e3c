//! What every verb needs: exit codes, Ctrl-C, output that survives a closed pipe.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use thalweg::control::Control;
use thalweg::engine::default_threads;
use thalweg::plan::{Budget, DEFAULT_MEMORY};
use thalweg::reads::{Options, ReadFile, ReadSet, StoreKind};
use thalweg::store::throttled::Limits;

pub(crate) use thalweg_gauge::units::{parse_bytes, parse_count};

/// Why a verb stopped short.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong with a file.
    Failed(thalweg::Error),
    /// Something went wrong that is no file's fault, or has been told of already where there is no
    /// message.
    Said(String),
    /// The arguments make no sense together.
    Usage(String),
    /// A comparison was refused or a bar was missed.
    FellShort(String),
    /// Standard output is gone (`| head`): nothing is left to say, and nobody to say it to.
    OutputClosed,
}

impl Failure {
    /// A failure of which the library says that an argument makes no sense.
    pub(crate) fn of_argument(error: thalweg::Error) -> Self {
        match error {
            thalweg::Error::Usage(message) => Self::Usage(message.into_owned()),
            other => Self::Failed(other),
        }
    }
}

impl From<thalweg::Error> for Failure {
    fn from(error: thalweg::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<thalweg_gauge::Error> for Failure {
    fn from(error: thalweg_gauge::Error) -> Self {
        match error {
            thalweg_gauge::Error::Cancelled => Self::Failed(thalweg::Error::Cancelled),
            thalweg_gauge::Error::Usage(message) | thalweg_gauge::Error::Suite(message) => {
                Self::Usage(message)
            }
            other => Self::Said(other.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Failed(thalweg::Error::io(&"standard output".into(), "writing", error)),
        }
    }
}

pub(crate) type Outcome = Result<(), Failure>;

/// How many processes MPI has started with this one, as it tells each of them.
pub(crate) fn ranks() -> usize {
    let size = |name| std::env::var(name).ok()?.parse().ok();
    ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"]
        .into_iter()
        .find_map(size)
        .map_or(1, |size: usize| size.max(1))
}

/// Refuses what each of MPI's processes would do anew.
pub(crate) fn alone() -> Outcome {
    match ranks() {
        1 => Ok(()),
        ranks => Err(Failure::Usage(format!(
            "MPI has started {ranks} processes, and each would do all of this: ranks share the reading of whole arrays, \
             as in `thalweg read FILE PATH..`, and no more; suites of `thalweg bench` start ranks by themselves"
        ))),
    }
}

/// Exit codes: 0 done, 1 failed, 2 usage, 3 a bar or comparison fell short, 130 interrupted.
pub(crate) fn exit(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Failed(thalweg::Error::Cancelled)) => {
            complain(&"interrupted");
            ExitCode::from(130)
        }
        Err(Failure::Failed(error)) => {
            complain(&error);
            ExitCode::from(1)
        }
        Err(Failure::FellShort(message)) => {
            complain(&message);
            ExitCode::from(3)
        }
        Err(Failure::Said(message)) => {
            if !message.is_empty() {
                complain(&message);
            }
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            complain(&message);
            ExitCode::from(2)
        }
    }
}

/// Says something on standard error; a closed one is nobody's problem.
pub(crate) fn complain(message: &dyn Display) {
    let _ = writeln!(io::stderr(), "thalweg: {message}");
}

/// Buffered standard output.
pub(crate) fn output() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// A handle that Ctrl-C pulls; a second Ctrl-C ends the process at once.
pub(crate) fn cancel_on_interrupt() -> Control {
    let cancel = Control::new();
    let handle = cancel.clone();
    on_interrupt(move || {
        let again = handle.is_cancelled();
        handle.cancel();
        again
    });
    cancel
}

/// A flag that Ctrl-C raises, for work that looks at one; a second Ctrl-C ends the process at once.
pub(crate) fn flag_on_interrupt() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    on_interrupt(move || raised.swap(true, Ordering::Relaxed));
    flag
}

/// Calls `stop` at Ctrl-C; it tells whether it had been called before.
fn on_interrupt(mut stop: impl FnMut() -> bool + Send + 'static) {
    let set = ctrlc::set_handler(move || {
        if stop() {
            std::process::exit(130);
        }
    });
    if let Err(error) = set {
        complain(&format!("Ctrl-C will not stop cleanly: {error}"));
    }
}

/// How to read, the same for every verb that reads.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadArgs {
    /// Decode threads (default: all cores that this process may use)
    #[arg(long, short = 't', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory for buffers, batches and codecs, as in 64MiB or 1GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<usize>,
    /// Which way the bytes come
    #[arg(long, value_enum, default_value_t, overrides_with = "store")]
    store: StoreChoice,
    /// Slow the store down, as in bandwidth=150MB/s,latency=2ms,requests=2000/s,parallel=8 (any of
    /// them, or none)
    #[arg(long, value_name = "LIMITS", help_heading = MEASURING, overrides_with = "throttle")]
    throttle: Option<Limits>,
    /// HDF5: read gaps between chunks of up to SIZE rather than skip them, instead of what suits
    /// the store best
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = MEASURING, overrides_with = "gap")]
    gap: Option<u64>,
    /// HDF5: find chunks through the file's own indexes, though `thalweg index` saved where they
    /// lie
    #[arg(long, help_heading = MEASURING, overrides_with = "no_index")]
    no_index: bool,
}

/// The heading of options that only measurements need.
pub(crate) const MEASURING: &str = "For measurements";

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum StoreChoice {
    /// Past the page cache for files too large to stay in it, else through it
    #[default]
    Auto,
    /// Through the page cache, several reads in flight
    Buffered,
    /// Past the page cache (O_DIRECT)
    Direct,
    /// Past the page cache, with io_uring where that is allowed
    Uring,
    /// Through a map of the file, which nothing may change meanwhile
    Mmap,
    /// For measurements: from memory, over the budget, where all of the file was put before the
    /// clock started
    Memory,
}

impl ReadArgs {
    /// The library's options, with Ctrl-C connected, and what libhdf5 is going to open looked
    /// through first.
    pub(crate) fn options(&self) -> Options {
        let options = self.trusting();
        #[cfg(feature = "hdf5")]
        crate::hdf5::guard(&options);
        options
    }

    /// The same for files that are taken for harmless.
    pub(crate) fn trusting(&self) -> Options {
        Options {
            store: match self.store {
                StoreChoice::Auto => StoreKind::Auto,
                StoreChoice::Buffered => StoreKind::Buffered,
                StoreChoice::Direct => StoreKind::Direct,
                StoreChoice::Uring => StoreKind::Uring,
                StoreChoice::Mmap => StoreKind::Mmap,
                StoreChoice::Memory => StoreKind::Memory,
            },
            budget: self.budget(),
            control: cancel_on_interrupt(),
            model: None,
            throttle: self.throttle.filter(|limits| *limits != Limits::default()),
            gap: self.gap,
            own_index: self.no_index,
        }
    }

    /// Decode threads of each of so many processes.
    #[cfg(feature = "hdf5")]
    pub(crate) fn threads_of(&self, processes: usize) -> usize {
        self.threads.map_or_else(|| (default_threads() / processes).max(1), usize::from)
    }

    pub(crate) fn budget(&self) -> Budget {
        Budget {
            threads: self.threads.map_or_else(default_threads, usize::from),
            memory: self.memory.unwrap_or(DEFAULT_MEMORY),
        }
    }
}

/// Opens a file, and says what is not as it was asked for.
pub(crate) fn open(path: &Path, options: Options) -> Result<ReadFile, Failure> {
    let file = ReadFile::open(path, options)?;
    if let Some(note) = file.note() {
        complain(&format!("{}: {note}", path.display()));
    }
    Ok(file)
}

/// Opens files and folders as one data set, and says what is not as it was asked for.
pub(crate) fn open_set(paths: &[PathBuf], options: Options) -> Result<ReadSet, Failure> {
    let set = ReadSet::open(paths, options)?;
    for (path, note) in set.notes() {
        complain(&format!("{}: {note}", path.display()));
    }
    Ok(set)
}

/// Read ids from a file, one a line; `-` is standard input.
pub(crate) fn read_ids(path: &Path) -> Result<Vec<String>, Failure> {
    let name: Arc<str> = path.to_string_lossy().into();
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|e| thalweg::Error::io(&name, "reading", e))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Least memory that holds the smallest buffers, a batch and codec state.
const LEAST_MEMORY: usize = 4 << 20;

/// A memory budget, as [`parse_bytes`].
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes(text)? as usize;
    if bytes < LEAST_MEMORY {
        Err(format!("at least {LEAST_MEMORY} bytes are needed"))
    } else {
        Ok(bytes)
    }
}
