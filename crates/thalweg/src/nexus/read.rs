//! Events, window by window: the parts of the arrays that hold what is wanted, and the pulse of each.

use std::ops::Range;
use std::rc::Rc;

use super::finding::{Defect, Finding, finding};
use super::number::Number;
use super::pulses::Pulses;
use super::wanted::Wanted;
use super::{Bank, List, Nexus};
use crate::arrays::{ArrayFile, Dataset, Selection, Slab, Want};
use crate::error::{Error, Result};
use crate::format::hdf5::{Found, Place};

/// Some events of a bank, in the order of the file.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The bank's place in [`Nexus::banks`].
    pub bank: usize,
    /// `event_id`, as [`Bank::id`] says, little-endian; empty if the bank has none.
    pub ids: &'a [u8],
    /// `event_time_offset`, as [`Bank::offset`] and [`Bank::unit`] say.
    pub offsets: &'a [u8],
    /// The pulse of each; -1 for those that belong to none.
    pub pulses: &'a [i64],
    /// When that was, in nanoseconds since 1970, or [`NO_TIME`](super::NO_TIME).
    pub times: &'a [i64],
}

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The events of each wanted bank, by its place in [`Nexus::banks`].
    pub events: Vec<(usize, u64)>,
    /// What was wrong with these banks.
    pub findings: Vec<Finding>,
}

/// Bytes that an event takes on its way: its values and its pulse, as read and as given.
const EVENT_BYTES: usize = 64;

/// Events on their way may take this part of the memory budget, and pulses that they belong to another.
const SHARE: usize = 8;

/// Events that are read rather than left out between others: a request takes longer than so many.
const GAP: u64 = 4096;

/// A part of a bank's arrays.
struct Piece {
    bank: usize,
    pulses: Rc<Pulses>,
    read: Range<u64>,
    /// What is wanted of it, in order.
    keep: Vec<Range<u64>>,
}

/// Columns that are being put together.
#[derive(Default)]
struct Columns {
    ids: Vec<u8>,
    offsets: Vec<u8>,
    pulses: Vec<i64>,
    times: Vec<i64>,
}

impl Nexus<'_> {
    /// Shows the wanted events to `f`: bank by bank, in the order of the file within each.
    ///
    /// # Errors
    /// The first defect of the file; [`Error::Usage`] and [`Error::NotFound`] about what is wanted; an error of `f`'s.
    pub fn events(&self, wanted: &Wanted, f: &mut dyn FnMut(&Batch<'_>) -> Result<()>) -> Result<Summary> {
        let banks = wanted.banks(self)?;
        let times = match wanted.times(0) {
            Some(_) => wanted.times(self.start()?.unwrap_or(0)),
            None => None,
        };
        let room = self.file.options().budget.memory / SHARE;
        let rows = (room / EVENT_BYTES) as u64;
        let mut summary = Summary { events: banks.iter().map(|&bank| (bank, 0)).collect(), findings: Vec::new() };
        let mut given = |batch: &Batch<'_>| {
            if let Some((_, count)) = summary.events.iter_mut().find(|(bank, _)| *bank == batch.bank) {
                *count += batch.pulses.len() as u64;
            }
            f(batch)
        };
        let (mut pieces, mut pending, mut held): (Vec<Piece>, _, _) = (Vec::new(), 0, 0);
        let mut findings = Vec::new();
        for place in banks {
            let bank = &self.banks[place];
            let (pulses, mut found) = self.pulses(bank)?;
            if wanted.flight.is_some() && bank.event_time_offset.is_none() && bank.events > 0 {
                let done = "none of its events is in a range of times of flight";
                let missing = finding(Defect::Unusable, None, "no event_time_offset", "one for each event", done);
                found.push(Finding { group: bank.path.clone(), ..missing });
            }
            findings.extend(found);
            let ranges = pulses.ranges(wanted.pulses.as_ref(), times.clone());
            held += pulses.len() * 2 * size_of::<u64>();
            let (pulses, chunk) = (Rc::new(pulses), bank.chunk());
            let gap = chunk.max(GAP);
            let step = step(rows, chunk, room as u64 / EVENT_BYTES as u64 * SHARE as u64);
            for part in ranges.into_iter().flat_map(|range| cut(range, step)) {
                match pieces.last_mut() {
                    // What lies between is in chunks that are needed anyway.
                    Some(Piece { bank, read, keep, .. })
                        if *bank == place && part.start - read.end < gap && part.start / step == read.start / step =>
                    {
                        pending += part.end - read.end;
                        read.end = part.end;
                        keep.push(part);
                    }
                    _ => {
                        if pending > 0 && pending + (part.end - part.start) > rows || held > room {
                            self.give(&pieces, wanted, &mut given)?;
                            pieces.clear();
                            (pending, held) = (0, pulses.len() * 2 * size_of::<u64>());
                        }
                        pending += part.end - part.start;
                        pieces.push(Piece {
                            bank: place,
                            pulses: pulses.clone(),
                            read: part.clone(),
                            keep: vec![part],
                        });
                    }
                }
            }
        }
        self.give(&pieces, wanted, &mut given)?;
        summary.findings = findings;
        Ok(summary)
    }

    /// Reads pieces, all at once, and shows them one after the other.
    fn give(&self, pieces: &[Piece], wanted: &Wanted, f: &mut dyn FnMut(&Batch<'_>) -> Result<()>) -> Result<()> {
        if self.file.options().control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let lists = |piece: &Piece| {
            let bank = &self.banks[piece.bank];
            [&bank.event_id, &bank.event_time_offset].map(|list| list.as_ref().map(|list| (list, piece.read.clone())))
        };
        let parts: Vec<Option<(&List, Range<u64>)>> = pieces.iter().flat_map(lists).collect();
        let mut read: Vec<Vec<u8>> = parts
            .iter()
            .map(|part| {
                part.as_ref().map_or(Vec::new(), |(list, range)| {
                    vec![0; (range.end - range.start) as usize * list.number.size()]
                })
            })
            .collect();
        let mut wants: Vec<Want<'_>> = parts
            .iter()
            .zip(&mut read)
            .filter_map(|(part, out)| part.as_ref().map(|(list, range)| want(&list.dataset, range, out)))
            .collect();
        self.file.read(&mut wants)?;
        drop(wants);
        let mut columns = Columns::default();
        for (piece, read) in pieces.iter().zip(read.chunks_exact(2)) {
            let [ids, offsets] = read else { continue };
            columns.take(piece, &self.banks[piece.bank], (ids, offsets), wanted.flight.as_ref());
            if !columns.pulses.is_empty() {
                f(&Batch {
                    bank: piece.bank,
                    ids: &columns.ids,
                    offsets: &columns.offsets,
                    pulses: &columns.pulses,
                    times: &columns.times,
                })?;
            }
        }
        Ok(())
    }
}

