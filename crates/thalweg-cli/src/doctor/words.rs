//! A diagnosis in words.

use std::fmt::Write as _;

use thalweg::doctor::{Diagnosis, Gain, Predicted};
use thalweg_gauge::units::{bandwidth, decimal_bytes, digits, seconds};

use super::{Told, command};

/// Datasets that are listed; all of them are in JSON.
const SHOWN: usize = 6;

pub(super) fn in_words(told: &Told<'_>) -> String {
    let Diagnosis { layouts, model, requests, thalweg, libhdf5, findings, .. } = &told.diagnosis;
    let diagnosis = &told.diagnosis;
    let mut words = format!("{}\n", told.path.display());
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(words, "  {name:<10} {value}");
    };
    let size = |bytes: u64| decimal_bytes(bytes as f64);
    line(
        "arrays",
        &format!(
            "{}, {} in {} stored, {} pieces, {:.0} % in order, {:.0} % of the bytes in pieces below 64 KiB",
            layouts.len(),
            size(diagnosis.bytes),
            size(diagnosis.stored),
            diagnosis.chunks,
            diagnosis.in_order * 100.0,
            diagnosis.small * 100.0,
        ),
    );
    if told.left_out > 0 {
        line(
            "",
            &format!(
                "{} more are read by libhdf5, or are no arrays; they are left out",
                told.left_out
            ),
        );
    }
    for layout in layouts.iter().take(SHOWN) {
        let chunk = layout.chunk.as_deref().map_or_else(
            || "one run".into(),
            |chunk| format!("{} chunks of {}", layout.pieces, crate::hdf5::times(chunk)),
        );
        let filters = if layout.filters.is_empty() {
            String::new()
        } else {
            format!(", {}", layout.filters.join(" + "))
        };
        line("", &format!("{}: {}, {chunk}{filters}", layout.path, size(layout.stored)));
    }
    if layouts.len() > SHOWN {
        line("", &format!("and {} more", layouts.len() - SHOWN));
    }
    line(
        "store",
        &format!(
            "latency {}, {}, {} requests/s: {}",
            seconds(model.latency_s),
            bandwidth(model.bandwidth),
            digits(model.request_rate),
            told.origin
        ),
    );
    line(
        "thalweg",
        &format!(
            "{}{}, {} of them wanted; {}",
            time(thalweg),
            told.range().map_or_else(String::new, |(least, most)| format!(
                "; {} to {}, for how fast the store is, is assumed",
                seconds(least),
                seconds(most)
            )),
            size(requests.wanted),
            if thalweg.is_bound_by_processor() {
                "the processor takes longest"
            } else {
                "the store takes longest"
            }
        ),
    );
    line("libhdf5", &format!("{}; one chunk after the other, in one thread", time(libhdf5)));
    if let Some(measured) = told.measured_s {
        let ratio = thalweg.total_s / measured.max(1e-9);
        line(
            "measured",
            &format!(
                "{} cold, by thalweg: predicted is {:.0} % of that",
                seconds(measured),
                ratio * 100.0
            ),
        );
    }
    if let Some(stripes) = told.stripes {
        let bytes = std::fs::metadata(told.path).map_or(0, |meta| meta.len());
        let advice =
            stripes.advice(bytes).map_or_else(String::new, |advice| format!("; better: {advice}"));
        line("stripes", &format!("{} of {}{advice}", stripes.count, size(stripes.bytes)));
    }
    if findings.is_empty() {
        line("finding", "nothing that would make it faster");
    }
    for finding in findings {
        line("finding", &finding.what);
        if let Some(gain) = &finding.gain {
            line("  gain", &gained(thalweg, libhdf5, gain));
            if gain.stored > diagnosis.stored {
                let (after, before) = (size(gain.stored), size(diagnosis.stored));
                line(
                    "  size",
                    &format!(
                        "{after} stored instead of {before}: the last chunk of each dataset is stored whole"
                    ),
                );
            }
        }
        if let Some(repack) = &finding.repack {
            line("  mend", &command(told.path, repack));
        }
        line("  writer", finding.writer);
    }
    words
}

fn time(time: &Predicted) -> String {
    format!(
        "{} predicted: {} requests ({} jumps), {}; store {}, processor {} by {}, index {}",
        seconds(time.total_s),
        time.requests,
        time.jumps,
        decimal_bytes(time.bytes as f64),
        seconds(time.store_s),
        seconds(time.cpu_s),
        time.threads,
        seconds(time.index_s),
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
