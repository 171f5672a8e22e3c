//! `--explain`: prints the plan of a read of reads, in words or JSON.

use std::io::Write;
use std::sync::Arc;

use serde_json::json;
use thalweg::Options;
use thalweg::engine::Delivery;
use thalweg::model::{Origin, StoreModel};
use thalweg::reads::{Explained, ReadFile, ReadSet, Selection};
use thalweg::store::{Asked, Counter};
use thalweg_gauge::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};
use thalweg_io::urls::url;

use crate::common::{Failure, VerbResult, counted, output};
use crate::prices::PriceArgs;

/// The run that is explained.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExplainedRun {
    /// Reads are decoded and used on the workers: `thalweg read` without --digest.
    Worker,
    /// Reads come in order: `thalweg convert`.
    Ordered,
    /// All but the signal comes in order: `thalweg scan`.
    Fields,
}

/// The only file of the set. Fails if there are several: `option` is about one file.
pub(crate) fn sole(set: &ReadSet, option: &str) -> Result<Arc<ReadFile>, Failure> {
    match set.paths().len() {
        1 => Ok(set.file(0)?),
        files => Err(Failure::Usage(format!(
            "{option} is about one file, and these are {files}: name them one by one"
        ))),
    }
}

/// The options for a set whose run will be explained.
pub(crate) fn counting(is_explained: bool, options: Options) -> Options {
    Options { counter: is_explained.then(Counter::default), ..options }
}

/// Prints the plan of a run over the only file of the set, which [`counting`] has opened.
pub(crate) fn print(
    set: &ReadSet,
    selection: &Selection,
    run: ExplainedRun,
    prices: &PriceArgs,
    as_json: bool,
) -> VerbResult {
    let file = sole(set, "--explain")?;
    let prices = set.paths().any(|path| url(path).is_some()).then_some(prices);
    let plan = match run {
        ExplainedRun::Worker => file.explain(selection, Delivery::Worker)?,
        ExplainedRun::Ordered => file.explain(selection, Delivery::Ordered)?,
        ExplainedRun::Fields => file.explain_columns(selection, Delivery::Ordered, false)?,
    };
    let mut out = output();
    if as_json {
        let mut line = in_json(&plan, prices);
        line["path"] = (&**file.store().name()).into();
        writeln!(out, "{line}")?;
    } else {
        write!(out, "{}", in_words(&plan, prices))?;
    }
    out.flush()?;
    Ok(())
}

fn in_json(plan: &Explained, prices: Option<&PriceArgs>) -> serde_json::Value {
    let Explained { model, origin, shape, shares, .. } = plan;
    let (origin, measured_at) = origin_in_json(*origin);
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
        "before": plan.before,
        "rounds": plan.rounds(),
        "all_requests": plan.all_requests(),
        "all_bytes": plan.all_bytes(),
        "cost_usd": prices.map(|prices| prices.cost(plan.all_requests(), plan.all_bytes())),
        "processor_s": plan.processor_s,
        "predicted_s": plan.predicted.as_secs_f64(),
    })
}

/// Where a model comes from, as a word of JSON, and when it was measured.
pub(crate) fn origin_in_json(origin: Origin) -> (&'static str, Option<u64>) {
    match origin {
        Origin::Given => ("given", None),
        Origin::Measured(at) => ("measured", Some(at)),
        Origin::Prior => ("prior", None),
        Origin::Cache => ("cache", None),
    }
}

/// Where a model comes from, in words.
pub(crate) fn origin_in_words(origin: Origin, is_object: bool) -> String {
    match origin {
        Origin::Given => "given".into(),
        Origin::Measured(at) => format!("measured {} ago by `thalweg probe`", age(at)),
        Origin::Prior => prior(is_object).into(),
        Origin::Cache => CACHE.into(),
    }
}

/// The model of an object that is in the cache.
pub(crate) const CACHE: &str =
    "that of the disc with the cache, which has nearly all of the object";

/// What the model says of the store, in words.
pub(crate) fn store_in_words(model: &StoreModel) -> String {
    let p99 = model.latency_p99_s.map(seconds);
    let p99 = p99.map_or_else(String::new, |p99| format!(" (99 of 100 within {p99})"));
    let each = model.connection.map(bandwidth);
    let each = each.map_or_else(String::new, |each| format!(" ({each} a connection)"));
    let (latency, all) = (seconds(model.latency_s), bandwidth(model.bandwidth));
    let rate = digits(model.request_rate);
    format!("latency {latency}{p99}, {all}{each}, {rate} requests/s")
}

/// The rounds before a run in words.
pub(crate) fn before_in_words(before: &Asked) -> String {
    if before.requests == 0 {
        return "no requests".into();
    }
    format!(
        "{} of requests, one after the other: {}, {}",
        counted(before.rounds, "round"),
        counted(before.requests, "request"),
        decimal_bytes(before.bytes as f64)
    )
}

/// Where the model comes from, if nothing was measured.
pub(crate) fn prior(is_object: bool) -> &'static str {
    if is_object {
        "assumed, as of S3 within its region; `thalweg probe URL` measures it"
    } else {
        "assumed from the kind of file system; `thalweg probe` measures it"
    }
}

fn in_words(plan: &Explained, prices: Option<&PriceArgs>) -> String {
    let Explained { model, shape, shares, .. } = plan;
    let origin = origin_in_words(plan.origin, prices.is_some());
    let size = |bytes: usize| binary_bytes(bytes as f64);
    let reads =
        plan.reads.map_or_else(|| "an unknown number of reads".into(), |n| counted(n, "read"));
    let window = plan.window_bytes.map_or_else(String::new, |bytes| {
        format!("\norder      by offset, over about {} at a time", binary_bytes(bytes as f64))
    });
    let (gets, bytes) = (plan.all_requests(), plan.all_bytes());
    let cost = prices.map_or_else(String::new, |prices| {
        let (bytes, cost) = (decimal_bytes(bytes as f64), prices.in_words(gets, bytes));
        format!("cost       {}, {bytes}: {cost}\n", counted(gets, "GET"))
    });
    format!(
        "model      {origin}\n\
         \x20          {}, reached with {} of {}\n\
         threads    {} decode, 1 to fetch\n\
         requests   {} in flight, of up to {}; gaps below {} are read, not skipped\n\
         memory     {} in all: {} with {}, batches {}, codecs may take {}\n\
         before     {}\n\
         wanted     {reads}, {}{window}\n\
         fetched    {} in {}\n\
         predicted  {}; decoding takes each thread {}\n{cost}",
        store_in_words(model),
        counted(model.depth as u64, "request"),
        size(model.block),
        shape.threads,
        shape.depth,
        size(shape.block),
        decimal_bytes(plan.gap_bytes as f64),
        size(shares.total_bytes),
        counted(shape.buffers as u64, "buffer"),
        size(shares.buffers_bytes),
        size(shares.batches_bytes),
        size(shares.codecs_bytes),
        before_in_words(&plan.before),
        decimal_bytes(plan.wanted_bytes as f64),
        decimal_bytes(plan.fetched_bytes as f64),
        counted(plan.requests, "request"),
        seconds(plan.predicted.as_secs_f64()),
        seconds(plan.processor_s),
    )
}

/// Time since a moment, in the largest unit that fits.
pub(crate) fn age(unix_s: u64) -> String {
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
