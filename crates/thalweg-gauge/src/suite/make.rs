//! Files that a suite needs, and how those that are not there come to be.

use std::path::PathBuf;

use thalweg::format::pod5::write::SignalCoding;
use thalweg::format::slow5::{RecordPress, SignalPress};
use thalweg::synth::{neuroglial, nexus};
use toml::de::DeValue;

use super::ids::IdList;
use super::node::{Problems, Table, expected, string};
use crate::units::{parse_bytes, parse_count};
use crate::workload::Workload;

/// A file that a comparison needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Needed {
    /// Where it lies, or will.
    pub path: PathBuf,
    /// Where it comes from if it does not lie there yet.
    pub make: Make,
}

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Make {
    /// It is the user's, and it is there.
    Given,
    /// Synthetic reads.
    Synth(Synthetic),
    /// A list of read ids, one a line.
    Ids {
        /// The reads.
        of: PathBuf,
        /// Which of them, in which order.
        list: IdList,
    },
    /// A command that writes the file to `partial`, which is then renamed.
    Command {
        /// The command.
        workload: Workload,
        /// What it writes.
        partial: PathBuf,
    },
}

/// A synthetic file: the same on every machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Synthetic {
    /// Nanopore signal with its index.
    Blow5 {
        /// About how many samples.
        samples: u64,
        /// Everything random follows from it.
        seed: u64,
        /// Compression of each record.
        record: RecordPress,
        /// Compression of each signal.
        signal: SignalPress,
    },
    /// The same reads as POD5.
    Pod5 {
        /// About how many samples.
        samples: u64,
        /// Everything random follows from it.
        seed: u64,
        /// How samples are stored.
        signal: SignalCoding,
    },
    /// Basecalled reads.
    Fastq {
        /// About how many bases.
        bases: u64,
        /// Everything random follows from it.
        seed: u64,
        /// Whether it is a .gz.
        gzip: bool,
    },
    /// Neutron events in a NeXus file.
    NexusLive(nexus::Recipe),
    /// Connectivity of astrocytes, synapses and neurons.
    Neuroglial(neuroglial::Recipe),
}

impl Synthetic {
    pub(super) fn parse(mut table: Table<'_, '_>, problems: &mut Problems) -> Option<Self> {
        let kind = table.required("kind", problems);
        let seed =
            table.read("seed", problems, |v| super::node::whole(v, 0)).map_or(1, |s| s.value);
        let made = match kind.as_ref().map(|k| k.value.as_str()) {
            Some("blow5") => {
                let samples =
                    table.read("samples", problems, count).map_or(1_200_000_000, |n| n.value);
                let record = table
                    .read("record", problems, |v| press(v))
                    .map_or(RecordPress::Zstd, |p| p.value);
                let signal = table
                    .read("signal", problems, |v| press(v))
                    .map_or(SignalPress::SvbZd, |p| p.value);
                Some(Self::Blow5 { samples, seed, record, signal })
            }
            Some("pod5") => {
                let samples =
                    table.read("samples", problems, count).map_or(1_200_000_000, |n| n.value);
                let signal = table
                    .read("signal", problems, pod5_signal)
                    .map_or(SignalCoding::default(), |s| s.value);
                Some(Self::Pod5 { samples, seed, signal })
            }
            Some("fastq") => {
                let bases = table.read("bases", problems, count).map_or(1_000_000_000, |n| n.value);
                let gzip = table.flag("gzip", problems).unwrap_or(false);
                Some(Self::Fastq { bases, seed, gzip })
            }
            Some("nexus-live") => nexus_live(&mut table, seed, problems),
            Some("neuroglial") => neuroglial(&mut table, seed, problems),
            Some(other) => {
                let at = kind.as_ref().map_or_else(|| table.at.clone(), |k| k.at.clone());
                let known = "\"blow5\", \"pod5\", \"fastq\", \"nexus-live\" or \"neuroglial\"";
                problems.add(&at, format!("`kind` of `synth`: expected {known}, found {other:?}"));
                return None;
            }
            None => return None,
        };
        table.finish(problems);
        made
    }

    /// A name that says all of the recipe, so that a file that is there is the right one.
    pub fn file_name(&self) -> String {
        let seeded = |seed: &u64| if *seed == 1 { String::new() } else { format!("-seed{seed}") };
        let round = |n: u64| {
            if n.is_multiple_of(1_000_000) { format!("{}M", n / 1_000_000) } else { n.to_string() }
        };
        match self {
            Self::Blow5 { samples, seed, record, signal } => {
                let (samples, seed) = (round(*samples), seeded(seed));
                format!("synth-{samples}-{}-{}{seed}-v1.blow5", record.name(), signal.name())
            }
            Self::Pod5 { samples, seed, signal } => {
                let coding = if *signal == SignalCoding::Plain { "none" } else { "vbz" };
                format!("synth-{}-{coding}{}-v1.pod5", round(*samples), seeded(seed))
            }
            Self::Fastq { bases, seed, gzip } => {
                let end = if *gzip { ".gz" } else { "" };
                format!("synth-{}{}-v1.fastq{end}", round(*bases), seeded(seed))
            }
            Self::NexusLive(recipe) => recipe.file_name(),
            Self::Neuroglial(recipe) => recipe.file_name(),
        }
    }

