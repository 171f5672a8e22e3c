//! Arrays of HDF5 files: digests, or how long reading them took.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use sha2::{Digest, Sha256};
use thalweg::arrays::{ArrayFile, Dataset};
use thalweg::format::hdf5::Found;

use super::measured::Started;
use crate::common::{Failure, Outcome, complain, output};
use crate::digest::hex;
use crate::hdf5::times;
use crate::progress::Progress;

/// The datasets at or below the paths, or all of them.
fn wanted(file: &ArrayFile, paths: &[PathBuf]) -> Result<Vec<Dataset>, Failure> {
    if paths.is_empty() {
        return Ok(file.datasets()?);
    }
    let mut datasets = Vec::new();
    for path in paths {
        datasets.extend(file.below(&path.to_string_lossy())?);
    }
    Ok(datasets)
}

/// Reads datasets, and prints a digest of each or figures about all.
pub(super) fn run(file: &ArrayFile, paths: &[PathBuf], digests: bool, as_json: bool, started: &Started) -> Outcome {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let datasets = wanted(file, paths)?;
    let size = |dataset: &Dataset| if let Found::Array(array) = &dataset.found { array.bytes() } else { 0 };
    let bytes: u64 = datasets.iter().map(size).sum();
    let _progress = Progress::watch(&file.options().control, bytes);
    let mut out = output();
    let (mut read, mut all) = (0_u64, Sha256::new());
    for dataset in &datasets {
        let array = match &dataset.found {
            Found::Array(array) => array,
            Found::Other(what) => {
                complain(&format!("{}: not read: {what}", dataset.path()));
                continue;
            }
        };
        let mut hash = Sha256::new();
        let outcome = file.values(dataset, &mut |values| {
            hash.update(values);
            Ok(())
        });
        if let Err(error) = outcome {
            // What libhdf5 cannot do is no reason not to read the others.
            let Some(why) = array.library() else { return Err(error.into()) };
            complain(&format!("{}: not read: {why}; {error}", dataset.path()));
            continue;
        }
        read += 1;
        let row = format!("{}\t{}\t{}\t{}", dataset.path(), times(&array.shape), array.dtype, hex(&hash.finalize()));
        if digests {
            writeln!(out, "{row}")?;
        }
        all.update(row);
    }
    if as_json {
        let (seconds, cpu) = started.seconds();
        let digest = hex(&all.finalize());
        writeln!(
            out,
            "{}",
            json!({ "open_to_last_s": seconds, "cpu_s": cpu, "datasets": read, "bytes_decoded": bytes, "digest": digest })
        )?;
    } else if !digests {
        let (seconds, _) = started.seconds();
        let rate = bytes as f64 / 1e6 / seconds.max(1e-9);
        writeln!(out, "{read} datasets, {bytes} bytes decoded in {seconds:.3} s: {rate:.0} MB/s")?;
    }
    out.flush()?;
    Ok(())
}
