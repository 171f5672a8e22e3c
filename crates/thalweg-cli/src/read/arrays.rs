//! Arrays of HDF5 files: digests, or how long reading them took.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use sha2::{Digest, Sha256};
use thalweg::arrays::{ArrayFile, Dataset, Selection, Summary, Want};
use thalweg::format::hdf5::{Array, Found};

use super::measured::{Started, stages, with_build};
use crate::common::{Failure, Outcome, complain, output};
use crate::digest::{Words, hex};
use crate::hdf5::times;
use crate::progress::Progress;

/// What is done to the arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) digests: bool,
    pub(super) json: bool,
    /// All of them into memory at once, instead of part by part.
    pub(super) whole: bool,
    pub(super) threads: usize,
}

/// The arrays among the datasets at or below the paths and patterns, or among all; of the others it says what they are.
fn wanted(file: &ArrayFile, paths: &[PathBuf]) -> Result<Vec<Dataset>, Failure> {
    let mut datasets = Vec::new();
    for path in paths {
        datasets.extend(file.matching(&path.to_string_lossy()).map_err(Failure::of_argument)?);
    }
    if paths.is_empty() {
        datasets = file.datasets()?;
    }
    datasets.retain(|dataset| match &dataset.found {
        Found::Array(_) => true,
        Found::Other(what) => {
            complain(&format!("{}: not read: {what}", dataset.path()));
            false
        }
    });
    Ok(datasets)
}

fn array(dataset: &Dataset) -> Option<&Array> {
    match &dataset.found {
        Found::Array(array) => Some(array),
        Found::Other(_) => None,
    }
}

fn bytes(dataset: &Dataset) -> u64 {
    array(dataset).map_or(0, Array::bytes)
}

/// Reads datasets, and prints a digest of each or figures about all.
pub(super) fn run(file: &ArrayFile, paths: &[PathBuf], job: Job, started: &Started) -> Outcome {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let datasets = wanted(file, paths)?;
    let total: u64 = datasets.iter().map(bytes).sum();
    let _progress = Progress::watch(&file.options().control, total);
    if job.digests { digests(file, &datasets) } else { timed(file, &datasets, job, started) }
}

/// Prints a row for each dataset: path, shape, type, SHA-256 of the values.
fn digests(file: &ArrayFile, datasets: &[Dataset]) -> Outcome {
    // Together, because they may lie side by side.
    let mut hashes = vec![Sha256::new(); datasets.len()];
    let all: Vec<&Dataset> = datasets.iter().collect();
    let together = match all.iter().any(|dataset| array(dataset).is_some_and(|array| array.library().is_some())) {
        true => None,
        false => match file.each(&all, &mut |number, values| {
            hashes[number].update(values);
            Ok(())
        }) {
            Err(thalweg::Error::Cancelled) => return Err(thalweg::Error::Cancelled.into()),
            outcome => outcome.ok(),
        },
    };
    let mut out = output();
    let mut failed = None;
    for (dataset, hash) in datasets.iter().zip(&mut hashes) {
        let Some(array) = array(dataset) else { continue };
        if together.is_none() {
            *hash = Sha256::new();
            let outcome = file.values(dataset, &mut |values| {
                hash.update(values);
                Ok(())
            });
            match (outcome, array.library()) {
                (Ok(()), _) => {}
                (Err(thalweg::Error::Cancelled), _) => return Err(thalweg::Error::Cancelled.into()),
                // What libhdf5 cannot do is no defect of the file's.
                (Err(error), Some(why)) => {
                    complain(&format!("{}: not read: {why}; {error}", dataset.path()));
                    continue;
                }
                // Nor are the others without digests because of one.
                (Err(error), None) => {
                    if let Some(before) = failed.replace(error) {
                        complain(&before);
                    }
                    continue;
                }
            }
        }
        let hash = hex(&hash.clone().finalize());
        writeln!(out, "{}\t{}\t{}\t{hash}", dataset.path(), times(&array.shape), array.dtype)?;
    }
    out.flush()?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Reads datasets, sums their values as each arm of a benchmark does, and says how long that took.
fn timed(file: &ArrayFile, datasets: &[Dataset], job: Job, started: &Started) -> Outcome {
    let all: Vec<&Dataset> = datasets.iter().collect();
    let mut words = vec![Words::default(); datasets.len()];
    let (summary, (seconds, cpu)) = if job.whole {
        let mut arrays: Vec<Vec<u8>> = datasets.iter().map(|dataset| vec![0; bytes(dataset) as usize]).collect();
        let mut wanted: Vec<Want<'_>> = all
            .iter()
            .zip(&mut arrays)
            .map(|(dataset, out)| Want { dataset, selection: Selection::All, out })
            .collect();
        let summary = file.read(&mut wanted)?;
        let sum = arrays.iter().fold(0_u64, |sum, array| sum.wrapping_add(Words::sum(array)));
        std::hint::black_box(sum);
        let took = started.seconds();
        // As the peers do: the digest is for whoever compares, the sum was the consumer.
        words.iter_mut().zip(&arrays).for_each(|(words, array)| words.update(array));
        (summary, took)
    } else {
        let summary = file.each(&all, &mut |number, values| {
            words[number].update(values);
            Ok(())
        })?;
        (summary, started.seconds())
    };
    let Summary { bytes, stored, clocks } = summary;
    let mut out = output();
    if job.json {
        let mut report = json!({
            "workload": "thalweg-arrays",
            "open_to_last_s": seconds,
            "cpu_s": cpu,
            "datasets": datasets.len(),
            "bytes_stored": stored,
            "bytes_decoded": bytes,
            "needed_bytes": clocks.fetch.bytes,
            "digest": format!("{:016x}", Words::all(&words)),
            "threads": job.threads,
            "throttle": file.options().throttle.map(|limits| limits.to_string()),
            "gap": file.options().gap,
        });
        stages(&mut report, &clocks, std::time::Duration::ZERO);
        writeln!(out, "{}", with_build(report))?;
    } else {
        let rate = bytes as f64 / 1e6 / seconds.max(1e-9);
        writeln!(
            out,
            "{} datasets, {:.1} MB stored, {:.1} MB fetched in {} requests, {:.1} MB decoded in {seconds:.3} s: {rate:.0} MB/s",
            datasets.len(),
            stored as f64 / 1e6,
            clocks.fetch.bytes as f64 / 1e6,
            clocks.requests,
            bytes as f64 / 1e6,
        )?;
    }
    out.flush()?;
    Ok(())
}