    /// About how large it will be.
    pub fn about_bytes(&self) -> u64 {
        let (units, bytes_each) = match self {
            Self::Blow5 { samples, signal: SignalPress::None, .. } => (*samples, 2.0),
            Self::Pod5 { samples, signal: SignalCoding::Plain, .. } => (*samples, 2.0),
            Self::Blow5 { samples, .. } | Self::Pod5 { samples, .. } => (*samples, 0.85),
            Self::Fastq { bases, gzip: true, .. } => (*bases, 0.9),
            Self::Fastq { bases, .. } => (*bases, 2.05),
            // Times hardly compress.
            Self::NexusLive(recipe) if recipe.coding == nexus::Coding::NONE => (recipe.events, 8.2),
            Self::NexusLive(recipe) => (recipe.events, 5.5),
            Self::Neuroglial(recipe) => (recipe.about_bytes(), 1.0),
        };
        (units as f64 * bytes_each) as u64
    }
}

/// Neutron events: what is not said is as in [`nexus::Recipe::default`].
fn nexus_live(table: &mut Table<'_, '_>, seed: u64, problems: &mut Problems) -> Option<Synthetic> {
    let mut recipe = match table.read("size", problems, size) {
        Some(bytes) => nexus::Recipe::with_bytes(seed, bytes.value),
        None => nexus::Recipe { seed, ..nexus::Recipe::default() },
    };
    if let Some(banks) = table.read("banks", problems, |v| super::node::whole(v, 1)) {
        recipe.banks = u32::try_from(banks.value).unwrap_or(u32::MAX);
    }
    if let Some(layout) = table.read("chunk", problems, layout) {
        recipe.lay(layout.value);
    }
    if let Some(order) = table.read("order", problems, |v| press(v)) {
        recipe.order = order.value;
    }
    if let Some(weights) = table.read("weights", problems, |v| press(v)) {
        recipe.weights = weights.value;
    }
    if let Some(coding) = table.read("filter", problems, |v| press(v)) {
        recipe.coding = coding.value;
    }
    if let Some(libver) = table.read("libver", problems, |v| press(v)) {
        recipe.libver = libver.value;
    }
    if let Err(wrong) = recipe.check() {
        problems.add(&table.at, format!("`synth`: {wrong}"));
        return None;
    }
    Some(Synthetic::NexusLive(recipe))
}

/// Astrocytes and neurons: what is not said is as in [`neuroglial::Recipe::default`].
fn neuroglial(table: &mut Table<'_, '_>, seed: u64, problems: &mut Problems) -> Option<Synthetic> {
    let mut recipe = neuroglial::Recipe { seed, ..neuroglial::Recipe::default() };
    if let Some(neurons) = table.read("neurons", problems, |v| super::node::whole(v, 1)) {
        recipe.neurons = neurons.value;
    }
    recipe.astrocytes =
        table.read("astrocytes", problems, |v| super::node::whole(v, 0)).map(|count| count.value);
    if let Err(wrong) = recipe.check() {
        problems.add(&table.at, format!("`synth`: {wrong}"));
        return None;
    }
    Some(Synthetic::Neuroglial(recipe))
}

/// A string like "1.6GB".
fn size(value: &DeValue<'_>) -> Result<u64, String> {
    parse_bytes(&string(value)?)
}

/// A number, or a string like "1Mi".
fn layout(value: &DeValue<'_>) -> Result<nexus::Layout, String> {
    match super::node::whole(value, 1) {
        Ok(elements) => Ok(nexus::Layout::Chunked(elements)),
        Err(_) => press(value),
    }
}

/// A number, or a string like "600M".
fn count(value: &DeValue<'_>) -> Result<u64, String> {
    match string(value) {
        Ok(text) => parse_count(&text),
        Err(_) => super::node::whole(value, 1),
    }
    .and_then(|n| if n == 0 { Err(expected("a count as in \"600M\"", value)) } else { Ok(n) })
}

fn pod5_signal(value: &DeValue<'_>) -> Result<SignalCoding, String> {
    match string(value)?.as_str() {
        "vbz" => Ok(SignalCoding::default()),
        "none" => Ok(SignalCoding::Plain),
        _ => Err(expected("\"vbz\" or \"none\"", value)),
    }
}

fn press<T: std::str::FromStr<Err = thalweg::Fault>>(value: &DeValue<'_>) -> Result<T, String> {
    string(value)?.parse().map_err(|fault: thalweg::Fault| {
        format!("found {}, expected {}", fault.found, fault.expected)
    })
}
