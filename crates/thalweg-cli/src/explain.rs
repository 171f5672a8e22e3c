//! `thalweg read --explain`: prints the plan of a read, in words or JSON.

use std::io::Write;

use serde_json::json;
use thalweg::engine::Delivery;
use thalweg::model::Origin;
use thalweg::reads::{Explained, ReadFile, Selection};
use thalweg_gauge::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};

use crate::common::{VerbResult, counted};

/// Prints the plan that `thalweg read` follows without `--digest`.
pub(crate) fn print(
    file: &ReadFile,
    selection: &Selection,
    as_json: bool,
    out: &mut dyn Write,
) -> VerbResult {
    let plan = file.explain(selection, Delivery::Worker)?;
    if as_json {
        writeln!(out, "{}", in_json(&plan))?;
    } else {
        write!(out, "{}", in_words(&plan))?;
    }
    out.flush()?;
    Ok(())
}

fn in_json(plan: &Explained) -> serde_json::Value {
    let Explained { model, origin, shape, shares, .. } = plan;
    let (origin, measured_at) = match origin {
        Origin::Given => ("given", None),
        Origin::Measured(at) => ("measured", Some(at)),
        Origin::Prior => ("prior", None),
    };
    json!({
        "schema": "thalweg.plan/1",
        "model": model,
        "model_origin": origin,
        "model_measured_at_unix_s": measured_at,
        "gap_bytes": plan.gap_bytes,
        "depth": shape.depth,
        "max_depth": shape.max_depth,
        "block_bytes": shape.block,
        "headroom_bytes": shape.headroom,
        "buffers": shape.buffers,
        "batches": shape.batches,
        "group_bytes": shape.group,
        "threads": shape.threads,
        "memory": shares,
        "window_bytes": plan.window_bytes,
        "reads": plan.reads,
        "requests": plan.requests,
        "fetched_bytes": plan.fetched_bytes,
        "wanted_bytes": plan.wanted_bytes,
        "predicted_s": plan.predicted.as_secs_f64(),
    })
}

fn in_words(plan: &Explained) -> String {
    let Explained { model, shape, shares, .. } = plan;
    let origin = match plan.origin {
        Origin::Given => "given".into(),
        Origin::Measured(at) => format!("measured {} ago by `thalweg probe`", age(at)),
        Origin::Prior => "assumed from the kind of file system; `thalweg probe` measures it".into(),
    };
    let size = |bytes: usize| binary_bytes(bytes as f64);
    let reads =
        plan.reads.map_or_else(|| "an unknown number of reads".into(), |n| counted(n, "read"));
    let window = plan.window_bytes.map_or_else(String::new, |bytes| {
        format!("\norder      by offset, over about {} at a time", binary_bytes(bytes as f64))
    });
    format!(
        "model      {origin}\n\
         \x20          latency {}, {}, {} requests/s, reached with {} requests of {}\n\
         threads    {} decode, 1 to fetch\n\
         requests   {} in flight, of up to {}; gaps below {} are read, not skipped\n\
         memory     {} in all: {} buffers take {}, batches {}, codecs may take {}\n\
         wanted     {reads}, {}{window}\n\
         fetched    {} in {} requests\n\
         predicted  {} for the store alone\n",
        seconds(model.latency_s),
        bandwidth(model.bandwidth),
        digits(model.request_rate),
        model.depth,
        size(model.block),
        shape.threads,
        shape.depth,
        size(shape.block),
        decimal_bytes(plan.gap_bytes as f64),
        size(shares.total_bytes),
        shape.buffers,
        size(shares.buffers_bytes),
        size(shares.batches_bytes),
        size(shares.codecs_bytes),
        decimal_bytes(plan.wanted_bytes as f64),
        decimal_bytes(plan.fetched_bytes as f64),
        plan.requests,
        seconds(plan.predicted.as_secs_f64()),
    )
}

/// Time since a moment, in the largest unit that fits.
fn age(unix_s: u64) -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |t| t.as_secs());
    match now.saturating_sub(unix_s) {
        s @ 0..=119 => format!("{s} s"),
        s @ 120..=7_199 => format!("{} minutes", s / 60),
        s @ 7_200..=172_799 => format!("{} hours", s / 3_600),
        s => format!("{} days", s / 86_400),
    }
}
