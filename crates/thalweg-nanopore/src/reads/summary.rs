//! Statistics of a data set from a scan. No signal is decoded.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type, UInt64Type};
use thalweg_io::cells::{numbers, shown};
use thalweg_io::{Error, Result};

use super::{FILE_COLUMN, ReadSet, ScanOptions, Selection, Strings};
use crate::record::Header;

pub use thalweg_io::lengths::{LengthStats, Lengths};

/// Statistics of a data set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSummary {
    /// The number of files.
    pub files: usize,
    /// The number of reads.
    pub reads: u64,
    /// The number of samples of all reads.
    pub samples: u64,
    /// The size of all files in bytes, including headers and metadata.
    pub bytes: u64,
    /// Exact statistics of the reads' lengths in samples; `None` if there are no reads.
    pub lengths: Option<LengthStats>,
    /// The total duration of the signal of all reads, in seconds.
    pub signal_s: f64,
    /// Seconds from the start of the acquisition to the end of the last read, if start times are
    /// known. For several acquisitions, the largest value.
    pub last_s: Option<f64>,
    /// The acquisitions: read groups with the same attributes, in any number of files.
    pub runs: Vec<RunPart>,
    /// The number of reads by end reason. The empty key is for reads without one.
    pub end_reasons: BTreeMap<String, u64>,
    /// The number of reads by pore type, if files have it.
    pub pore_types: BTreeMap<String, u64>,
    /// The number of channels with reads, if files have channels.
    pub channels: Option<usize>,
}

/// One acquisition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPart {
    /// The attributes of the read group that are among [`RUN_ATTRIBUTES`].
    pub attributes: BTreeMap<&'static str, String>,
    /// The number of reads.
    pub reads: u64,
    /// The number of samples.
    pub samples: u64,
}

/// The attributes that distinguish acquisitions, in the order of their importance to users.
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
    /// Statistics over all reads. Takes 8 MiB of memory, and 8 bytes for each read of more than a
    /// million samples.
    ///
    /// # Errors
    /// Those of [`ReadSet::scan`].
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

/// The statistics while they are computed.
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
            // An invalid sampling rate gives no duration.
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

    /// The acquisitions. Read groups with the same attributes are one acquisition.
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

/// Counts rows by the value of a column, if the column exists.
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
