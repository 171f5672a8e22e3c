//! `thalweg read --explain` of arrays: what finding them has cost, and the requests of a read.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use thalweg::ArrayFile;
use thalweg::arrays::Dataset;
use thalweg::model::StoreModel;
use thalweg_gauge::units::{bandwidth, binary_bytes, decimal_bytes, digits, seconds};

use super::WantedArrays;
use crate::common::{VerbResult, output};

/// Prints the plan of a read of the arrays at or below the paths.
pub(super) fn print(file: &ArrayFile, within: &[PathBuf], as_json: bool) -> VerbResult {
    let wanted = WantedArrays::at(file, within)?;
    let cost = file.finding();
    let model = file.options().model.unwrap_or(StoreModel::LOCAL);
    let datasets: Vec<&Dataset> = wanted.datasets.iter().collect();
    let requests = file.explain(&datasets, &model)?;
    let shape = requests.shape;
    let mut out = output();
    if as_json {
        let plan = json!({
            "schema": "thalweg.plan/1",
            "model": model,
            "finding_rounds": cost.rounds,
            "finding_requests": cost.requests,
            "finding_bytes": cost.bytes,
            "depth": shape.depth,
            "max_depth": shape.max_depth,
            "block_bytes": shape.block,
            "threads": shape.threads,
            "arrays": datasets.len(),
            "requests": requests.count,
            "jumps": requests.jumps,
            "fetched_bytes": requests.fetched,
            "wanted_bytes": requests.wanted,
        });
        writeln!(out, "{plan}")?;
    } else {
        write!(
            out,
            "model      latency {}, {}, {} requests/s, reached with {} requests of {}\n\
             finding    {} rounds of requests, one after the other: {} requests, {}\n\
             threads    {} decode, 1 to fetch\n\
             requests   {} in flight, of up to {}\n\
             wanted     {} arrays, {}\n\
             fetched    {} in {} requests, {} of which begin elsewhere than the one before ended\n",
            seconds(model.latency_s),
            bandwidth(model.bandwidth),
            digits(model.request_rate),
            model.depth,
            binary_bytes(model.block as f64),
            cost.rounds,
            cost.requests,
            decimal_bytes(cost.bytes as f64),
            shape.threads,
            shape.depth,
            binary_bytes(shape.block as f64),
            datasets.len(),
            decimal_bytes(requests.wanted as f64),
            decimal_bytes(requests.fetched as f64),
            requests.count,
            requests.jumps,
        )?;
    }
    out.flush()?;
    wanted.end()
}
