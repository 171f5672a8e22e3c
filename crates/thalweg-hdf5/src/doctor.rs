//! Finds layouts that make a file slow to read, and predicts the gain of repacking it. It reads
//! metadata only.
//!
//! The requests of thalweg come from [`ArrayFile::explain`], which runs the iterator of a real
//! read. The requests of a reader that uses libhdf5 follow from the order of the chunks. A
//! [`StoreModel`] and a table of decoding costs ([`Costs`]) turn both into seconds.
//!
//! ```
//! use std::time::Duration;
//! use thalweg_hdf5::arrays::ArrayFile;
//! use thalweg_hdf5::doctor::{Costs, diagnose};
//! use thalweg_hdf5::synth::{NexusWriter, NexusRecipe, SynthRun};
//! use thalweg_io::model::StoreModel;
//! use thalweg_io::open::Options;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("live.nxs");
//! // The default recipe writes chunks of all banks in turns, as an acquisition does.
//! let recipe = NexusRecipe { banks: 2, ..NexusRecipe::with_bytes(1, 1_000_000) };
//! NexusWriter::write(&path, &SynthRun::new(recipe)?)?;
//!
//! let file = ArrayFile::open(&path, Options::default())?;
//! let datasets = file.datasets()?;
//! let arrays: Vec<_> = datasets.iter().filter(|dataset| dataset.not_read().is_none()).collect();
//! let costs = Costs::default();
//! let diagnosis = diagnose(&file, &arrays, &StoreModel::LOCAL, Duration::ZERO, &costs)?;
//! assert!(diagnosis.sequential_share < 0.5, "few chunks follow the one before of their dataset");
//! assert!(diagnosis.libhdf5.requests > diagnosis.thalweg.requests);
//! # Ok(())
//! # }
//! ```

mod cost;
mod findings;
mod layout;

use std::time::Duration;

use thalweg_io::Result;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::{self, Load};
use thalweg_io::store::{Asked, Counter};

use crate::array::Found;
use crate::arrays::{ArrayFile, Dataset, Requests};

pub use cost::{Costs, DecodingCost};
use findings::Examined;
pub use findings::{Finding, FindingKind, Gain};
pub use layout::ArrayLayout;

/// The layout of the arrays of a file, the predicted time to read them, and what slows them down.
#[derive(Debug)]
pub struct Diagnosis {
    /// The layout of each array, the largest first.
    pub layouts: Vec<ArrayLayout>,
    /// Bytes of all values, decoded.
    pub bytes: u64,
    /// Bytes of all values as stored.
    pub stored: u64,
    /// The number of chunks, plus the number of contiguous arrays.
    pub chunks: u64,
    /// The share of chunks that directly follow the previous chunk of their dataset, among chunks
    /// that have a previous one. 1 if no chunk has one.
    pub sequential_share: f64,
    /// The share of stored bytes that are in chunks shorter than 64 KiB.
    pub small: f64,
    /// The store model that the predictions use.
    pub model: StoreModel,
    /// The requests of thalweg.
    pub requests: Requests,
    /// Predicted time of thalweg.
    pub thalweg: Predicted,
    /// Predicted time of a reader that uses libhdf5: one request for each chunk, in sequence.
    pub libhdf5: Predicted,
    /// Causes of slow reading, the most costly first.
    pub findings: Vec<Finding>,
}

/// A predicted time and its parts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Predicted {
    /// Requests to the store.
    pub requests: u64,
    /// Bytes that the requests transfer.
    pub bytes: u64,
    /// Requests that do not begin where the previous one ended.
    pub jumps: u64,
    /// Seconds that the store takes.
    pub store_s: f64,
    /// Processor seconds for fetching, decoding and using the values, summed over threads.
    pub cpu_s: f64,
    /// Threads that share the processor time.
    pub threads: usize,
    /// Seconds for opening the file and finding the chunks, before values can be read.
    pub index_s: f64,
    /// Total seconds.
    pub total_s: f64,
}

impl Predicted {
    /// Whether the processor takes longer than the store.
    pub fn is_bound_by_processor(&self) -> bool {
        self.cpu_s / self.threads.max(1) as f64 > self.store_s
    }

    /// The range of thalweg's total time, in seconds, if the store is up to `factor` times faster
    /// or slower than its model.
    ///
    /// ```
    /// use thalweg_hdf5::doctor::Predicted;
    /// let none = Predicted::default();
    /// let time = Predicted { store_s: 2.0, cpu_s: 1.0, threads: 2, index_s: 0.1, ..none };
    /// let (least, most) = time.range_s(2.0);
    /// assert!(least < 1.2 && most > 4.0);
    /// ```
    pub fn range_s(&self, factor: f64) -> (f64, f64) {
        let total = |store_s| {
            self.index_s + plan::overlapped(store_s, self.cpu_s / self.threads.max(1) as f64)
        };
        (total(self.store_s / factor), total(self.store_s * factor))
    }
}

