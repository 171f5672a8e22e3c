//! Sets of bytes of a file.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of bytes, as ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range.
    pub(crate) fn add(&mut self, mut range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.0.range(..=range.end).next_back()
            && end >= range.start
        {
            self.0.remove(&start);
            range = range.start.min(start)..range.end.max(end);
        }
        self.0.insert(range.start, range.end);
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.0.range(..range.end).next_back()
            && end > range.start
        {
            self.0.remove(&start);
            if end > range.end {
                self.0.insert(range.end, end);
            }
            if start < range.start {
                self.0.insert(start, range.start);
            }
        }
    }

    /// The parts of a range that are in the set (`true`) and not in it, in order.
    pub(crate) fn split(&self, range: Range<u64>) -> Vec<(Range<u64>, bool)> {
        let mut parts = Vec::new();
        let mut at = range.start;
        let first = self.0.range(..=at).next_back().map_or(at, |(start, _)| *start);
        for (&start, &end) in self.0.range(first..range.end.max(first)) {
            let (start, end) = (start.max(at), end.min(range.end));
            if start >= end {
                continue;
            }
            if at < start {
                parts.push((at..start, false));
            }
            parts.push((start..end, true));
            at = end;
        }
        if at < range.end {
            parts.push((at..range.end, false));
        }
        parts
    }

    /// The parts of a range that are not in the set.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let parts = self.split(range).into_iter();
        parts.filter(|(_, is_in)| !is_in).map(|(part, _)| part).collect()
    }

    /// Whether a byte of a range is in the set.
    pub(crate) fn touches(&self, range: Range<u64>) -> bool {
        self.split(range).iter().any(|(_, is_in)| *is_in)
    }

    /// How many bytes of a range are in the set.
    pub(crate) fn count(&self, range: Range<u64>) -> u64 {
        let parts = self.split(range).into_iter().filter(|(_, is_in)| *is_in);
        parts.map(|(part, _)| part.end - part.start).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its ranges, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(start, end)| (*start, *end))
    }
}

impl FromIterator<(u64, u64)> for Ranges {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(ranges: I) -> Self {
        let mut set = Self::default();
        ranges.into_iter().for_each(|(start, end)| set.add(start..end));
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set_of_bytes(
            steps in prop::collection::vec((any::<bool>(), 0..60_u64, 0..20_u64), 0..30),
            from in 0..60_u64,
            len in 0..30_u64,
        ) {
            let (mut ranges, mut bytes) = (Ranges::default(), [false; 100]);
            for (adds, start, len) in steps {
                let range = start..start + len;
                if adds { ranges.add(range.clone()) } else { ranges.remove(range.clone()) }
                range.for_each(|at| bytes[at as usize] = adds);
                prop_assert!(ranges.iter().all(|(start, end)| start < end));
                let pairs: Vec<_> = ranges.iter().collect();
                prop_assert!(pairs.windows(2).all(|pair| pair[0].1 < pair[1].0));
                prop_assert_eq!(pairs.into_iter().collect::<Ranges>(), ranges.clone());
            }
            let parts = ranges.split(from..from + len);
            let found: Vec<bool> =
                parts.iter().flat_map(|(part, is_in)| part.clone().map(|_| *is_in)).collect();
            prop_assert_eq!(&found[..], &bytes[from as usize..(from + len) as usize]);
            prop_assert!(parts.windows(2).all(|pair| pair[0].1 != pair[1].1));
            let count = found.iter().filter(|is_in| **is_in).count() as u64;
            prop_assert_eq!(ranges.count(from..from + len), count);
            prop_assert_eq!(ranges.touches(from..from + len), count > 0);
        }
    }
}
