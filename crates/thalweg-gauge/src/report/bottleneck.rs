//! The table of what holds each arm back.

use super::table::{NOTHING, without_empty};
use crate::comparison::{ArmSummary, Comparison};
use crate::units::{bandwidth, digits, seconds};
use crate::workload::Latency;

/// The columns of the table and one row for each arm with figures. A column that is empty in every
/// row is left out.
pub(super) fn bottlenecks(c: &Comparison) -> (Vec<String>, Vec<Vec<String>>) {
    let header = [
        "arm",
        "largest term",
        "computed from",
        "of its time",
        "bytes from memory",
        "decoding off",
        "these runs",
        "compressed",
        "decoded",
        "samples",
        "latency",
    ];
    let rows: Vec<Vec<String>> = c.summaries.iter().filter_map(row).collect();
    without_empty(header.map(str::to_owned).to_vec(), rows)
}

fn row(s: &ArmSummary) -> Option<Vec<String>> {
    let time = s.time_s?.median;
    let verdict = s.bottleneck.as_ref();
    let rate = |bytes: Option<u64>| bytes.map(|b| bandwidth(b as f64 / time));
    let label = s.label.as_ref().map(|l| format!(" ({l})")).unwrap_or_default();
    let cells = [
        verdict.and_then(crate::verdict::Verdict::largest),
        verdict.and_then(|v| v.computed_from.clone()),
        verdict.and_then(|v| v.fraction).map(|f| format!("{} %", digits(f * 100.0))),
        verdict.and_then(|v| v.without.store_s).map(seconds),
        verdict.and_then(|v| v.without.decoding_s).map(seconds),
        verdict.and_then(|v| evidence(v).map(str::to_owned)),
        rate(s.stored_bytes),
        rate(s.decoded_bytes),
        s.samples.map(|n| format!("{} M/s", digits(n as f64 / time / 1e6))),
        s.latency_us.as_ref().map(calls),
    ];
    if cells.iter().all(Option::is_none) {
        return None;
    }
    let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NOTHING.into()));
    Some(std::iter::once(format!("{}{label}", s.arm)).chain(cells).collect())
}

/// What the runs without a stage say about the largest term; `None` if there were none.
fn evidence(v: &crate::verdict::Verdict) -> Option<&'static str> {
    v.without.store_s.and(v.without.decoding_s)?;
    Some(match v.confirmed {
        Some(true) => "confirm it",
        Some(false) => "contradict it",
        None => "do not decide",
    })
}

/// The distribution of the calls inside a trial.
fn calls(l: &Latency) -> String {
    let of = |name: &str, us: Option<f64>| us.map(|us| format!("{name} {}", seconds(us / 1e6)));
    let figures = [of("p50", l.p50), of("p99", l.p99), of("longest", l.max)];
    let count = l.n.map(|n| format!("{n} ")).unwrap_or_default();
    format!("{count}calls: {}", figures.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
