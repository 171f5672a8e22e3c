//! Ids as ranges, and which of them a network has. A range that is longer than a network takes no
//! memory.

use std::ops::RangeInclusive;
use std::path::Path;

use thalweg::graph::Network;

use crate::common::{Failure, complain, shown_path};

/// Ids: ranges that ascend, with a gap between two.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IdRanges(Vec<RangeInclusive<u64>>);

/// Ids that are looked up one by one, many in a call. Of a range of more, the network shows what it
/// has.
const LOOKED_UP: u64 = 4096;

impl IdRanges {
    pub(super) fn new(mut ranges: Vec<RangeInclusive<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// How many ids there are. At most 2^64.
    pub(super) fn count(&self) -> u128 {
        self.0.iter().map(|range| u128::from(range.end() - range.start()) + 1).sum()
    }

    /// All ids, ascending, if they take no more memory than `bytes`.
    pub(super) fn expand(&self, bytes: usize) -> Result<Vec<u64>, Failure> {
        let count = self.count();
        if count > (bytes / size_of::<u64>()) as u128 {
            let what = format!("{count} ids need more than {bytes} bytes; name fewer at a time");
            return Err(Failure::Usage(what));
        }
        Ok(self.0.iter().cloned().flatten().collect())
    }

    /// Those ids that vertices of a type have.
    pub(super) fn find(
        &self,
        network: &Network,
        vertex_type: usize,
    ) -> thalweg::Result<FoundVertices> {
        let mut found = FoundVertices::default();
        let mut few = Vec::new();
        for range in &self.0 {
            if range.end() - range.start() < LOOKED_UP {
                few.extend(range.clone());
                if few.len() as u64 >= LOOKED_UP {
                    found.look_up(network, vertex_type, &mut few)?;
                }
            } else {
                found.look_up(network, vertex_type, &mut few)?;
                found.scan(network, vertex_type, range)?;
            }
        }
        found.look_up(network, vertex_type, &mut few)?;
        Ok(found)
    }
}

/// Vertices that were asked for, and are there.
#[derive(Debug, Default)]
pub(super) struct FoundVertices {
    /// Their ids, ascending, each once.
    pub(super) ids: Vec<u64>,
    /// How many were asked for, and are not there.
    missing: u128,
    /// The first ids of these.
    named: Vec<u64>,
}

/// Missing vertices that a warning names.
const NAMED_MISSING: usize = 5;

impl FoundVertices {
    /// Vertices that are taken to be there.
    pub(super) fn of(ids: Vec<u64>) -> Self {
        Self { ids, ..Self::default() }
    }

    /// All vertices of a type.
    pub(super) fn all(network: &Network, vertex_type: usize) -> thalweg::Result<Self> {
        let mut found = Self::default();
        network.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
            found.ids.extend_from_slice(ids);
            Ok(())
        })?;
        Ok(found)
    }

    /// Looks ids up, and takes them out of `few`.
    fn look_up(
        &mut self,
        network: &Network,
        vertex_type: usize,
        few: &mut Vec<u64>,
    ) -> thalweg::Result<()> {
        let are_there = network.has_vertices(vertex_type, few)?;
        for (id, is_there) in few.drain(..).zip(are_there) {
            if is_there { self.ids.push(id) } else { self.miss(id.into()..u128::from(id) + 1) }
        }
        Ok(())
    }

    /// Goes through the vertices of a range.
    fn scan(
        &mut self,
        network: &Network,
        vertex_type: usize,
        range: &RangeInclusive<u64>,
    ) -> thalweg::Result<()> {
        let mut next = u128::from(*range.start());
        network.vertices(vertex_type, range.clone(), &mut |ids| {
            for id in ids {
                self.miss(next..u128::from(*id));
                next = u128::from(*id) + 1;
            }
            self.ids.extend_from_slice(ids);
            Ok(())
        })?;
        self.miss(next..u128::from(*range.end()) + 1);
        Ok(())
    }

    fn miss(&mut self, ids: std::ops::Range<u128>) {
        self.missing += ids.end - ids.start;
        let room = NAMED_MISSING - self.named.len();
        self.named.extend(ids.take(room).map(|id| id as u64));
    }

    /// Names vertices that are not there on standard error. `asked`: how they were asked for.
    /// Returns whether there are any.
    pub(super) fn complain_of_missing(&self, store: &Path, asked: &str) -> bool {
        if self.missing == 0 {
            return false;
        }
        let named: Vec<String> = self.named.iter().map(u64::to_string).collect();
        let named = named.join(", ");
        let more = match self.missing - self.named.len() as u128 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        complain(&format!("{}: not there: {named}{more} of {asked}", shown_path(store)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_counted_without_their_ids() {
        let ranges = IdRanges::new(vec![7..=9, 0..=u64::MAX, 3..=4]);
        assert_eq!(ranges, IdRanges(vec![0..=u64::MAX]));
        assert_eq!(ranges.count(), 1 << 64);
        assert!(matches!(ranges.expand(usize::MAX), Err(Failure::Usage(_))));
        let ranges = IdRanges::new(vec![7..=9, 3..=4, 5..=5, 8..=8, 11..=11]);
        assert_eq!(ranges, IdRanges(vec![3..=5, 7..=9, 11..=11]));
        assert!(matches!(ranges.expand(55), Err(Failure::Usage(_))));
        assert!(ranges.expand(56).is_ok_and(|ids| ids == [3, 4, 5, 7, 8, 9, 11]));
    }

    #[test]
    fn missing_ids_are_counted_up_to_the_greatest() {
        let mut found = FoundVertices::default();
        found.miss(3..3);
        found.miss(3..5);
        found.miss(7..u128::from(u64::MAX) + 1);
        assert_eq!(found.named, [3, 4, 7, 8, 9]);
        assert_eq!(found.missing, (1 << 64) - 5);
    }
}
