//! `thalweg info`: what is in a file, how it is laid out, and how much of it is in memory; or a run
//! in a few figures.

#[cfg(feature = "hdf5")]
mod arrays;
#[cfg(feature = "hdf5")]
mod nexus;
mod run;

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use thalweg::format::Format;
use thalweg::format::pod5::SignalCoding;
use thalweg::format::slow5::{Encoding, Framing, Header};
use thalweg::model::StoreModel;
use thalweg::plan::GapRule;
use thalweg::reads::{Options, Pod5Info, ReadFile};
use thalweg_gauge::cache::{Residency, residency};
use thalweg_gauge::units::{decimal_bytes, digits};

use crate::common::{Failure, Outcome, cancel_on_interrupt, complain, open, output};
use crate::evict;
use crate::progress::Progress;

#[cfg(feature = "hdf5")]
use crate::hdf5;

/// Show what is in a file: version, compression, columns, reads, layout findings, and what is
/// cached of it
///
/// The number of reads comes from the index where there is one; --count reads the file where there
/// is none.
///
/// A folder, a pattern, or files with --run are summarised as one run: reads, samples, bytes, N50,
/// acquisitions, end reasons. That goes through all files, but decodes no signal.
///
/// Example: thalweg info reads.blow5
///
/// Example: thalweg info run/ --json
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of reads, folders of them, and patterns such as 'runs/**/*.blow5'
    #[arg(required = true, value_name = "PATH")]
    files: Vec<PathBuf>,
    /// Summarise all files as one run
    #[arg(long, conflicts_with = "count")]
    run: bool,
    /// Print one JSON line a file, or one about the run
    #[arg(long)]
    json: bool,
    /// Count the reads by reading the file if it has no index
    #[arg(long)]
    count: bool,
    /// HDF5: take the file for harmless; see `thalweg read --help`
    #[arg(long)]
    trusted: bool,
}

/// Longer attribute values are cut in words, never in JSON.
const SHOWN_CHARACTERS: usize = 60;

