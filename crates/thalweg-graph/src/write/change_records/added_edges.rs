//! The log records of added edges.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use thalweg_io::{Error, Result};

use crate::storage::log_record::LogRecord;
use crate::storage::schema::{Edge, PopulationEntry};
use crate::write::writer::Writer;

impl Writer {
    /// Adds edges, and the vertices at their ends that do not exist.
    pub(super) fn add_edges(
        &self,
        population: usize,
        pairs: &[(u64, u64)],
        attributes: Option<&RecordBatch>,
    ) -> Result<Vec<LogRecord>> {
        let known = self.known_population(population)?;
        let batch = self.edge_attributes(known, attributes, pairs.len())?;
        let ends = pairs.iter().map(|(s, t)| self.network.stored_ends(population, *s, *t));
        let pairs: Vec<(u64, u64)> = ends.collect();
        let is_new = self.new_pairs(population, known, &pairs)?;
        let mut next = self.next_edge_number(population, known);
        let is_numbered = known.is_numbered();
        let mut edges: Vec<Edge> = Vec::new();
        let mut rows: Vec<usize> = Vec::new();
        for (row, (source, target)) in pairs.into_iter().enumerate().filter(|(row, _)| is_new[*row])
        {
            edges.push((source, target, if is_numbered { next } else { 0 }));
            next += u64::from(is_numbered);
            rows.push(row);
        }
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let mut records = self.add_ends(known, &edges)?;
        let attributes = batch.map(|batch| self.rows(batch, &rows)).transpose()?;
        records.push(LogRecord::EdgesAdded { population, edges, attributes });
        Ok(records)
    }

    /// The attributes of new edges, which a population with attributes requires.
    fn edge_attributes<'a>(
        &self,
        known: &PopulationEntry,
        attributes: Option<&'a RecordBatch>,
        count: usize,
    ) -> Result<Option<&'a RecordBatch>> {
        let schema = &known.population.attributes;
        let batch = self.checked_rows(schema, attributes, count)?;
        if batch.is_none() && !schema.fields().is_empty() {
            let name = &known.population.name;
            let what = format!("{}: edges of {name:?} need attributes", self.name());
            return Err(Error::Usage(what.into()));
        }
        Ok(batch)
    }

    fn next_edge_number(&self, population: usize, known: &PopulationEntry) -> u64 {
        let logged = self.network.state.memtable.edges(population);
        logged.map_or(0, |changes| changes.next).max(known.next).max(1)
    }

    /// Tells for each pair if it becomes an edge. If the population allows only one edge between
    /// two vertices, a pair becomes an edge if it is the first of several equal pairs and no such
    /// edge exists yet.
    fn new_pairs(
        &self,
        population: usize,
        known: &PopulationEntry,
        pairs: &[(u64, u64)],
    ) -> Result<Vec<bool>> {
        if known.population.is_multi {
            return Ok(vec![true; pairs.len()]);
        }
        let mut order: Vec<usize> = (0..pairs.len()).collect();
        // This sort is stable: the first of equal pairs is kept.
        order.sort_by_key(|row| pairs[*row]);
        order.dedup_by_key(|row| pairs[*row]);
        let unique: Vec<(u64, u64)> = order.iter().map(|row| pairs[*row]).collect();
        let mut is_new = vec![false; pairs.len()];
        for (row, exists) in order.into_iter().zip(self.network.has_edges(population, &unique)?) {
            is_new[row] = !exists;
        }
        Ok(is_new)
    }

    /// Adds the vertices at the ends of edges that do not exist.
    fn add_ends(&self, known: &PopulationEntry, edges: &[Edge]) -> Result<Vec<LogRecord>> {
        let mut ends: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        ends.entry(known.source).or_default().extend(edges.iter().map(|edge| edge.0));
        ends.entry(known.target).or_default().extend(edges.iter().map(|edge| edge.1));
        let mut records = Vec::new();
        for (vertex_type, mut ids) in ends {
            ids.sort_unstable();
            ids.dedup();
            records.extend(self.add_missing_vertices(vertex_type, &ids)?);
        }
        Ok(records)
    }
}
