//! Selects events by bank, pulse, time and time of flight.

use std::ops::Range;

use glob::Pattern;
use thalweg_io::{Error, Result};

use super::time::{Moment, iso};
use super::{Bank, Nexus};

/// A selection of events; by default all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventSelection {
    /// Names of banks, paths of their groups, or patterns of either. Empty selects all banks.
    pub banks: Vec<String>,
    /// The numbers of the selected pulses in each bank.
    pub pulses: Option<Range<u64>>,
    /// The times of the selected pulses: from the first moment on, before the second.
    pub time: Option<(Option<Moment>, Option<Moment>)>,
    /// The times of flight of the selected events, in nanoseconds. Other events are read and left
    /// out.
    pub flight: Option<Range<f64>>,
    /// The number of a part, from 0 on, and how many parts there are: for processes that share a
    /// read. A part is a range of the events of each bank, which ends with a chunk of the file.
    /// Banks of fewer chunks than parts are dealt out, so that no part has all of them.
    pub part: Option<(u64, u64)>,
}

impl EventSelection {
    /// The numbers of the selected banks.
    ///
    /// # Errors
    /// [`Error::Usage`] for an invalid pattern, [`Error::NotFound`] for a pattern that matches no
    /// bank.
    pub fn banks(&self, nexus: &Nexus<'_>) -> Result<Vec<usize>> {
        let banks = nexus.banks();
        let mut wanted = vec![self.banks.is_empty(); banks.len()];
        for text in &self.banks {
            let pattern = Pattern::new(text.trim_start_matches('/'))
                .map_err(|e| Error::Usage(format!("{text:?} is no pattern: {e}").into()))?;
            let matches = |bank: &Bank| {
                pattern.matches(bank.name()) || pattern.matches(bank.path().trim_start_matches('/'))
            };
            let mut none = true;
            for (wanted, _) in wanted.iter_mut().zip(banks).filter(|(_, bank)| matches(bank)) {
                (*wanted, none) = (true, false);
            }
            if none {
                let names: Vec<&str> = banks.iter().map(Bank::name).collect();
                return Err(Error::NotFound {
                    file: nexus.file().store().name().clone(),
                    what: format!("bank {text}").into(),
                    advice: if names.is_empty() {
                        "it has no events".into()
                    } else {
                        format!("its banks are {}", names.join(", ")).into()
                    },
                });
            }
        }
        Ok((0..banks.len()).filter(|&at| wanted.get(at) == Some(&true)).collect())
    }

    /// The events of the bank with this number that are in the selected part.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such part.
    pub(super) fn part(&self, bank: &Bank, number: usize) -> Result<Range<u64>> {
        let Some((rank, size)) = self.part else { return Ok(0..u64::MAX) };
        if rank >= size {
            let expected = "a number from 0 on, and below that of the parts";
            let what = format!("part {rank} of {size} parts of the events: expected {expected}");
            return Err(Error::Usage(what.into()));
        }
        Ok(part(bank.events(), bank.chunk(), (rank, size), number as u64))
    }

    /// The selected times in nanoseconds since 1970. `start` is the time of the first pulse of the
    /// file.
    ///
    /// # Errors
    /// [`Error::Usage`] for a range that ends before it starts.
    pub(super) fn times(&self, start: i64) -> Result<Option<Range<i64>>> {
        let Some((from, to)) = self.time else { return Ok(None) };
        let ns = |moment: Option<Moment>, open| moment.map_or(open, |moment| moment.ns(start));
        let range = ns(from, i64::MIN)..ns(to, i64::MAX);
        if range.start > range.end {
            let from = iso(range.start);
            let to = iso(range.end);
            let what = format!("a range of time from {from} to {to}, which is before its start");
            return Err(Error::Usage(what.into()));
        }
        Ok(Some(range))
    }
}

/// Part `rank` of `size` of `len` elements in chunks. `number` shifts the cuts, so that arrays of
/// one chunk fall into different parts.
fn part(len: u64, chunk: u64, (rank, size): (u64, u64), number: u64) -> Range<u64> {
    let chunks = len.div_ceil(chunk.max(1));
    // The product of two numbers of 64 bits.
    let cut = |rank: u64| {
        let chunks = u128::from(chunks) * u128::from(rank) + u128::from(number % size);
        (chunks / u128::from(size)) as u64
    };
    let element = |chunks: u64| chunks.saturating_mul(chunk.max(1)).min(len);
    element(cut(rank))..element(cut(rank + 1))
}

/// The parts of ordered ranges that lie in another one.
pub(super) fn clip(ranges: Vec<Range<u64>>, to: &Range<u64>) -> Vec<Range<u64>> {
    let inside = |range: Range<u64>| range.start.max(to.start)..range.end.min(to.end);
    ranges.into_iter().map(inside).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_make_the_whole(
            len in 0_u64..1000, chunk in 1_u64..100, size in 1_u64..20, number in 0_u64..100,
            hole in 0_u64..1000,
        ) {
            let ranges = vec![0..hole.min(len), (hole + 3).min(len)..len];
            let mut end = 0;
            let mut kept = Vec::new();
            for rank in 0..size {
                let part = part(len, chunk, (rank, size), number);
                prop_assert_eq!(part.start, end);
                prop_assert!(part.end == len || part.end.is_multiple_of(chunk));
                end = part.end;
                kept.extend(clip(ranges.clone(), &part).into_iter().flatten());
            }
            prop_assert_eq!(end, len);
            prop_assert_eq!(kept, ranges.into_iter().flatten().collect::<Vec<_>>());
        }
    }

    #[test]
    fn single_chunks_are_dealt_out() {
        let owner = |number| (0..4).find(|&rank| !part(9, 10, (rank, 4), number).is_empty());
        assert_eq!((0..5).map(owner).collect::<Vec<_>>(), [3, 2, 1, 0, 3].map(Some));
    }

    #[test]
    fn a_range_of_time_does_not_end_before_it_starts() {
        let times = |from, to| EventSelection { time: Some((from, to)), ..Default::default() };
        let (one, two) = (Some(Moment::Into(1)), Some(Moment::At(102)));
        assert_eq!(times(one, two).times(100).ok(), Some(Some(101..102)));
        assert_eq!(times(one, None).times(100).ok(), Some(Some(101..i64::MAX)));
        assert_eq!(times(one, one).times(100).ok(), Some(Some(101..101)));
        assert!(matches!(times(two, one).times(100), Err(Error::Usage(_))));
    }
}
