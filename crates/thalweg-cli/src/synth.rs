//! `thalweg synth`: realistic reads, events and networks at any size.

mod neuroglial;
mod nexus;
mod reads;
mod suites;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ValueEnum;
use indicatif::ProgressBar;
use thalweg::engine::default_threads;
use thalweg::format::pod5::write::{Identity, Pod5Layout, SignalCoding};
use thalweg::format::slow5::{RecordPress, SignalPress};
use thalweg::reads::{KeepIndex, index_path, is_index};
use thalweg::synth::{self, Recipe, Synth};
use thalweg::write::Coding;
use thalweg::{Error, Result, pool};
use thalweg_io::urls;

use crate::common::{Failure, VerbResult, parse_count, shown_path};
use crate::done::say_done;
use crate::force::{ForceArgs, check_sidecar};
use crate::open::IndexPlaceArgs;
use crate::options::{self, Kind};
use crate::output_name::check_name;
use crate::progress;
use crate::signals::cancel_on_signal;

pub(crate) use suites::SyntheticFiles;

/// Write a file of synthetic reads, neutron events or connectivity, with realistic lengths, levels,
/// noise and lists; one seed always gives one file
///
/// Example: thalweg synth run.blow5 --samples 1.2G
///
/// Example: thalweg synth run.pod5 --samples 250M
///
/// Example: thalweg synth reads.fastq.gz --bases 500M
///
/// Example: thalweg synth live.nxs --kind nexus-live --size 1.6GB --chunk 2048
///
/// Example: thalweg synth network.h5 --kind neuroglial --astrocytes 1000
#[derive(Debug, clap::Args)]
pub(crate) struct SynthArgs {
    /// The file to write; it appears when it is complete
    output: PathBuf,
    #[command(flatten)]
    force: ForceArgs,
    /// What to write (default: by the end of the name, .blow5, .pod5, .fastq, .fastq.gz or .nxs)
    #[arg(long, value_enum)]
    kind: Option<FileKind>,
    /// Samples in all, as in 250M or 1.2G; a sample takes about 0.85 stored bytes
    #[arg(long, value_name = "N", default_value = "1.2G", value_parser = parse_count)]
    samples: u64,
    /// The seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// BLOW5: compression of each record: none, zlib or zstd
    #[arg(long, value_name = "NAME", default_value = "zstd")]
    record: RecordPress,
    /// Compression of each signal. BLOW5: none, svb-zd (default), ex-zd or svb16-zd; POD5: none or
    /// vbz (default)
    #[arg(long, value_name = "NAME")]
    signal: Option<SignalPress>,
    /// FASTQ: bases in all, as in 500M; a base takes two bytes, or one with --gzip
    #[arg(long, value_name = "N", default_value = "1G", value_parser = parse_count)]
    bases: u64,
    /// FASTQ: compress it, as a name that ends in .gz asks for, too
    #[arg(long)]
    gzip: bool,
    #[command(flatten)]
    index: IndexPlaceArgs,
    #[command(flatten)]
    nexus: nexus::NexusArgs,
    #[command(flatten)]
    neuroglial: neuroglial::NeuroglialArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FileKind {
    /// Nanopore signal, with its index
    Blow5,
    /// Nanopore signal as POD5
    Pod5,
    /// Basecalled reads
    Fastq,
    /// Neutron events as a live run writes them to a NeXus file: chunks of many banks, in the order
    /// in which they were filled
    NexusLive,
    /// Synapses and neurons of astrocytes, and astrocytes of neurons, as circuits keep them in HDF5
    Neuroglial,
}

impl FileKind {
    /// The kind that an option must fit.
    fn of_options(self) -> Kind {
        match self {
            Self::Blow5 => Kind::Blow5,
            Self::Pod5 => Kind::Pod5,
            Self::Fastq => Kind::Fastq,
            Self::NexusLive => Kind::NexusLive,
            Self::Neuroglial => Kind::Neuroglial,
        }
    }

    /// The kind that the end of a name stands for. Names may end in .h5 for two kinds.
    fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(".gz").filter(|name| name.ends_with("q")).unwrap_or(name);
        match name.rsplit_once('.')?.1 {
            "blow5" => Some(Self::Blow5),
            "pod5" => Some(Self::Pod5),
            "fastq" | "fq" => Some(Self::Fastq),
            "nxs" => Some(Self::NexusLive),
            _ => None,
        }
    }
}

impl SynthArgs {
    /// What to write. The end of the name must not say another format.
    fn kind(&self) -> Result<FileKind, Failure> {
        let kind = self.kind_by_option_or_name()?;
        let (written, ends): (_, &[&str]) = match kind {
            FileKind::Blow5 => ("BLOW5", &["blow5"]),
            FileKind::Pod5 => ("POD5", &["pod5"]),
            FileKind::Fastq if self.is_gzip() => ("gzip", &["gz"]),
            FileKind::Fastq => ("FASTQ", &["fastq", "fq"]),
            FileKind::NexusLive => ("HDF5", &["nxs", "h5", "hdf5"]),
            FileKind::Neuroglial => ("HDF5", &["h5", "hdf5"]),
        };
        check_name(&self.output, written, ends)?;
        Ok(kind)
    }

    /// Whether FASTQ is compressed: by the end of the name, or where the name says nothing, by
    /// --gzip.
    fn is_gzip(&self) -> bool {
        self.gzip || self.output.extension().is_some_and(|end| end == "gz")
    }

    fn kind_by_option_or_name(&self) -> Result<FileKind, Failure> {
        self.kind.or_else(|| FileKind::of_name(&self.output)).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: the end of the name does not say what to write; --kind says it",
                shown_path(&self.output)
            ))
        })
    }
}

