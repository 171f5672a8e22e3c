//! How the verbs open networks.

use std::path::Path;

use clap::Args;
use thalweg::graph::{Network, NetworkOptions, NumberCoding, Writer};
use thalweg::plan::{Budget, DEFAULT_MEMORY};
use thalweg_io::urls::{self, url};

use crate::common::{Failure, VerbResult, parse_size};
use crate::signals::cancel_on_signal;

/// Threads, memory, and how files are read.
#[derive(Debug, Clone, Args)]
pub(super) struct OpenArgs {
    /// Threads (default: all cores that this process may use)
    #[arg(long, short = 't', value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Memory for buffers and for sorting, as in 64MiB or 1GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<usize>,
    /// Read the store's files instead of mapping them: for file systems where another program may
    /// truncate them
    #[arg(long)]
    no_map: bool,
}

impl OpenArgs {
    pub(super) fn options(&self) -> NetworkOptions {
        let threads = self.threads.map_or_else(thalweg::engine::default_threads, usize::from);
        NetworkOptions {
            budget: Budget { threads, memory: self.memory() },
            control: cancel_on_signal(),
            is_mapped: !self.no_map,
            ..NetworkOptions::default()
        }
    }

    /// The memory that may be used, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.memory.unwrap_or(DEFAULT_MEMORY)
    }

    /// Opens an existing network for reading.
    pub(super) fn read(&self, store: &Path) -> Result<Network, Failure> {
        existing(store, self.options())
    }

    /// Opens an existing network for changes.
    pub(super) fn write(&self, store: &Path) -> Result<Writer, Failure> {
        to_change(store, self.options())
    }
}

/// Opens an existing network for reading.
pub(super) fn existing(store: &Path, options: NetworkOptions) -> Result<Network, Failure> {
    check_is_no_file(store, "import it first with `thalweg graph import`")?;
    Ok(Network::open(store, options)?)
}

/// Opens an existing network for changes.
pub(super) fn to_change(store: &Path, options: NetworkOptions) -> Result<Writer, Failure> {
    // The network must exist already: a mistyped name must not create a new network. At a URL, none
    // is changed.
    if url(store).is_none() {
        existing(store, options.clone())?;
    }
    Ok(Writer::open(store, options)?)
}

/// Changes a network, which is made if there is none. What was made is removed again if nothing
/// comes into it because the change fails.
pub(super) fn change_or_make(
    store: &Path,
    options: NetworkOptions,
    change: impl FnOnce(&mut Writer) -> VerbResult,
) -> VerbResult {
    check_is_no_file(store, "a store is a folder")?;
    let mut writer = Writer::open(store, options).map_err(Failure::of_argument)?;
    let changed = change(&mut writer);
    if changed.is_err() {
        // The failure that is told is the first one.
        let _ = writer.undo_new();
    }
    changed
}

/// Refuses a file in the place of a store.
pub(super) fn check_is_no_file(store: &Path, advice: &str) -> VerbResult {
    if store.is_file() {
        let what = format!("{}: is a file, not a store; {advice}", urls::shown_path(store));
        return Err(Failure::Usage(what));
    }
    Ok(())
}

/// How ids are stored in segments.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub(super) enum CodingChoice {
    /// In as few bits as they need
    #[default]
    Packed,
    /// Eight bytes each: larger, and faster to read once in memory
    Raw,
}

impl From<CodingChoice> for NumberCoding {
    fn from(choice: CodingChoice) -> Self {
        match choice {
            CodingChoice::Packed => Self::Packed,
            CodingChoice::Raw => Self::Raw,
        }
    }
}
