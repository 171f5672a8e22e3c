//! The neighbour list of each source vertex, on its way to a segment.

use thalweg_io::Result;

use crate::external_sort::EdgeSorter;
use crate::read::neighbours::Neighbours;
use crate::read::network::Adjacency;
use crate::storage::lists::ListsWriter;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::write::writer::Writer;

/// The list of one vertex, as it arrives from the input.
#[derive(Default)]
pub(super) struct SourceList {
    pub(super) vertex: Option<u64>,
    pub(super) ids: Vec<u64>,
    pub(super) numbers: Vec<u64>,
}

impl SourceList {
    /// Sorts the neighbours, and their edges' numbers with them.
    fn sort(&mut self) {
        if self.ids.is_sorted() {
            return;
        }
        if self.numbers.is_empty() {
            self.ids.sort_unstable();
            return;
        }
        let pairs = self.ids.iter().copied().zip(self.numbers.iter().copied());
        let mut pairs: Vec<(u64, u64)> = pairs.collect();
        pairs.sort_unstable();
        (self.ids, self.numbers) = pairs.into_iter().unzip();
    }

    /// Drops repeated neighbours and those in `old`, both ascending.
    fn retain_new(&mut self, old: &[u64], has_old: bool) {
        let mut old = old.iter().peekable();
        let mut last = None;
        let mut is_new = |id: u64| {
            while old.next_if(|known| **known < id).is_some() {}
            last.replace(id) != Some(id) && old.peek() != Some(&&id)
        };
        if self.numbers.is_empty() {
            if has_old || self.ids.windows(2).any(|pair| pair[0] == pair[1]) {
                self.ids.retain(|id| is_new(*id));
            }
            return;
        }
        let kept: Vec<bool> = self.ids.iter().map(|id| is_new(*id)).collect();
        for column in [&mut self.ids, &mut self.numbers] {
            let mut keep = kept.iter();
            column.retain(|_| keep.next() == Some(&true));
        }
    }
}

/// Writes lists by source to the segment, and collects the same edges by target.
pub(super) struct SourceLists<'a> {
    pub(super) writer: &'a Writer,
    pub(super) population: usize,
    /// Whether two vertices may have several edges.
    pub(super) is_multi: bool,
    /// Whether an edge may be in the network already.
    pub(super) has_old: bool,
    pub(super) out: ListsWriter,
    pub(super) into: EdgeSorter,
    /// Neighbours that the vertex has in the network.
    pub(super) old: Neighbours,
}

impl SourceLists<'_> {
    /// Writes a list, and empties it.
    pub(super) fn push(
        &mut self,
        segment: &mut SegmentWriter,
        list: &mut SourceList,
    ) -> Result<()> {
        let Some(vertex) = list.vertex else { return Ok(()) };
        list.sort();
        if !self.is_multi {
            if self.has_old {
                let adjacency = Adjacency { population: self.population, side: Side::Out };
                self.writer.network.neighbours(&[adjacency], &[vertex], &mut self.old)?;
            }
            list.retain_new(&self.old.ids, self.has_old);
        }
        if !list.ids.is_empty() {
            self.out.push(segment, vertex, &list.ids, &list.numbers)?;
            self.into.push(vertex, &list.ids, &list.numbers)?;
        }
        list.ids.clear();
        list.numbers.clear();
        Ok(())
    }
}