/// What was found out about a file.
struct Info {
    path: PathBuf,
    format: Format,
    stored: Option<Stored>,
    header: Header,
    size: u64,
    reads: Option<u64>,
    reads_from: &'static str,
    mean_record_bytes: Option<f64>,
    cached: Residency,
    findings: Vec<(&'static str, String)>,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let options = Options { control: cancel_on_interrupt(), ..Options::default() };
    #[cfg(feature = "hdf5")]
    if !args.trusted {
        hdf5::guard(&options);
    }
    if args.run || args.files.iter().any(|path| path.is_dir() || is_pattern(path)) {
        return run::run(&args.files, args.json, options);
    }
    let mut out = output();
    let mut failed = false;
    for path in &args.files {
        match described(path, args, &options) {
            Ok(words) => write!(out, "{words}")?,
            Err(Failure::Failed(thalweg::Error::Cancelled)) => {
                return Err(Failure::Failed(thalweg::Error::Cancelled));
            }
            Err(Failure::Failed(error)) => {
                failed = true;
                complain(&error);
            }
            Err(Failure::Said(message)) => {
                failed = true;
                complain(&message);
            }
            Err(other) => return Err(other),
        }
    }
    out.flush()?;
    if failed { Err(Failure::Said(String::new())) } else { Ok(()) }
}

/// A file, as a line of JSON or in words.
fn described(path: &Path, args: &Args, options: &Options) -> Result<String, Failure> {
    // First, because looking into the file brings parts of it into memory.
    let cached = residency(path)?;
    #[cfg(feature = "hdf5")]
    if let Some(file) = hdf5::open(path, options, args.trusted)? {
        return arrays::describe(path, &file, &cached, args.json);
    }
    let info = look(path, cached, args.count, options.clone())?;
    Ok(if args.json { format!("{}\n", as_json(&info)) } else { in_words(&info) })
}

/// Whether a data set would take it for a pattern.
fn is_pattern(path: &Path) -> bool {
    !path.exists() && path.to_string_lossy().contains(['*', '?', '['])
}

/// What the layout of a file of reads costs, by name and in words.
#[cfg(feature = "hdf5")]
pub(crate) fn findings_of(
    path: &Path,
    options: Options,
) -> Result<Vec<(&'static str, String)>, Failure> {
    Ok(look(path, residency(path)?, false, options)?.findings)
}

fn look(path: &Path, cached: Residency, count: bool, options: Options) -> Result<Info, Failure> {
    let control = options.control.clone();
    let file = open(path, options)?;
    let mut findings = Vec::new();
    let saved = file.known_reads();
    let format = file.format();
    // The others are not laid out record by record, and know their reads without an index beside
    // them.
    let records = matches!(format, Format::Slow5 | Format::Blow5);
    if records && matches!(saved, Ok(None)) {
        let words =
            "there is no index: the first read by id reads the whole file; run `thalweg index`";
        findings.push(("no_index", words.into()));
    }
    let (reads, reads_from) = match saved {
        Ok(Some(reads)) => (Some(reads), if format == Format::Pod5 { "table" } else { "index" }),
        Ok(None) if count => {
            let _progress = Progress::watch(&control, file.store().size());
            (Some(file.build_index()?.len() as u64), "count")
        }
        Ok(None) => (None, "unknown"),
        Err(thalweg::Error::Cancelled) => return Err(thalweg::Error::Cancelled.into()),
        // A file with a damaged table or a broken index can still be described.
        Err(error) if format == Format::Pod5 => {
            findings.push(("damaged", format!("{error}; `thalweg check` says what is left")));
            (None, "unknown")
        }
        Err(error) => {
            findings.push((
                "bad_index",
                format!("{error}; delete it, and `thalweg index` makes another"),
            ));
            (None, "unknown")
        }
    };
    let stored = Stored::of(&file);
    let header = file.header().clone();
    let size = file.store().size();
    let end = Framing::new(header.encoding).end_marker();
    let data = size.saturating_sub(header.data_offset).saturating_sub(end.len() as u64);
    let mean_record_bytes = reads.filter(|&n| n > 0).map(|n| data as f64 / n as f64);
    if records {
        let whole = ends_properly(&file, end)?;
        let (model, _) = file.model();
        findings.extend(layout_findings(&header, mean_record_bytes, whole, &model));
    }
    Ok(Info {
        path: path.to_owned(),
        format,
        stored,
        header,
        size,
        reads,
        reads_from,
        mean_record_bytes,
        cached,
        findings,
    })
}

/// Whether the last bytes are those of a file that was finished.
fn ends_properly(file: &ReadFile, end: &[u8]) -> Result<bool, Failure> {
    let size = file.store().size();
    // Rows end with a newline, whichever is the last.
    let end = if end.is_empty() { b"\n" } else { end };
    let mut last = vec![0; end.len()];
    let at = size.checked_sub(end.len() as u64).filter(|&at| at + 1 >= file.header().data_offset);
    let Some(at) = at else { return Ok(false) };
    file.store().read_at(at, &mut last)?;
    Ok(last == end)
}

/// What about the layout costs time or trouble: a short code for programs, and words.
fn layout_findings(
    header: &Header,
    mean_record_bytes: Option<f64>,
    whole: bool,
    model: &StoreModel,
) -> Vec<(&'static str, String)> {
    use thalweg::format::slow5::{RecordPress, SignalPress};
    let mut findings = Vec::new();
    let mut say = |code, words: String| findings.push((code, words));
    if !whole {
        let end = if header.encoding == Encoding::Binary { "its end marker" } else { "a newline" };
        say(
            "no_end",
            format!("the file does not end with {end}: it is truncated, or still being written"),
        );
    }
    if header.encoding == Encoding::Ascii {
        say(
            "text",
            "text is larger and slower to read than BLOW5; `thalweg convert` makes one".into(),
        );
        return findings;
    }
    if !header.record_press.is_released() || !header.signal_press.is_released() {
        let (record, signal) = (header.record_press, header.signal_press);
        say(
            "unreleased",
            format!("no released version of slow5lib reads record {record} with signal {signal}"),
        );
    }
    match header.record_press {
        RecordPress::Zlib => {
            say("zlib", "zlib is slower to decode than zstd, for about the same size".into())
        }
        RecordPress::None if header.signal_press == SignalPress::None => {
            say(
                "uncompressed",
                "nothing is compressed: the file is about twice as large as it need be".into(),
            );
        }
        _ => {}
    }
    let gap = GapRule::new(model).break_even() as f64;
    if let Some(mean) = mean_record_bytes.filter(|&mean| mean < gap) {
        let (mean, gap) = (decimal_bytes(mean), decimal_bytes(gap));
        say(
            "small_records",
            format!(
                "records of {mean} are cheaper to read than to skip here (below {gap}): dense lists of ids read whole stretches"
            ),
        );
    }
    findings
}

/// How a file is stored, where its header does not say.
struct Stored {
    version: String,
    signal: &'static str,
    software: String,
    tables: serde_json::Value,
    words: String,
}

impl Stored {
    fn of(file: &ReadFile) -> Option<Self> {
        let Pod5Info { version, software, signal, reads_batches, signal_batches, signal_rows } =
            file.pod5_info()?;
        Some(Self {
            version: version.to_owned(),
            signal: match signal {
                SignalCoding::Vbz => "vbz",
                SignalCoding::Plain => "none",
            },
            software: software.to_owned(),
            tables: json!({
                "reads_batches": reads_batches, "signal_batches": signal_batches, "signal_rows": signal_rows
            }),
            words: format!(
                "Reads in {reads_batches} batches, Signal in {signal_batches} of {signal_rows} rows"
            ),
        })
    }
}

fn as_json(info: &Info) -> serde_json::Value {
    let (header, stored) = (&info.header, info.stored.as_ref());
    let records = matches!(info.format, Format::Slow5 | Format::Blow5);
    let attributes: serde_json::Map<String, serde_json::Value> =
        header.attributes.iter().map(|a| (a.name.clone(), json!(a.values))).collect();
    let aux: Vec<_> =
        header.aux.iter().map(|f| json!({ "name": f.name, "type": f.type_name() })).collect();
    let findings: Vec<_> =
        info.findings.iter().map(|(code, words)| json!({ "code": code, "words": words })).collect();
    json!({
        "schema": "thalweg.info/1",
        "file": info.path.display().to_string(),
        "format": info.format.name(),
        "version": stored.map_or_else(|| records.then(|| header.version.to_string()), |stored| Some(stored.version.clone())),
        "written_by": stored.map(|stored| &stored.software),
        "tables": stored.map(|stored| &stored.tables),
        "record_press": records.then(|| header.record_press.name()),
        "signal_press": stored.map_or_else(|| records.then(|| header.signal_press.name()), |stored| Some(stored.signal)),
        "read_groups": header.read_groups,
        "attributes": attributes,
        "aux": aux,
        "size_bytes": info.size,
        "header_bytes": header.data_offset,
        "reads": info.reads,
        "reads_from": info.reads_from,
        "mean_record_bytes": info.mean_record_bytes,
        "cached": info.cached,
        "cached_share": info.cached.fraction(),
        "findings": findings,
    })
}

fn in_words(info: &Info) -> String {
    let Info { path, header, size, reads, cached, findings, .. } = info;
    let mut text = format!("{}\n", path.display());
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    match info.format {
        Format::Slow5 | Format::Blow5 => {
            line("format", &format!("{} {}", info.format, header.version))
        }
        Format::Pod5 | Format::Fast5 => {
            let version = info.stored.as_ref().map_or("", |stored| stored.version.as_str());
            line("format", format!("{} {version}", info.format).trim_end());
        }
    }
    if let Some(stored) = &info.stored {
        line("written by", &stored.software);
        line("compression", &format!("signal {}", stored.signal));
        line("tables", &stored.words);
    }
    if info.format == Format::Blow5 {
        line(
            "compression",
            &format!("record {}, signal {}", header.record_press, header.signal_press),
        );
    }
    line("size", &decimal_bytes(*size as f64));
    let reads = match (reads, info.mean_record_bytes) {
        (Some(n), Some(mean)) => {
            format!("{n} (by {}), {} each in the mean", info.reads_from, decimal_bytes(mean))
        }
        (Some(n), None) => format!("{n} (by {})", info.reads_from),
        (None, _) => "unknown, for there is no index; --count reads the file".into(),
    };
    line("reads", &reads);
    line("read groups", &header.read_groups.to_string());
    let aux: Vec<String> =
        header.aux.iter().map(|f| format!("{} {}", f.name, short(&f.type_name()))).collect();
    line("aux", &if aux.is_empty() { "none".into() } else { aux.join(", ") });
    line("cached", &format!("{}; {}", evict::cached(cached), evict::method(&cached.method)));
    for (i, attribute) in header.attributes.iter().enumerate() {
        // All groups' values, each once: most attributes are the same in all of them.
        let mut values: Vec<&str> =
            attribute.values.iter().map(|v| v.as_deref().unwrap_or(".")).collect();
        values.sort_unstable();
        values.dedup();
        line(
            if i == 0 { "attributes" } else { "" },
            &format!("{}: {}", attribute.name, short(&values.join(" | "))),
        );
    }
    for (i, (_, words)) in findings.iter().enumerate() {
        line(if i == 0 { "findings" } else { "" }, words);
    }
    if let Some(share) = cached.fraction().filter(|share| *share > 0.99) {
        line(
            "",
            &format!(
                "{} % of the file is in memory: the next read will not touch the device",
                digits(share * 100.0)
            ),
        );
    }
    text
}

fn short(value: &str) -> String {
    match value.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
