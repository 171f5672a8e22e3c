//! `thalweg read --events` and `--logs`: as a table, as numpy's arrays, or counted.

mod logs;
mod npy;

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};
use thalweg::arrays::ArrayFile;
use thalweg::control::Control;
use thalweg::event_table::EventTable;
use thalweg::nexus::{
    Bank, EventBatch, EventFinding, EventOrder, EventSelection, EventsSummary, Moment, Nexus,
};
use thalweg_io::urls;

use self::logs::logs;
use self::npy::{Arrays, MOST_OPEN};
use super::read::not_within;
use crate::callback::CallbackFailure;
use crate::common::{Failure, VerbResult, complain, counted, ended, output, print_json};
use crate::done::say_done;
use crate::progress::FetchProgress;
use crate::table_sink::{TableOut, TableSink};
use crate::timing::Started;

/// Options of `read` that are about arrays or reads.
const NOT_EVENTS: [&str; 13] = [
    "digest",
    "explain",
    "ids",
    "pa",
    "select",
    "ranks",
    "slice",
    "slices",
    "arrays",
    "one_by_one",
    "no_decode",
    "consumer_ns",
    "metadata",
];

/// Which events are read, or which logs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Events of NeXus files")]
pub(crate) struct EventArgs {
    /// Read the events of neutron detectors. With --out, write a table with the columns bank,
    /// event_id, event_time_offset, event_weight (if there are weights), pulse_time and pulse;
    /// otherwise count them
    #[arg(long, conflicts_with_all = NOT_EVENTS)]
    events: bool,
    /// Only banks whose name, or path in the file, matches this pattern; may be given more than
    /// once
    #[arg(long, value_name = "GLOB", requires = "events")]
    bank: Vec<String>,
    /// Only these pulses, by their number from 0 on: A..B is from A on and before B; either may be
    /// left out
    #[arg(long, value_name = "A..B", requires = "events", value_parser = parse_pulses)]
    pulses: Option<Range<u64>>,
    /// Only pulses of this time, in seconds since the file's first pulse or as 2026-03-01T12:30:00Z
    #[arg(long, value_name = "A..B", requires = "events", value_parser = parse_time)]
    #[arg(allow_hyphen_values = true)]
    time: Option<(Option<Moment>, Option<Moment>)>,
    /// Only events of these times of flight, in us, or with ns, us, ms or s after the number
    #[arg(long, value_name = "A..B", requires = "events", value_parser = parse_flight)]
    #[arg(allow_hyphen_values = true)]
    tof: Option<Range<f64>>,
    /// The order of the rows of a table; arrays and counts do not depend on it, and are always read
    /// in the order of the file
    #[arg(long, value_enum, default_value_t, requires = "events", requires = "out")]
    order: RowOrder,
    /// Read the logs whose path or name matches this pattern (all, without one) as a table with the
    /// columns log, time, seconds, value, text and units, or with --out OUT.npy as arrays
    #[arg(long, value_name = "GLOB", num_args = 0..=1, default_missing_value = "*")]
    #[arg(conflicts_with_all = ["events", "bank", "pulses", "time", "tof", "order", "json"])]
    #[arg(conflicts_with_all = NOT_EVENTS)]
    logs: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RowOrder {
    /// Bank by bank: a file whose banks are interleaved is read several times
    #[default]
    Banks,
    /// Banks in turns, in the order of the file, which is read once; the length of a turn depends
    /// on --memory
    File,
}

impl EventArgs {
    fn order(&self, to: Option<TableOut<'_>>, banks: usize) -> EventOrder {
        let as_stored = match to {
            None => true,
            Some(to) if to.is_npy() => banks <= MOST_OPEN,
            Some(_) => self.order == RowOrder::File,
        };
        if as_stored { EventOrder::AsStored } else { EventOrder::ByBank }
    }

    /// Whether events or logs are to be read.
    pub(crate) fn asked(&self) -> bool {
        self.events || self.logs.is_some()
    }
}

/// The texts before and after the two dots of a range; `None` for an end that is left out.
fn ends(text: &str) -> Result<(Option<&str>, Option<&str>), String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B, A.. or ..B")?;
    let some = |end: &'static str, text: &'_ str| -> Result<bool, String> {
        if text.contains("..") {
            Err(format!("two dots too many {end}"))
        } else {
            Ok(!text.trim().is_empty())
        }
    };
    Ok((some("before", from)?.then(|| from.trim()), some("behind", to)?.then(|| to.trim())))
}

fn parse_pulses(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = ends(text)?;
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text:?}: {e}"));
    forward(from.map_or(Ok(0), number)?..to.map_or(Ok(u64::MAX), number)?)
}

/// A range whose end is not before its start. Ends that are not numbers are refused, too.
fn forward<T: PartialOrd>(range: Range<T>) -> Result<Range<T>, String> {
    if range.start <= range.end { Ok(range) } else { Err("the end is before the start".into()) }
}

