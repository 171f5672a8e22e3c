//! Digests of arrays, or of parts of them.

use std::io::Write;

use sha2::{Digest, Sha256};
use thalweg::arrays::{ArrayFile, ArrayRequest, Dataset, Memory, Selection};
use thalweg::hdf5::array::{Array, ElementPlace};
use thalweg::text::escaped;

use super::super::checksum::WordSum;
use super::super::ranks::{ReadSeconds, ReadTally};
use super::super::select::Select;
use super::super::shape_in_words;
use super::{ReadJob, array, timed};
use crate::common::{Failure, VerbResult, complain, ended, listing};
use crate::digest::hex;

/// Prints a row for each dataset: path, shape, type, SHA-256 of the values. Fails if there is no
/// row at all for datasets that were named.
pub(super) fn print(file: &ArrayFile, datasets: &[Dataset], were_named: bool) -> VerbResult {
    let together = hashes_together(file, datasets)?;
    let mut out = listing();
    let mut failed = None;
    let mut is_empty = true;
    for (number, dataset) in datasets.iter().enumerate() {
        let Some(array) = array(dataset) else { continue };
        let hash = match &together {
            Some(hashes) => Ok(hashes[number].clone()),
            None => hash_alone(file, dataset),
        };
        let is_virtual = matches!(array.place, ElementPlace::Virtual(_));
        let elsewhere = is_virtual.then_some("a virtual dataset");
        match (hash, elsewhere) {
            (Ok(hash), _) => {
                let hash = hex(&hash.finalize());
                print_row(&mut out, dataset.path(), &array.shape, array, &hash)?;
                is_empty = false;
            }
            (Err(thalweg::Error::Cancelled), _) => return Err(thalweg::Error::Cancelled.into()),
            // A file has no defect only because another file is not there.
            (Err(error), Some(why)) if !matches!(error, thalweg::Error::Io { .. }) => {
                complain(&format!("{}: not read: {why}; {error}", dataset.path()));
            }
            // A defect in one dataset does not prevent the digests of the others.
            (Err(error), _) => {
                if let Some(before) = failed.replace(error) {
                    complain(&before);
                }
            }
        }
    }
    out.flush()?;
    match failed {
        Some(error) => Err(error.into()),
        // What cannot be read was printed already.
        None => ended(is_empty && were_named),
    }
}

/// The hashes of all datasets, which are read together because their chunks may be interleaved.
/// `None` if one of them cannot be read, or is virtual: then each is read alone.
fn hashes_together(file: &ArrayFile, datasets: &[Dataset]) -> thalweg::Result<Option<Vec<Sha256>>> {
    let all: Vec<&Dataset> = datasets.iter().collect();
    if all.iter().any(|dataset| array(dataset).is_some_and(|array| array.is_by_rows())) {
        return Ok(None);
    }
    let mut hashes = vec![Sha256::new(); datasets.len()];
    let outcome = file.each(&all, &mut |number, values| {
        hashes[number].update(values);
        Ok(())
    });
    match outcome {
        Err(thalweg::Error::Cancelled) => Err(thalweg::Error::Cancelled),
        outcome => Ok(outcome.ok().map(|_| hashes)),
    }
}

fn hash_alone(file: &ArrayFile, dataset: &Dataset) -> thalweg::Result<Sha256> {
    let mut hash = Sha256::new();
    file.values(dataset, &mut |values| {
        hash.update(values);
        Ok(())
    })?;
    Ok(hash)
}

fn print_row(
    out: &mut dyn Write,
    path: &str,
    shape: &[u64],
    array: &Array,
    hash: &str,
) -> std::io::Result<()> {
    let path = escaped(path);
    let dtype = array.dtype.to_string();
    writeln!(out, "{path}\t{}\t{}\t{hash}", shape_in_words(shape), escaped(&dtype))
}

/// The selected part of an array.
struct SelectedPart<'a> {
    dataset: &'a Dataset,
    array: &'a Array,
    selection: Selection,
    /// The shape of the part.
    shape: Vec<u64>,
}

/// Reads parts of datasets into memory. Prints a row for each as [`print()`] does, or figures about
/// all.
pub(super) fn selected(
    file: &ArrayFile,
    datasets: &[Dataset],
    select: &Select,
    job: &ReadJob<'_>,
) -> VerbResult {
    let mut parts = Vec::new();
    let mut values = Vec::new();
    for (dataset, array) in datasets.iter().filter_map(|dataset| Some((dataset, array(dataset)?))) {
        let (selection, shape) = select.of(dataset.path(), &array.shape)?;
        let count = selection.count(&array.shape).map_err(Failure::Usage)?;
        values.push(Memory::new(count as usize * array.dtype.size())?);
        parts.push(SelectedPart { dataset, array, selection, shape });
    }
    let mut wants: Vec<ArrayRequest<'_>> = parts
        .iter()
        .zip(&mut values)
        .map(|(part, out)| ArrayRequest {
            dataset: part.dataset,
            selection: part.selection.clone(),
            out,
        })
        .collect();
    let summary = file.read(&mut wants)?;
    drop(wants);
    timed::consume(&values);
    let (seconds, cpu) = job.started.seconds();
    if !job.digests {
        let sums = values.iter().map(|values| {
            let mut sum = WordSum::default();
            sum.update(values);
            sum.value()
        });
        let took = ReadSeconds { wall: seconds, cpu, between: seconds };
        let tally = ReadTally::new(&summary, sums.collect(), took);
        return timed::print(file, &tally, job, 1, Some(&summary.clocks));
    }
    let mut out = listing();
    for (SelectedPart { dataset, array, shape, .. }, bytes) in parts.iter().zip(&values) {
        print_row(&mut out, dataset.path(), shape, array, &hex(&Sha256::digest(&**bytes)))?;
    }
    Ok(out.flush()?)
}
