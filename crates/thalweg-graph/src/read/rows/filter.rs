//! Conditions on edges: on their attributes, and on the ids and attributes of both ends.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use thalweg_io::Result;
use thalweg_io::condition::{Bound, Condition};

use crate::read::network::{Adjacency, Network};
use crate::storage::schema::Side;

/// Edges without attributes: the vertices at both ends, and the numbers.
#[derive(Debug, Default)]
pub(super) struct EdgeRows {
    pub(super) from: Vec<u64>,
    pub(super) to: Vec<u64>,
    pub(super) numbers: Vec<u64>,
}

impl EdgeRows {
    pub(super) fn clear(&mut self) {
        self.from.clear();
        self.to.clear();
        self.numbers.clear();
    }

    /// The edges in a range of rows.
    pub(super) fn part(&self, range: std::ops::Range<usize>) -> Self {
        let of = |all: &[u64]| all[range.clone()].to_vec();
        Self { from: of(&self.from), to: of(&self.to), numbers: of(&self.numbers) }
    }

    pub(super) fn retain(&mut self, kept: &[bool]) {
        for column in [&mut self.from, &mut self.to, &mut self.numbers] {
            let mut kept = kept.iter();
            column.retain(|_| kept.next() == Some(&true));
        }
    }
}

/// Where a column of a condition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionColumn {
    /// An attribute of the edge.
    Edge(usize),
    /// The id of the vertex at an end: the vertex of the query if true, else the neighbour.
    EndId(bool),
    /// An attribute of the vertex at an end.
    Vertex(bool, usize),
}

/// A condition on the edges of an adjacency.
pub(super) struct EdgeFilter {
    adjacency: Adjacency,
    schema: SchemaRef,
    origins: Vec<ConditionColumn>,
    bound: Bound,
}

impl EdgeFilter {
    pub(super) fn new(
        network: &Network,
        adjacency: Adjacency,
        condition: &Condition,
    ) -> Result<Self> {
        let edges = &network.populations()[adjacency.population];
        let mut columns: Vec<(Field, ConditionColumn)> = Vec::new();
        for (number, field) in edges.population.attributes.fields().iter().enumerate() {
            columns.push((field.as_ref().clone(), ConditionColumn::Edge(number)));
        }
        for (is_from, name, vertex_type) in [
            (true, "from", adjacency.query_type(network)),
            (false, "to", adjacency.neighbour_type(network)),
        ] {
            columns.push((id_field(name), ConditionColumn::EndId(is_from)));
            for (number, field) in
                network.types()[vertex_type].attributes.fields().iter().enumerate()
            {
                let field = field
                    .as_ref()
                    .clone()
                    .with_name(format!("{name}.{}", field.name()))
                    .with_nullable(true);
                columns.push((field, ConditionColumn::Vertex(is_from, number)));
            }
        }
        // Bind to all columns first, so that an error names all; then to those that the condition
        // uses, the first of each name.
        let all = Schema::new(columns.iter().map(|(field, _)| field.clone()).collect::<Vec<_>>());
        condition.bind(&all)?;
        let asked = condition.columns();
        let asked = asked.iter().filter_map(|name| columns.get(all.index_of(name).ok()?));
        let (fields, origins): (Vec<Field>, Vec<ConditionColumn>) = asked.cloned().unzip();
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { adjacency, bound: condition.bind(&schema)?, schema, origins })
    }

    /// Keeps the edges for which the condition holds.
    pub(super) fn retain(&self, network: &Network, edges: &mut EdgeRows) -> Result<()> {
        if edges.from.is_empty() {
            return Ok(());
        }
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.origins.len()];
        for (place, origin) in self.origins.iter().enumerate() {
            if let ConditionColumn::EndId(is_from) = origin {
                let ids = if *is_from { &edges.from } else { &edges.to };
                columns[place] = Some(Arc::new(UInt64Array::from(ids.clone())));
            }
        }
        self.add_edge_columns(network, edges, &mut columns)?;
        self.add_vertex_columns(network, edges, &mut columns)?;
        let columns = columns.into_iter().flatten().collect();
        let batch =
            RecordBatch::try_new(self.schema.clone(), columns).map_err(|e| network.failed(&e))?;
        let kept: Vec<bool> =
            self.bound.holds(&batch).iter().map(|holds| holds == Some(true)).collect();
        edges.retain(&kept);
        Ok(())
    }

    /// The places of the columns that `attribute` selects, and the numbers of their attributes.
    fn selected(
        &self,
        attribute: impl Fn(ConditionColumn) -> Option<usize>,
    ) -> (Vec<usize>, Vec<usize>) {
        let origins = self.origins.iter().enumerate();
        origins.filter_map(|(place, origin)| Some((place, attribute(*origin)?))).unzip()
    }

    /// Adds the columns that are attributes of the edges.
    fn add_edge_columns(
        &self,
        network: &Network,
        edges: &EdgeRows,
        columns: &mut [Option<ArrayRef>],
    ) -> Result<()> {
        let (places, attributes) = self.selected(|origin| match origin {
            ConditionColumn::Edge(number) => Some(number),
            _ => None,
        });
        if places.is_empty() {
            return Ok(());
        }
        let population = self.adjacency.population;
        let batch = network.edge_columns(population, &edges.numbers, Some(&attributes))?;
        for (place, column) in places.iter().zip(batch.columns()) {
            columns[*place] = Some(column.clone());
        }
        Ok(())
    }

    /// Adds the columns that are attributes of the vertices at the edges' ends.
    fn add_vertex_columns(
        &self,
        network: &Network,
        edges: &EdgeRows,
        columns: &mut [Option<ArrayRef>],
    ) -> Result<()> {
        for end in [true, false] {
            let (places, attributes) = self.selected(|origin| match origin {
                ConditionColumn::Vertex(is_from, number) if is_from == end => Some(number),
                _ => None,
            });
            if places.is_empty() {
                continue;
            }
            let (ids, vertex_type) = match end {
                true => (&edges.from, self.adjacency.query_type(network)),
                false => (&edges.to, self.adjacency.neighbour_type(network)),
            };
            let found = network.columns_of(vertex_type, ids, &attributes)?;
            for (place, column) in places.iter().zip(found) {
                columns[*place] = Some(column);
            }
        }
        Ok(())
    }
}

impl Adjacency {
    /// The type of the vertices that a query starts from.
    pub(super) fn query_type(self, network: &Network) -> usize {
        let edges = &network.populations()[self.population];
        if self.side == Side::Out { edges.source } else { edges.target }
    }

    /// The type of the neighbours.
    pub(super) fn neighbour_type(self, network: &Network) -> usize {
        Self { side: self.side.other(), ..self }.query_type(network)
    }
}

/// The column of ids with this name.
pub(super) fn id_field(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}
