//! Plots an overview of a run from a scan, without decoding signal.

use std::collections::{BTreeMap, HashMap};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type, UInt64Type};
use thalweg::format::slow5::Header;
use thalweg::reads::{FILE_COLUMN, Lengths, ReadSet, ScanOptions, Selection, Strings};
use thalweg::text::escaped;
use thalweg_io::cells::{numbers, shown};

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

/// The most runs of one picture. Times since the start of one run, its channels and its lengths say
/// nothing about another run, so each has panels of its own.
const MOST_RUNS: usize = 6;

/// The reads of one run: those whose read groups have the same run id.
#[derive(Debug, Default)]
struct RunTally {
    /// The id of the run, and its sample.
    run_id: Option<String>,
    sample: Option<String>,
    reads: u64,
    samples: u64,
    /// Samples of reads by the logarithm of their length.
    lengths: BTreeMap<u32, u64>,
    exact: Lengths,
    /// Reads and samples by the slice of time in which the read began.
    slices: Vec<(u64, u64)>,
    timeless: u64,
    reasons: BTreeMap<String, u64>,
    /// Samples of each channel.
    channels: Vec<u64>,
}

/// The runs of a data set, in the order of their first reads.
#[derive(Debug, Default)]
struct RunTallies {
    runs: Vec<RunTally>,
    /// The place of the run of each file and read group.
    places: HashMap<(i32, u32), usize>,
}

/// Letters of a run's id that a title shows, unless several runs have the same.
const LETTERS: usize = 8;

