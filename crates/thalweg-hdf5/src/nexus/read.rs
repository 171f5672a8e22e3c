//! Reads events: chooses the parts of the arrays and their order.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use thalweg_io::{Error, Result, pool};

use super::columns::PendingColumns;
use super::defects::{Defect, EventFinding, finding};
use super::event_windows::{EventWindow, EventWindows, WindowValues};
use super::pulse_numbers::{PULSE_BYTES, PULSES_SHARE, PulseNumbers};
use super::pulses::Pulses;
use super::selection::{EventSelection, clip};
use super::{Bank, EventColumn, Nexus};
use crate::array::{ElementPlace, Found};
use crate::arrays::{ArrayRequest, Dataset, Selection, Slab};

/// Some events of a bank, in the order of the file.
#[derive(Debug, Clone, Copy)]
pub struct EventBatch<'a> {
    /// The index of the bank in [`Nexus::banks`].
    pub bank: usize,
    /// The columns, in the order of [`EventColumn::ALL`]: little-endian numbers of the type
    /// [`Bank::number`], or empty if the bank does not have the column.
    pub columns: [&'a [u8]; 3],
    /// The pulse of each event; -1 for events that belong to none.
    pub pulses: &'a [i64],
    /// The time of the pulse of each event, in nanoseconds since 1970, or
    /// [`NO_TIME`](super::NO_TIME).
    pub times: &'a [i64],
}

/// The order in which events are delivered. In both orders, the events of each bank keep the order
/// of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// Bank by bank. If the chunks of banks are interleaved, the file is read in several passes.
    #[default]
    ByBank,
    /// In turns, as the banks lie in the file, which is read in one pass. The number of events per
    /// turn depends on the memory budget. If the budget cannot hold the pulses of all banks, the
    /// order is bank by bank.
    AsStored,
}

/// A summary of the events that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventsSummary {
    /// For each selected bank, its index in [`Nexus::banks`] and the number of its events.
    pub events: Vec<(usize, u64)>,
    /// The defects of the selected banks.
    pub findings: Vec<EventFinding>,
}

/// A window may take the memory budget divided by this number. One window is delivered while the
/// next is read.
const SHARE: usize = 8;

/// If chunks are shorter than this number of events, this many events are ordered by offset
/// together.
const GRAIN: u64 = 2048;