fn parse_time(text: &str) -> Result<(Option<Moment>, Option<Moment>), String> {
    let (from, to) = ends(text)?;
    let moment = |text: &str| Moment::parse(text).map_err(|e| e.to_string());
    let from = from.map(moment).transpose()?;
    let to = to.map(moment).transpose()?;
    // Moments of two kinds can be compared only when the time of the first pulse is known.
    if let (Some(Moment::Into(from)), Some(Moment::Into(to)))
    | (Some(Moment::At(from)), Some(Moment::At(to))) = (from, to)
    {
        forward(from..to)?;
    }
    Ok((from, to))
}

/// Parses times of flight, in nanoseconds.
fn parse_flight(text: &str) -> Result<Range<f64>, String> {
    let (from, to) = ends(text)?;
    let time = |text: &str| {
        let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
        let scale = match &text[digits.len()..] {
            "ns" => 1.0,
            "" | "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            unit => return Err(format!("{unit:?} is no unit: expected ns, us, ms or s")),
        };
        digits
            .trim()
            .parse::<f64>()
            .map(|count| count * scale)
            .map_err(|e| format!("{text:?}: {e}"))
    };
    forward(from.map_or(Ok(f64::NEG_INFINITY), time)?..to.map_or(Ok(f64::INFINITY), time)?)
}

/// Findings that are printed one by one; the others are only counted.
const SHOWN_FINDINGS: usize = 20;

/// Prints warnings about a file's events.
pub(super) fn print_findings(path: &str, findings: &[EventFinding]) {
    findings
        .iter()
        .take(SHOWN_FINDINGS)
        .for_each(|finding| complain(&format!("{path}: {finding}")));
    if findings.len() > SHOWN_FINDINGS {
        complain(&format!(
            "{path}: {} more findings; --json lists all",
            findings.len() - SHOWN_FINDINGS
        ));
    }
}

/// A finding as JSON.
pub(super) fn finding_as_json(finding: &EventFinding) -> Value {
    let EventFinding { group, defect, at, count, found, expected, done } = finding;
    json!({
        "group": group, "defect": defect.name(), "at": at, "count": count, "found": found,
        "expected": expected, "done": done,
    })
}

/// Where events are written to.
enum EventSink {
    Table(Box<(TableSink, EventTable)>),
    Arrays(Arrays),
    /// Events are only counted.
    Counted,
}

impl EventSink {
    fn create(
        to: Option<TableOut<'_>>,
        banks: &[&Bank],
        order: EventOrder,
        file: &str,
    ) -> Result<Self, Failure> {
        let Some(to) = to else { return Ok(Self::Counted) };
        if to.is_npy() {
            return Ok(Self::Arrays(Arrays::create(
                to.path,
                if order == EventOrder::AsStored { banks.len() } else { 1 },
            )?));
        }
        let events = EventTable::new(banks, file)?;
        Ok(Self::Table(Box::new((TableSink::create(to, events.schema())?, events))))
    }

    fn push(&mut self, bank: &Bank, batch: &EventBatch<'_>, control: &Control) -> VerbResult {
        match self {
            Self::Table(table) => {
                let (sink, events) = &mut **table;
                let rows = events.rows(bank, batch).map_err(|e| Failure::Said(e.to_string()))?;
                sink.push_long(&rows, control)
            }
            Self::Arrays(arrays) => Ok(arrays.push(bank, batch)?),
            Self::Counted => Ok(()),
        }
    }

    /// Finishes the files. Banks without events get files, too.
    fn finish(self, banks: &[&Bank]) -> VerbResult {
        match self {
            Self::Table(table) => table.0.finish(),
            Self::Arrays(arrays) => Ok(arrays.finish(banks)?),
            Self::Counted => Ok(()),
        }
    }
}

/// Reads events or logs. `within`: paths in the file, which choose banks.
pub(super) fn run(
    file: &ArrayFile,
    within: &[PathBuf],
    args: &EventArgs,
    to: Option<TableOut<'_>>,
    json: bool,
    started: &Started,
) -> VerbResult {
    let nexus = find(file)?;
    match &args.logs {
        Some(_) if !within.is_empty() => {
            return Err(Failure::Usage(
                "--logs takes no paths in the file: it takes a pattern, as in --logs='temp*'"
                    .into(),
            ));
        }
        Some(pattern) => logs(&nexus, pattern, to)?,
        None => events(&nexus, within, args, to, json, started)?,
    }
    ended(!nexus.unreadable().is_empty())
}

/// Finds the banks and logs of a file, and prints what cannot be read.
pub(super) fn find(file: &ArrayFile) -> Result<Nexus<'_>, Failure> {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let nexus = Nexus::find(file)?;
    nexus.unreadable().iter().for_each(|error| complain(error));
    Ok(nexus)
}

