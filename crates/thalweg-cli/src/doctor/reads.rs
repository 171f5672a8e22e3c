//! `thalweg doctor` of a file of reads: the requests of reading all of it, and what in its layout
//! costs time.

use std::io::Write;
use std::path::Path;

use serde_json::json;
use thalweg::engine::Delivery;
use thalweg::reads::{ReadFile, Selection};
use thalweg::text::escaped;
use thalweg_gauge::units::{decimal_bytes, seconds};
use thalweg_io::urls;

use crate::common::{VerbResult, counted, output, shown_path};
use crate::info::findings::{known_reads, record_findings};
use crate::open::print_note;

pub(super) fn run(path: &Path, file: &ReadFile, as_json: bool) -> VerbResult {
    print_note(path, file);
    let (reads, mut findings) = known_reads(file)?;
    findings.extend(record_findings(file, reads)?);
    let plan = file.explain(&Selection::All, Delivery::Worker)?;
    let mut out = output();
    if as_json {
        let finding = |(name, what): &(&str, String)| json!({ "kind": name, "what": what });
        let line = json!({
            "schema": "thalweg.doctor/1",
            "file": urls::shown_path(path),
            "path": urls::shown_path(path),
            "model": plan.model,
            "reads": plan.reads,
            "thalweg": {
                "requests": plan.requests, "bytes": plan.fetched_bytes,
                "before": plan.before,
                "store_s": plan.predicted.as_secs_f64(),
            },
            "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        });
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "{}", shown_path(path))?;
        let bytes = decimal_bytes(plan.fetched_bytes as f64);
        let time = seconds(plan.predicted.as_secs_f64());
        writeln!(
            out,
            "  {:<10} {time} predicted for the store alone: {}, {bytes}",
            "thalweg",
            counted(plan.requests, "request")
        )?;
        for (_, what) in &findings {
            writeln!(out, "  {:<10} {}", "finding", escaped(what))?;
        }
        if findings.is_empty() {
            writeln!(out, "  {:<10} nothing that would make it faster", "finding")?;
        }
    }
    out.flush()?;
    Ok(())
}
