//! Ranges of vertices whose data cannot be read.

use std::ops::RangeInclusive;

/// Ranges of vertices, ascending, whose data cannot be read completely.
#[derive(Debug, Clone, Default)]
pub(super) struct VertexGaps {
    pub(super) ranges: Vec<RangeInclusive<u64>>,
    /// The start of a gap that has not ended yet, and its end if that is known.
    open: Option<(u64, Option<u64>)>,
}

impl VertexGaps {
    /// A gap of all vertices.
    pub(super) fn all() -> Self {
        Self { ranges: vec![0..=u64::MAX], open: None }
    }

    /// Records that something is missing for `vertex` or, if that is not known, for a vertex after
    /// `last`.
    pub(super) fn extend(&mut self, last: Option<u64>, vertex: Option<u64>) {
        let from = vertex.unwrap_or_else(|| last.map_or(0, |last| last.saturating_add(1)));
        self.open.get_or_insert((from, None)).1 = vertex;
    }

    /// Records that `next` is whole; `None` if no vertex follows.
    pub(super) fn close(&mut self, next: Option<u64>) {
        if let Some((from, to)) = self.open.take() {
            let to = to.unwrap_or_else(|| next.map_or(u64::MAX, |next| next.saturating_sub(1)));
            self.ranges.push(from..=to.max(from));
        }
    }

    /// Adds the gaps of `others`, and joins ranges that touch.
    pub(super) fn add(&mut self, others: &Self) {
        self.ranges.extend(others.ranges.iter().cloned());
        self.ranges.sort_unstable_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u64>> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            match joined.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => joined.push(range),
            }
        }
        self.ranges = joined;
    }

    /// Whether a vertex is in a gap.
    pub(super) fn contains(&self, vertex: u64) -> bool {
        let next = self.ranges.partition_point(|range| *range.start() <= vertex);
        next > 0 && self.ranges[next - 1].contains(&vertex)
    }
}
