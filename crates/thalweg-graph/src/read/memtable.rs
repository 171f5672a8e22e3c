//! The memtable: the changes in the log, in memory, by vertex and on both sides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::RecordBatch;
use smallvec::SmallVec;
use thalweg_io::Result;
use thalweg_io::control::Control;

use crate::storage::log_record::LogRecord;
use crate::storage::schema::{Edge, Side};

/// The other ends of edges and the edges' numbers, ascending. Most lists in a log have one element,
/// which takes no allocation.
pub(crate) type EdgeEnds = SmallVec<[(u64, u64); 1]>;

/// Changes to the list of a vertex: `removed` is taken from the lists in the segments, then `added`
/// is added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListChange {
    pub(crate) added: EdgeEnds,
    pub(crate) removed: EdgeEnds,
}

impl ListChange {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// Adds ends, ascending.
    pub(crate) fn add(&mut self, ends: &[(u64, u64)]) {
        if self.added.is_empty() && self.removed.is_empty() {
            self.added.extend_from_slice(ends);
            return;
        }
        // An edge that was removed and is added again needs no change: the segments still hold it.
        let mut back = Vec::new();
        self.removed.retain(|end| {
            let is_back = ends.binary_search(end).is_ok();
            back.extend(is_back.then_some(*end));
            !is_back
        });
        if let ([end], true) = (ends, back.is_empty()) {
            let place = self.added.partition_point(|known| known < end);
            self.added.insert(place, *end);
            return;
        }
        self.added.extend(ends.iter().copied().filter(|end| back.binary_search(end).is_err()));
        self.added.sort();
    }

    /// Removes ends, ascending.
    pub(crate) fn remove(&mut self, ends: &[(u64, u64)]) {
        // An edge that was added since the last segment is in no segment.
        let mut unstored = Vec::new();
        self.added.retain(|end| {
            let is_gone = ends.binary_search(end).is_ok();
            unstored.extend(is_gone.then_some(*end));
            !is_gone
        });
        self.removed
            .extend(ends.iter().copied().filter(|end| unstored.binary_search(end).is_err()));
        self.removed.sort();
    }
}

/// Lists that change between two looks at whether to stop: some milliseconds.
const LISTS_BETWEEN_CHECKS: usize = 1 << 14;

/// The changes to a population.
#[derive(Debug, Clone, Default)]
pub(crate) struct EdgeChanges {
    out: HashMap<u64, ListChange>,
    into: HashMap<u64, ListChange>,
    /// The attributes of edges, by number: a batch, and the row in it.
    pub(crate) rows: BTreeMap<u64, (Arc<RecordBatch>, usize)>,
    /// The number of added edges minus the number of removed edges.
    pub(crate) more: i64,
    /// One more than the greatest number of an added edge.
    pub(crate) next: u64,
}

impl EdgeChanges {
    /// The changes by vertex.
    pub(crate) fn side(&self, side: Side) -> &HashMap<u64, ListChange> {
        match side {
            Side::Out => &self.out,
            Side::In => &self.into,
        }
    }

    fn apply(
        &mut self,
        edges: &[Edge],
        control: &Control,
        change: impl Fn(&mut ListChange, &[(u64, u64)]),
    ) -> Result<()> {
        let side = |lists: &mut HashMap<u64, ListChange>, mut edges: Vec<Edge>| {
            control.check()?;
            edges.sort_unstable();
            let mut ends = Vec::new();
            for (number, same) in edges.chunk_by(|a, b| a.0 == b.0).enumerate() {
                if number % LISTS_BETWEEN_CHECKS == 0 {
                    control.check()?;
                }
                ends.clear();
                ends.extend(same.iter().map(|edge| (edge.1, edge.2)));
                let list = lists.entry(same[0].0).or_default();
                change(list, &ends);
                if list.is_empty() {
                    lists.remove(&same[0].0);
                }
            }
            Ok(())
        };
        side(&mut self.out, edges.to_vec())?;
        side(&mut self.into, edges.iter().map(|edge| (edge.1, edge.0, edge.2)).collect())
    }
}

/// The changes to a type's vertices.
#[derive(Debug, Clone, Default)]
pub(crate) struct VertexChanges {
    /// Whether a vertex that was added or removed exists.
    pub(crate) exists: BTreeMap<u64, bool>,
    /// The attributes of vertices: a batch, and the row in it. A vertex in `exists` that is not
    /// here has none, whatever the segments hold.
    pub(crate) rows: BTreeMap<u64, (Arc<RecordBatch>, usize)>,
    /// The number of added vertices minus the number of removed vertices.
    pub(crate) more: i64,
}

