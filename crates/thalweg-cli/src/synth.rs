//! `thalweg synth`: realistic reads, events and networks at any size.

mod neuroglial;
mod nexus;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use indicatif::ProgressBar;
use thalweg::Error;
use thalweg::codec::deflate;
use thalweg::engine::default_threads;
use thalweg::format::pod5::write::{Identity, Layout, SignalCoding};
use thalweg::format::slow5::{Header, RecordPress, SignalPress};
use thalweg::new_file::NewFile;
use thalweg::pool;
use thalweg::synth::{Basecalls, Recipe, Synth, SynthRead};
use thalweg::write::{Coding, Target};
use thalweg_gauge::suite::Synthetic;

use crate::common::{Failure, Outcome, cancel_on_interrupt, parse_count};
use crate::progress;

/// Write a file of synthetic reads, neutron events or connectivity: realistic lengths, levels,
/// noise and lists; the same for the same seed
///
/// Example: thalweg synth run.blow5 --samples 1.2G
///
/// Example: thalweg synth run.pod5 --kind pod5
///
/// Example: thalweg synth reads.fastq.gz --kind fastq --bases 500M --gzip
///
/// Example: thalweg synth live.nxs --kind nexus-live --size 1.6GB --chunk 2048
///
/// Example: thalweg synth network.h5 --kind neuroglial --astrocytes 1000
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to write; it appears when it is whole
    output: PathBuf,
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    kind: Kind,
    /// Samples in all, as in 250M or 1.2G; a sample takes about 0.85 stored bytes
    #[arg(long, value_name = "N", default_value = "1.2G", value_parser = parse_count)]
    samples: u64,
    /// Everything random follows from it
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
    /// FASTQ: compress it
    #[arg(long)]
    gzip: bool,
    #[command(flatten)]
    nexus: nexus::NexusArgs,
    #[command(flatten)]
    neuroglial: neuroglial::NeuroglialArgs,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Kind {
    /// Nanopore signal, with its index
    #[default]
    Blow5,
    /// The same reads as POD5
    Pod5,
    /// Basecalled reads
    Fastq,
    /// Neutron events, as a run leaves them in a NeXus file: chunks of many banks in the order in
    /// which they were full
    NexusLive,
    /// Synapses and neurons of astrocytes, and astrocytes of neurons, as circuits keep them in HDF5
    Neuroglial,
}

/// Pieces that each thread may be ahead.
const AHEAD: usize = 8;

pub(crate) fn run(args: &Args) -> Outcome {
    let control = cancel_on_interrupt();
    let synthetic = match args.kind {
        Kind::Blow5 => Synthetic::Blow5 {
            samples: args.samples,
            seed: args.seed,
            record: args.record,
            signal: args.signal.unwrap_or(SignalPress::SvbZd),
        },
        Kind::Pod5 => Synthetic::Pod5 {
            samples: args.samples,
            seed: args.seed,
            signal: pod5_signal(args.signal)?,
        },
        Kind::Fastq => Synthetic::Fastq { bases: args.bases, seed: args.seed, gzip: args.gzip },
        Kind::NexusLive => {
            Synthetic::NexusLive(args.nexus.recipe(args.seed).map_err(Failure::of_argument)?)
        }
        Kind::Neuroglial => {
            Synthetic::Neuroglial(args.neuroglial.recipe(args.seed).map_err(Failure::of_argument)?)
        }
    };
    write(&args.output, &synthetic, &|| control.is_cancelled())
}

