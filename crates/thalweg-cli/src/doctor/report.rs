//! A diagnosis in words or as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use thalweg::doctor::{ArrayLayout, Diagnosis, Finding, Gain, Predicted};
use thalweg::text::escaped;
use thalweg_gauge::units::{decimal_bytes, seconds};
use thalweg_io::urls;

use super::DoctorReport;
use super::stripes::Stripes;
use crate::arrays::shape_in_words;
use crate::common::{counted, shown_path};
use crate::explain::store_in_words;

/// Datasets that are listed in words; JSON has all of them.
const SHOWN: usize = 6;

/// Prints a line: a name, which may be empty, and a value.
type Line<'a> = &'a mut dyn FnMut(&str, &str);

pub(super) fn in_words(report: &DoctorReport<'_>) -> String {
    let mut words = format!("{}\n", shown_path(report.path));
    let line: Line<'_> = &mut |name, value| {
        let _ = writeln!(words, "  {name:<10} {}", escaped(value));
    };
    array_lines(report, line);
    time_lines(report, line);
    finding_lines(report, line);
    words
}

fn size(bytes: u64) -> String {
    decimal_bytes(bytes as f64)
}

/// How the arrays are stored.
fn array_lines(report: &DoctorReport<'_>, line: Line<'_>) {
    let diagnosis = &report.diagnosis;
    let layouts = &diagnosis.layouts;
    let words = format!(
        "{}, {} in {} stored, {}, {:.0} % in order, {:.0} % of the bytes in chunks below 64 KiB",
        layouts.len(),
        size(diagnosis.bytes),
        size(diagnosis.stored),
        counted(diagnosis.chunks, "piece"),
        diagnosis.sequential_share * 100.0,
        diagnosis.small * 100.0,
    );
    line("arrays", &words);
    if report.left_out > 0 {
        let left_out = report.left_out;
        let words =
            format!("{left_out} more left out: virtual, or with a part that cannot be read");
        line("", &words);
    }
    for layout in layouts.iter().take(SHOWN) {
        let chunk = match &layout.chunk {
            Some(chunk) => {
                format!("{} of {}", counted(layout.pieces, "chunk"), shape_in_words(chunk))
            }
            None => "one run".into(),
        };
        let filters = match &layout.filters[..] {
            [] => String::new(),
            filters => format!(", {}", filters.join(" + ")),
        };
        line("", &format!("{}: {}, {chunk}{filters}", layout.path, size(layout.stored)));
    }
    if layouts.len() > SHOWN {
        line("", &format!("and {} more", layouts.len() - SHOWN));
    }
}

/// The store, and how long reading takes there.
fn time_lines(report: &DoctorReport<'_>, line: Line<'_>) {
    let Diagnosis { model, requests, thalweg, libhdf5, .. } = &report.diagnosis;
    line("store", &format!("{}: {}", store_in_words(model), report.origin));
    let range = report.range().map_or_else(String::new, |(least, most)| {
        let least = seconds(least);
        let most = seconds(most);
        if least == most {
            "; the speed of the store is assumed, and hardly matters".into()
        } else {
            format!("; the speed of the store is assumed: {least} to {most} are likely")
        }
    });
    let longest = if thalweg.is_bound_by_processor() { "processor" } else { "store" };
    let words = format!(
        "{}, {} of them wanted; the {longest} takes longest{range}",
        time(thalweg),
        size(requests.wanted)
    );
    line("thalweg", &words);
    line("libhdf5", &format!("{}; one chunk after the other", time(libhdf5)));
    if let Some(measured) = report.measured_s {
        let share = thalweg.total_s / measured.max(1e-9) * 100.0;
        let measured = seconds(measured);
        let words = format!("{measured} cold, by thalweg: predicted is {share:.0} % of that");
        line("measured", &words);
    }
    if let Some(stripes) = report.stripes {
        let bytes = std::fs::metadata(report.path).map_or(0, |meta| meta.len());
        let advice =
            stripes.advice(bytes).map_or_else(String::new, |advice| format!("; better: {advice}"));
        line("stripes", &format!("{} of {}{advice}", stripes.count, size(stripes.bytes)));
    }
}

/// What would make the file faster to read, and what that gains.
fn finding_lines(report: &DoctorReport<'_>, line: Line<'_>) {
    let Diagnosis { thalweg, libhdf5, findings, stored, .. } = &report.diagnosis;
    if findings.is_empty() {
        line("finding", "nothing that would make it faster");
    }
    for finding in findings {
        line("finding", &finding.what);
        if let Some(gain) = &finding.gain {
            line("  gain", &gained(thalweg, libhdf5, gain));
            if gain.stored > *stored {
                let words = format!(
                    "{} stored instead of {}: the last chunk of each dataset is stored whole",
                    size(gain.stored),
                    size(*stored)
                );
                line("  size", &words);
            }
        }
        match (&finding.repack, &finding.gain) {
            (Some(repack), _) => line("  mend", &command(report.path, repack)),
            (None, Some(_)) => line("  mend", "none: repacking would gain too little"),
            (None, None) => {}
        }
        line("  writer", finding.writer);
    }
}

