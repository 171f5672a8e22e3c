//! Edges and vertices as rows of a table, with their attributes: all, or those that are wanted.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use thalweg_io::condition::{Bound, Condition};
use thalweg_io::{Error, Result};

use crate::read::neighbours::Neighbours;
use crate::read::network::{Adjacency, Network};
use crate::storage::schema::Side;

/// Which edges of a population are wanted: those for which all of it holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct EdgeSelection<'a> {
    /// Those that leave from these vertices, which ascend.
    pub from: Option<&'a [u64]>,
    /// Those that lead to these vertices, which ascend.
    pub to: Option<&'a [u64]>,
    /// Those for which this holds: see [`Network::neighbours_where`] for the names of its columns.
    pub condition: Option<&'a Condition>,
}

/// Vertices that are looked up together.
const TOGETHER: usize = 4096;

/// Rows that are held at a time, at least and at most.
const FEWEST: usize = 1 << 12;
const MOST: usize = 1 << 20;

/// The part of memory that rows take.
const SHARE: usize = 4;

/// Bytes of a value, about, where its type does not say.
const VALUE: usize = 64;

/// Edges, a row each, without attributes.
#[derive(Debug, Default)]
struct EdgeRows {
    from: Vec<u64>,
    to: Vec<u64>,
    numbers: Vec<u64>,
}

impl EdgeRows {
    fn clear(&mut self) {
        self.from.clear();
        self.to.clear();
        self.numbers.clear();
    }

    /// Those in a range.
    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let of = |all: &[u64]| all[range.clone()].to_vec();
        Self { from: of(&self.from), to: of(&self.to), numbers: of(&self.numbers) }
    }

    fn retain(&mut self, kept: &[bool]) {
        for column in [&mut self.from, &mut self.to, &mut self.numbers] {
            let mut kept = kept.iter();
            column.retain(|_| kept.next() == Some(&true));
        }
    }
}

/// Where a column that a condition asks about comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionColumn {
    /// An attribute of the edge.
    Edge(usize),
    /// The vertex at an end: the one that one goes from, or the other.
    EndId(bool),
    /// An attribute of that vertex.
    Vertex(bool, usize),
}

/// A condition on the edges of a way.
struct EdgeFilter {
    adjacency: Adjacency,
    schema: SchemaRef,
    origins: Vec<ConditionColumn>,
    bound: Bound,
}

impl EdgeFilter {
    fn new(network: &Network, adjacency: Adjacency, condition: &Condition) -> Result<Self> {
        let edges = &network.populations()[adjacency.population];
        let mut columns: Vec<(Field, ConditionColumn)> = Vec::new();
        for (number, field) in edges.population.attributes.fields().iter().enumerate() {
            columns.push((field.as_ref().clone(), ConditionColumn::Edge(number)));
        }
        for (is_from, name, vertex_type) in
            [(true, "from", adjacency.leaves(network)), (false, "to", adjacency.arrives(network))]
        {
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
        // Against all, so that an error can name all; then against those that it asks about, the
        // first of each name.
        let all = Schema::new(columns.iter().map(|(field, _)| field.clone()).collect::<Vec<_>>());
        condition.bind(&all)?;
        let asked = condition.columns();
        let asked = asked.iter().filter_map(|name| columns.get(all.index_of(name).ok()?));
        let (fields, origins): (Vec<Field>, Vec<ConditionColumn>) = asked.cloned().unzip();
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { adjacency, bound: condition.bind(&schema)?, schema, origins })
    }

    /// Keeps the edges for which it holds.
    fn retain(&self, network: &Network, ends: &mut EdgeRows) -> Result<()> {
        if ends.from.is_empty() {
            return Ok(());
        }
        let mut columns: Vec<Option<ArrayRef>> = vec![None; self.origins.len()];
        let numbers =
            |wanted: &dyn Fn(ConditionColumn) -> Option<usize>| -> (Vec<usize>, Vec<usize>) {
                self.origins
                    .iter()
                    .enumerate()
                    .filter_map(|(place, origin)| Some((place, wanted(*origin)?)))
                    .unzip()
            };
        for (place, origin) in self.origins.iter().enumerate() {
            if let ConditionColumn::EndId(is_from) = origin {
                let ids = if *is_from { &ends.from } else { &ends.to };
                columns[place] = Some(Arc::new(UInt64Array::from(ids.clone())));
            }
        }
        let (places, attributes) = numbers(&|origin| match origin {
            ConditionColumn::Edge(number) => Some(number),
            _ => None,
        });
        if !places.is_empty() {
            let batch = network.edge_columns(
                self.adjacency.population,
                &ends.numbers,
                Some(&attributes),
            )?;
            places
                .iter()
                .zip(batch.columns())
                .for_each(|(place, column)| columns[*place] = Some(column.clone()));
        }
        for end in [true, false] {
            let (places, attributes) = numbers(&|origin| match origin {
                ConditionColumn::Vertex(is_from, number) if is_from == end => Some(number),
                _ => None,
            });
            if places.is_empty() {
                continue;
            }
            let (ids, vertex_type) = match end {
                true => (&ends.from, self.adjacency.leaves(network)),
                false => (&ends.to, self.adjacency.arrives(network)),
            };
            let found = network.columns_of(vertex_type, ids, &attributes)?;
            places.iter().zip(found).for_each(|(place, column)| columns[*place] = Some(column));
        }
        let columns = columns.into_iter().flatten().collect();
        let batch =
            RecordBatch::try_new(self.schema.clone(), columns).map_err(|e| network.failed(&e))?;
        let kept: Vec<bool> =
            self.bound.holds(&batch).iter().map(|holds| holds == Some(true)).collect();
        ends.retain(&kept);
        Ok(())
    }
}

