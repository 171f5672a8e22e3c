//! The assignment of events to pulses, from an `event_index` that may have defects.

use std::ops::Range;

use super::defects::{Defect, EventFinding, finding};
use super::time::NO_TIME;

/// The pulses of a bank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pulses {
    /// The first event of each pulse: never decreasing, at most `events`.
    starts: Vec<u64>,
    /// The time of each pulse in nanoseconds since 1970, or [`NO_TIME`]. There may be fewer times
    /// than pulses.
    times: Vec<i64>,
    events: u64,
}

/// An index that ends in this many equal entries may have stopped before the run did,
const REPEATS: usize = 3;
/// if the last pulse has this many times the events of any other.
const SUSPICIOUS: u64 = 4;

impl Pulses {
    /// Makes pulses from the stored index and times, for `events` events.
    ///
    /// Entries that contradict others or the number of events are ignored: as few as possible, and
    /// their pulses have no events. Also returns the defects.
    pub fn new(index: Vec<u64>, times: Option<Vec<i64>>, events: u64) -> (Self, Vec<EventFinding>) {
        let mut found = Vec::new();
        let mut starts = mended(index, events, &mut found);
        if let Some(times) = &times {
            fit(&mut starts, times.len(), events, &mut found);
        } else {
            let done = "pulses are told apart by their number alone";
            found.push(finding(
                Defect::NoTimes,
                None,
                "no event_time_zero",
                "the time of each pulse",
                done,
            ));
        }
        if let Some(&first) = starts.first().filter(|&&first| first > 0) {
            let expected = "0, for every event belongs to a pulse";
            let done = format!("the {first} events before it belong to no pulse");
            let before = finding(Defect::BeforeFirst, Some(0), first.to_string(), expected, done);
            found.push(EventFinding { count: first, ..before });
        }
        let pulses = Self { starts, times: times.unwrap_or_default(), events };
        pulses.check_end(&mut found);
        pulses.check_times(&mut found);
        (pulses, found)
    }

    /// The pulses of events without an index: none.
    pub fn none(events: u64) -> Self {
        Self { events, ..Self::default() }
    }

    fn check_end(&self, found: &mut Vec<EventFinding>) {
        let Some(&last) = self.starts.last() else { return };
        let same = self.starts.iter().rev().take_while(|&&start| start == last).count();
        let left = self.events - last;
        let most = self.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        if same >= REPEATS && left > most.max(1).saturating_mul(SUSPICIOUS) {
            let at = self.starts.len() - same;
            let words = format!("{last} {same} times, and {left} events after it");
            let done = "the index is taken at its word: the events belong to the last pulse";
            let expected =
                format!("an index that goes on with the events (a pulse has {most} at most)");
            let repeated = finding(Defect::Repeated, Some(at as u64), words, expected, done);
            found.push(EventFinding { count: same as u64, ..repeated });
        }
    }

    fn check_times(&self, found: &mut Vec<EventFinding>) {
        let (mut back, mut unknown): (Option<EventFinding>, Option<EventFinding>) = (None, None);
        let mut before = NO_TIME;
        for (at, &time) in (0..).zip(&self.times) {
            if time == NO_TIME {
                unknown
                    .get_or_insert_with(|| {
                        let done = "such pulses have no time";
                        finding(
                            Defect::NoTime,
                            Some(at),
                            "what is no number, or centuries away",
                            "a time",
                            done,
                        )
                        .none()
                    })
                    .count += 1;
                continue;
            }
            if time < before {
                back.get_or_insert_with(|| {
                    let words = format!("{} ns less than the one before", before.abs_diff(time));
                    let done = "a range of time takes every pulse by its own time";
                    finding(
                        Defect::TimesDecrease,
                        Some(at),
                        words,
                        "times that do not decrease",
                        done,
                    )
                    .none()
                })
                .count += 1;
            }
            before = time;
        }
        found.extend(back.into_iter().chain(unknown));
    }

    /// The number of pulses.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are no pulses.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The number of events before the first pulse.
    pub fn before(&self) -> u64 {
        self.starts.first().copied().unwrap_or(0)
    }

    /// The events of a pulse.
    pub fn events(&self, pulse: usize) -> Range<u64> {
        match self.starts.get(pulse) {
            Some(&start) => start..self.starts.get(pulse + 1).copied().unwrap_or(self.events),
            None => self.events..self.events,
        }
    }

    /// The time of a pulse in nanoseconds since 1970, if it is known.
    pub fn time(&self, pulse: usize) -> Option<i64> {
        self.times.get(pulse).copied().filter(|&time| time != NO_TIME)
    }

    /// The earliest and the latest known time; `None` if no time is known.
    pub fn span(&self) -> Option<(i64, i64)> {
        let known = || self.times.iter().copied().filter(|&time| time != NO_TIME);
        known().min().zip(known().max())
    }

    /// The events of the pulses with selected numbers and times, as ordered ranges that do not
    /// touch. Without a selection, all events.
    pub fn ranges(
        &self,
        pulses: Option<&Range<u64>>,
        times: Option<Range<i64>>,
    ) -> Vec<Range<u64>> {
        if pulses.is_none() && times.is_none() {
            let all = 0..self.events;
            return if all.is_empty() { Vec::new() } else { vec![all] };
        }
        let end = self.starts.len() as u64;
        let numbers = pulses.map_or(0..end, |pulses| pulses.start.min(end)..pulses.end.min(end));
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for pulse in numbers.start as usize..numbers.end as usize {
            let events = self.events(pulse);
            let wanted = times
                .as_ref()
                .is_none_or(|times| self.time(pulse).is_some_and(|time| times.contains(&time)));
            if events.is_empty() || !wanted {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == events.start => last.end = events.end,
                _ => ranges.push(events),
            }
        }
        ranges
    }