/// The number of letters by which different ids can be told apart.
fn distinct<'a>(ids: impl Iterator<Item = &'a str>) -> usize {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let common = |pair: &[&str]| match pair {
        [a, b] => a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    ids.windows(2).map(common).max().map_or(LETTERS, |most| LETTERS.max(most + 1))
}

pub(super) fn panels(set: &ReadSet) -> Result<(String, Vec<Panel>), Failure> {
    let own = set.scan_schema(Strings::Text)?;
    let wanted =
        ["samples", "sampling_rate", "read_group", "start_time", "end_reason", "channel_number"];
    let known = wanted.into_iter().filter(|name| own.column_with_name(name).is_some());
    let columns = known.chain([FILE_COLUMN]).map(str::to_owned).collect();
    let headers: Vec<&Header> = set.headers().collect();
    let mut tallies = RunTallies::default();
    for batch in set.scan(&Selection::All, &ScanOptions { columns, ..ScanOptions::default() })? {
        tallies.batch(&batch?, &headers)?;
    }
    let files = counted(set.paths().len() as u64, "file");
    Ok(match &mut tallies.runs[..] {
        [] => (format!("0 reads, {files}"), Vec::new()),
        [run] => (format!("{}, {files}", run.title()), run.panels("")),
        runs => {
            let reads: u64 = runs.iter().map(|run| run.reads).sum();
            let title = format!("{} runs, {} reads, {files}", runs.len(), rounded(reads as f64));
            let letters = distinct(runs.iter().filter_map(|run| run.run_id.as_deref()));
            let of = |run: &mut RunTally| run.panels(&format!("{}: ", run.short_name(letters)));
            (title, runs.iter_mut().flat_map(of).collect())
        }
    })
}

impl RunTallies {
    fn batch(&mut self, batch: &RecordBatch, headers: &[&Header]) -> Result<(), Failure> {
        let missing = || Failure::Said("a scan without samples, rates or read groups".into());
        let column = |name: &str| batch.column_by_name(name).ok_or_else(missing);
        let samples = column("samples")?.as_primitive_opt::<UInt64Type>().ok_or_else(missing)?;
        let rates =
            column("sampling_rate")?.as_primitive_opt::<Float64Type>().ok_or_else(missing)?;
        let groups = column("read_group")?.as_primitive_opt::<UInt32Type>().ok_or_else(missing)?;
        let files = column(FILE_COLUMN)?.as_dictionary_opt::<Int32Type>().ok_or_else(missing)?;
        let starts = batch.column_by_name("start_time").map(|column| numbers(column));
        let channels = batch.column_by_name("channel_number").map(|column| shown(column));
        let reasons = batch.column_by_name("end_reason").map(|column| shown(column));
        for row in 0..batch.num_rows() {
            let run = self.run(files.keys().value(row), groups.value(row), headers)?;
            let start = starts.as_ref().and_then(|start| Some(start(row)?.real()));
            let length = samples.value(row);
            run.read(length, start.map(|start| start / rates.value(row)));
            let channel = channels.as_ref().and_then(|channel| channel(row)?.parse().ok());
            run.channel(channel, length);
            if let Some(reason) = &reasons {
                let name = reason(row).map_or_else(|| "not known".into(), |r| r.into_owned());
                *run.reasons.entry(name).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The run of a read group of a file.
    fn run(
        &mut self,
        file: i32,
        group: u32,
        headers: &[&Header],
    ) -> Result<&mut RunTally, Failure> {
        let place = match self.places.get(&(file, group)) {
            Some(place) => *place,
            None => {
                let header = usize::try_from(file).ok().and_then(|file| headers.get(file));
                let of = |name| Some(header?.attribute(name, group)?.to_owned());
                let run_id = of("run_id").filter(|id| !id.is_empty());
                let known = self.runs.iter().position(|run| run.run_id == run_id);
                let place = known.unwrap_or(self.runs.len());
                if known.is_none() {
                    let sample = of("sample_id").filter(|sample| !sample.is_empty());
                    self.runs.push(RunTally { run_id, sample, ..RunTally::default() });
                }
                self.places.insert((file, group), place);
                place
            }
        };
        if self.runs.len() > MOST_RUNS {
            return Err(Failure::Usage(format!(
                "these are reads of more than {MOST_RUNS} runs, and a picture has at most as many: \
                 give the files of fewer runs, or take them apart with `thalweg split --by run_id`"
            )));
        }
        self.runs.get_mut(place).ok_or_else(|| Failure::Said("a run without a place".into()))
    }
}

impl RunTally {
    /// The sample and the beginning of the run's id.
    fn name(&self) -> String {
        match &self.sample {
            Some(sample) => format!("{}, {}", escaped(sample), self.short_name(LETTERS)),
            None => self.short_name(LETTERS),
        }
    }

    /// The first letters of the run's id, which has 40.
    fn short_name(&self, letters: usize) -> String {
        self.run_id.as_ref().map_or_else(
            || "run without an id".to_owned(),
            |id| format!("run {}", escaped(&id.chars().take(letters).collect::<String>())),
        )
    }

    fn title(&mut self) -> String {
        let n50 = self.exact.stats().map(|l| format!(", N50 {} samples", rounded(l.n50 as f64)));
        let n50 = n50.unwrap_or_default();
        format!(
            "{}: {} reads, {} samples{n50}",
            self.name(),
            rounded(self.reads as f64),
            rounded(self.samples as f64)
        )
    }

    /// The panels of the run, with `prefix` before their titles.
    fn panels(&mut self, prefix: &str) -> Vec<Panel> {
        let all = [
            self.by_length(),
            self.over_time(),
            self.yielded(),
            self.by_reason(),
            self.by_channel(),
        ];
        let named = |panel: Panel| Panel { title: format!("{prefix}{}", panel.title), ..panel };
        all.into_iter().flatten().map(named).collect()
    }

    fn read(&mut self, length: u64, start_s: Option<f64>) {
        self.reads += 1;
        self.samples += length;
        *self.lengths.entry(bin(length)).or_default() += length;
        self.exact.push(length);
        self.time(start_s, length);
    }

    fn channel(&mut self, channel: Option<usize>, length: u64) {
        let Some(channel) = channel.filter(|channel| (1..=MOST_CHANNELS).contains(channel)) else {
            return;
        };
        if self.channels.len() < channel {
            self.channels.resize(channel, 0);
        }
        if let Some(sum) = self.channels.get_mut(channel - 1) {
            *sum += length;
        }
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

    fn by_length(&mut self) -> Option<Panel> {
        let n50 = self.exact.stats()?.n50;
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
            title: format!("Samples by length of their read (N50 {})", rounded(n50 as f64)),
            x,
            y: Axis::new("samples", 0.0, most * 1.05),
            marks: Marks::Bars(bars),
            note: "Every read counts as often as it has samples. Reads at least as long as the \
                   N50 hold half of all samples."
                .into(),
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
        } else if self.slices.len() <= 3 * minute {
            (step, "s", 1.0 / SLICE_S as f64)
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
                 on the flow cell. The more a channel stands out, the more samples."
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
    fn names_of_runs_differ() {
        assert_eq!(distinct(["0123456789", "0123456789"].into_iter()), 8);
        assert_eq!(distinct(["0123456789a", "0123456789b", "1"].into_iter()), 11);
        assert_eq!(distinct(["0123456789", "01234567", ""].into_iter()), 9);
    }

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
    fn a_run_is_called_by_its_sample_and_its_id() {
        let mut tally = RunTally { run_id: Some("0123456789ab".into()), ..RunTally::default() };
        assert_eq!(tally.name(), "run 01234567");
        tally.sample = Some("liver\u{1b}".into());
        (0..4).for_each(|_| tally.read(10, None));
        tally.read(100_000, None);
        assert_eq!(
            tally.title(),
            format!(
                "{}, run 01234567: 5 reads, 100k samples, N50 100k samples",
                escaped("liver\u{1b}")
            )
        );
        assert_eq!(RunTally::default().name(), "run without an id");
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
            tally.read(length, None);
        }
        let Some(Panel { marks: Marks::Bars(bars), x, .. }) = tally.by_length() else {
            unreachable!()
        };
        assert_eq!(bars.iter().map(|bar| bar.2).sum::<f64>(), 31.0 + 1e6 + f64::from(u32::MAX));
        assert!(x.log && x.from <= 1.0 && x.to > f64::from(u32::MAX));
        assert!(bars.iter().all(|bar| bar.0 < bar.1));
    }
}