/// A synthetic file. One recipe makes the same bytes on every machine.
#[derive(Debug, Clone, PartialEq)]
enum Synthetic {
    /// Nanopore signal in a BLOW5 file, with its index.
    Blow5 {
        /// The approximate number of samples.
        samples: u64,
        /// The seed of all random numbers.
        seed: u64,
        /// Compression of each record.
        record: RecordPress,
        /// Compression of each signal.
        signal: SignalPress,
    },
    /// Nanopore signal in a POD5 file.
    Pod5 {
        /// The approximate number of samples.
        samples: u64,
        /// The seed of all random numbers.
        seed: u64,
        /// How samples are stored.
        signal: SignalCoding,
    },
    /// Basecalled reads.
    Fastq {
        /// The approximate number of bases.
        bases: u64,
        /// The seed of all random numbers.
        seed: u64,
        /// Whether the file is gzipped.
        gzip: bool,
    },
    /// Neutron events in a NeXus file.
    NexusLive(synth::nexus::NexusRecipe),
    /// Connectivity of astrocytes, synapses and neurons.
    Neuroglial(synth::neuroglial::CircuitRecipe),
}

/// How many pieces each thread may be ahead of the writer.
const AHEAD: usize = 8;

pub(crate) fn run(args: &SynthArgs) -> VerbResult {
    let started = Instant::now();
    args.force.check(&args.output, [""; 0])?;
    let kind = args.kind()?;
    options::check(&args.output, kind.of_options())?;
    let keep = args.index.keep();
    let has_index = matches!(kind, FileKind::Blow5) && keep != KeepIndex::No;
    if has_index && keep == KeepIndex::Beside {
        check_sidecar(&index_path(&args.output), &args.output, is_index)?;
    }
    let control = cancel_on_signal();
    let synthetic = match kind {
        FileKind::Blow5 => Synthetic::Blow5 {
            samples: args.samples,
            seed: args.seed,
            record: args.record,
            signal: args.signal.unwrap_or(SignalPress::SvbZd),
        },
        FileKind::Pod5 => Synthetic::Pod5 {
            samples: args.samples,
            seed: args.seed,
            signal: pod5_signal(args.signal)?,
        },
        FileKind::Fastq => {
            Synthetic::Fastq { bases: args.bases, seed: args.seed, gzip: args.is_gzip() }
        }
        FileKind::NexusLive => {
            Synthetic::NexusLive(args.nexus.recipe(args.seed).map_err(Failure::of_argument)?)
        }
        FileKind::Neuroglial => {
            Synthetic::Neuroglial(args.neuroglial.recipe(args.seed).map_err(Failure::of_argument)?)
        }
    };
    // BLOW5 is written with its new index.
    write(&args.output, &synthetic, keep, &|| control.is_cancelled())?;
    if !matches!(synthetic, Synthetic::Blow5 { .. }) {
        args.force.remove_old_index(&args.output);
    }
    let name = kind.of_options().name();
    let index = if has_index { " and its index" } else { "" };
    say_done(&format!("made {name}{index}"), &args.output, started.elapsed().as_secs_f64());
    Ok(())
}

/// Writes a file, and its index where the format has one. Ends with [`Error::Cancelled`] soon after
/// `stopped` returns true.
fn write(
    path: &Path,
    synthetic: &Synthetic,
    keep: KeepIndex,
    stopped: &dyn Fn() -> bool,
) -> Result<()> {
    match synthetic.clone() {
        Synthetic::Blow5 { samples, seed, record, signal } => {
            let synth = Synth::new(Recipe::with_samples(seed, samples))?;
            let header = synth.header(record, signal);
            reads::signal(path, &synth, &header, Coding::Blow5(record, signal), keep, stopped)
        }
        Synthetic::Pod5 { samples, seed, signal } => {
            let synth = Synth::new(Recipe::with_samples(seed, samples))?;
            // One seed makes one file: identifiers follow from it, too.
            let identity = Some(Identity::from_seed(seed));
            let layout = Pod5Layout { coding: signal, identity, ..Pod5Layout::default() };
            reads::signal(path, &synth, &synth.full_header(), Coding::Pod5(layout), keep, stopped)
        }
        Synthetic::Fastq { bases, seed, gzip } => reads::fastq(path, bases, seed, gzip, stopped),
        Synthetic::NexusLive(recipe) => nexus::write(path, recipe, stopped),
        Synthetic::Neuroglial(recipe) => neuroglial::write(path, recipe, stopped),
    }
}

fn pod5_signal(signal: Option<SignalPress>) -> Result<SignalCoding, Failure> {
    match signal {
        None | Some(SignalPress::Vbz) => Ok(SignalCoding::default()),
        Some(SignalPress::None) => Ok(SignalCoding::Plain),
        Some(other) => {
            Err(Failure::Usage(format!("--signal {}: POD5 has none and vbz", other.name())))
        }
    }
}

fn bar(bytes: u64) -> ProgressBar {
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        progress::bar(bytes)
    } else {
        ProgressBar::hidden()
    }
}

/// Makes pieces 0 to `count` with all cores, and passes them to `take` in their order.
fn in_order<T: Send, M: FnMut(u64) -> T + Send>(
    path: &Path,
    count: u64,
    maker: impl Fn() -> M,
    stopped: &dyn Fn() -> bool,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let name = urls::shown_path(path).into();
    pool::in_order(&name, default_threads(), AHEAD, count, maker, |piece| {
        if stopped() {
            return Err(Error::Cancelled);
        }
        take(piece)?;
        Ok(true)
    })
}
