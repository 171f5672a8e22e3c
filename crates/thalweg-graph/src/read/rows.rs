//! Reading edges and vertices as rows of a table with their attributes: all, or a selection.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use thalweg_io::Result;
use thalweg_io::condition::Condition;

use self::filter::{EdgeFilter, EdgeRows, id_field};
use crate::read::neighbours::Neighbours;
use crate::read::network::{Adjacency, Network};
use crate::storage::schema::Side;

mod filter;

/// A selection of a population's edges: those that meet all criteria.
#[derive(Debug, Clone, Copy, Default)]
pub struct EdgeSelection<'a> {
    /// Edges from these vertices, which ascend; `None` for all.
    pub from: Option<&'a [u64]>,
    /// Edges to these vertices, which ascend; `None` for all.
    pub to: Option<&'a [u64]>,
    /// Edges for which this condition holds; `None` for all. [`Network::neighbours_where`] lists
    /// its columns.
    pub condition: Option<&'a Condition>,
}

/// Vertices that are looked up together.
const VERTICES_AT_ONCE: usize = 4096;

/// The fewest rows in memory at a time, whatever the budget.
const FEWEST: usize = 1 << 12;

/// The most rows in memory at a time.
const MOST: usize = 1 << 20;

/// Rows take this part of the memory budget: a quarter.
const SHARE: usize = 4;

/// The assumed size in bytes of a value of variable length.
const VALUE: usize = 64;

impl Network {
    /// Attributes of vertices in any order, with repetitions: one row for each vertex. A vertex
    /// without attributes has a row of nulls.
    pub(super) fn columns_of(
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

    /// How many rows fit into the memory budget.
    fn room(&self, schema: &Schema) -> usize {
        let size = |field: &Arc<Field>| field.data_type().primitive_width().unwrap_or(VALUE);
        let row: usize = 24 + schema.fields().iter().map(size).sum::<usize>();
        // Rows are in memory twice while they are sorted.
        (self.fetcher.budget.memory / SHARE / (2 * row)).clamp(FEWEST, MOST)
    }

    /// Passes the edges of vertices along an adjacency to `f`, in order, as many at a time as fit
    /// into memory. `to` restricts them to some neighbours. Edges that do not fill a batch are left
    /// in `ends`.
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
        for vertices in vertices.chunks(VERTICES_AT_ONCE) {
            let degrees = self.degrees(&[adjacency], vertices)?;
            let mut first = 0;
            while first < vertices.len() {
                self.fetcher.control.check()?;
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

    /// The columns that [`Network::edges`] passes for a population: `source`, `target` and the
    /// attributes.
    pub fn edge_schema(&self, population: usize) -> SchemaRef {
        let attributes = &self.populations()[population].population.attributes;
        let ends = ["source", "target"].map(|name| Arc::new(id_field(name)));
        Arc::new(Schema::new(
            ends.into_iter().chain(attributes.fields().iter().cloned()).collect::<Vec<_>>(),
        ))
    }

    /// Passes edges of a population with their attributes to `f`, ordered by source, then target,
    /// in bounded memory. An undirected edge is passed once: its source is the vertex of the first
    /// of the two types or, within one type, the lesser id.
    ///
    /// # Errors
    /// As [`Network::neighbours`] and [`Network::edge_attributes`];
    /// [`Error::Usage`](thalweg_io::Error::Usage) for a
    /// condition that does not fit the columns; the errors of `f`.
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
                let _ahead = self.read_ahead(&[adjacency], true)?;
                self.vertices(self.populations()[population].source, 0..=u64::MAX, &mut some)?;
            }
        }
        show(&mut ends)
    }

    /// The columns that [`Network::vertex_rows`] passes for a type: `id` and the attributes.
    pub fn vertex_schema(&self, vertex_type: usize) -> SchemaRef {
        let nullable = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_nullable(true));
        let attributes = self.types()[vertex_type].attributes.fields().iter().map(nullable);
        Arc::new(Schema::new(
            std::iter::once(Arc::new(id_field("id"))).chain(attributes).collect::<Vec<_>>(),
        ))
    }

    /// Passes the vertices of a type with their attributes to `f`, ascending, in bounded memory:
    /// all, or those for which a condition on these columns holds. The attributes of a vertex
    /// without any are null.
    ///
    /// # Errors
    /// As [`Network::vertices`] and [`Network::vertex_attributes`];
    /// [`Error::Usage`](thalweg_io::Error::Usage) for a
    /// condition that does not fit the columns; the errors of `f`.
    pub fn vertex_rows(
        &self,
        vertex_type: usize,
        condition: Option<&Condition>,
        f: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let schema = self.vertex_schema(vertex_type);
        let bound = condition.map(|condition| condition.bind(&schema)).transpose()?;
        self.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
            self.fetcher.control.check()?;
            let batch = self.vertex_rows_of(vertex_type, ids)?;
            let Some(bound) = &bound else { return f(&batch) };
            let kept =
                filter_record_batch(&batch, &bound.holds(&batch)).map_err(|e| self.failed(&e))?;
            if kept.num_rows() == 0 { Ok(()) } else { f(&kept) }
        })
    }

    /// The rows of some vertices, in any order and with repetitions: the columns of
    /// [`Network::vertex_schema`], with a row for each id. The attributes of a vertex without any,
    /// and of one that is not there, are null.
    ///
    /// # Errors
    /// As [`Network::vertex_attributes`].
    pub fn vertex_rows_of(&self, vertex_type: usize, ids: &[u64]) -> Result<RecordBatch> {
        let schema = self.vertex_schema(vertex_type);
        let attributes: Vec<usize> = (0..schema.fields().len() - 1).collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from(ids.to_vec()))];
        if !attributes.is_empty() {
            columns.extend(self.columns_of(vertex_type, ids, &attributes)?);
        }
        RecordBatch::try_new(schema, columns).map_err(|e| self.failed(&e))
    }

    /// Reads the neighbours of vertices, which ascend, along those edges for which a condition
    /// holds, with the numbers of the edges.
    ///
    /// The columns of the condition are the attributes of the edges; `from` and `to`, the ids of
    /// the vertex of the query and of the neighbour; and the attributes of these, as `from.layer`
    /// and `to.layer`. Each adjacency must have the columns that the condition names.
    ///
    /// # Errors
    /// As [`Network::neighbours`]; [`Error::Usage`](thalweg_io::Error::Usage) for a condition that
    /// does not fit the columns.
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
            // An edge from a vertex to itself is a single edge in both adjacencies.
            let other = Adjacency { side: adjacency.side.other(), ..*adjacency };
            let skips_loops = adjacency.side == Side::In
                && adjacency.query_type(self) == adjacency.neighbour_type(self)
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