impl Nexus<'_> {
    /// Passes the selected events to `f`: bank by bank, each in the order of the file.
    ///
    /// # Errors
    /// The first defect of the file; [`Error::Usage`] and [`Error::NotFound`] about the selection;
    /// the error of `f`.
    pub fn events(
        &self,
        wanted: &EventSelection,
        f: &mut dyn FnMut(&EventBatch<'_>) -> Result<()>,
    ) -> Result<EventsSummary> {
        self.events_in(EventOrder::ByBank, wanted, f)
    }

    /// Passes the selected events to `f` in the given order.
    ///
    /// # Errors
    /// As [`Nexus::events`].
    pub fn events_in(
        &self,
        order: EventOrder,
        wanted: &EventSelection,
        f: &mut dyn FnMut(&EventBatch<'_>) -> Result<()>,
    ) -> Result<EventsSummary> {
        let banks = wanted.banks(self)?;
        let start = if wanted.time.is_some() { self.start()? } else { None };
        let times = wanted.times(start.unwrap_or(0))?;
        let mut summary = EventsSummary {
            events: banks.iter().map(|&bank| (bank, 0)).collect(),
            findings: Vec::new(),
        };
        let mut given = |batch: &EventBatch<'_>| {
            if let Some((_, count)) =
                summary.events.iter_mut().find(|(bank, _)| *bank == batch.bank)
            {
                *count += batch.pulses.len() as u64;
            }
            f(batch)
        };
        let pulses = banks.iter().map(|&at| self.banks[at].pulses() * PULSE_BYTES).sum::<u64>();
        let all_at_once = order == EventOrder::AsStored
            && pulses <= (self.file.options().budget.memory / PULSES_SHARE) as u64;
        summary.findings = pool::scope(|threads| {
            let (ask, asked) = sync_channel::<(EventWindow, WindowValues)>(1);
            let (answer, answers) = sync_channel(1);
            let reader = threads.start("thalweg-events", move || {
                for (window, spare) in asked {
                    let values = self.values_of(&window, spare);
                    if answer.send((window, values)).is_err() {
                        return;
                    }
                }
            });
            reader.map_err(|e| Error::io(self.file.store().name(), "starting a thread for", e))?;
            let flight = wanted.flight.as_ref();
            let pending = PendingColumns::default();
            let mut turns = EventWindows {
                nexus: self,
                flight,
                ask,
                answers,
                is_out: false,
                pending,
                spare: WindowValues::new(),
                show: &mut given,
            };
            if all_at_once {
                self.as_stored(&banks, wanted, times.as_ref(), &mut turns)
            } else {
                self.by_bank(&banks, wanted, times.as_ref(), &mut turns)
            }
        })?;
        Ok(summary)
    }

    fn by_bank(
        &self,
        banks: &[usize],
        wanted: &EventSelection,
        times: Option<&Range<i64>>,
        turns: &mut EventWindows<'_, '_>,
    ) -> Result<Vec<EventFinding>> {
        let mut findings = Vec::new();
        let mut window = EventWindow::default();
        // Bytes of the pulses that the window holds.
        let mut held = 0;
        let room = self.room();
        for &place in banks {
            let bank = &self.banks[place];
            let of_bank = self.pulses(bank)?;
            let (pulses, ranges) = selected(bank, place, of_bank, wanted, times, &mut findings)?;
            let bytes = pulses.len() as u64 * PULSE_BYTES;
            let size = bank.event_bytes();
            let step = step(room / size, bank.chunk(), 2 * room / size);
            for part in ranges.into_iter().flat_map(|range| cut(range, step)) {
                if window.bytes > 0 && window.bytes + (part.end - part.start) * size > room
                    || held > room
                {
                    turns.next(Some(std::mem::take(&mut window)))?;
                    held = 0;
                }
                window.add(place, bank, &pulses, part, self.gap(bank));
            }
            held += bytes;
        }
        turns.next(Some(window))?;
        turns.next(None)?;
        Ok(findings)
    }

    fn as_stored(
        &self,
        banks: &[usize],
        wanted: &EventSelection,
        times: Option<&Range<i64>>,
        turns: &mut EventWindows<'_, '_>,
    ) -> Result<Vec<EventFinding>> {
        let mut findings = Vec::new();
        let mut window = EventWindow::default();
        let mut parts = Vec::new();
        let room = self.room();
        let mut numbers: Vec<(&Bank, PulseNumbers)> =
            banks.iter().map(|&place| (&self.banks[place], PulseNumbers::default())).collect();
        self.read_pulses(&mut numbers)?;
        for (&place, (bank, numbers)) in banks.iter().zip(numbers) {
            let of_bank = bank.pulses_from(numbers);
            let (pulses, ranges) = selected(bank, place, of_bank, wanted, times, &mut findings)?;
            let step = step(GRAIN, bank.chunk(), 2 * room / bank.event_bytes());
            let mut at = 0;
            for part in ranges.into_iter().flat_map(|range| cut(range, step)) {
                // A part never comes before earlier parts of its bank.
                at = bank.place(part.start).max(at);
                parts.push((at, place, part, pulses.clone()));
            }
        }
        parts.sort_by_key(|&(at, place, ..)| (at, place));
        for (_, place, part, pulses) in parts {
            if window.bytes >= room {
                turns.next(Some(std::mem::take(&mut window)))?;
            }
            let bank = &self.banks[place];
            window.add(place, bank, &pulses, part, self.gap(bank));
        }
        turns.next(Some(window))?;
        turns.next(None)?;
        Ok(findings)
    }

    /// Bytes of a window.
    fn room(&self) -> u64 {
        (self.file.options().budget.memory / SHARE) as u64
    }

    /// The longest gap, in events, that is read rather than skipped: a chunk, which is read whole
    /// anyway, or the events that cost as much as a request.
    fn gap(&self, bank: &Bank) -> u64 {
        let rule = self.file.gap_rule(&self.file.model());
        bank.chunk().max(rule.break_even() / bank.event_bytes())
    }
}