    /// Appends the pulse of each event of a range (-1 for none), and the time of that pulse
    /// ([`NO_TIME`] if unknown).
    pub(crate) fn of_events(
        &self,
        events: Range<u64>,
        pulses: &mut Vec<i64>,
        times: &mut Vec<i64>,
    ) {
        let mut at = events.start;
        // The event belongs to the last pulse that begins at or before it. Earlier pulses that
        // begin at the same event are empty.
        let mut next = self.starts.partition_point(|&start| start <= at);
        while at < events.end {
            let (pulse, time) = match next.checked_sub(1) {
                Some(pulse) => (pulse as i64, self.time(pulse).unwrap_or(NO_TIME)),
                None => (-1, NO_TIME),
            };
            let until = self.starts.get(next).copied().unwrap_or(u64::MAX).min(events.end);
            pulses.resize(pulses.len() + (until - at) as usize, pulse);
            times.resize(times.len() + (until - at) as usize, time);
            at = until;
            while self.starts.get(next).is_some_and(|&start| start <= at) {
                next += 1;
            }
        }
    }
}

/// Mends the index. Entries that point beyond the events or decrease are replaced: their pulses
/// begin where the next pulse begins.
fn mended(mut index: Vec<u64>, events: u64, found: &mut Vec<EventFinding>) -> Vec<u64> {
    let beyond = index.iter().filter(|&&start| start > events).count();
    if let Some(at) = index.iter().position(|&start| start > events) {
        let done = format!("{beyond} entries were set aside: their pulses have no events");
        let words = index[at].to_string();
        let expected = format!("at most {events}, the number of events");
        found.push(EventFinding {
            count: beyond as u64,
            ..finding(Defect::Beyond, Some(at as u64), words, expected, done)
        });
    }
    // The last valid entry.
    let mut before: Option<u64> = None;
    let mut back = None;
    for (at, &start) in index.iter().enumerate().filter(|(_, start)| **start <= events) {
        if let Some(before) = before.filter(|&before| start < before) {
            back = Some((at, start, before));
            break;
        }
        before = Some(start);
    }
    if beyond == 0 && back.is_none() {
        return index;
    }
    let kept = longest_rising(&index, events);
    if let Some((at, start, before)) = back {
        let aside = index.len() - beyond - kept.len();
        let done = format!(
            "{aside} entries were set aside, as few as possible: their pulses have no events"
        );
        let words = format!("{start} after {before}");
        let expected = format!("at least {before}");
        found.push(EventFinding {
            count: aside as u64,
            ..finding(Defect::Decreasing, Some(at as u64), words, expected, done)
        });
    }
    let mut from = 0;
    for &keep in &kept {
        let start = index[keep];
        index[from..keep].fill(start);
        from = keep + 1;
    }
    index[from..].fill(events);
    index
}

/// The indices of a longest subsequence of entries that do not decrease and are at most `events`
/// (Schensted 1961).
fn longest_rising(index: &[u64], events: u64) -> Vec<usize> {
    // `ends`: for each length, the index of the least entry that ends a subsequence of that length.
    // `before`: for each entry, the index of its predecessor in the subsequence.
    let (mut ends, mut before): (Vec<usize>, Vec<usize>) =
        (Vec::new(), vec![usize::MAX; index.len()]);
    for (at, &start) in index.iter().enumerate().filter(|(_, start)| **start <= events) {
        let length = ends.partition_point(|&end| index[end] <= start);
        before[at] = length.checked_sub(1).map_or(usize::MAX, |shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        kept.push(at);
        next = Some(before[at]).filter(|&at| at != usize::MAX);
    }
    kept.reverse();
    kept
}

/// Makes the index as long as the list of times.
fn fit(starts: &mut Vec<u64>, times: usize, events: u64, found: &mut Vec<EventFinding>) {
    let entries = starts.len();
    let words = format!("{entries} entries");
    let expected = format!("{times}, one for each entry of event_time_zero");
    let at = Some(entries.min(times) as u64);
    if entries + 1 == times && starts.first().is_some_and(|&first| first > 0) {
        let done =
            "taken for the pulses after the first, which begins at 0: so every event has its pulse";
        found.push(finding(Defect::OneShort, at, words, expected, done));
        starts.insert(0, 0);
    } else if entries < times {
        let missing = (times - entries) as u64;
        let defect = if missing == 1 { Defect::OneShort } else { Defect::Truncated };
        let done = format!(
            "the last {missing} pulses have no events; what follows entry {} belongs to its pulse",
            entries.saturating_sub(1)
        );
        found.push(EventFinding { count: missing, ..finding(defect, at, words, expected, done) });
        starts.resize(times, events);
    } else if entries == times + 1 && starts.last() == Some(&events) {
        let done = "the last entry is taken for the end of the last pulse";
        found.push(finding(Defect::Longer, at, words, expected, done));
        starts.pop();
    } else if entries > times {
        let more = (entries - times) as u64;
        let done = format!("the last {more} pulses have no time");
        found.push(EventFinding {
            count: more,
            ..finding(Defect::Longer, at, words, expected, done)
        });
    }
}

#[cfg(test)]
mod tests;
