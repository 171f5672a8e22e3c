//! Plots an overview of a run from a scan, without decoding signal.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use thalweg::reads::{ReadSet, ScanOptions, Selection, Strings};
use thalweg::text::escaped;

use crate::chart::{Axis, Marks, Panel, rounded};
use crate::common::{Failure, counted};

/// Bars of lengths for each power of ten.
const BINS_A_DECADE: f64 = 20.0;

/// The length of a time slice in seconds, by which reads are counted, and the largest number of
/// slices of a run (60 days).
const SLICE_S: usize = 10;
const MOST_SLICES: usize = 60 * 24 * 3600 / SLICE_S;

/// The number of bars over time.
const BARS: usize = 72;

/// The time spans that a bar may cover.
const SPANS_S: [usize; 14] =
    [10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const LONGEST_S: usize = 86_400;

/// The number of end reasons that are drawn; all others are drawn as one.
const REASONS: usize = 10;

/// Larger channel numbers are taken for invalid.
const MOST_CHANNELS: usize = 20_000;

#[derive(Debug, Default)]
struct RunTally {
    reads: u64,
    samples: u64,
    /// Samples of reads by the logarithm of their length.
    lengths: BTreeMap<u32, u64>,
    /// Reads and samples by the slice of time in which the read began.
    slices: Vec<(u64, u64)>,
    timeless: u64,
    reasons: BTreeMap<String, u64>,
    /// Samples of each channel.
    channels: Vec<u64>,
}

pub(super) fn panels(set: &ReadSet) -> Result<(String, Vec<Panel>), Failure> {
    let own = set.scan_schema(Strings::Text)?;
    let wanted = ["samples", "sampling_rate", "start_time", "end_reason", "channel_number"];
    let columns = wanted
        .into_iter()
        .filter(|name| own.column_with_name(name).is_some())
        .map(str::to_owned)
        .collect();
    let mut tally = RunTally::default();
    for batch in set.scan(&Selection::All, &ScanOptions { columns, ..ScanOptions::default() })? {
        tally.batch(&batch?)?;
    }
    let files = set.paths().len();
    let title = format!(
        "{} reads, {} samples, {files} file{}",
        rounded(tally.reads as f64),
        rounded(tally.samples as f64),
        if files == 1 { "" } else { "s" }
    );
    let panels = [
        tally.by_length(),
        tally.over_time(),
        tally.yielded(),
        tally.by_reason(),
        tally.by_channel(),
    ];
    Ok((title, panels.into_iter().flatten().collect()))
}

impl RunTally {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let missing = || Failure::Said("a scan without samples or sampling rates".into());
        let samples = batch
            .column_by_name("samples")
            .and_then(|c| c.as_primitive_opt::<UInt64Type>())
            .ok_or_else(missing)?;
        let rates = batch
            .column_by_name("sampling_rate")
            .and_then(|c| c.as_primitive_opt::<Float64Type>())
            .ok_or_else(missing)?;
        let starts = batch.column_by_name("start_time");
        let texts = |column: Option<&ArrayRef>| -> Result<Vec<Option<String>>, Failure> {
            let Some(column) = column else { return Ok(Vec::new()) };
            let options = FormatOptions::new();
            let failed = |e: arrow_schema::ArrowError| Failure::Said(e.to_string());
            let shown = ArrayFormatter::try_new(column, &options).map_err(failed)?;
            let cell = |row| {
                column
                    .is_valid(row)
                    .then(|| shown.value(row).try_to_string().map_err(failed))
                    .transpose()
            };
            (0..column.len()).map(cell).collect()
        };
        let starts = texts(starts)?;
        let channels = texts(batch.column_by_name("channel_number"))?;
        for (row, &length) in samples.values().iter().enumerate() {
            self.reads += 1;
            self.samples += length;
            *self.lengths.entry(bin(length)).or_default() += length;
            let start = starts.get(row).and_then(|start| start.as_ref()?.parse::<f64>().ok());
            self.time(start.map(|start| start / rates.value(row)), length);
            let channel =
                channels.get(row).and_then(|channel| channel.as_ref()?.parse::<usize>().ok());
            if let Some(channel) = channel.filter(|channel| (1..=MOST_CHANNELS).contains(channel)) {
                if self.channels.len() < channel {
                    self.channels.resize(channel, 0);
                }
                if let Some(sum) = self.channels.get_mut(channel - 1) {
                    *sum += length;
                }
            }
        }
        for reason in texts(batch.column_by_name("end_reason"))? {
            *self.reasons.entry(reason.unwrap_or_else(|| "not known".into())).or_default() += 1;
        }
        Ok(())
    }

    fn time(&mut self, seconds: Option<f64>, length: u64) {
        let slice = seconds
            .map(|s| s / SLICE_S as f64)
            .filter(|slice| (0.0..MOST_SLICES as f64).contains(slice));
        let Some(slice) = slice.map(|slice| slice as usize) else {
            self.timeless += 1;
            return;
        };
        if self.slices.len() <= slice {
            self.slices.resize(slice + 1, (0, 0));
        }
        if let Some(sums) = self.slices.get_mut(slice) {
            *sums = (sums.0 + 1, sums.1 + length);
        }
    }

    fn by_length(&self) -> Option<Panel> {
        let first = *self.lengths.keys().next()?;
        let last = *self.lengths.keys().next_back()?;
        let edge = |bin: u32| 10_f64.powf(f64::from(bin) / BINS_A_DECADE);
        let bars: Vec<_> = self
            .lengths
            .iter()
            .map(|(&bin, &sum)| (edge(bin), edge(bin + 1), sum as f64))
            .collect();
        let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
        let x =
            Axis { log: true, ..Axis::new("read length in samples", edge(first), edge(last + 1)) };
        Some(Panel {
            title: "Samples by length of their read".into(),
            x,
            y: Axis::new("samples", 0.0, most * 1.05),
            marks: Marks::Bars(bars),
            note: "Every read counts as often as it has samples.".into(),
        })
    }

    /// Slices a bar, the unit of the axis, and how many slices that is.
    fn step(&self) -> (usize, &'static str, f64) {
        let least = self.slices.len().div_ceil(BARS);
        let seconds =
            SPANS_S.into_iter().find(|&seconds| seconds >= least * SLICE_S).unwrap_or(LONGEST_S);
        let step = seconds / SLICE_S;
        let hour = 3600 / SLICE_S;
        let minute = 60 / SLICE_S;
        if self.slices.len() > 3 * hour {
            (step, "h", hour as f64)
        } else {
            (step, "min", minute as f64)
        }
    }

    fn timeless(&self) -> String {
        match self.timeless {
            0 => String::new(),
            reads => format!(" {} without a start left out.", counted(reads, "read")),
        }
    }

    fn over_time(&self) -> Option<Panel> {
        let (step, unit, scale) = self.step();
        let bars: Vec<_> = self
            .slices
            .chunks(step)
            .enumerate()
            .map(|(i, part)| {
                let reads: u64 = part.iter().map(|slice| slice.0).sum();
                ((i * step) as f64 / scale, ((i + 1) * step) as f64 / scale, reads as f64)
            })
            .collect();
        let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
        let end = bars.last()?.1;
        Some(Panel {
            title: "Reads over time".into(),
            x: Axis::new(format!("start of the read in {unit}"), 0.0, end),
            y: Axis::new(format!("reads in {}", span(step * SLICE_S)), 0.0, most * 1.05),
            marks: Marks::Bars(bars),
            note: format!("By the time since the acquisition began.{}", self.timeless()),
        })
    }

    fn yielded(&self) -> Option<Panel> {
        let (step, unit, scale) = self.step();
        let mut sum = 0.0;
        let mut line = vec![(0.0, 0.0)];
        for (i, part) in self.slices.chunks(step).enumerate() {
            sum += part.iter().map(|slice| slice.1 as f64).sum::<f64>();
            line.push((((i + 1) * step) as f64 / scale, sum));
        }
        let end = line.last().filter(|_| line.len() > 1)?.0;
        Some(Panel {
            title: "Yield".into(),
            x: Axis::new(format!("start of the read in {unit}"), 0.0, end),
            y: Axis::new("samples so far", 0.0, sum * 1.05),
            marks: Marks::Line(line),
            note: format!("A read counts when it begins.{}", self.timeless()),
        })
    }

    fn by_reason(&self) -> Option<Panel> {
        let mut sorted: Vec<(String, f64)> =
            self.reasons.iter().map(|(name, &n)| (escaped(name).into_owned(), n as f64)).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        if sorted.len() > REASONS {
            let rest = sorted.split_off(REASONS - 1);
            sorted
                .push((format!("{} others", rest.len()), rest.iter().map(|reason| reason.1).sum()));
        }
        let most = sorted.first()?.1;
        Some(Panel {
            title: "Why reads ended".into(),
            x: Axis::new("reads", 0.0, most * 1.15),
            y: Axis::new("", 0.0, sorted.len() as f64),
            marks: Marks::Named(sorted),
            note: String::new(),
        })
    }

    /// Channels are in the order of their numbers. Their places on a flow cell differ between its
    /// kinds.
    fn by_channel(&self) -> Option<Panel> {
        if self.channels.is_empty() {
            return None;
        }
        // The number of channels of the smallest flow cell that has all of the file's channels.
        let count = [126, 512, 2675, 3000]
            .into_iter()
            .find(|&all| self.channels.len() <= all)
            .unwrap_or(self.channels.len());
        let columns = ((count as f64 * 2.0).sqrt().ceil() as usize).max(1);
        let cells = (0..count).map(|i| {
            let sum = self.channels.get(i).copied().filter(|&sum| sum > 0)?;
            Some((format!("channel {}: {} samples", i + 1, rounded(sum as f64)), sum as f64))
        });
        let cells: Vec<_> = cells.collect();
        let active = cells.iter().flatten().count();
        Some(Panel {
            title: format!("Samples by channel ({active} of {count} gave reads)"),
            x: Axis::new("", 0.0, columns as f64),
            y: Axis::new("", 0.0, count.div_ceil(columns) as f64),
            marks: Marks::Grid { columns, cells },
            note: "Channels row by row in the order of their numbers, which is not their place \
                 on the flow cell. The darker, the more."
                .into(),
        })
    }
}

