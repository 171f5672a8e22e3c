//! What changes come to, given what is there: the vertices and edges that come and go.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use thalweg_io::{Error, Result};

use crate::read::neighbours::Neighbours;
use crate::read::network::Adjacency;
use crate::read::snapshot::Snapshot;
use crate::storage::log_record::LogRecord;
use crate::storage::schema::{Edge, PopulationEntry, Side, VertexType};
use crate::write::change::Change;
use crate::write::writer::Writer;

impl Writer {
    /// What a change comes to, given what is there.
    pub(crate) fn resolve(&self, change: Change) -> Result<Vec<LogRecord>> {
        match change {
            Change::AddVertices { vertex_type, ids, attributes } => {
                let batch = self.row_for_each(
                    &self.type_at(vertex_type)?.attributes,
                    attributes.as_ref(),
                    ids.len(),
                )?;
                let mut seen = HashSet::new();
                let mut rows = Vec::new();
                for (row, id) in ids.iter().enumerate() {
                    if seen.insert(*id) && !self.network.has_vertex(vertex_type, *id)? {
                        rows.push(row);
                    }
                }
                let ids: Vec<u64> = rows.iter().map(|row| ids[*row]).collect();
                let appeared = LogRecord::VerticesAdded { vertex_type, ids: ids.clone() };
                let described = match batch {
                    Some(batch) => Some(LogRecord::AttributesSet {
                        vertex_type,
                        ids,
                        attributes: self.rows(batch, &rows)?,
                    }),
                    None => None,
                };
                Ok(if rows.is_empty() {
                    Vec::new()
                } else {
                    [appeared].into_iter().chain(described).collect()
                })
            }
            Change::SetVertices { vertex_type, ids, attributes } => {
                let batch = self.row_for_each(
                    &self.type_at(vertex_type)?.attributes,
                    Some(&attributes),
                    ids.len(),
                )?;
                let last: BTreeMap<u64, usize> =
                    ids.iter().zip(0..).map(|(id, row)| (*id, row)).collect();
                let rows: Vec<usize> = last.values().copied().collect();
                let ids: Vec<u64> = last.into_keys().collect();
                let mut records = self.appearing(vertex_type, &ids)?;
                if let Some(batch) = batch {
                    records.push(LogRecord::AttributesSet {
                        vertex_type,
                        ids,
                        attributes: self.rows(batch, &rows)?,
                    });
                }
                Ok(records)
            }
            Change::RemoveVertices { vertex_type, ids } => {
                self.type_at(vertex_type)?;
                let mut there = BTreeSet::new();
                for id in ids {
                    if self.network.has_vertex(vertex_type, id)? {
                        there.insert(id);
                    }
                }
                self.vanishing(vertex_type, there.into_iter().collect())
            }
            Change::ClearVertices { vertex_type } => {
                self.type_at(vertex_type)?;
                let mut there = Vec::new();
                self.network.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
                    there.extend_from_slice(ids);
                    Ok(())
                })?;
                self.vanishing(vertex_type, there)
            }
            Change::AddEdges { population, edges, attributes } => {
                self.adding(population, &edges, attributes.as_ref())
            }
            Change::RemoveEdges { population, edges } => {
                self.population_at(population)?;
                let mut gone = BTreeSet::new();
                for (source, target) in edges {
                    let (source, target) = self.network.in_order(population, source, target);
                    let numbers = self.network.edges_between(population, source, target)?;
                    gone.extend(numbers.into_iter().map(|number| (source, target, number)));
                }
                Ok(if gone.is_empty() {
                    Vec::new()
                } else {
                    vec![LogRecord::EdgesRemoved { population, edges: gone.into_iter().collect() }]
                })
            }
            Change::ClearEdges { population } => {
                self.population_at(population)?;
                let mut edges = Vec::new();
                let Snapshot { readers, memtable, .. } = &self.network.state;
                let mut lists = crate::read::merge::MergedLists::new(
                    readers,
                    Some(memtable),
                    population,
                    Side::Out,
                )?;
                while let Some(source) = lists.next()? {
                    edges.extend(
                        lists
                            .change
                            .added
                            .iter()
                            .map(|(target, number)| (source, *target, *number)),
                    );
                }
                Ok(if edges.is_empty() {
                    Vec::new()
                } else {
                    vec![LogRecord::EdgesRemoved { population, edges }]
                })
            }
        }
    }

    pub(crate) fn type_at(&self, number: usize) -> Result<&VertexType> {
        self.network
            .types()
            .get(number)
            .ok_or_else(|| Error::Usage(format!("{}: no type {number}", self.name()).into()))
    }

    pub(crate) fn population_at(&self, number: usize) -> Result<&PopulationEntry> {
        let edges = self.network.populations().get(number);
        edges.ok_or_else(|| Error::Usage(format!("{}: no population {number}", self.name()).into()))
    }

    /// Attributes, if there are to be any, which must be as many.
    fn row_for_each<'a>(
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
            Some(batch) if batch.num_rows() != count => Err(Error::Usage(
                format!("{}: {} rows of attributes for {count}", self.name(), batch.num_rows())
                    .into(),
            )),
            Some(batch) => Ok(Some(batch).filter(|_| !schema.fields().is_empty())),
        }
    }

    fn rows(&self, batch: &RecordBatch, rows: &[usize]) -> Result<Arc<RecordBatch>> {
        if rows.len() == batch.num_rows() && rows.iter().zip(0..).all(|(row, place)| *row == place)
        {
            return Ok(Arc::new(batch.clone()));
        }
        let places: Vec<(usize, usize)> = rows.iter().map(|row| (0, *row)).collect();
        crate::read::attributes::pick(&[batch], &places)
            .map(Arc::new)
            .map_err(|e| Error::Usage(format!("{}: {e}", self.name()).into()))
    }

    /// Those of these vertices, ascending, that are not there.
    fn appearing(&self, vertex_type: usize, ids: &[u64]) -> Result<Vec<LogRecord>> {
        let there = self.network.has_vertices(vertex_type, ids)?;
        let missing: Vec<u64> =
            ids.iter().zip(there).filter(|(_, there)| !there).map(|(id, _)| *id).collect();
        Ok(if missing.is_empty() {
            Vec::new()
        } else {
            vec![LogRecord::VerticesAdded { vertex_type, ids: missing }]
        })
    }

    /// Vertices that are there, and their edges.
    fn vanishing(&self, vertex_type: usize, ids: Vec<u64>) -> Result<Vec<LogRecord>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut records = Vec::new();
        let mut list = Neighbours::default();
        for (population, edges) in self.network.populations().iter().enumerate() {
            let mut gone: BTreeSet<Edge> = BTreeSet::new();
            for (side, here) in [(Side::Out, edges.source), (Side::In, edges.target)] {
                if here != vertex_type {
                    continue;
                }
                self.network.numbered_neighbours(
                    &[Adjacency { population, side }],
                    &ids,
                    &mut list,
                )?;
                for (place, id) in ids.iter().enumerate() {
                    let range = list.offsets[place] as usize..list.offsets[place + 1] as usize;
                    gone.extend(list.ids[range.clone()].iter().zip(&list.numbers[range]).map(
                        |(other, number)| match side {
                            Side::Out => (*id, *other, *number),
                            Side::In => (*other, *id, *number),
                        },
                    ));
                }
            }
            if !gone.is_empty() {
                records.push(LogRecord::EdgesRemoved {
                    population,
                    edges: gone.into_iter().collect(),
                });
            }
        }
        records.push(LogRecord::VerticesRemoved { vertex_type, ids });
        Ok(records)
    }

    fn adding(
        &self,
        population: usize,
        pairs: &[(u64, u64)],
        attributes: Option<&RecordBatch>,
    ) -> Result<Vec<LogRecord>> {
        let known = self.population_at(population)?;
        let batch = self.row_for_each(&known.population.attributes, attributes, pairs.len())?;
        if batch.is_none() && !known.population.attributes.fields().is_empty() {
            let what =
                format!("{}: edges of {:?} need attributes", self.name(), known.population.name);
            return Err(Error::Usage(what.into()));
        }
        let memtable = self.network.state.memtable.edges(population);
        let mut next = memtable.map_or(0, |changes| changes.next).max(known.next).max(1);
        let numbered = known.is_numbered();
        let (mut edges, mut rows): (Vec<Edge>, Vec<usize>) = (Vec::new(), Vec::new());
        let pairs: Vec<(u64, u64)> =
            pairs.iter().map(|(s, t)| self.network.in_order(population, *s, *t)).collect();
        let mut is_new = vec![true; pairs.len()];
        if !known.population.is_multi {
            let mut order: Vec<usize> = (0..pairs.len()).collect();
            // Stable: of the same, the first counts.
            order.sort_by_key(|row| pairs[*row]);
            order.dedup_by_key(|row| pairs[*row]);
            let unique: Vec<(u64, u64)> = order.iter().map(|row| pairs[*row]).collect();
            is_new.fill(false);
            for (row, is_there) in
                order.into_iter().zip(self.network.has_edges(population, &unique)?)
            {
                is_new[row] = !is_there;
            }
        }
        for (row, (source, target)) in pairs.into_iter().enumerate().filter(|(row, _)| is_new[*row])
        {
            edges.push((source, target, if numbered { next } else { 0 }));
            next += u64::from(numbered);
            rows.push(row);
        }
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let mut ends: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        ends.entry(known.source).or_default().extend(edges.iter().map(|edge| edge.0));
        ends.entry(known.target).or_default().extend(edges.iter().map(|edge| edge.1));
        let mut records = Vec::new();
        for (vertex_type, mut ids) in ends {
            ids.sort_unstable();
            ids.dedup();
            records.extend(self.appearing(vertex_type, &ids)?);
        }
        let attributes = batch.map(|batch| self.rows(batch, &rows)).transpose()?;
        records.push(LogRecord::EdgesAdded { population, edges, attributes });
        Ok(records)
    }
}
