//! `thalweg info` of a file of reads.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use thalweg::control::Control;
use thalweg::format::Format;
use thalweg::format::pod5::RowCoding;
use thalweg::format::slow5::Header;
use thalweg::reads::{Pod5Info, RUN_ATTRIBUTES, ReadFile};
use thalweg::text::escaped;
use thalweg_gauge::cache::Residency;
use thalweg_gauge::units::{decimal_bytes, digits};
use thalweg_io::urls;

use super::InfoArgs;
use super::findings::{LayoutFinding, known_reads, mean_record_bytes, record_findings};
use crate::common::{Failure, shortened, shown_path};
use crate::evict;
use crate::open::print_note;
use crate::progress::FetchProgress;

/// The description of a file of reads.
struct ReadsInfo {
    path: PathBuf,
    format: Format,
    stored: Option<TableLayout>,
    header: Header,
    size: u64,
    reads: Option<u64>,
    reads_from: &'static str,
    mean_record_bytes: Option<f64>,
    cached: Residency,
    findings: Vec<LayoutFinding>,
}

/// A file, as a line of JSON or in words.
pub(super) fn describe(
    path: &Path,
    file: ReadFile,
    cached: Residency,
    args: &InfoArgs,
    control: &Control,
) -> Result<String, Failure> {
    print_note(path, &file);
    let info = look(path, &file, cached, args.count, control)?;
    Ok(if args.json { format!("{}\n", as_json(&info)) } else { in_words(&info, args.all) })
}

/// Collects the description. `count`: counts the reads by reading the file, if their number is not
/// known otherwise.
fn look(
    path: &Path,
    file: &ReadFile,
    cached: Residency,
    count: bool,
    control: &Control,
) -> Result<ReadsInfo, Failure> {
    let (mut reads, mut findings) = known_reads(file)?;
    let mut reads_from = match reads {
        Some(_) if file.format() == Format::Pod5 => "table",
        Some(_) => "index",
        None => "unknown",
    };
    // Counting reads the file, whatever its index says.
    if count && reads.is_none() && !is_damaged(&findings) {
        let _progress = FetchProgress::watch(control, file.store().size());
        // An index beside an object spares reading all of it.
        if findings.iter().any(|(code, _)| *code == "index_beside") && file.fetch_index()? {
            (reads, findings) = known_reads(file)?;
            reads_from = "index";
        } else {
            reads = Some(file.build_index()?.len() as u64);
            reads_from = "count";
        }
    }
    findings.extend(record_findings(file, reads)?);
    Ok(ReadsInfo {
        path: path.to_owned(),
        format: file.format(),
        stored: TableLayout::of(file),
        header: file.header().clone(),
        size: file.store().size(),
        reads,
        reads_from,
        mean_record_bytes: mean_record_bytes(file, reads),
        cached,
        findings,
    })
}

/// Whether the reads of the file itself cannot be listed.
fn is_damaged(findings: &[LayoutFinding]) -> bool {
    findings.iter().any(|(code, _)| *code == "damaged")
}

/// How the tables of a POD5 file are stored.
struct TableLayout {
    version: String,
    signal: &'static str,
    software: String,
    tables: serde_json::Value,
    words: String,
}

impl TableLayout {
    fn of(file: &ReadFile) -> Option<Self> {
        let Pod5Info {
            version, software, signal, reads_batches, signal_batches, signal_rows, ..
        } = file.pod5_info()?;
        Some(Self {
            version: version.to_owned(),
            signal: match signal {
                RowCoding::Vbz => "vbz",
                RowCoding::Plain => "none",
            },
            software: software.to_owned(),
            tables: json!({
                "reads_batches": reads_batches, "signal_batches": signal_batches,
                "signal_rows": signal_rows,
            }),
            words: format!(
                "Reads in {reads_batches} batches, Signal in {signal_batches} of {signal_rows} rows"
            ),
        })
    }
}

