//! Turning a [`Change`] into log records: the vertices and edges that it adds and removes, given
//! what the network holds.

mod added_edges;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use thalweg_io::{Error, Result};

use crate::read::attributes::interleave_rows;
use crate::read::merge::MergedLists;
use crate::read::neighbours::Neighbours;
use crate::read::network::Adjacency;
use crate::storage::log_record::LogRecord;
use crate::storage::schema::{Edge, PopulationEntry, Side, VertexType};
use crate::write::change::Change;
use crate::write::writer::Writer;

impl Writer {
    /// The log records of a change, none if it changes nothing.
    pub(super) fn records_for(&self, change: Change) -> Result<Vec<LogRecord>> {
        match change {
            Change::AddVertices { vertex_type, ids, attributes } => {
                self.add_vertices(vertex_type, &ids, attributes.as_ref())
            }
            Change::SetVertices { vertex_type, ids, attributes } => {
                self.set_vertices(vertex_type, &ids, &attributes)
            }
            Change::RemoveVertices { vertex_type, ids } => {
                self.known_type(vertex_type)?;
                let mut existing = BTreeSet::new();
                for id in ids {
                    if self.network.has_vertex(vertex_type, id)? {
                        existing.insert(id);
                    }
                }
                self.remove_vertices(vertex_type, existing.into_iter().collect())
            }
            Change::ClearVertices { vertex_type } => {
                self.known_type(vertex_type)?;
                let mut existing = Vec::new();
                self.network.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
                    existing.extend_from_slice(ids);
                    Ok(())
                })?;
                self.remove_vertices(vertex_type, existing)
            }
            Change::AddEdges { population, edges, attributes } => {
                self.add_edges(population, &edges, attributes.as_ref())
            }
            Change::RemoveEdges { population, edges } => self.remove_edges(population, edges),
            Change::ClearEdges { population } => self.remove_all_edges(population),
        }
    }

    /// The entry of a type, if there is one of this number.
    pub(super) fn known_type(&self, number: usize) -> Result<&VertexType> {
        self.network
            .types()
            .get(number)
            .ok_or_else(|| Error::Usage(format!("{}: no type {number}", self.name()).into()))
    }

    /// The entry of a population, if there is one of this number.
    pub(super) fn known_population(&self, number: usize) -> Result<&PopulationEntry> {
        let edges = self.network.populations().get(number);
        edges.ok_or_else(|| Error::Usage(format!("{}: no population {number}", self.name()).into()))
    }

    /// Adds the vertices that do not exist, the first row for each id.
    fn add_vertices(
        &self,
        vertex_type: usize,
        ids: &[u64],
        attributes: Option<&RecordBatch>,
    ) -> Result<Vec<LogRecord>> {
        let schema = &self.known_type(vertex_type)?.attributes;
        let batch = self.checked_rows(schema, attributes, ids.len())?;
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        for (row, id) in ids.iter().enumerate() {
            if seen.insert(*id) && !self.network.has_vertex(vertex_type, *id)? {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<u64> = rows.iter().map(|row| ids[*row]).collect();
        let mut records = vec![LogRecord::VerticesAdded { vertex_type, ids: ids.clone() }];
        if let Some(batch) = batch {
            let attributes = self.rows(batch, &rows)?;
            records.push(LogRecord::AttributesSet { vertex_type, ids, attributes });
        }
        Ok(records)
    }

    /// Adds the vertices that do not exist, and sets the attributes of all: the last row for each
    /// id.
    fn set_vertices(
        &self,
        vertex_type: usize,
        ids: &[u64],
        attributes: &RecordBatch,
    ) -> Result<Vec<LogRecord>> {
        let schema = &self.known_type(vertex_type)?.attributes;
        let batch = self.checked_rows(schema, Some(attributes), ids.len())?;
        let last: BTreeMap<u64, usize> = ids.iter().zip(0..).map(|(id, row)| (*id, row)).collect();
        let rows: Vec<usize> = last.values().copied().collect();
        let ids: Vec<u64> = last.into_keys().collect();
        let mut records = self.add_missing_vertices(vertex_type, &ids)?;
        if let Some(batch) = batch {
            let attributes = self.rows(batch, &rows)?;
            records.push(LogRecord::AttributesSet { vertex_type, ids, attributes });
        }
        Ok(records)
    }

    fn remove_edges(&self, population: usize, edges: Vec<(u64, u64)>) -> Result<Vec<LogRecord>> {
        self.known_population(population)?;
        let mut removed = BTreeSet::new();
        for (source, target) in edges {
            let (source, target) = self.network.stored_ends(population, source, target);
            let numbers = self.network.edges_between(population, source, target)?;
            removed.extend(numbers.into_iter().map(|number| (source, target, number)));
        }
        Ok(edges_removed(population, removed.into_iter().collect()))
    }

    fn remove_all_edges(&self, population: usize) -> Result<Vec<LogRecord>> {
        self.known_population(population)?;
        let snapshot = &self.network.state;
        let memtable = Some(&*snapshot.memtable);
        let mut lists = MergedLists::new(&snapshot.readers, memtable, population, Side::Out)?;
        let mut edges = Vec::new();
        while let Some(source) = lists.next()? {
            let list = lists.change.added.iter();
            edges.extend(list.map(|(target, number)| (source, *target, *number)));
        }
        Ok(edges_removed(population, edges))
    }

    /// Removes vertices that exist, and their edges of all populations.
    fn remove_vertices(&self, vertex_type: usize, ids: Vec<u64>) -> Result<Vec<LogRecord>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut records = Vec::new();
        for (population, entry) in self.network.populations().iter().enumerate() {
            let mut removed: BTreeSet<Edge> = BTreeSet::new();
            for side in [Side::Out, Side::In] {
                if entry.type_at(side) == vertex_type {
                    self.collect_edges(Adjacency { population, side }, &ids, &mut removed)?;
                }
            }
            records.extend(edges_removed(population, removed.into_iter().collect()));
        }
        records.push(LogRecord::VerticesRemoved { vertex_type, ids });
        Ok(records)
    }

    /// Adds the edges at some vertices to `edges`.
    fn collect_edges(
        &self,
        adjacency: Adjacency,
        ids: &[u64],
        edges: &mut BTreeSet<Edge>,
    ) -> Result<()> {
        let mut lists = Neighbours::default();
        self.network.numbered_neighbours(&[adjacency], ids, &mut lists)?;
        for (place, id) in ids.iter().enumerate() {
            let range = lists.offsets[place] as usize..lists.offsets[place + 1] as usize;
            let ends = lists.ids[range.clone()].iter().zip(&lists.numbers[range]);
            edges.extend(ends.map(|(other, number)| match adjacency.side {
                Side::Out => (*id, *other, *number),
                Side::In => (*other, *id, *number),
            }));
        }
        Ok(())
    }

    /// Adds those of `ids` that do not exist yet. The ids ascend.
    fn add_missing_vertices(&self, vertex_type: usize, ids: &[u64]) -> Result<Vec<LogRecord>> {
        let exist = self.network.has_vertices(vertex_type, ids)?;
        let missing = ids.iter().zip(exist).filter(|(_, exists)| !exists);
        let ids: Vec<u64> = missing.map(|(id, _)| *id).collect();
        let record = (!ids.is_empty()).then_some(LogRecord::VerticesAdded { vertex_type, ids });
        Ok(record.into_iter().collect())
    }

    /// The attributes of `count` vertices or edges, checked against their schema; `None` if they
    /// have none.
    fn checked_rows<'a>(
        &self,
        schema: &SchemaRef,
        batch: Option<&'a RecordBatch>,
        count: usize,
    ) -> Result<Option<&'a RecordBatch>> {
        match batch {
            None => Ok(None),
            Some(batch) if batch.schema().fields() != schema.fields() => {
                Err(self.differs("these", schema, &batch.schema()))
            }
            Some(batch) if batch.num_rows() != count => {
                let rows = batch.num_rows();
                let what = format!("{}: {rows} rows of attributes for {count}", self.name());
                Err(Error::Usage(what.into()))
            }
            Some(batch) => Ok(Some(batch).filter(|_| !schema.fields().is_empty())),
        }
    }

    /// Some rows of a batch.
    fn rows(&self, batch: &RecordBatch, rows: &[usize]) -> Result<Arc<RecordBatch>> {
        let is_all = rows.len() == batch.num_rows()
            && rows.iter().zip(0..).all(|(row, place)| *row == place);
        if is_all {
            return Ok(Arc::new(batch.clone()));
        }
        let places: Vec<(usize, usize)> = rows.iter().map(|row| (0, *row)).collect();
        interleave_rows(&[batch], &places)
            .map(Arc::new)
            .map_err(|e| Error::Usage(format!("{}: {e}", self.name()).into()))
    }
}

/// The record of removed edges, none if there are no edges.
fn edges_removed(population: usize, edges: Vec<Edge>) -> Vec<LogRecord> {
    let record = (!edges.is_empty()).then_some(LogRecord::EdgesRemoved { population, edges });
    record.into_iter().collect()
}
