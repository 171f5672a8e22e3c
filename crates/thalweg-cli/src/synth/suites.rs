//! The `synth` tables of suites: what `thalweg bench` can make.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use thalweg::Fault;
use thalweg::format::pod5::write::SignalCoding;
use thalweg::format::slow5::{RecordPress, SignalPress};
use thalweg::reads::KeepIndex;
use thalweg::synth::{neuroglial, nexus};
use thalweg_gauge::suite::{SynthTable, TestFile, TestFileMaker};

use super::Synthetic;

/// Reads `synth` tables as recipes of synthetic files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyntheticFiles;

/// Samples of a file of signal whose recipe does not say how many.
const DEFAULT_SAMPLES: u64 = 1_200_000_000;
/// Bases of a file of basecalled reads whose recipe does not say how many.
const DEFAULT_BASES: u64 = 1_000_000_000;

impl TestFileMaker for SyntheticFiles {
    fn kinds(&self) -> &[&'static str] {
        &["blow5", "pod5", "fastq", "nexus-live", "neuroglial"]
    }

    fn parse(
        &self,
        kind: &str,
        seed: u64,
        table: &mut SynthTable<'_, '_, '_>,
    ) -> Option<Arc<dyn TestFile>> {
        let synthetic = match kind {
            "blow5" => blow5(seed, table),
            "pod5" => pod5(seed, table),
            "fastq" => fastq(seed, table),
            "nexus-live" => nexus_live(seed, table)?,
            "neuroglial" => neuroglial(seed, table)?,
            _ => return None,
        };
        Some(Arc::new(synthetic))
    }
}

fn blow5(seed: u64, table: &mut SynthTable<'_, '_, '_>) -> Synthetic {
    let samples = table.count("samples").unwrap_or(DEFAULT_SAMPLES);
    let record = table.word("record", parsed).unwrap_or(RecordPress::Zstd);
    let signal = table.word("signal", parsed).unwrap_or(SignalPress::SvbZd);
    Synthetic::Blow5 { samples, seed, record, signal }
}

fn pod5(seed: u64, table: &mut SynthTable<'_, '_, '_>) -> Synthetic {
    let samples = table.count("samples").unwrap_or(DEFAULT_SAMPLES);
    let signal = table.word("signal", pod5_signal).unwrap_or_default();
    Synthetic::Pod5 { samples, seed, signal }
}

fn fastq(seed: u64, table: &mut SynthTable<'_, '_, '_>) -> Synthetic {
    let bases = table.count("bases").unwrap_or(DEFAULT_BASES);
    let gzip = table.flag("gzip").unwrap_or(false);
    Synthetic::Fastq { bases, seed, gzip }
}

/// Neutron events. [`nexus::NexusRecipe::default`] has the values of absent keys.
fn nexus_live(seed: u64, table: &mut SynthTable<'_, '_, '_>) -> Option<Synthetic> {
    let mut recipe = match table.bytes("size") {
        Some(bytes) => nexus::NexusRecipe::with_bytes(seed, bytes),
        None => nexus::NexusRecipe { seed, ..nexus::NexusRecipe::default() },
    };
    if let Some(banks) = table.whole("banks", 1) {
        recipe.banks = u32::try_from(banks).unwrap_or(u32::MAX);
    }
    if let Some(layout) = table.number_or_word("chunk", nexus::DatasetLayout::Chunked, parsed) {
        recipe.lay(layout);
    }
    recipe.order = table.word("order", parsed).unwrap_or(recipe.order);
    recipe.weights = table.word("weights", parsed).unwrap_or(recipe.weights);
    recipe.coding = table.word("filter", parsed).unwrap_or(recipe.coding);
    recipe.libver = table.word("libver", parsed).unwrap_or(recipe.libver);
    recipe.check().map_err(|wrong| table.reject(wrong)).ok()?;
    Some(Synthetic::NexusLive(recipe))
}

/// Astrocytes and neurons. [`neuroglial::CircuitRecipe::default`] has the values of absent keys.
fn neuroglial(seed: u64, table: &mut SynthTable<'_, '_, '_>) -> Option<Synthetic> {
    let mut recipe = neuroglial::CircuitRecipe { seed, ..neuroglial::CircuitRecipe::default() };
    if let Some(neurons) = table.whole("neurons", 1) {
        recipe.neurons = neurons;
    }
    recipe.astrocytes = table.whole("astrocytes", 0);
    recipe.check().map_err(|wrong| table.reject(wrong)).ok()?;
    Some(Synthetic::Neuroglial(recipe))
}

