//! `thalweg graph check --repair`: writes what is intact in a store to a new one.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Value, json};
use thalweg::graph::{LostRecords, NetworkOptions, RepairReport, RepairSummary};
use thalweg::text::escaped;
use thalweg_io::urls;

use crate::common::{Failure, VerbResult, complain, ended, output, shown_path};

/// Ranges of ids that are listed in words; JSON has all of them.
const SHOWN_RANGES: usize = 8;

pub(super) fn run(store: &Path, to: &Path, as_json: bool, options: &NetworkOptions) -> VerbResult {
    let report = thalweg::graph::repair(store, to, options).map_err(Failure::of_argument)?;
    let mut out = output();
    if as_json {
        writeln!(out, "{}", in_json(to, &report))?;
    } else {
        report.defects.iter().for_each(|defect| complain(&defect.error));
        for summary in &report.vertices {
            write!(out, "{}", in_words(summary, "vertices"))?;
        }
        for summary in &report.edges {
            write!(out, "{}", in_words(summary, "edges"))?;
        }
        let outcome = if report.is_complete() { "nothing is lost" } else { "not all is there" };
        writeln!(out, "{}: {outcome}", shown_path(to))?;
    }
    out.flush()?;
    ended(!report.is_complete())
}

fn in_json(to: &Path, report: &RepairReport) -> Value {
    let summary = |summary: &RepairSummary| {
        let lost = summary.lost.iter().map(|lost| {
            json!({
                "file": lost.file, "count": lost.count, "sources": pairs(&lost.sources),
                "targets": pairs(&lost.targets),
            })
        });
        json!({
            "name": summary.name,
            "kept": summary.kept,
            "expected": summary.expected,
            "restored": summary.restored,
            "attributes_lost": summary.attributes_lost,
            "lost": lost.collect::<Vec<_>>(),
            "in_doubt": summary.is_in_doubt,
        })
    };
    let defects = report.defects.iter();
    let defects =
        defects.map(|defect| json!({ "file": defect.file, "error": defect.error.to_string() }));
    let log_bytes_lost: Vec<[u64; 2]> =
        report.log.iter().map(|bytes| [bytes.start, bytes.end]).collect();
    json!({
        "schema": "thalweg.graph-repair/1",
        "repaired": urls::shown_path(to),
        "path": urls::shown_path(to),
        "complete": report.is_complete(),
        "defects": defects.collect::<Vec<_>>(),
        "log_bytes_lost": log_bytes_lost,
        "types": report.vertices.iter().map(summary).collect::<Vec<_>>(),
        "populations": report.edges.iter().map(summary).collect::<Vec<_>>(),
    })
}

/// The first and the last id of each range.
fn pairs(ranges: &[RangeInclusive<u64>]) -> Vec<[u64; 2]> {
    ranges.iter().map(|range| [*range.start(), *range.end()]).collect()
}

/// The kept and the lost records of a type or population, in words. `what`: "vertices" or "edges".
fn in_words(summary: &RepairSummary, what: &str) -> String {
    let mut text = format!("{}: {}", escaped(&summary.name), summary.kept);
    if let Some(expected) = summary.expected.filter(|expected| *expected != summary.kept) {
        let _ = write!(text, " of {expected}");
    }
    let _ = write!(text, " {what}");
    if summary.restored > 0 {
        let by = if what == "edges" { "the lists of their other ends" } else { "their edges" };
        let _ = write!(text, ", {} of them known by {by} only", summary.restored);
    }
    text.push('\n');
    for lost in &summary.lost {
        text.push_str(&lost_in_words(lost, what));
    }
    if summary.attributes_lost > 0 {
        let _ = writeln!(text, "  attributes of {} are lost", summary.attributes_lost);
    }
    if summary.is_in_doubt {
        let _ = writeln!(
            text,
            "  what took {what} away cannot all be read: some that were removed may be back"
        );
    }
    text
}

/// The records that were lost with a file, in words.
fn lost_in_words(lost: &LostRecords, what: &str) -> String {
    let count = lost.count.map_or_else(
        || format!("{what}, how many is not known"),
        |count| format!("{count} {what}"),
    );
    let mut text = format!("  lost with {}: {count}", lost.file);
    if !lost.sources.is_empty() {
        let from = if what == "edges" { "from " } else { "" };
        let _ = write!(text, ", {from}{}", ranges_in_words(&lost.sources));
    }
    if !lost.targets.is_empty() {
        let _ = write!(text, " to {}", ranges_in_words(&lost.targets));
    }
    text.push('\n');
    text
}

/// The first ranges, and the number of the other ranges.
fn ranges_in_words(ranges: &[RangeInclusive<u64>]) -> String {
    let text = |range: &RangeInclusive<u64>| match range.end() {
        end if end == range.start() => end.to_string(),
        &u64::MAX => format!("{} and above", range.start()),
        end => format!("{}-{end}", range.start()),
    };
    let mut words: Vec<String> = ranges.iter().take(SHOWN_RANGES).map(text).collect();
    if ranges.len() > words.len() {
        words.push(format!("and {} more ranges", ranges.len() - words.len()));
    }
    words.join(", ")
}