/// Reads events.
fn events(
    nexus: &Nexus<'_>,
    within: &[PathBuf],
    args: &EventArgs,
    to: Option<TableOut<'_>>,
    json: bool,
    started: &Started,
) -> VerbResult {
    let names = within.iter().map(|path| urls::shown_path(path));
    let wanted = EventSelection {
        banks: args.bank.iter().cloned().chain(names).collect(),
        pulses: args.pulses.clone(),
        time: args.time,
        flight: args.tof.clone(),
        part: None,
    };
    let numbers = wanted.banks(nexus).map_err(|error| not_within(error, within))?;
    let banks = nexus.banks().iter().enumerate();
    let banks: Vec<&Bank> =
        banks.filter(|(number, _)| numbers.contains(number)).map(|(_, bank)| bank).collect();
    let name = nexus.file().store().name();
    if banks.is_empty() {
        return Err(Failure::Said(format!(
            "{name}: found no group of events, expected one of class NXevent_data; \
             `thalweg info` lists what it has"
        )));
    }
    let order = args.order(to, banks.len());
    let mut sink = EventSink::create(to, &banks, order, name)?;
    let _progress =
        FetchProgress::watch(&nexus.file().options().control, nexus.stored_bytes(&numbers));
    let summary = write_events(nexus, &wanted, order, &mut sink)?;
    sink.finish(&banks)?;
    print_findings(name, &summary.findings);
    if json {
        print_json(&in_json(nexus, &summary, name, to, started))
    } else {
        print_in_words(&summary, banks.len(), to, started)
    }
}

/// Reads the wanted events into a sink.
fn write_events(
    nexus: &Nexus<'_>,
    wanted: &EventSelection,
    order: EventOrder,
    sink: &mut EventSink,
) -> Result<EventsSummary, Failure> {
    let control = &nexus.file().options().control;
    let mut sink_failure = CallbackFailure::default();
    let summary = nexus.events_in(order, wanted, &mut |batch| {
        let Some(bank) = nexus.banks().get(batch.bank) else { return Ok(()) };
        sink_failure.keep(sink.push(bank, batch, control))
    });
    sink_failure.or(summary.map_err(Failure::of_argument))
}

fn event_count(summary: &EventsSummary) -> u64 {
    summary.events.iter().map(|(_, count)| count).sum()
}

/// What was read, as JSON.
fn in_json(
    nexus: &Nexus<'_>,
    summary: &EventsSummary,
    file: &str,
    to: Option<TableOut<'_>>,
    started: &Started,
) -> Value {
    let rows: Vec<Value> = summary
        .events
        .iter()
        .filter_map(|(at, count)| nexus.banks().get(*at).map(|bank| (bank, count)))
        .map(|(bank, count)| json!({ "bank": bank.name(), "path": bank.path(), "events": count }))
        .collect();
    let findings: Vec<Value> = summary.findings.iter().map(finding_as_json).collect();
    let (seconds, cpu) = started.seconds();
    json!({
        "schema": "thalweg.events/1", "file": file, "path": file,
        "to": to.map(|to| urls::shown_path(to.path)),
        "events": event_count(summary), "banks": rows, "findings": findings,
        "open_to_last_s": seconds, "cpu_s": cpu,
    })
}

fn print_in_words(
    summary: &EventsSummary,
    banks: usize,
    to: Option<TableOut<'_>>,
    started: &Started,
) -> VerbResult {
    let events = event_count(summary);
    let (seconds, _) = started.seconds();
    let rate = events as f64 / 1e6 / seconds.max(1e-9);
    let [events, banks] = [counted(events, "event"), counted(banks as u64, "bank")];
    if let Some(to) = to {
        say_done(&format!("{events} of {banks}"), to.path, seconds);
        return Ok(());
    }
    let mut out = output();
    writeln!(out, "{events} of {banks} in {seconds:.3} s ({rate:.1} million/s)")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_two_ends_or_one() {
        assert_eq!(parse_pulses("3..7"), Ok(3..7));
        assert_eq!(parse_pulses(".. 7"), Ok(0..7));
        assert_eq!(parse_pulses("3.."), Ok(3..u64::MAX));
        for wrong in ["3", "3..x", "-1..2", "1..2..3", "1...2", "7..3"] {
            assert!(parse_pulses(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            parse_time("1.5..1970-01-01T00:00:02Z"),
            Ok((Some(Moment::Into(1_500_000_000)), Some(Moment::At(2_000_000_000))))
        );
        assert_eq!(parse_time("..3"), Ok((None, Some(Moment::Into(3_000_000_000)))));
        for wrong in ["..soon", "nan..", "..NaN", "5..1", "1970-01-02..1970-01-01"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            parse_time("-1e300..1e10"),
            Ok((Some(Moment::Into(i64::MIN)), Some(Moment::Into(i64::MAX))))
        );
    }

    #[test]
    fn times_of_flight_have_units() {
        assert_eq!(parse_flight("1000..2ms"), Ok(1e6..2e6));
        assert_eq!(parse_flight("5ns.."), Ok(5.0..f64::INFINITY));
        assert_eq!(parse_flight("..0.5s"), Ok(f64::NEG_INFINITY..5e8));
        for wrong in ["1m..2m", "us..2", "2..1", "nan..1", "1..nan"] {
            assert!(parse_flight(wrong).is_err(), "{wrong}");
        }
    }
}
