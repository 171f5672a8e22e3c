//! How long reading arrays takes, in this process or in several together.

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use serde_json::json;
use thalweg::arrays::{ArrayFile, ArrayRequest, ArraySummary, Dataset, Memory, Selection};
use thalweg::engine::Clocks;
use thalweg::hdf5::array::Array;

use super::super::checksum::WordSum;
use super::super::ranks::{Ranks, ReadSeconds, ReadTally, SliceNumber};
use super::{ReadJob, array};
use crate::common::{Failure, VerbResult, counted, output, shown_path};
use crate::timing::{Started, received, stages, with_build};

/// Reads this process's slice of the datasets and sums the values, as every arm of a benchmark
/// does. Prints how long that took, for all processes together.
pub(super) fn run(
    file: &ArrayFile,
    datasets: &[Dataset],
    job: &ReadJob<'_>,
    ranks: &Ranks,
) -> VerbResult {
    let all: Vec<&Dataset> = datasets.iter().collect();
    let SliceNumber { rank, size } = ranks.own();
    let elements = if size > 1 {
        share(file, &all, rank, size)?
    } else {
        all.iter().map(|dataset| 0..array(dataset).map_or(0, Array::len)).collect()
    };
    ranks.barrier()?;
    let begun = Started::now();
    let read = if job.at_once {
        read_at_once(file, &all, &elements)?
    } else {
        read_by_parts(file, &all, &elements)?
    };
    ranks.barrier()?;
    let (between, _) = begun.seconds();
    let (wall, cpu) = job.started.seconds();
    // The consumer's work is the sum, as in the peers' programs. The checksum is only for comparing
    // what was read, and is not timed.
    let sums = read.checksums(&all, &elements);
    let tally = ReadTally::new(&read.summary, sums, ReadSeconds { wall, cpu, between });
    match ranks.together(tally)? {
        Some(tally) => print(file, &tally, job, size, (size == 1).then_some(&read.summary.clocks)),
        None => Ok(()),
    }
}

/// What was read.
struct ArraysRead {
    summary: ArraySummary,
    /// The values of each array, if they were put into memory at once.
    values: Vec<Memory>,
    /// The checksum of each array, if the values came part by part.
    sums: Vec<u64>,
}

impl ArraysRead {
    fn checksums(&self, all: &[&Dataset], elements: &[Range<u64>]) -> Vec<u64> {
        if self.values.is_empty() {
            return self.sums.clone();
        }
        let mut sums = empty_sums(all, elements);
        sums.iter_mut().zip(&self.values).for_each(|(sum, values)| sum.update(values));
        sums.iter().map(WordSum::value).collect()
    }
}

/// Bytes of an element.
fn width(dataset: &Dataset) -> u64 {
    array(dataset).map_or(0, |array| array.dtype.size() as u64)
}

/// Empty checksums, which start at the first of the elements of each dataset.
fn empty_sums(all: &[&Dataset], elements: &[Range<u64>]) -> Vec<WordSum> {
    let start = |(dataset, elements): (&&Dataset, &Range<u64>)| {
        WordSum::from(elements.start * width(dataset))
    };
    all.iter().zip(elements).map(start).collect()
}

/// Sums every value. This is the work of the consumer.
pub(super) fn consume(values: &[Memory]) {
    let sum = |sum: u64, values: &Memory| sum.wrapping_add(WordSum::sum(values));
    std::hint::black_box(values.iter().fold(0, sum));
}

fn read_at_once(
    file: &ArrayFile,
    all: &[&Dataset],
    elements: &[Range<u64>],
) -> Result<ArraysRead, Failure> {
    let memory = |(dataset, elements): (&&Dataset, &Range<u64>)| {
        Memory::new(((elements.end - elements.start) * width(dataset)) as usize)
    };
    let mut values: Vec<Memory> =
        all.iter().zip(elements).map(memory).collect::<thalweg::Result<_>>()?;
    let mut wants: Vec<ArrayRequest<'_>> = (all.iter().zip(elements).zip(&mut values))
        .map(|((dataset, elements), out)| ArrayRequest {
            dataset,
            selection: Selection::Elements(elements.clone()),
            out,
        })
        .collect();
    let summary = file.read(&mut wants)?;
    drop(wants);
    consume(&values);
    Ok(ArraysRead { summary, values, sums: Vec::new() })
}

fn read_by_parts(
    file: &ArrayFile,
    all: &[&Dataset],
    elements: &[Range<u64>],
) -> Result<ArraysRead, Failure> {
    let mut sums = empty_sums(all, elements);
    let summary = file.each_of(all, elements, &mut |number, values| {
        sums[number].update(values);
        Ok(())
    })?;
    let sums = sums.iter().map(WordSum::value).collect();
    Ok(ArraysRead { summary, values: Vec::new(), sums })
}

/// Which elements of each dataset this process reads.
pub(super) fn share(
    file: &ArrayFile,
    all: &[&Dataset],
    rank: usize,
    size: usize,
) -> Result<Vec<Range<u64>>, Failure> {
    let slice = file.slices(all, size)?.swap_remove(rank);
    let own = |dataset: &&Dataset| slice.shares.iter().find(|share| share.path == dataset.path());
    Ok(all
        .iter()
        .map(|dataset| own(dataset).map_or(0..0, |share| share.elements.clone()))
        .collect())
}

/// Prints figures about what `ranks` processes have read; `clocks` are those of a single process.
pub(super) fn print(
    file: &ArrayFile,
    tally: &ReadTally,
    job: &ReadJob<'_>,
    ranks: usize,
    clocks: Option<&Clocks>,
) -> VerbResult {
    let mut out = output();
    if job.as_json {
        let mut report = json!({
            "workload": "thalweg-arrays",
            "open_to_last_s": tally.seconds,
            "between_barriers_s": tally.between,
            "cpu_s": tally.cpu,
            "ranks": ranks,
            "datasets": tally.sums.len(),
            "bytes_stored": tally.stored,
            "bytes_decoded": tally.bytes,
            "needed_bytes": tally.fetched,
            "requests": tally.requests,
            "digest": format!("{:016x}", WordSum::all(&tally.sums)),
            "threads": file.options().budget.threads,
            "throttle": file.options().throttle.map(|limits| limits.to_string()),
            "gap": file.options().gap,
        });
        if let Some(clocks) = clocks {
            stages(&mut report, clocks, Duration::ZERO);
        }
        writeln!(out, "{}", with_build(report, [shown_path(job.path)]))?;
    } else {
        writeln!(
            out,
            "{}, {:.1} MB stored, {:.1} MB fetched in {}, {:.1} MB decoded in {:.3} s: {:.0} MB/s",
            counted(tally.sums.len() as u64, "dataset"),
            tally.stored as f64 / 1e6,
            tally.fetched as f64 / 1e6,
            counted(tally.requests, "request"),
            tally.bytes as f64 / 1e6,
            tally.seconds,
            tally.bytes as f64 / 1e6 / tally.seconds.max(1e-9),
        )?;
        if let Some(received) = received() {
            writeln!(out, "{received}")?;
        }
    }
    out.flush()?;
    Ok(())
}
