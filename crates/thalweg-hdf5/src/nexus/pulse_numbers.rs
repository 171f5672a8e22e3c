//! Reads the index and the times that the pulses of banks are made of.

use thalweg_io::Result;

use super::defects::{Defect, EventFinding, finding};
use super::number::ExactNumber;
use super::pulses::Pulses;
use super::{Bank, ColumnDataset, Nexus};
use crate::arrays::Dataset;

/// The numbers that the pulses of a bank are made of.
#[derive(Debug, Default)]
pub(super) struct PulseNumbers {
    /// Of `event_index`.
    index: Vec<u64>,
    /// Of `cue_index`.
    cues: Vec<u64>,
    /// Of [`Bank::pulse_times`], in nanoseconds since 1970.
    times: Vec<i64>,
}

/// The pulses of banks that are read together may take the memory budget divided by this number.
pub(super) const PULSES_SHARE: usize = 4;

/// Bytes per pulse: the index of its first event, and its time.
pub(super) const PULSE_BYTES: u64 = 2 * size_of::<u64>() as u64;

impl Nexus<'_> {
    /// Calls `f` with the pulses and all defects of each of these banks, in this order. Banks are
    /// read together as far as their pulses fit into a share of the memory budget.
    ///
    /// # Errors
    /// As [`Nexus::pulses`].
    pub fn each_pulses<'b>(
        &self,
        banks: impl IntoIterator<Item = &'b Bank>,
        f: &mut dyn FnMut(&'b Bank, Pulses, Vec<EventFinding>),
    ) -> Result<()> {
        let most = (self.file.options().budget.memory / PULSES_SHARE) as u64;
        let mut banks = banks.into_iter().peekable();
        while let Some(first) = banks.next() {
            let mut bytes = first.pulses().saturating_mul(PULSE_BYTES);
            let mut together = vec![(first, PulseNumbers::default())];
            while let Some(bank) = banks.next_if(|bank| {
                bytes = bytes.saturating_add(bank.pulses().saturating_mul(PULSE_BYTES));
                bytes <= most
            }) {
                together.push((bank, PulseNumbers::default()));
            }
            self.read_pulses(&mut together)?;
            for (bank, numbers) in together {
                let (pulses, found) = bank.pulses_from(numbers);
                f(bank, pulses, found);
            }
        }
        Ok(())
    }

    /// Reads the lists that the pulses of banks are made of, all together.
    ///
    /// # Errors
    /// As [`Nexus::pulses`].
    pub(super) fn read_pulses(&self, banks: &mut [(&Bank, PulseNumbers)]) -> Result<()> {
        type Take<'b> = Box<dyn FnMut(ExactNumber) + 'b>;
        let mut lists: Vec<(&ColumnDataset, Take<'_>)> = Vec::new();
        for (bank, PulseNumbers { index, cues, times }) in banks {
            let bank: &Bank = bank;
            if let Some(list) = &bank.event_index {
                lists.push((list, Box::new(|number| index.push(number.place()))));
            }
            if let Some(list) = &bank.cue_index {
                lists.push((list, Box::new(|number| cues.push(number.place()))));
            }
            if let Some(list) = bank.pulse_times().filter(|_| bank.has_pulses()) {
                let time = |number| bank.zero_unit.after(bank.epoch, number);
                lists.push((list, Box::new(move |number| times.push(time(number)))));
            }
        }
        lists.iter().try_for_each(|(list, _)| self.check_room(list))?;
        let datasets: Vec<&Dataset> = lists.iter().map(|(list, _)| &list.dataset).collect();
        self.file.each(&datasets, &mut |number, part| {
            let (list, take) = &mut lists[number];
            list.number.scalars(part, take);
            Ok(())
        })?;
        Ok(())
    }
}

impl Bank {
    /// Whether its events have pulses, from an index of events or from that of its cues.
    fn has_pulses(&self) -> bool {
        self.event_index.is_some() || self.cue_index.is_some()
    }

    /// The times of its pulses; without an index of events, those of its cues.
    pub(super) fn pulse_times(&self) -> Option<&ColumnDataset> {
        match &self.event_index {
            Some(_) => self.event_time_zero.as_ref(),
            None => self.cue_timestamp_zero.as_ref(),
        }
    }

    /// The pulses that these numbers make, and all defects of the bank.
    pub(super) fn pulses_from(&self, numbers: PulseNumbers) -> (Pulses, Vec<EventFinding>) {
        let PulseNumbers { index, cues, times } = numbers;
        let times = self.pulse_times().map(|_| times);
        let mut found = self.findings.clone();
        let pulses = match (&self.event_index, &self.cue_index) {
            (Some(_), _) => {
                let (pulses, more) = Pulses::new(index, times, self.events);
                found.extend(more);
                if self.cue_index.is_some() {
                    found.extend(check_cues(&cues, self));
                }
                pulses
            }
            (None, Some(_)) => {
                found.push(no_index("cue_index and cue_timestamp_zero stand in: times are coarse"));
                let (pulses, more) = Pulses::new(cues, times, self.events);
                let of_cues = |finding| EventFinding { defect: Defect::Cues, ..finding };
                found.extend(more.into_iter().map(of_cues));
                pulses
            }
            (None, None) => {
                found.push(no_index("no event belongs to a pulse"));
                Pulses::none(self.events)
            }
        };
        found.iter_mut().for_each(|finding| finding.group.clone_from(&self.path));
        (pulses, found)
    }
}

/// The finding that a bank has no index, and how the reader handled it.
fn no_index(done: &str) -> EventFinding {
    finding(Defect::NoIndex, None, "no event_index", "the first event of each pulse", done)
}

/// Checks the cues, which this crate does not use.
fn check_cues(cues: &[u64], bank: &Bank) -> Option<EventFinding> {
    let done = "the cues are not used: event_index says the same in detail";
    let times = bank.cue_timestamp_zero.as_ref().map_or(0, |list| list.len);
    let (at, words, expected) = if let Some(at) = cues.iter().position(|&cue| cue > bank.events) {
        (at, cues.get(at)?.to_string(), format!("at most {}, the number of events", bank.events))
    } else if let Some(at) = cues.windows(2).position(|pair| pair[1] < pair[0]) {
        (at + 1, cues.get(at + 1)?.to_string(), format!("at least {}", cues.get(at)?))
    } else if cues.len() as u64 != times {
        let expected = format!("{times}, one for each entry of cue_timestamp_zero");
        (cues.len().min(times as usize), format!("{} entries of cue_index", cues.len()), expected)
    } else {
        return None;
    };
    Some(finding(Defect::Cues, Some(at as u64), words, expected, done))
}