impl Columns {
    /// The events of a piece that are wanted, in the place of those that were here.
    fn take(&mut self, piece: &Piece, bank: &Bank, (ids, offsets): (&[u8], &[u8]), flight: Option<&Range<f64>>) {
        let Self { ids: some_ids, offsets: some_offsets, pulses, times } = self;
        some_ids.clear();
        some_offsets.clear();
        pulses.clear();
        times.clear();
        let size = |list: &Option<List>| list.as_ref().map_or(0, |list| list.number.size());
        let (id_size, offset_size) = (size(&bank.event_id), size(&bank.event_time_offset));
        let ns = bank.unit.ns() as f64;
        let flight = flight.map(|flight| flight.start / ns..flight.end / ns);
        for range in &piece.keep {
            let before = pulses.len();
            piece.pulses.of_events(range.clone(), pulses, times);
            let from = (range.start - piece.read.start) as usize;
            let to = (range.end - piece.read.start) as usize;
            let (ids, offsets) = (&ids[from * id_size..to * id_size], &offsets[from * offset_size..to * offset_size]);
            let Some(flight) = &flight else {
                some_ids.extend_from_slice(ids);
                some_offsets.extend_from_slice(offsets);
                continue;
            };
            let (mut event, mut kept) = (0, before);
            let number = bank.offset().unwrap_or(Number::F64);
            number.floats(offsets, |offset| {
                if flight.contains(&offset) {
                    some_ids.extend_from_slice(&ids[event * id_size..(event + 1) * id_size]);
                    some_offsets.extend_from_slice(&offsets[event * offset_size..(event + 1) * offset_size]);
                    pulses[kept] = pulses[before + event];
                    times[kept] = times[before + event];
                    kept += 1;
                }
                event += 1;
            });
            pulses.truncate(kept);
            times.truncate(kept);
        }
    }
}

impl Bank {
    /// Events of the longest chunk.
    fn chunk(&self) -> u64 {
        let chunk = |dataset: &Dataset| match &dataset.found {
            Found::Array(array) => match &array.place {
                Place::Chunked(chunk, _) => chunk.first().copied(),
                _ => None,
            },
            Found::Other(_) => None,
        };
        self.of_events().into_iter().flatten().filter_map(chunk).max().unwrap_or(1)
    }
}

/// Events that are read at once: whole chunks, about `rows` of them, or one chunk if that is at most `most`.
fn step(rows: u64, chunk: u64, most: u64) -> u64 {
    match rows / chunk {
        0 if chunk <= most => chunk,
        0 => rows,
        chunks => chunks * chunk,
    }
    .max(1)
}

/// A range cut at the multiples of `step`.
fn cut(range: Range<u64>, step: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let end = (at / step).saturating_add(1).saturating_mul(step).min(range.end);
        let part = at..end;
        at = end;
        (!part.is_empty()).then_some(part)
    })
}

fn want<'a>(dataset: &'a Dataset, range: &Range<u64>, out: &'a mut [u8]) -> Want<'a> {
    Want { dataset, selection: Selection::Slab(vec![Slab::from(range.clone())]), out }
}

/// A part of a list, which memory holds.
pub(super) fn part(file: &ArrayFile, list: &List, range: Range<u64>) -> Result<Vec<u8>> {
    let mut out = vec![0; (range.end - range.start) as usize * list.number.size()];
    file.read(&mut [want(&list.dataset, &range, &mut out)])?;
    Ok(out)
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
