//! A data set in a few figures, from a scan: no signal is decoded.

mod lengths;

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type, UInt64Type};
use thalweg_io::cells::{numbers, shown};
use thalweg_io::{Error, Result};

use super::{FILE_COLUMN, ReadSet, ScanOptions, Selection, Strings};
use crate::record::Header;

pub use lengths::{LengthStats, Lengths};

/// What a data set holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// Files.
    pub files: usize,
    /// Reads.
    pub reads: u64,
    /// Samples of all reads.
    pub samples: u64,
    /// Stored bytes of all files, headers and metadata included.
    pub bytes: u64,
    /// Figures of the reads' lengths in samples, all of them exact; `None` where there are no
    /// reads.
    pub lengths: Option<LengthStats>,
    /// Seconds of signal of all reads together, by each read's own sampling rate.
    pub signal_s: f64,
    /// Seconds from the start of the acquisition to the end of the read that ended last, where
    /// start times are known; of several acquisitions, that of the longest.
    pub last_s: Option<f64>,
    /// The acquisitions: read groups with the same attributes, in any number of files.
    pub runs: Vec<RunPart>,
    /// Reads by the reason why they ended; the empty key stands for reads that do not say.
    pub end_reasons: BTreeMap<String, u64>,
    /// Reads by type of pore, where files say it.
    pub pore_types: BTreeMap<String, u64>,
    /// How many channels gave reads, where files say it.
    pub channels: Option<usize>,
}

/// One acquisition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPart {
    /// What the read group says: `run_id` and the rest of [`RUN_ATTRIBUTES`], as far as it has
    /// them.
    pub attributes: BTreeMap<&'static str, String>,
    /// Its reads.
    pub reads: u64,
    /// Their samples.
    pub samples: u64,
}

/// Attributes that tell acquisitions apart, in the order in which people look at them.
pub const RUN_ATTRIBUTES: [&str; 9] = [
    "run_id",
    "sample_id",
    "flow_cell_id",
    "flow_cell_product_code",
    "sequencing_kit",
    "protocol_group_id",
    "device_id",
    "exp_start_time",
    "sample_frequency",
];

impl ReadSet {
    /// Counts and figures over every read. Memory: eight bytes for each read of more than a million
    /// samples, and 8 MiB.
    ///
    /// # Errors
    /// As for [`ReadSet::scan`].
    pub fn summary(&self) -> Result<RunSummary> {
        let own = self.scan_schema(Strings::Text)?;
        let wanted = [
            "read_group",
            "sampling_rate",
            "samples",
            "start_time",
            "end_reason",
            "pore_type",
            "channel_number",
        ];
        let known = wanted.into_iter().filter(|name| own.column_with_name(name).is_some());
        let columns = known.chain([FILE_COLUMN]).map(str::to_owned).collect();
        let mut count = LengthCounts::default();
        for batch in
            self.scan(&Selection::All, &ScanOptions { columns, ..ScanOptions::default() })?
        {
            count.batch(&batch?).ok_or_else(|| {
                Error::Usage("the columns of a scan are not as they should be".into())
            })?;
        }
        let headers: Vec<&Header> = self.headers().collect();
        Ok(RunSummary {
            files: headers.len(),
            bytes: self.bytes(),
            lengths: count.lengths.stats(),
            channels: own.column_with_name("channel_number").map(|_| count.channels.len()),
            runs: count.runs(&headers),
            ..count.summary
        })
    }
}

/// The figures while they are made.
#[derive(Debug, Default)]
struct LengthCounts {
    summary: RunSummary,
    lengths: Lengths,
    channels: HashSet<String>,
    /// Reads and samples of each file and read group.
    groups: HashMap<(i32, u32), (u64, u64)>,
}

impl LengthCounts {
    fn batch(&mut self, batch: &RecordBatch) -> Option<()> {
        let samples = batch.column_by_name("samples")?.as_primitive_opt::<UInt64Type>()?;
        let rates = batch.column_by_name("sampling_rate")?.as_primitive_opt::<Float64Type>()?;
        let groups = batch.column_by_name("read_group")?.as_primitive_opt::<UInt32Type>()?;
        let files = batch.column_by_name(FILE_COLUMN)?.as_dictionary_opt::<Int32Type>()?.keys();
        let starts = batch.column_by_name("start_time").map(|column| numbers(column));
        for row in 0..batch.num_rows() {
            let length = samples.value(row);
            let rate = rates.value(row);
            self.lengths.push(length);
            let group = self.groups.entry((files.value(row), groups.value(row))).or_default();
            *group = (group.0 + 1, group.1 + length);
            // A rate that makes no sense says nothing about time.
            if !(rate.is_finite() && rate > 0.0) {
                continue;
            }
            self.summary.signal_s += length as f64 / rate;
            if let Some(start) = starts.as_ref().and_then(|start| start(row)) {
                let last = (start.real() + length as f64) / rate;
                self.summary.last_s =
                    Some(self.summary.last_s.map_or(last, |before| before.max(last)));
            }
        }
        self.summary.reads += batch.num_rows() as u64;
        self.summary.samples += samples.iter().flatten().sum::<u64>();
        tally(batch, "end_reason", &mut self.summary.end_reasons);
        tally(batch, "pore_type", &mut self.summary.pore_types);
        if let Some(column) = batch.column_by_name("channel_number") {
            let channel = shown(column);
            for channel in (0..batch.num_rows()).filter_map(channel) {
                if !self.channels.contains(channel.as_ref()) {
                    self.channels.insert(channel.into_owned());
                }
            }
        }
        Some(())
    }

    /// Read groups with the same attributes are one acquisition.
    fn runs(&self, headers: &[&Header]) -> Vec<RunPart> {
        let mut runs: BTreeMap<BTreeMap<&'static str, String>, (u64, u64)> = BTreeMap::new();
        for (&(file, group), &(reads, samples)) in &self.groups {
            let header = usize::try_from(file).ok().and_then(|file| headers.get(file));
            let value =
                |name: &'static str| Some((name, header?.attribute(name, group)?.to_owned()));
            let total =
                runs.entry(RUN_ATTRIBUTES.into_iter().filter_map(value).collect()).or_default();
            *total = (total.0 + reads, total.1 + samples);
        }
        runs.into_iter()
            .map(|(attributes, (reads, samples))| RunPart { attributes, reads, samples })
            .collect()
    }
}

/// Counts rows by what a column says, if it is there.
fn tally(batch: &RecordBatch, name: &str, counts: &mut BTreeMap<String, u64>) {
    let Some(column) = batch.column_by_name(name) else { return };
    let text = shown(column);
    for row in 0..batch.num_rows() {
        let key = text(row).unwrap_or_default();
        match counts.get_mut(key.as_ref()) {
            Some(count) => *count += 1,
            None => {
                counts.insert(key.into_owned(), 1);
            }
        }
    }
}
