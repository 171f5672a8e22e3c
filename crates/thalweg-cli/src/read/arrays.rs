//! Arrays of HDF5 files: digests, or how long reading them took.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use serde_json::json;
use sha2::{Digest, Sha256};
use thalweg::arrays::{ArrayFile, Dataset, Memory, Selection, Want};
use thalweg::engine::Clocks;
use thalweg::hdf5::libhdf5::{Array, Found};

use super::measured::{Started, stages, with_build};
use super::select::Select;
use super::team::{self, Place, Tally, Team};
use crate::common::{Failure, Outcome, alone, complain, output};
use crate::digest::{Words, hex};
use crate::hdf5::times;
use crate::progress::Progress;

/// What is done to the arrays.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) digests: bool,
    pub(super) json: bool,
    /// All of them into memory at once, instead of part by part.
    pub(super) whole: bool,
    pub(super) threads: usize,
    /// Only says what so many processes would read.
    pub(super) slices: Option<usize>,
    pub(super) select: Option<&'a Select>,
}

/// The arrays among the datasets at or below the paths and patterns, or among all; of the others it
/// says what they are.
pub(super) fn wanted(file: &ArrayFile, paths: &[PathBuf]) -> Result<Vec<Dataset>, Failure> {
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

fn len(dataset: &Dataset) -> u64 {
    array(dataset).map_or(0, Array::len)
}

/// Reads datasets, and prints a digest of each or figures about all.
pub(super) fn run(
    file: &ArrayFile,
    paths: &[PathBuf],
    job: Job<'_>,
    team: &Team,
    started: &Started,
) -> Outcome {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let datasets = wanted(file, paths)?;
    if let Some(count) = job.slices {
        let mut out = output();
        for slice in file.slices(&datasets.iter().collect::<Vec<_>>(), count)? {
            writeln!(out, "{}", json!(slice))?;
        }
        return Ok(out.flush()?);
    }
    let total: u64 = datasets.iter().filter_map(array).map(Array::bytes).sum();
    let _progress = Progress::watch(&file.options().control, total / team.place().size as u64);
    if let Some(select) = job.select {
        alone()?;
        return selected(file, &datasets, select, job, started);
    }
    match (job.digests, team.place().size) {
        (true, 1) => digests(file, &datasets),
        (true, _) => Err(Failure::Usage(
            "a slice has no digest of its own: use --json, whose digest is that of all".into(),
        )),
        (false, _) => timed(file, &datasets, job, team, started),
    }
}

/// Prints a row for each dataset: path, shape, type, SHA-256 of the values.
fn digests(file: &ArrayFile, datasets: &[Dataset]) -> Outcome {
    // Together, because they may lie side by side.
    let mut hashes = vec![Sha256::new(); datasets.len()];
    let all: Vec<&Dataset> = datasets.iter().collect();
    let together = match all
        .iter()
        .any(|dataset| array(dataset).is_some_and(|array| array.library().is_some()))
    {
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

/// Reads parts of datasets into memory: prints a row for each as [`digests`] does, or says how long
/// it took.
fn selected(
    file: &ArrayFile,
    datasets: &[Dataset],
    select: &Select,
    job: Job<'_>,
    started: &Started,
) -> Outcome {
    let (mut picks, mut arrays) = (Vec::new(), Vec::new());
    for (dataset, array) in datasets.iter().filter_map(|dataset| Some((dataset, array(dataset)?))) {
        let (selection, shape) = select.of(dataset.path(), &array.shape)?;
        let count = selection.count(&array.shape).map_err(Failure::Usage)?;
        arrays.push(Memory::new(count as usize * array.dtype.size())?);
        picks.push((dataset, array, selection, shape));
    }
    let want = |((dataset, _, selection, _), out)| Want {
        dataset,
        selection: Clone::clone(selection),
        out,
    };
    let summary = {
        let pairs = picks
            .iter()
            .map(|(dataset, array, selection, shape)| (*dataset, array, selection, shape));
        file.read(
            &mut pairs
                .zip(arrays.iter_mut().map(|array| &mut **array))
                .map(want)
                .collect::<Vec<_>>(),
        )?
    };
    std::hint::black_box(
        arrays.iter().fold(0_u64, |sum, array| sum.wrapping_add(Words::sum(array))),
    );
    let (seconds, cpu) = started.seconds();
    if !job.digests {
        let words = arrays.iter().map(|array| {
            let mut words = Words::default();
            words.update(array);
            words.value()
        });
        let tally = Tally::new(&summary, words.collect(), (seconds, cpu, seconds));
        return tell(file, &tally, job, 1, Some(&summary.clocks));
    }
    let mut out = output();
    for ((dataset, array, _, shape), bytes) in picks.iter().zip(&arrays) {
        writeln!(
            out,
            "{}\t{}\t{}\t{}",
            dataset.path(),
            times(shape),
            array.dtype,
            hex(&Sha256::digest(&**bytes))
        )?;
    }
    Ok(out.flush()?)
}

/// Reads this process's slice of the datasets, sums the values as each arm of a benchmark does, and
/// says how long that took, for all processes together.
fn timed(
    file: &ArrayFile,
    datasets: &[Dataset],
    job: Job<'_>,
    team: &Team,
    started: &Started,
) -> Outcome {
    let all: Vec<&Dataset> = datasets.iter().collect();
    let Place { rank, size } = team.place();
    let elements = if size > 1 {
        share(file, &all, rank, size)?
    } else {
        all.iter().map(|all| 0..len(all)).collect()
    };
    let width = |number: usize| array(all[number]).map_or(0, |array| array.dtype.size() as u64);
    let mut words: Vec<Words> = elements
        .iter()
        .enumerate()
        .map(|(number, elements)| Words::from(elements.start * width(number)))
        .collect();
    team.barrier()?;
    let begun = Started::now();
    let (summary, arrays) = if job.whole {
        let memory = |(number, elements): (usize, &Range<u64>)| {
            Memory::new(((elements.end - elements.start) * width(number)) as usize)
        };
        let mut arrays =
            elements.iter().enumerate().map(memory).collect::<thalweg::Result<Vec<_>>>()?;
        let mut wanted: Vec<Want<'_>> = (all.iter().zip(&elements).zip(&mut arrays))
            .map(|((dataset, elements), out)| Want {
                dataset,
                selection: Selection::Elements(elements.clone()),
                out,
            })
            .collect();
        let summary = file.read(&mut wanted)?;
        std::hint::black_box(
            arrays.iter().fold(0_u64, |sum, array| sum.wrapping_add(Words::sum(array))),
        );
        (summary, arrays)
    } else {
        let summary = file.each_of(&all, &elements, &mut |number, values| {
            words[number].update(values);
            Ok(())
        })?;
        (summary, Vec::new())
    };
    team.barrier()?;
    let (between, _) = begun.seconds();
    let (seconds, cpu) = started.seconds();
    // The sum was the consumer, as the peers'; the checksum is for whoever compares.
    words.iter_mut().zip(&arrays).for_each(|(words, array)| words.update(array));
    let tally =
        Tally::new(&summary, words.iter().map(Words::value).collect(), (seconds, cpu, between));
    match team.together(tally)? {
        Some(tally) => tell(file, &tally, job, size, (size == 1).then_some(&summary.clocks)),
        None => Ok(()),
    }
}

/// Which elements of each dataset are this process's.
fn share(
    file: &ArrayFile,
    all: &[&Dataset],
    rank: usize,
    size: usize,
) -> Result<Vec<Range<u64>>, Failure> {
    let slice = file.slices(all, size)?.swap_remove(rank);
    let mine = |dataset: &&Dataset| slice.shares.iter().find(|share| share.path == dataset.path());
    Ok(all
        .iter()
        .map(|dataset| mine(dataset).map_or(0..0, |share| share.elements.clone()))
        .collect())
}

/// Starts processes that read a slice each, and says what they have read.
pub(super) fn lead(file: &ArrayFile, ranks: usize, job: Job) -> Outcome {
    tell(file, &team::lead(ranks)?, job, ranks, None)
}

fn tell(
    file: &ArrayFile,
    tally: &Tally,
    job: Job<'_>,
    ranks: usize,
    clocks: Option<&Clocks>,
) -> Outcome {
    let mut out = output();
    if job.json {
        let mut report = json!({
            "workload": "thalweg-arrays",
            "open_to_last_s": tally.seconds,
            "between_barriers_s": tally.between,
            "cpu_s": tally.cpu,
            "ranks": ranks,
            "datasets": tally.words.len(),
            "bytes_stored": tally.stored,
            "bytes_decoded": tally.bytes,
            "needed_bytes": tally.fetched,
            "requests": tally.requests,
            "digest": format!("{:016x}", Words::all(&tally.words)),
            "threads": job.threads,
            "throttle": file.options().throttle.map(|limits| limits.to_string()),
            "gap": file.options().gap,
        });
        if let Some(clocks) = clocks {
            stages(&mut report, clocks, std::time::Duration::ZERO);
        }
        writeln!(out, "{}", with_build(report))?;
    } else {
        let rate = tally.bytes as f64 / 1e6 / tally.seconds.max(1e-9);
        writeln!(
            out,
            "{} datasets, {:.1} MB stored, {:.1} MB fetched in {} requests, {:.1} MB decoded in {:.3} s: {rate:.0} MB/s",
            tally.words.len(),
            tally.stored as f64 / 1e6,
            tally.fetched as f64 / 1e6,
            tally.requests,
            tally.bytes as f64 / 1e6,
            tally.seconds,
        )?;
    }
    out.flush()?;
    Ok(())
}