impl Adjacency {
    /// The type of the vertices that one goes from.
    fn leaves(self, network: &Network) -> usize {
        let edges = &network.populations()[self.population];
        if self.side == Side::Out { edges.source } else { edges.target }
    }

    /// The type of those that one comes to.
    fn arrives(self, network: &Network) -> usize {
        Self { side: self.side.other(), ..self }.leaves(network)
    }
}

fn id_field(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}

impl Network {
    /// Attributes of vertices, which may come in any order and again: a row for each, without
    /// values where a vertex has none.
    fn columns_of(
        &self,
        vertex_type: usize,
        ids: &[u64],
        columns: &[usize],
    ) -> Result<Vec<ArrayRef>> {
        let mut once = ids.to_vec();
        once.sort_unstable();
        once.dedup();
        let (places, batch) = self.vertex_columns(vertex_type, &once, Some(columns))?;
        let mut rows = vec![None; once.len()];
        places.iter().zip(0..).for_each(|(place, row)| rows[*place] = Some(row));
        let rows: UInt64Array =
            ids.iter().map(|id| once.binary_search(id).ok().and_then(|at| rows[at])).collect();
        let taken = batch.columns().iter().map(|column| take(column, &rows, None));
        taken.collect::<std::result::Result<_, _>>().map_err(|e| self.failed(&e))
    }

    /// Rows that memory has room for.
    fn room(&self, schema: &Schema) -> usize {
        let size = |field: &Arc<Field>| field.data_type().primitive_width().unwrap_or(VALUE);
        let row: usize = 24 + schema.fields().iter().map(size).sum::<usize>();
        // While they are put in order, they are there twice.
        (self.fetcher.budget.memory / SHARE / (2 * row)).clamp(FEWEST, MOST)
    }

    /// Shows `f` the edges along a way from vertices, in order, so many at a time that memory has
    /// room for them; with those that do not suit left out.
    fn ends(
        &self,
        adjacency: Adjacency,
        vertices: &[u64],
        to: Option<&[u64]>,
        ends: &mut EdgeRows,
        f: &mut dyn FnMut(&mut EdgeRows) -> Result<()>,
    ) -> Result<()> {
        let most = self.room(&self.populations()[adjacency.population].population.attributes);
        let mut list = Neighbours::default();
        for vertices in vertices.chunks(TOGETHER) {
            if self.fetcher.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let degrees = self.degrees(&[adjacency], vertices)?;
            let mut first = 0;
            while first < vertices.len() {
                let mut sum = 0;
                let fits = degrees[first..].iter().take_while(|degree| {
                    sum += **degree;
                    sum <= most as u64
                });
                let here = &vertices[first..first + fits.count().max(1)];
                first += here.len();
                self.numbered_neighbours(&[adjacency], here, &mut list)?;
                for (place, vertex) in here.iter().enumerate() {
                    for at in list.offsets[place] as usize..list.offsets[place + 1] as usize {
                        if to.is_none_or(|to| to.binary_search(&list.ids[at]).is_ok()) {
                            ends.from.push(*vertex);
                            ends.to.push(list.ids[at]);
                            ends.numbers.push(list.numbers[at]);
                        }
                    }
                }
                if ends.from.len() >= most {
                    for start in (0..ends.from.len()).step_by(most) {
                        f(&mut ends.part(start..(start + most).min(ends.from.len())))?;
                    }
                    ends.clear();
                }
            }
        }
        Ok(())
    }

    /// The columns in which [`Network::edges`] shows the edges of a population: `source`, `target`
    /// and their attributes.
    pub fn edge_schema(&self, population: usize) -> SchemaRef {
        let attributes = &self.populations()[population].population.attributes;
        let ends = ["source", "target"].map(|name| Arc::new(id_field(name)));
        Arc::new(Schema::new(
            ends.into_iter().chain(attributes.fields().iter().cloned()).collect::<Vec<_>>(),
        ))
    }