fn pod5_signal(text: &str) -> Result<SignalCoding, String> {
    match text {
        "vbz" => Ok(SignalCoding::default()),
        "none" => Ok(SignalCoding::Plain),
        other => Err(format!("expected \"vbz\" or \"none\", found the string {other:?}")),
    }
}

/// A word that the library parses.
fn parsed<T: FromStr<Err = Fault>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|fault: Fault| format!("found {}, expected {}", fault.found, fault.expected))
}

impl TestFile for Synthetic {
    fn file_name(&self) -> String {
        let seeded = |seed: &u64| if *seed == 1 { String::new() } else { format!("-seed{seed}") };
        match self {
            Self::Blow5 { samples, seed, record, signal } => {
                let samples = in_millions(*samples);
                let seed = seeded(seed);
                format!("synth-{samples}-{}-{}{seed}-v1.blow5", record.name(), signal.name())
            }
            Self::Pod5 { samples, seed, signal } => {
                let coding = if *signal == SignalCoding::Plain { "none" } else { "vbz" };
                format!("synth-{}-{coding}{}-v1.pod5", in_millions(*samples), seeded(seed))
            }
            Self::Fastq { bases, seed, gzip } => {
                let end = if *gzip { ".gz" } else { "" };
                format!("synth-{}{}-v1.fastq{end}", in_millions(*bases), seeded(seed))
            }
            Self::NexusLive(recipe) => recipe.file_name(),
            Self::Neuroglial(recipe) => recipe.file_name(),
        }
    }

    fn about_bytes(&self) -> u64 {
        // Bytes per sample, base or event, measured on files of each kind.
        let (units, bytes_each) = match self {
            Self::Blow5 { samples, signal: SignalPress::None, .. } => (*samples, 2.0),
            Self::Pod5 { samples, signal: SignalCoding::Plain, .. } => (*samples, 2.0),
            Self::Blow5 { samples, .. } | Self::Pod5 { samples, .. } => (*samples, 0.85),
            Self::Fastq { bases, gzip: true, .. } => (*bases, 0.9),
            Self::Fastq { bases, .. } => (*bases, 2.05),
            // Times hardly compress.
            Self::NexusLive(recipe) if recipe.coding == nexus::ChunkCoding::NONE => {
                (recipe.events, 8.2)
            }
            Self::NexusLive(recipe) => (recipe.events, 5.5),
            Self::Neuroglial(recipe) => (recipe.about_bytes(), 1.0),
        };
        (units as f64 * bytes_each) as u64
    }

    fn write(&self, path: &Path, stopped: &dyn Fn() -> bool) -> thalweg_gauge::Result<()> {
        super::write(path, self, KeepIndex::Beside, stopped).map_err(|error| match error {
            thalweg::Error::Cancelled => thalweg_gauge::Error::Cancelled,
            other => thalweg_gauge::Error::Store(other),
        })
    }
}

/// "600M" for a whole number of millions, else all digits.
fn in_millions(n: u64) -> String {
    if n.is_multiple_of(1_000_000) { format!("{}M", n / 1_000_000) } else { n.to_string() }
}

#[cfg(test)]
#[allow(clippy::panic, reason = "tests")]
mod tests {
    use std::collections::BTreeMap;

    use thalweg_gauge::suite::{Context, Peer, Suite};

    use super::SyntheticFiles;

    /// A suite with one file, whose `synth` table starts in column 9 of line 8.
    fn suite(synth: &str) -> Result<Suite, String> {
        let text = format!(
            "name = \"n\"\n[workload.w]\ncommand = \"cat {{file}}\"\n[[comparison]]\n\
             name = \"c\"\narms = [{{ workload = \"w\", set = {{ file = \"x\" }} }}]\n\
             [file.x]\nsynth = {{ {synth} }}"
        );
        Suite::parse("s.toml", &text, &SyntheticFiles).map_err(|e| e.to_string())
    }