/// Diagnoses arrays of a file. `index` is the time that finding them took.
///
/// # Errors
/// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for a dataset that is not an array.
pub fn diagnose(
    file: &ArrayFile,
    datasets: &[&Dataset],
    model: &StoreModel,
    index: Duration,
    costs: &Costs,
) -> Result<Diagnosis> {
    let requests = file.explain(datasets, model)?;
    let mut layouts = layouts(datasets);
    let threads = file.options().budget.threads;
    let load = Load { requests: requests.count, bytes: requests.fetched };
    let thalweg = of_thalweg(&layouts, load, requests.jumps, model, index, costs, threads);
    let libhdf5 = of_libhdf5(&layouts, model, index, costs);
    let examined = Examined {
        layouts: &layouts,
        thalweg: &thalweg,
        libhdf5: &libhdf5,
        model,
        index,
        costs,
        block: requests.shape.block,
    };
    let findings = examined.findings();
    let sum = |of: fn(&ArrayLayout) -> u64| layouts.iter().map(of).sum::<u64>();
    let stored = sum(|l| l.stored);
    let chunks = sum(|l| l.pieces);
    let pairs = sum(|l| l.pairs);
    let followed = sum(|l| l.followed);
    let small = sum(|l| l.small);
    let share =
        |part: u64, of: u64, none: f64| if of == 0 { none } else { part as f64 / of as f64 };
    let bytes = sum(|l| l.bytes);
    layouts.sort_by_key(|layout| std::cmp::Reverse(layout.stored));
    Ok(Diagnosis {
        bytes,
        stored,
        chunks,
        sequential_share: share(followed, pairs, 1.0),
        small: share(small, stored, 0.0),
        model: *model,
        requests,
        thalweg,
        libhdf5,
        findings,
        layouts,
    })
}

/// A predicted time of one read of arrays, with all that comes before it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadTime {
    /// What was asked of the store before: to open the file, and to find the arrays. It is counted
    /// if the file was opened with a [`Counter`].
    pub before: Asked,
    /// Seconds that each thread takes to decode.
    pub processor_s: f64,
    /// Total seconds.
    pub total_s: f64,
}

impl ReadTime {
    /// The time of a read of datasets that makes these requests.
    pub fn of(
        file: &ArrayFile,
        datasets: &[&Dataset],
        requests: &Requests,
        model: &StoreModel,
    ) -> Self {
        let before = file.options().counter.as_ref().map(Counter::asked).unwrap_or_default();
        let load = Load { requests: requests.count, bytes: requests.fetched };
        let processor_s = Costs::default().of_read(datasets, load, requests.wanted)
            / requests.shape.threads.max(1) as f64;
        let run = load.predicted_with(model, processor_s);
        let total_s = (plan::in_rounds(before, model) + run).as_secs_f64();
        Self { before, processor_s, total_s }
    }

    /// Rounds of requests, one after the other, with those of the read.
    pub fn rounds(&self, requests: &Requests) -> u64 {
        self.before.rounds + u64::from(requests.paid > 0)
    }
}

/// The layouts of those datasets that are arrays.
fn layouts(datasets: &[&Dataset]) -> Vec<ArrayLayout> {
    let array = |dataset: &&Dataset| match &dataset.found {
        Found::Array(array) => Some(ArrayLayout::of(dataset.path(), array)),
        Found::Other(_) => None,
    };
    datasets.iter().filter_map(array).collect()
}

/// A predicted time in which the store and the processor work at the same time.
fn overlapped(
    load: Load,
    jumps: u64,
    store_s: f64,
    cpu_s: f64,
    threads: usize,
    index: Duration,
) -> Predicted {
    let index_s = index.as_secs_f64();
    let total_s = index_s + plan::overlapped(store_s, cpu_s / threads.max(1) as f64);
    Predicted {
        requests: load.requests,
        bytes: load.bytes,
        jumps,
        store_s,
        cpu_s,
        threads,
        index_s,
        total_s,
    }
}

fn of_thalweg(
    layouts: &[ArrayLayout],
    load: Load,
    jumps: u64,
    model: &StoreModel,
    index: Duration,
    costs: &Costs,
    threads: usize,
) -> Predicted {
    let store_s = load.predicted(model).as_secs_f64();
    overlapped(load, jumps, store_s, costs.thalweg(layouts, load), threads, index)
}

/// The predicted time of a reader through libhdf5. It makes one request per chunk, in the order of
/// the array, dataset after dataset. If a chunk follows the previous one in the file, the store
/// reads it ahead while the previous one is decoded; otherwise the reader waits for the store.
fn of_libhdf5(
    layouts: &[ArrayLayout],
    model: &StoreModel,
    index: Duration,
    costs: &Costs,
) -> Predicted {
    let load = Load {
        requests: layouts.iter().map(|l| l.pieces).sum(),
        bytes: layouts.iter().map(|l| l.stored).sum(),
    };
    let jumps: u64 = layouts.iter().map(|l| l.pieces.min(1) + l.pairs - l.followed).sum();
    let transfer = load.transfer_s(model);
    let in_flight = plan::overlapped(transfer, load.requests_s(model));
    let store_s = (plan::in_turn(jumps, model) + transfer).max(in_flight);
    let cpu_s = costs.libhdf5(layouts);
    let index_s = index.as_secs_f64();
    let total_s = index_s + (store_s - transfer) + plan::overlapped(transfer, cpu_s);
    let Load { requests, bytes } = load;
    Predicted { requests, bytes, jumps, store_s, cpu_s, threads: 1, index_s, total_s }
}

#[cfg(test)]
mod tests;
