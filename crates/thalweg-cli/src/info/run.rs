//! The summary of a run: many files as one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use thalweg::Error;
use thalweg::reads::{Options, RunSummary};
use thalweg::text::escaped;
use thalweg_gauge::units::{decimal_bytes, digits};
use thalweg_io::urls::shown_path;

use crate::common::{Failure, VerbResult, ended, go_on_after, output};
use crate::open::{find_reads, open_set};
use crate::progress::FetchProgress;

/// More acquisitions and reasons than these are summed up in text; JSON has all of them.
const SHOWN: usize = 12;

pub(super) fn run(paths: &[PathBuf], as_json: bool, options: &Options) -> VerbResult {
    let (summary, left_out) = match summary(paths, options) {
        Ok(summary) => (summary, Vec::new()),
        Err(Failure::Failed(Error::Cancelled)) => return Err(Error::Cancelled.into()),
        Err(failure) => without_bad_files(paths, options, failure)?,
    };
    let mut out = output();
    if as_json {
        writeln!(out, "{}", in_json(&summary, &left_out))?;
    } else {
        write!(out, "{}", in_words(&summary, left_out.len()))?;
    }
    out.flush()?;
    ended(!left_out.is_empty())
}

fn summary(paths: &[PathBuf], options: &Options) -> Result<RunSummary, Failure> {
    let set = open_set(paths, options.clone())?;
    let _progress = FetchProgress::watch(&options.control, set.bytes());
    Ok(set.summary()?)
}

/// A summary of the files that can be read, and the others, which are named. Each file is read by
/// itself, and the good ones once more. `failure`: that of all together, which is returned if there
/// is only one file.
fn without_bad_files(
    paths: &[PathBuf],
    options: &Options,
    failure: Failure,
) -> Result<(RunSummary, Vec<PathBuf>), Failure> {
    let Ok(files) = find_reads(paths, &options.control) else { return Err(failure) };
    if files.len() == 1 {
        return Err(failure);
    }
    let (mut good, mut left_out) = (Vec::new(), Vec::new());
    for file in files {
        match summary(std::slice::from_ref(&file), options) {
            Ok(_) => good.push(file),
            Err(failure) => {
                go_on_after(failure)?;
                left_out.push(file);
            }
        }
    }
    if good.is_empty() {
        return Err(Failure::Said("none of the files can be read".into()));
    }
    Ok((summary(&good, options)?, left_out))
}

fn bits_per_sample(summary: &RunSummary) -> Option<f64> {
    (summary.samples > 0).then(|| summary.bytes as f64 * 8.0 / summary.samples as f64)
}

fn in_json(summary: &RunSummary, left_out: &[PathBuf]) -> Value {
    let lengths = summary.lengths.map(|l| {
        json!({
            "n50": l.n50, "min": l.min, "median": l.median, "mean": l.mean, "max": l.max,
            "exact": true,
        })
    });
    let runs: Vec<Value> = summary
        .runs
        .iter()
        .map(|run| {
            json!({
                "attributes": run.attributes, "reads": run.reads, "samples": run.samples,
            })
        })
        .collect();
    json!({
        "schema": "thalweg.run/1",
        "files": summary.files,
        "left_out": left_out.iter().map(|path| shown_path(path)).collect::<Vec<_>>(),
        "reads": summary.reads,
        "samples": summary.samples,
        "stored_bytes": summary.bytes,
        "bytes_stored": summary.bytes,
        "bits_per_sample": bits_per_sample(summary),
        "length_samples": lengths,
        "signal_s": summary.signal_s,
        "last_s": summary.last_s,
        "runs": runs,
        "end_reasons": summary.end_reasons,
        "pore_types": summary.pore_types,
        "channels": summary.channels,
    })
}

fn in_words(summary: &RunSummary, left_out: usize) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {}", escaped(&value));
    };
    let others = match left_out {
        0 => String::new(),
        count => format!("; {} more cannot be read", grouped(count as u64)),
    };
    line("files", format!("{}{others}", grouped(summary.files as u64)));
    line("reads", grouped(summary.reads));
    line("samples", grouped(summary.samples));
    let bits = bits_per_sample(summary)
        .map_or(String::new(), |bits| format!(", {} bits a sample", digits(bits)));
    line("stored", format!("{}{bits}", decimal_bytes(summary.bytes as f64)));
    if let Some(lengths) = summary.lengths {
        line("length", format!("N50 {} samples", grouped(lengths.n50)));
        let [min, median, max] = [lengths.min, lengths.median, lengths.max].map(grouped);
        line(
            "",
            format!(
                "min {min}, median {median}, mean {}, max {max}",
                grouped(lengths.mean.round() as u64)
            ),
        );
    }
    line("signal", span(summary.signal_s));
    if let Some(last) = summary.last_s {
        line("last read", format!("{} after the start of the acquisition", span(last)));
    }
    if let Some(channels) = summary.channels {
        line("channels", grouped(channels as u64));
    }
    counts(&mut line, "end reasons", &summary.end_reasons, summary.reads);
    counts(&mut line, "pore types", &summary.pore_types, summary.reads);
    for (i, run) in summary.runs.iter().take(SHOWN).enumerate() {
        let run_id = run.attributes.get("run_id").map_or("run without an id", String::as_str);
        line(
            if i == 0 { "runs" } else { "" },
            format!("{run_id}: {} reads, {} samples", grouped(run.reads), grouped(run.samples)),
        );
        let rest: Vec<String> = run
            .attributes
            .iter()
            .filter(|(name, _)| **name != "run_id")
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        if !rest.is_empty() {
            line("", format!("  {}", rest.join(", ")));
        }
    }
    if summary.runs.len() > SHOWN {
        line("", format!("and {} more; --json has them all", summary.runs.len() - SHOWN));
    }
    text
}

/// Reads by end reason, the most frequent first. A single unnamed reason is left out.
fn counts(
    line: &mut impl FnMut(&str, String),
    name: &str,
    counts: &BTreeMap<String, u64>,
    reads: u64,
) {
    let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    if sorted.iter().all(|(reason, _)| reason.is_empty()) {
        return;
    }
    for (i, (reason, count)) in sorted.iter().take(SHOWN).enumerate() {
        let reason = if reason.is_empty() { "not known" } else { reason.as_str() };
        let share = digits(**count as f64 * 100.0 / reads.max(1) as f64);
        line(if i == 0 { name } else { "" }, format!("{reason}: {} ({share} %)", grouped(**count)));
    }
    if sorted.len() > SHOWN {
        line("", format!("and {} more; --json has them all", sorted.len() - SHOWN));
    }
}

/// Digits in groups of three.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time span for people: hours and minutes if it is long.
fn span(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 120.0 {
        return format!("{} s", digits(seconds));
    }
    let minutes = (seconds / 60.0).round() as u64;
    if minutes < 60 {
        format!("{minutes} min")
    } else {
        format!("{} h {} min", grouped(minutes / 60), minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_for_people() {
        assert_eq!(
            [0, 7, 999, 1000, 1_234_567].map(grouped),
            ["0", "7", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [1.5, 119.0, 180.0, 3_600.0, 9e4].map(span),
            ["1.50 s", "119 s", "3 min", "1 h 0 min", "25 h 0 min"]
        );
    }
}