    fn file_name(synth: &str) -> String {
        let peer = |_: &str| Peer::Unknown(Vec::new());
        let context = Context {
            thalweg: "/bin/thalweg".into(),
            peer: &peer,
            places: BTreeMap::new(),
            files: BTreeMap::new(),
            set: Vec::new(),
            pairs: None,
            cache: "/cache".into(),
            folder: "/suites".into(),
            cores: 3,
            cpus: vec![0, 1, 2],
        };
        let jobs = suite(synth).and_then(|suite| suite.plan(&context).map_err(|e| e.to_string()));
        let jobs = jobs.unwrap_or_else(|message| panic!("{message}"));
        let path = &jobs[0].needed[0].path;
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    #[test]
    fn mistakes_are_shown_at_their_position() {
        for (synth, at, words) in [
            (r#"kind = "blow5", record = "lzma""#, "8:36", "expected a record compression"),
            (
                r#"kind = "bam""#,
                "8:18",
                r#"expected "blow5", "pod5", "fastq", "nexus-live" or "neuroglial", found "bam""#,
            ),
            (
                r#"kind = "pod5", signal = "zstd""#,
                "8:35",
                r#"expected "vbz" or "none", found the string "zstd""#,
            ),
            (r#"kind = "nexus-live", order = "alive""#, "8:40", "live, interleaved or ordered"),
            (r#"kind = "nexus-live", size = 3"#, "8:39", "expected a string, found the number 3"),
            (
                r#"kind = "nexus-live", chunk = "contiguous", filter = "gzip""#,
                "8:9",
                "only chunks have filters",
            ),
            (
                r#"kind = "neuroglial", neurons = 1000, astrocytes = 65"#,
                "8:9",
                "there is room for 64",
            ),
            (r#"kind = "fastq", base = 3"#, "8:27", "unknown key `base` of `synth`"),
        ] {
            let message = suite(synth).err().unwrap_or_default();
            let found = message
                .lines()
                .any(|line| line.starts_with(&format!("s.toml:{at}: ")) && line.contains(words));
            assert!(found, "{synth}\nexpected {at}: {words}\n{message}");
        }
    }

    #[test]
    fn reads_are_named_by_their_recipe() {
        for (synth, expected) in [
            (r#"kind = "blow5", samples = "2M""#, "synth-2M-zstd-svb-zd-v1.blow5"),
            (r#"kind = "pod5", signal = "none", seed = 2"#, "synth-1200M-none-seed2-v1.pod5"),
            (r#"kind = "fastq", bases = 1234, gzip = true"#, "synth-1234-v1.fastq.gz"),
        ] {
            assert_eq!(file_name(synth), expected);
        }
    }

    #[test]
    fn events_are_named_by_their_recipe() {
        for (more, expected) in [
            ("", "synth-200000000-events-40-banks-2048-live-v1.nxs"),
            (
                r#", size = "8MB", banks = 2, seed = 7"#,
                "synth-1000000-events-2-banks-2048-live-seed7-v1.nxs",
            ),
            (
                ", chunk = \"1Mi\", order = \"ordered\", filter = \"shuffle+gzip\", \
                 libver = \"latest\", weights = \"even\"",
                "synth-200000000-events-40-banks-1048576-ordered-shuffle+gzip4-even-latest-v1.nxs",
            ),
            (r#", chunk = "contiguous""#, "synth-200000000-events-40-banks-contiguous-v1.nxs"),
            (
                r#", chunk = 512, order = "interleaved""#,
                "synth-200000000-events-40-banks-512-interleaved-v1.nxs",
            ),
        ] {
            assert_eq!(file_name(&format!("kind = \"nexus-live\"{more}")), expected);
        }
    }

    #[test]
    fn networks_are_named_by_their_recipe() {
        for (more, expected) in [
            ("", "synth-14086-astrocytes-219422-neurons-v1.h5"),
            (", astrocytes = 1000, seed = 2", "synth-1000-astrocytes-219422-neurons-seed2-v1.h5"),
            (", neurons = 1000", "synth-64-astrocytes-1000-neurons-v1.h5"),
        ] {
            assert_eq!(file_name(&format!("kind = \"neuroglial\"{more}")), expected);
        }
    }
}