fn as_json(info: &ReadsInfo) -> serde_json::Value {
    let header = &info.header;
    let stored = info.stored.as_ref();
    let records = matches!(info.format, Format::Slow5 | Format::Blow5);
    let version = match stored {
        Some(stored) => Some(stored.version.clone()),
        None => records.then(|| header.version.to_string()),
    };
    let signal_press = match stored {
        Some(stored) => Some(stored.signal),
        None => records.then(|| header.signal_press.name()),
    };
    let attributes: serde_json::Map<String, serde_json::Value> =
        header.attributes.iter().map(|a| (a.name.clone(), json!(a.values))).collect();
    let aux: Vec<_> =
        header.aux.iter().map(|f| json!({ "name": f.name, "type": f.type_name() })).collect();
    let findings: Vec<_> =
        info.findings.iter().map(|(code, words)| json!({ "code": code, "words": words })).collect();
    json!({
        "schema": "thalweg.info/1",
        "file": urls::shown_path(&info.path),
        "path": urls::shown_path(&info.path),
        "format": info.format.name(),
        "version": version,
        "written_by": stored.map(|stored| &stored.software),
        "tables": stored.map(|stored| &stored.tables),
        "record_press": records.then(|| header.record_press.name()),
        "signal_press": signal_press,
        "read_groups": header.read_groups,
        "attributes": attributes,
        "aux": aux,
        "size_bytes": info.size,
        "bytes_stored": info.size,
        "header_bytes": header.data_offset,
        "reads": info.reads,
        "reads_from": info.reads_from,
        "mean_record_bytes": info.mean_record_bytes,
        "cached": info.cached,
        "cached_share": info.cached.fraction(),
        "findings": findings,
    })
}

fn in_words(info: &ReadsInfo, all_attributes: bool) -> String {
    let ReadsInfo { path, header, cached, .. } = info;
    let mut text = format!("{}\n", shown_path(path));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<12} {}", escaped(value));
    };
    storage_lines(info, &mut line);
    line("size", &decimal_bytes(info.size as f64));
    line("reads", &reads_in_words(info));
    line("read groups", &header.read_groups.to_string());
    let aux: Vec<String> =
        header.aux.iter().map(|f| format!("{} {}", f.name, shortened(&f.type_name()))).collect();
    line("aux", &if aux.is_empty() { "none".into() } else { aux.join(", ") });
    line("cached", &format!("{}; {}", evict::cached(cached), evict::method(&cached.method)));
    attribute_lines(header, all_attributes, &mut line);
    for (i, (_, words)) in info.findings.iter().enumerate() {
        line(if i == 0 { "findings" } else { "" }, words);
    }
    if let Some(share) = cached.fraction().filter(|share| *share > 0.99) {
        let share = digits(share * 100.0);
        let words =
            format!("{share} % of the file is in memory: the next read will not touch the device");
        line("", &words);
    }
    text
}

/// The format, and how the file is compressed.
fn storage_lines(info: &ReadsInfo, line: &mut dyn FnMut(&str, &str)) {
    let ReadsInfo { format, header, stored, .. } = info;
    let version = match (format, stored) {
        (Format::Slow5 | Format::Blow5, _) => header.version.to_string(),
        (_, Some(stored)) => stored.version.clone(),
        (_, None) => String::new(),
    };
    line("format", format!("{format} {version}").trim_end());
    if let Some(stored) = stored {
        line("written by", &stored.software);
        line("compression", &format!("signal {}", stored.signal));
        line("tables", &stored.words);
    }
    if *format == Format::Blow5 {
        let words = format!("record {}, signal {}", header.record_press, header.signal_press);
        line("compression", &words);
    }
}

fn reads_in_words(info: &ReadsInfo) -> String {
    let from = info.reads_from;
    match (info.reads, info.mean_record_bytes) {
        (Some(n), Some(mean)) => {
            format!("{n} (by {from}), {} each in the mean", decimal_bytes(mean))
        }
        (Some(n), None) => format!("{n} (by {from})"),
        (None, _) if is_damaged(&info.findings) => "unknown".into(),
        (None, _) if info.findings.iter().any(|(code, _)| *code == "index_beside") => {
            "unknown; --count takes the number from the index beside the object".into()
        }
        (None, _) => "unknown, for there is no index to use; --count reads the file".into(),
    }
}

/// The attributes with the values of all read groups, each once: most are the same in all groups.
/// Without `all`, those that tell acquisitions apart.
fn attribute_lines(header: &Header, all: bool, line: &mut dyn FnMut(&str, &str)) {
    let is_shown = |name: &str| all || RUN_ATTRIBUTES.contains(&name);
    let (shown, rest): (Vec<_>, Vec<_>) = header.attributes.iter().partition(|a| is_shown(&a.name));
    for (i, attribute) in shown.iter().enumerate() {
        let mut values: Vec<&str> =
            attribute.values.iter().map(|v| v.as_deref().unwrap_or(".")).collect();
        values.sort_unstable();
        values.dedup();
        let name = if i == 0 { "attributes" } else { "" };
        line(name, &format!("{}: {}", attribute.name, shortened(&values.join(" | "))));
    }
    if !rest.is_empty() {
        let name = if shown.is_empty() { "attributes" } else { "" };
        line(name, &format!("{} more; --all shows them", rest.len()));
    }
}