/// All changes since the last segment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memtable {
    edges: Vec<EdgeChanges>,
    vertices: Vec<VertexChanges>,
    /// How many changes of edges and vertices the log holds.
    pub(crate) weight: usize,
}

impl Memtable {
    /// The changes to a population, if there are any.
    pub(crate) fn edges(&self, population: usize) -> Option<&EdgeChanges> {
        self.edges.get(population)
    }

    /// The changes to a type's vertices, if there are any.
    pub(crate) fn vertices(&self, vertex_type: usize) -> Option<&VertexChanges> {
        self.vertices.get(vertex_type)
    }

    /// Whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.weight == 0
    }

    fn of_edges(&mut self, population: usize) -> &mut EdgeChanges {
        if self.edges.len() <= population {
            self.edges.resize_with(population + 1, EdgeChanges::default);
        }
        &mut self.edges[population]
    }

    fn of_vertices(&mut self, vertex_type: usize) -> &mut VertexChanges {
        if self.vertices.len() <= vertex_type {
            self.vertices.resize_with(vertex_type + 1, VertexChanges::default);
        }
        &mut self.vertices[vertex_type]
    }

    /// Applies a log record.
    ///
    /// # Errors
    /// [`Error::Cancelled`](thalweg_io::Error::Cancelled): a part of it may be applied then.
    pub(crate) fn apply(&mut self, record: &LogRecord, control: &Control) -> Result<()> {
        match record {
            LogRecord::EdgesAdded { population, edges, attributes } => {
                self.weight += edges.len();
                let changes = self.of_edges(*population);
                changes.more += edges.len() as i64;
                changes.next =
                    edges.iter().map(|edge| edge.2 + 1).max().unwrap_or(0).max(changes.next);
                if let Some(batch) = attributes {
                    let rows =
                        edges.iter().enumerate().map(|(row, edge)| (edge.2, (batch.clone(), row)));
                    changes.rows.extend(rows);
                }
                changes.apply(edges, control, ListChange::add)?;
            }
            LogRecord::EdgesRemoved { population, edges } => {
                self.weight += edges.len();
                let changes = self.of_edges(*population);
                changes.more -= edges.len() as i64;
                edges.iter().for_each(|edge| drop(changes.rows.remove(&edge.2)));
                changes.apply(edges, control, ListChange::remove)?;
            }
            LogRecord::VerticesAdded { vertex_type, ids } => {
                self.weight += ids.len();
                let changes = self.of_vertices(*vertex_type);
                changes.more += ids.len() as i64;
                for ids in ids.chunks(LISTS_BETWEEN_CHECKS) {
                    control.check()?;
                    changes.exists.extend(ids.iter().map(|id| (*id, true)));
                }
            }
            LogRecord::VerticesRemoved { vertex_type, ids } => {
                self.weight += ids.len();
                let changes = self.of_vertices(*vertex_type);
                changes.more -= ids.len() as i64;
                for id in ids {
                    changes.exists.insert(*id, false);
                    changes.rows.remove(id);
                }
            }
            LogRecord::AttributesSet { vertex_type, ids, attributes } => {
                self.weight += ids.len();
                let changes = self.of_vertices(*vertex_type);
                let rows = ids.iter().enumerate().map(|(row, id)| (*id, (attributes.clone(), row)));
                changes.rows.extend(rows);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use thalweg_io::Error;

    use super::*;

    #[test]
    fn a_long_change_can_be_cancelled() {
        let edges: Vec<Edge> = (0..100).map(|i| (i, i, 0)).collect();
        let added = LogRecord::EdgesAdded { population: 0, edges: edges.clone(), attributes: None };
        let removed = LogRecord::EdgesRemoved { population: 0, edges };
        let (mut memtable, control) = (Memtable::default(), Control::new());
        memtable.apply(&added, &control).unwrap();
        assert_eq!(memtable.edges(0).unwrap().side(Side::In).len(), 100);
        control.cancel();
        for record in [&added, &removed] {
            let mut memtable = Memtable::default();
            assert!(matches!(memtable.apply(record, &control), Err(Error::Cancelled)));
            assert!(memtable.edges(0).unwrap().side(Side::Out).is_empty());
            // What came in part is not taken for nothing.
            assert!(!memtable.is_empty());
        }
    }
}
