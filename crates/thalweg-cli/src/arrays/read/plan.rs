//! `thalweg read --explain` of arrays: what finding them has cost, and the requests of a read.

use std::io::Write;

use serde_json::json;
use thalweg::ArrayFile;
use thalweg::arrays::{Dataset, Requests, Selection};
use thalweg::doctor::ReadTime;
use thalweg::model::StoreModel;
use thalweg::store::Asked;
use thalweg_gauge::units::{binary_bytes, decimal_bytes, seconds};
use thalweg_io::urls::url;

use super::{ReadJob, SliceNumber, WantedArrays, array, timed};
use crate::common::{Failure, VerbResult, counted, output, shown_path};
use crate::explain::{before_in_words, origin_in_json, origin_in_words, store_in_words};
use crate::prices::PriceArgs;

/// Prints the plan of a read of the arrays at or below the paths, or of parts of them.
pub(super) fn print(file: &ArrayFile, job: &ReadJob<'_>, prices: &PriceArgs) -> VerbResult {
    let wanted = WantedArrays::at(file, job.within)?;
    let model = file.options().model.unwrap_or(StoreModel::LOCAL);
    let origin = file.model_origin();
    let datasets: Vec<&Dataset> = wanted.datasets.iter().collect();
    let requests = requests(file, &datasets, job, &model)?;
    let time = ReadTime::of(file, &datasets, &requests, &model);
    let ReadTime { before, processor_s, total_s: predicted_s } = time;
    let (gets, bytes) = (before.requests + requests.paid, before.bytes + requests.paid_bytes);
    let shape = requests.shape;
    let prices = url(job.path).map(|_| prices);
    let cost = file.finding();
    let mut out = output();
    if job.as_json {
        let (origin, measured_at) = origin_in_json(origin);
        let plan = json!({
            "schema": "thalweg.plan/1",
            "path": shown_path(job.path),
            "model": model,
            "model_origin": origin,
            "model_measured_at_unix_s": measured_at,
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
            "before": before,
            "rounds": time.rounds(&requests),
            "all_requests": gets,
            "all_bytes": bytes,
            "cost_usd": prices.map(|prices| prices.cost(gets, bytes)),
            "processor_s": processor_s,
            "predicted_s": predicted_s,
        });
        writeln!(out, "{plan}")?;
    } else {
        let found = Asked { rounds: cost.rounds, requests: cost.requests, bytes: cost.bytes };
        write!(
            out,
            "model      {}\n\
             \x20          {}, reached with {} of {}\n\
             before     {}\n\
             finding    {}\n\
             threads    {} decode, 1 to fetch\n\
             requests   {} in flight, of up to {}\n\
             wanted     {}, {}\n\
             fetched    {} in {}, {} of which begin elsewhere than the one before ended\n\
             predicted  {}; decoding takes each thread {}\n",
            origin_in_words(origin, prices.is_some()),
            store_in_words(&model),
            counted(model.depth as u64, "request"),
            binary_bytes(model.block as f64),
            before_in_words(&before),
            before_in_words(&found),
            shape.threads,
            shape.depth,
            binary_bytes(shape.block as f64),
            counted(datasets.len() as u64, "array"),
            decimal_bytes(requests.wanted as f64),
            decimal_bytes(requests.fetched as f64),
            counted(requests.count, "request"),
            requests.jumps,
            seconds(predicted_s),
            seconds(processor_s),
        )?;
        if let Some(prices) = prices {
            let (all, cost) = (counted(gets, "GET"), prices.in_words(gets, bytes));
            writeln!(out, "cost       {all}, {}: {cost}", decimal_bytes(bytes as f64))?;
        }
    }
    out.flush()?;
    wanted.end()
}

/// The requests of the read that the options ask for.
fn requests(
    file: &ArrayFile,
    datasets: &[&Dataset],
    job: &ReadJob<'_>,
    model: &StoreModel,
) -> Result<Requests, Failure> {
    if let Some(select) = &job.arrays.select {
        let mut wanted: Vec<(&Dataset, Selection)> = Vec::new();
        for (dataset, array) in
            datasets.iter().filter_map(|dataset| Some((*dataset, array(dataset)?)))
        {
            wanted.push((dataset, select.of(dataset.path(), &array.shape)?.0));
        }
        return Ok(file.explain_selections(&wanted, model)?);
    }
    match job.arrays.slice {
        Some(SliceNumber { rank, size }) => {
            let elements = timed::share(file, datasets, rank, size)?;
            Ok(file.explain_of(datasets, &elements, model)?)
        }
        None => Ok(file.explain(datasets, model)?),
    }
}