/// The pulses of a bank, and the ranges of its selected events. `number` is that of the bank.
fn selected(
    bank: &Bank,
    number: usize,
    (pulses, found): (Pulses, Vec<EventFinding>),
    wanted: &EventSelection,
    times: Option<&Range<i64>>,
    findings: &mut Vec<EventFinding>,
) -> Result<(Arc<Pulses>, Vec<Range<u64>>)> {
    findings.extend(found);
    if wanted.flight.is_some() && bank.list(EventColumn::Offset).is_none() && bank.events > 0 {
        let done = "none of its events is in a range of times of flight";
        let missing =
            finding(Defect::Unusable, None, "no event_time_offset", "one for each event", done);
        findings.push(EventFinding { group: bank.path.clone(), ..missing });
    }
    let ranges = pulses.ranges(wanted.pulses.as_ref(), times.cloned());
    Ok((Arc::new(pulses), clip(ranges, &wanted.part(bank, number)?)))
}

impl Bank {
    /// The number of events in the longest chunk.
    pub(super) fn chunk(&self) -> u64 {
        let chunk = |dataset: &Dataset| match &dataset.found {
            Found::Array(array) => match &array.place {
                ElementPlace::Chunked(chunk, _) => chunk.first().copied(),
                _ => None,
            },
            Found::Other(_) => None,
        };
        self.datasets().filter_map(chunk).max().unwrap_or(1)
    }

    /// Bytes per event, decoded.
    pub(super) fn event_bytes(&self) -> u64 {
        self.columns.iter().flatten().map(|list| list.number.size() as u64).sum::<u64>().max(1)
    }

    /// The offset of an event in the file: the greatest offset of its values.
    fn place(&self, event: u64) -> u64 {
        let place = |dataset: &Dataset| match &dataset.found {
            Found::Array(array) => match &array.place {
                ElementPlace::Chunked(chunk, chunks) => {
                    let number = event / chunk.first()?;
                    chunks
                        .get(chunks.binary_search_by_key(&number, |chunk| chunk.first).ok()?)
                        .map(|chunk| chunk.offset)
                }
                ElementPlace::Contiguous(Some(start)) => {
                    Some(start + event * array.dtype.size() as u64)
                }
                _ => None,
            },
            Found::Other(_) => None,
        };
        self.datasets().filter_map(place).max().unwrap_or(0)
    }
}

/// The number of events that are read at once: whole chunks with about `rows` events, or one chunk
/// if it has at most `most` events.
fn step(rows: u64, chunk: u64, most: u64) -> u64 {
    match rows / chunk {
        0 if chunk <= most => chunk,
        0 => rows,
        chunks => chunks * chunk,
    }
    .max(1)
}

/// Cuts a range at the multiples of `step`.
pub(super) fn cut(range: Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let end = (at / step).saturating_add(1).saturating_mul(step).min(range.end);
        let part = at..end;
        at = end;
        (!part.is_empty()).then_some(part)
    })
}

pub(super) fn want<'a>(
    dataset: &'a Dataset,
    range: &Range<u64>,
    out: &'a mut [u8],
) -> ArrayRequest<'a> {
    ArrayRequest { dataset, selection: Selection::Slab(vec![Slab::from(range.clone())]), out }
}

#[cfg(test)]
mod tests {
    use super::{cut, step};
    use proptest::prelude::*;

    #[test]
    fn steps_are_whole_chunks_where_memory_allows() {
        assert_eq!(
            [step(1000, 64, 4000), step(1000, 3000, 4000), step(1000, 5000, 4000), step(0, 1, 0)],
            [960, 3000, 1000, 1]
        );
    }

    proptest! {
        #[test]
        fn parts_make_the_range(start in 0..1000_u64, len in 0..1000_u64, step in 1..300_u64) {
            let mut end = start;
            for part in cut(start..start + len, step) {
                prop_assert_eq!(part.start, end);
                prop_assert!(part.end > part.start && part.start / step == (part.end - 1) / step);
                end = part.end;
            }
            prop_assert_eq!(end, start + len);
        }
    }
}