/// Writes a file, and its index where it has one. Ends with [`Error::Cancelled`] soon after
/// `stopped` says so.
pub(crate) fn write(path: &Path, synthetic: &Synthetic, stopped: &dyn Fn() -> bool) -> Outcome {
    match synthetic.clone() {
        Synthetic::Blow5 { samples, seed, record, signal } => {
            let synth = Synth::new(Recipe::with_samples(seed, samples))?;
            let header = synth.header(record, signal);
            reads(path, &synth, &header, Coding::Blow5(record, signal), stopped)
        }
        Synthetic::Pod5 { samples, seed, signal } => {
            let synth = Synth::new(Recipe::with_samples(seed, samples))?;
            // The same bytes for the same seed.
            let identity = Some(Identity::from_seed(seed));
            let layout = Layout { coding: signal, identity, ..Layout::default() };
            reads(path, &synth, &synth.full_header(), Coding::Pod5(layout), stopped)
        }
        Synthetic::Fastq { bases, seed, gzip } => fastq(path, bases, seed, gzip, stopped),
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

fn reads(
    path: &Path,
    synth: &Synth,
    header: &Header,
    coding: Coding,
    stopped: &dyn Fn() -> bool,
) -> Outcome {
    let failed = |fault: thalweg::Fault| {
        let message = format!("{}: {}, expected {}", path.display(), fault.found, fault.expected);
        Failure::Failed(Error::Usage(message.into()))
    };
    let target = Target::new(coding.clone(), header).map_err(failed)?;
    let mut out = target.create(path)?;
    let bar = bar((synth.recipe().reads as f64 * synth.recipe().mean_length) as u64 * 2);
    let make = || {
        let (target, mut encoder) = (&target, coding.encoder());
        let (mut read, mut aux) = (SynthRead::default(), Vec::new());
        move |i| {
            synth.read(i, &mut read);
            let encoder = encoder.as_mut().map_err(|fault| fault.clone())?;
            let record = read.record(header, &mut aux)?;
            Ok::<_, thalweg::Fault>((
                read.samples.len(),
                encoder.encode(target, &record, &read.samples)?,
            ))
        }
    };
    in_order(path, synth.recipe().reads, make, stopped, |made| {
        let (samples, read) = made.map_err(failed)?;
        out.push(read)?;
        bar.inc(samples as u64 * 2);
        Ok(())
    })?;
    if let Some(index) = out.finish()?.index {
        thalweg::write::save_index(&index, &thalweg::reads::index_path(path))?;
    }
    Ok(())
}

/// What gzip does unless told otherwise.
const GZIP_LEVEL: i32 = 6;
/// Records that are made, and compressed, together.
const TOGETHER: u64 = 64;

fn fastq(path: &Path, bases: u64, seed: u64, gzip: bool, stopped: &dyn Fn() -> bool) -> Outcome {
    let calls = Basecalls::with_bases(seed, bases)?;
    let mut out = NewFile::create(path)?;
    let bar = bar(bases * 2);
    let make = || {
        let (calls, mut packer) = (&calls, deflate::Compressor::new(GZIP_LEVEL));
        move |piece: u64| {
            let (mut text, mut packed) = (Vec::new(), Vec::new());
            for i in piece * TOGETHER..((piece + 1) * TOGETHER).min(calls.reads) {
                calls.record(i, &mut text);
            }
            let packer = packer.as_mut().map_err(|fault| fault.clone());
            // A gzip file may have several members, one after the other (RFC 1952, section 2.2).
            let done = if gzip { packer.and_then(|p| p.gzip(&text, &mut packed)) } else { Ok(()) };
            (text, done.map(|()| packed))
        }
    };
    in_order(path, calls.reads.div_ceil(TOGETHER), make, stopped, |(text, packed)| {
        let packed = packed
            .map_err(|fault| Error::Usage(format!("{}: {}", path.display(), fault.found).into()))?;
        out.push(if gzip { &packed } else { &text })?;
        bar.inc(text.len() as u64);
        Ok(())
    })?;
    out.finish()?;
    Ok(())
}

fn bar(bytes: u64) -> ProgressBar {
    if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
        progress::bar(bytes)
    } else {
        ProgressBar::hidden()
    }
}

/// Makes pieces 0 to `count` with all cores, and hands them over in their order.
fn in_order<T: Send, M: FnMut(u64) -> T + Send>(
    path: &Path,
    count: u64,
    maker: impl Fn() -> M,
    stopped: &dyn Fn() -> bool,
    mut take: impl FnMut(T) -> Outcome,
) -> Outcome {
    let name = path.display().to_string().into();
    pool::in_order(&name, default_threads(), AHEAD, count, maker, |piece| {
        if stopped() {
            return Err(Failure::Failed(Error::Cancelled));
        }
        take(piece)?;
        Ok(true)
    })
}
