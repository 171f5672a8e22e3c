//! `thalweg plot` of the events of a NeXus file: rate, times of flight, detectors, banks.

mod pulse_rate;

use thalweg::arrays::{ArrayFile, Dataset};
use thalweg::nexus::{Bank, EventColumn, EventFinding, EventSelection, Nexus};
use thalweg::text::escaped;

use pulse_rate::{PulseRate, RateBars};

use super::events::{find, print_findings};
use crate::chart::{Axis, Histogram, Marks, Panel, rounded, short};
use crate::common::{Failure, VerbResult, complain, counted};
use crate::progress::FetchProgress;

/// Times more than a year from the first pulse, and times of flight of more than 100 s, are errors
/// in the file, and are not drawn.
const MOST_TIME_NS: f64 = 366.0 * 86_400.0 * NS;
const MOST_FLIGHT_NS: f64 = 100.0 * NS;
/// Larger ids are not drawn.
const MOST_ID: f64 = u32::MAX as f64;

/// The number of bars for banks. The last bar sums up all other banks.
const BANKS: usize = 16;

const NS: f64 = 1e9;
const US: f64 = 1e3;

struct EventHistograms {
    rate: PulseRate,
    /// Events of pulses without a time.
    timeless: u64,
    /// Events by their time of flight in nanoseconds.
    flights: Histogram,
    ids: Histogram,
}

/// Panels about the wanted banks, with at most `bars` bars each.
pub(crate) fn event_panels(
    file: &ArrayFile,
    banks: &[String],
    bars: usize,
) -> Result<(String, Vec<Panel>), Failure> {
    let nexus = find(file)?;
    let wanted = EventSelection { banks: banks.to_vec(), ..EventSelection::default() };
    let places = wanted.banks(&nexus).map_err(Failure::of_argument)?;
    let name = file.store().name();
    if places.is_empty() {
        return Err(Failure::Said(format!(
            "{name}: found no group of events, expected one of class NXevent_data"
        )));
    }
    let banks: Vec<&Bank> = places.iter().filter_map(|&at| nexus.banks().get(at)).collect();
    let _progress = FetchProgress::watch(&file.options().control, nexus.stored_bytes(&places));
    let mut tally = EventHistograms::new();
    let findings = tally.count_pulses(&nexus, &banks)?;
    tally.count_events(file, &banks)?;
    print_findings(name, &findings);
    if banks.iter().any(|bank| bank.number(EventColumn::Weight).is_some()) {
        complain(
            &"each event counts as one here, whatever its event_weight; \
              `thalweg read --events --out` has the weights",
        );
    }
    let events: u64 = banks.iter().map(|bank| bank.events()).sum();
    let of = counted(banks.len() as u64, "bank");
    let file = name.rsplit('/').next().unwrap_or(name);
    let title = format!("{file}: {} events of {of}", rounded(events as f64));
    let rate = std::mem::take(&mut tally.rate);
    let panels = [
        EventHistograms::over_time(rate, tally.timeless, bars),
        tally.by_flight(bars),
        tally.by_id(bars),
        by_bank(&banks),
    ];
    Ok((title, panels.into_iter().flatten().collect()))
}

impl EventHistograms {
    fn new() -> Self {
        Self {
            rate: PulseRate::default(),
            timeless: 0,
            flights: Histogram::new(MOST_FLIGHT_NS),
            ids: Histogram::new(MOST_ID),
        }
    }

    /// Counts the events of all pulses, and returns the findings about the pulses.
    fn count_pulses(
        &mut self,
        nexus: &Nexus<'_>,
        banks: &[&Bank],
    ) -> Result<Vec<EventFinding>, Failure> {
        let start = nexus.start()?.unwrap_or(0);
        let since = |time: i64| (i128::from(time) - i128::from(start)) as f64;
        let mut findings = Vec::new();
        nexus.each_pulses(banks.iter().copied(), &mut |bank, pulses, found| {
            findings.extend(found);
            self.timeless += pulses.before();
            self.rate.next_bank();
            for pulse in 0..pulses.len() {
                let events = pulses.events(pulse);
                self.pulse(pulses.time(pulse).map(since), events.end - events.start);
            }
            if pulses.is_empty() {
                self.timeless += bank.events();
            }
        })?;
        Ok(findings)
    }