    /// Shows `f` edges of a population with their attributes, in bounded memory: ordered by the
    /// vertex that they leave, then by the one that they lead to. An edge that has no direction is
    /// shown once, from the first of the two types, or from the lesser id.
    ///
    /// # Errors
    /// As [`Network::neighbours`] and [`Network::edge_attributes`]; a condition that does not suit;
    /// those of `f`.
    pub fn edges(
        &self,
        population: usize,
        wanted: EdgeSelection<'_>,
        f: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let adjacency = Adjacency { population, side: Side::Out };
        let filter = wanted
            .condition
            .map(|condition| EdgeFilter::new(self, adjacency, condition))
            .transpose()?;
        let schema = self.edge_schema(population);
        let mut show = |ends: &mut EdgeRows| -> Result<()> {
            if let Some(filter) = &filter {
                filter.retain(self, ends)?;
            }
            if ends.from.is_empty() {
                return Ok(());
            }
            let ids = |ids: &mut Vec<u64>| -> ArrayRef {
                Arc::new(UInt64Array::from(std::mem::take(ids)))
            };
            let mut columns = vec![ids(&mut ends.from), ids(&mut ends.to)];
            if schema.fields().len() > columns.len() {
                columns
                    .extend_from_slice(self.edge_attributes(population, &ends.numbers)?.columns());
            }
            f(&RecordBatch::try_new(schema.clone(), columns).map_err(|e| self.failed(&e))?)
        };
        let mut ends = EdgeRows::default();
        let mut some = |ids: &[u64]| self.ends(adjacency, ids, wanted.to, &mut ends, &mut show);
        match wanted.from {
            Some(ids) => some(ids)?,
            None => {
                self.vertices(self.populations()[population].source, 0..=u64::MAX, &mut some)?
            }
        }
        show(&mut ends)
    }

    /// The columns in which [`Network::vertex_rows`] shows the vertices of a type: `id` and their
    /// attributes.
    pub fn vertex_schema(&self, vertex_type: usize) -> SchemaRef {
        let nullable = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_nullable(true));
        let attributes = self.types()[vertex_type].attributes.fields().iter().map(nullable);
        Arc::new(Schema::new(
            std::iter::once(Arc::new(id_field("id"))).chain(attributes).collect::<Vec<_>>(),
        ))
    }

    /// Shows `f` the vertices of a type with their attributes, ascending, in bounded memory: those
    /// for which a condition on these columns holds. A vertex that has no attributes has no values.
    ///
    /// # Errors
    /// As [`Network::vertices`] and [`Network::vertex_attributes`]; a condition that does not suit;
    /// those of `f`.
    pub fn vertex_rows(
        &self,
        vertex_type: usize,
        condition: Option<&Condition>,
        f: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let schema = self.vertex_schema(vertex_type);
        let bound = condition.map(|condition| condition.bind(&schema)).transpose()?;
        let attributes: Vec<usize> = (0..schema.fields().len() - 1).collect();
        self.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
            if self.fetcher.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(ids.to_vec()))];
            if !attributes.is_empty() {
                columns.extend(self.columns_of(vertex_type, ids, &attributes)?);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(ids.len()));
            let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options);
            let batch = batch.map_err(|e| self.failed(&e))?;
            let Some(bound) = &bound else { return f(&batch) };
            let kept =
                filter_record_batch(&batch, &bound.holds(&batch)).map_err(|e| self.failed(&e))?;
            if kept.num_rows() == 0 { Ok(()) } else { f(&kept) }
        })
    }

    /// The neighbours of vertices, which ascend, along those edges for which a condition holds;
    /// with the numbers of these.
    ///
    /// Its columns are the attributes of edges by their names; `from` and `to`, the ids of the
    /// vertex that one goes from and of the neighbour; and their attributes, as `from.layer` and
    /// `to.layer`. Each of the ways must have those that it names.
    ///
    /// # Errors
    /// As [`Network::neighbours`]; [`Error::Usage`] for a condition that does not suit.
    pub fn neighbours_where(
        &self,
        adjacencies: &[Adjacency],
        vertices: &[u64],
        condition: &Condition,
        out: &mut Neighbours,
    ) -> Result<()> {
        let mut kept: Vec<(u64, u64, u64)> = Vec::new();
        for adjacency in adjacencies {
            let filter = EdgeFilter::new(self, *adjacency, condition)?;
            // An edge from a vertex to itself is one edge, from whichever end it is seen.
            let other = Adjacency { side: adjacency.side.other(), ..*adjacency };
            let skips_loops = adjacency.side == Side::In
                && adjacency.leaves(self) == adjacency.arrives(self)
                && adjacencies.contains(&other);
            let mut keep = |ends: &mut EdgeRows| -> Result<()> {
                filter.retain(self, ends)?;
                let edges = ends
                    .from
                    .iter()
                    .zip(&ends.to)
                    .zip(&ends.numbers)
                    .map(|((from, to), number)| (*from, *to, *number));
                kept.extend(edges.filter(|edge| !skips_loops || edge.0 != edge.1));
                Ok(())
            };
            let mut ends = EdgeRows::default();
            self.ends(*adjacency, vertices, None, &mut ends, &mut keep)?;
            keep(&mut ends)?;
        }
        if !kept.is_sorted() {
            kept.sort_unstable();
        }
        out.offsets.clear();
        out.offsets.push(0);
        let mut end = 0;
        for vertex in vertices {
            end += kept[end..].iter().take_while(|edge| edge.0 == *vertex).count();
            out.offsets.push(end as u64);
        }
        out.ids.clear();
        out.ids.extend(kept.iter().map(|edge| edge.1));
        out.numbers.clear();
        out.numbers.extend(kept.iter().map(|edge| edge.2));
        Ok(())
    }
}
