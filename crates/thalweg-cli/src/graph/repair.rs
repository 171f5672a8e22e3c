//! `thalweg graph check --repair`: what is left of a store, in a new one.

use std::fmt::Write as _;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Value, json};
use thalweg::graph::{NetworkOptions, RepairReport, RepairSummary};

use crate::common::{Failure, Outcome, complain, output};

pub(super) fn run(store: &Path, to: &Path, json: bool, options: &NetworkOptions) -> Outcome {
    let done = thalweg::graph::repair(store, to, options).map_err(Failure::of_argument)?;
    let mut out = output();
    if json {
        writeln!(out, "{}", told(to, &done))?;
    } else {
        done.defects.iter().for_each(|defect| complain(&defect.error));
        for (kept, what) in kinds(&done) {
            write!(out, "{}", lines(kept, what))?;
        }
        let outcome = if done.is_complete() { "nothing is lost" } else { "not all is there" };
        writeln!(out, "{}: {outcome}", to.display())?;
    }
    out.flush()?;
    if done.is_complete() { Ok(()) } else { Err(Failure::Said(String::new())) }
}

fn kinds(done: &RepairReport) -> impl Iterator<Item = (&RepairSummary, &'static str)> {
    done.vertices
        .iter()
        .map(|kept| (kept, "vertices"))
        .chain(done.edges.iter().map(|kept| (kept, "edges")))
}

fn told(to: &Path, done: &RepairReport) -> Value {
    let kept = |kept: &RepairSummary| {
        let lost = kept.lost.iter().map(|lost| {
            json!({
                "file": lost.file, "count": lost.count, "sources": pairs(&lost.sources),
                "targets": pairs(&lost.targets),
            })
        });
        json!({
            "name": kept.name,
            "kept": kept.kept,
            "expected": kept.expected,
            "restored": kept.restored,
            "attributes_lost": kept.attributes_lost,
            "lost": lost.collect::<Vec<_>>(),
            "in_doubt": kept.is_in_doubt,
        })
    };
    let defects = done.defects.iter();
    let defects =
        defects.map(|defect| json!({ "file": defect.file, "error": defect.error.to_string() }));
    json!({
        "repaired": to.display().to_string(),
        "complete": done.is_complete(),
        "defects": defects.collect::<Vec<_>>(),
        "log_bytes_lost": done.log.iter().map(|bytes| [bytes.start, bytes.end]).collect::<Vec<_>>(),
        "types": done.vertices.iter().map(kept).collect::<Vec<_>>(),
        "populations": done.edges.iter().map(kept).collect::<Vec<_>>(),
    })
}

fn pairs(ranges: &[RangeInclusive<u64>]) -> Vec<[u64; 2]> {
    ranges.iter().map(|range| [*range.start(), *range.end()]).collect()
}

/// What is left of a type or population, in words.
fn lines(kept: &RepairSummary, what: &str) -> String {
    let mut out = format!("{}: {}", kept.name, kept.kept);
    if let Some(expected) = kept.expected.filter(|expected| *expected != kept.kept) {
        let _ = write!(out, " of {expected}");
    }
    let _ = write!(out, " {what}");
    if kept.restored > 0 {
        let by = if what == "edges" { "the lists of their other ends" } else { "their edges" };
        let _ = write!(out, ", {} of them known by {by} only", kept.restored);
    }
    out.push('\n');
    for lost in &kept.lost {
        let count = lost.count.map_or_else(
            || format!("{what}, how many is not known"),
            |count| format!("{count} {what}"),
        );
        let _ = write!(out, "  lost with {}: {count}", lost.file);
        if !lost.sources.is_empty() {
            let _ = write!(
                out,
                ", {}{}",
                if what == "edges" { "from " } else { "" },
                some(&lost.sources)
            );
        }
        if !lost.targets.is_empty() {
            let _ = write!(out, " to {}", some(&lost.targets));
        }
        out.push('\n');
    }
    if kept.attributes_lost > 0 {
        let _ = writeln!(out, "  attributes of {} are lost", kept.attributes_lost);
    }
    if kept.is_in_doubt {
        let _ = writeln!(
            out,
            "  what took {what} away cannot all be read: some that were removed may be back"
        );
    }
    out
}

/// The first of some ranges.
fn some(ranges: &[RangeInclusive<u64>]) -> String {
    let text = |range: &RangeInclusive<u64>| match range.end() {
        end if end == range.start() => end.to_string(),
        &u64::MAX => format!("{} and above", range.start()),
        end => format!("{}-{end}", range.start()),
    };
    let mut words: Vec<String> = ranges.iter().take(8).map(text).collect();
    if ranges.len() > words.len() {
        words.push(format!("and {} more ranges", ranges.len() - words.len()));
    }
    words.join(", ")
}