    /// Counts events by their times of flight and their ids.
    fn count_events(&mut self, file: &ArrayFile, banks: &[&Bank]) -> VerbResult {
        // All datasets are read together: the chunks of live files lie in the order in which they
        // were full, not bank by bank.
        let columns: Vec<(&Bank, EventColumn, &Dataset)> = banks
            .iter()
            .flat_map(|bank| {
                let of = |column| bank.dataset(column).map(|dataset| (*bank, column, dataset));
                [EventColumn::Id, EventColumn::Offset].into_iter().filter_map(of)
            })
            .collect();
        let datasets: Vec<&Dataset> = columns.iter().map(|column| column.2).collect();
        file.each(&datasets, &mut |at, part| {
            let Some(&(bank, column, _)) = columns.get(at) else { return Ok(()) };
            let Some(number) = bank.number(column) else { return Ok(()) };
            let ns = bank.unit().ns() as f64;
            number.floats(part, |value| match column {
                EventColumn::Id => self.ids.add(value, 1),
                _ => self.flights.add(value * ns, 1),
            });
            Ok(())
        })?;
        Ok(())
    }

    /// Counts the events of a pulse, at its time if that is known.
    fn pulse(&mut self, time: Option<f64>, events: u64) {
        let Some(time) = time.filter(|time| time.abs() <= MOST_TIME_NS) else {
            self.timeless += events;
            return;
        };
        self.rate.add(time as i64, events);
    }

    fn over_time(rate: PulseRate, timeless: u64, bars: usize) -> Option<Panel> {
        let RateBars { bars, pulses } = rate.bars(bars)?;
        let timeless = match timeless {
            0 => String::new(),
            events => {
                format!(" {} without a pulse of known time left out.", counted(events, "event"))
            }
        };
        Some(Panel {
            title: "Event rate".into(),
            x: Axis::new("time since the first pulse in s", bars.first()?.0, bars.last()?.1),
            y: Axis::new("events/s", 0.0, highest(&bars) * 1.05),
            note: format!(
                "By the time of the pulse, in bars of {}.{timeless}",
                counted(pulses as u64, "pulse")
            ),
            marks: Marks::Bars(bars),
        })
    }

    fn by_flight(&self, bars: usize) -> Option<Panel> {
        let counts = self.flights.bars(bars, 0.0);
        let bars: Vec<_> = counts
            .iter()
            .map(|&(left, right, count)| (left / US, right / US, count as f64))
            .collect();
        let width = bars.first().map(|bar| bar.1 - bar.0)?;
        Some(Panel {
            title: "Time-of-flight spectrum".into(),
            x: Axis::new("time of flight in µs", bars.first()?.0, bars.last()?.1),
            y: Axis::new(format!("events in {} µs", short(width)), 0.0, highest(&bars) * 1.05),
            marks: Marks::Bars(bars),
            note: format!(
                "By event_time_offset.{}",
                outside(self.flights.outside, "times of flight beyond 100 s")
            ),
        })
    }

    fn by_id(&self, bars: usize) -> Option<Panel> {
        let counts = self.ids.bars(bars, 0.0);
        let bars: Vec<_> =
            counts.iter().map(|&(left, right, count)| (left, right, count as f64)).collect();
        let width = bars.first().map(|bar| bar.1 - bar.0)?;
        let ids =
            if width > 1.0 { format!("events in {} ids", short(width)) } else { "events".into() };
        Some(Panel {
            title: "Events by detector".into(),
            x: Axis::new("event_id", bars.first()?.0, bars.last()?.1),
            y: Axis::new(ids, 0.0, highest(&bars) * 1.05),
            marks: Marks::Bars(bars),
            note: format!(
                "By event_id.{}",
                outside(self.ids.outside, "ids that need more than 32 bits")
            ),
        })
    }
}

fn highest(bars: &[(f64, f64, f64)]) -> f64 {
    bars.iter().map(|bar| bar.2).fold(0.0, f64::max)
}

fn outside(count: u64, what: &str) -> String {
    if count == 0 {
        String::new()
    } else {
        format!(" {} with {what} left out.", counted(count, "event"))
    }
}

fn by_bank(banks: &[&Bank]) -> Option<Panel> {
    if banks.len() < 2 {
        return None;
    }
    let mut rows: Vec<(String, f64)> = banks
        .iter()
        .map(|bank| (escaped(bank.name()).into_owned(), bank.events() as f64))
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if rows.len() > BANKS {
        let rest = rows.split_off(BANKS - 1);
        rows.push((format!("{} others", rest.len()), rest.iter().map(|bank| bank.1).sum()));
    }
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    Some(Panel {
        title: "Events by bank".into(),
        x: Axis::new("events", 0.0, most * 1.15),
        y: Axis::new("", 0.0, rows.len() as f64),
        marks: Marks::Named(rows),
        note: String::new(),
    })
}