/// The length of a bar over time.
fn span(seconds: usize) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// The number of the bar for a length. Reads without samples count as reads with one sample.
fn bin(length: u64) -> u32 {
    ((length.max(1) as f64).log10() * BINS_A_DECADE).floor() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_make_no_sense_are_counted_apart() {
        let mut tally = RunTally::default();
        for seconds in [Some(f64::NAN), Some(-1.0), Some(1e300), None, Some(5.0), Some(20.0)] {
            tally.time(seconds, 10);
        }
        assert_eq!((tally.timeless, tally.slices.as_slice()), (4, &[(1, 10), (0, 0), (1, 10)][..]));
        assert!(tally.over_time().is_some_and(|panel| panel.note.contains("4 reads")));
    }

    #[test]
    fn bins_over_time_have_round_widths() {
        for (hours, said) in [
            (0.1, "10 s"),
            (1.0, "60 s"),
            (20.0, "30 min"),
            (71.0, "60 min"),
            (72.0, "2 h"),
            (1000.0, "24 h"),
        ] {
            let mut tally = RunTally::default();
            tally.time(Some(hours * 3600.0), 1);
            let Some(panel) = tally.over_time() else { unreachable!() };
            assert_eq!(panel.y.label, format!("reads in {said}"));
        }
    }

    #[test]
    fn bins_hold_all_samples() {
        let mut tally = RunTally::default();
        for length in [0, 1, 9, 10, 11, 1_000_000, u64::from(u32::MAX)] {
            *tally.lengths.entry(bin(length)).or_default() += length;
        }
        let Some(Panel { marks: Marks::Bars(bars), x, .. }) = tally.by_length() else {
            unreachable!()
        };
        assert_eq!(bars.iter().map(|bar| bar.2).sum::<f64>(), 31.0 + 1e6 + f64::from(u32::MAX));
        assert!(x.log && x.from <= 1.0 && x.to > f64::from(u32::MAX));
        assert!(bars.iter().all(|bar| bar.0 < bar.1));
    }
}