fn time(time: &Predicted) -> String {
    format!(
        "{} predicted: index {}, then {} of reading (store {}, beside it {} of processor time by \
         {}); {} ({}), {}",
        seconds(time.total_s),
        seconds(time.index_s),
        seconds(time.total_s - time.index_s),
        seconds(time.store_s),
        seconds(time.cpu_s),
        counted(time.threads as u64, "thread"),
        counted(time.requests, "request"),
        counted(time.jumps, "jump"),
        decimal_bytes(time.bytes as f64),
    )
}

fn gained(thalweg: &Predicted, libhdf5: &Predicted, gain: &Gain) -> String {
    let of = |before: &Predicted, after: &Predicted| {
        format!(
            "{} -> {} ({:.1}x)",
            seconds(before.total_s),
            seconds(after.total_s),
            before.total_s / after.total_s.max(1e-9)
        )
    };
    format!("libhdf5 {}, thalweg {}", of(libhdf5, &gain.libhdf5), of(thalweg, &gain.thalweg))
}

/// The command that mends a file.
fn command(path: &Path, repack: &str) -> String {
    let shown = urls::shown_path(path);
    let (stem, ending) =
        shown.rsplit_once('.').filter(|(_, e)| !e.contains('/')).unwrap_or((&shown, "h5"));
    let plain =
        |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=".contains(c));
    let quoted = |text: String| {
        if plain(&text) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let from = quoted(shown.clone());
    let to = quoted(format!("{stem}.repacked.{ending}"));
    format!("thalweg convert --repack {from} {to} {repack}").trim_end().to_owned()
}

fn predicted(time: &Predicted, range: Option<(f64, f64)>) -> Value {
    json!({
        "range_s": range.map(|(least, most)| [least, most]),
        "requests": time.requests,
        "bytes": time.bytes,
        "jumps": time.jumps,
        "store_s": time.store_s,
        "cpu_s": time.cpu_s,
        "threads": time.threads,
        "index_s": time.index_s,
        "total_s": time.total_s,
    })
}

pub(super) fn in_json(report: &DoctorReport<'_>) -> Value {
    let Diagnosis { layouts, model, requests, thalweg, libhdf5, findings, .. } = &report.diagnosis;
    let layout = |layout: &ArrayLayout| {
        json!({
            "path": layout.path,
            "bytes": layout.bytes,
            "bytes_stored": layout.stored,
            "chunk": layout.chunk,
            "chunk_bytes": layout.chunk_bytes(),
            "chunks": layout.pieces,
            "in_order":
                (layout.pairs > 0).then(|| layout.followed as f64 / layout.pairs as f64),
            "filters": layout.filters,
        })
    };
    let finding = |finding: &Finding| {
        json!({
            "kind": finding.kind.name(),
            "what": finding.what,
            "writer": finding.writer,
            "command": finding.repack.as_ref().map(|repack| command(report.path, repack)),
            "thalweg": finding.gain.map(|gain| predicted(&gain.thalweg, None)),
            "libhdf5": finding.gain.map(|gain| predicted(&gain.libhdf5, None)),
            "bytes_stored": finding.gain.map(|gain| gain.stored),
        })
    };
    let stripes = |stripes: Stripes| json!({ "count": stripes.count, "bytes": stripes.bytes });
    json!({
        "schema": "thalweg.doctor/1",
        "file": urls::shown_path(report.path),
        "path": urls::shown_path(report.path),
        "model": model,
        "model_origin": report.origin,
        "model_assumed": report.assumed,
        "costs": "defaults",
        "datasets": layouts.iter().map(layout).collect::<Vec<_>>(),
        "datasets_left_out": report.left_out,
        "bytes": report.diagnosis.bytes,
        "bytes_stored": report.diagnosis.stored,
        "chunks": report.diagnosis.chunks,
        "in_order": report.diagnosis.sequential_share,
        "small_share": report.diagnosis.small,
        "wanted_bytes": requests.wanted,
        "depth": requests.shape.depth,
        "block_bytes": requests.shape.block,
        "thalweg": predicted(thalweg, report.range()),
        "libhdf5": predicted(libhdf5, None),
        "measured_s": report.measured_s,
        "throttled": report.throttled,
        "stripes": report.stripes.map(stripes),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}
