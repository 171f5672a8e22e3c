//! Rows of attributes, wherever they lie.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;

use super::level::Side;
use super::merge;
use super::network::{Network, State};
use crate::error::{Error, Fault, Result as OurResult};

/// Rows, by batch and place there, of batches of one schema.
pub(super) fn pick(batches: &[&RecordBatch], rows: &[(usize, usize)]) -> Result<RecordBatch, ArrowError> {
    let Some(first) = batches.first() else {
        return Err(ArrowError::InvalidArgumentError("no batches".into()));
    };
    let columns: Vec<ArrayRef> = (0..first.num_columns())
        .map(|column| {
            let arrays: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(column)).collect();
            interleave(&arrays, rows)
        })
        .collect::<Result<_, _>>()?;
    RecordBatch::try_new(first.schema(), columns)
}

/// Rows, as they are found, in batches that may be the same.
#[derive(Default)]
struct Found {
    batches: Vec<Arc<RecordBatch>>,
    rows: Vec<(usize, usize)>,
}

impl Found {
    fn push(&mut self, batch: Arc<RecordBatch>, row: usize) {
        // The same batch comes again soon, or never.
        let known = self.batches.iter().rposition(|known| Arc::ptr_eq(known, &batch));
        let number = known.unwrap_or_else(|| {
            self.batches.push(batch);
            self.batches.len() - 1
        });
        self.rows.push((number, row));
    }

    fn batch(&self, network: &Network, schema: &arrow_schema::SchemaRef) -> OurResult<RecordBatch> {
        if self.rows.is_empty() {
            return Ok(RecordBatch::new_empty(schema.clone()));
        }
        let batches: Vec<&RecordBatch> = self.batches.iter().map(|batch| &**batch).collect();
        pick(&batches, &self.rows).map_err(|e| Error::Usage(format!("{}: {e}", network.disk.name()).into()))
    }
}

impl Network {
    /// The attributes of vertices: the places of those that have any, and a row for each of these.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn vertex_attributes(&self, vertex_type: usize, ids: &[u64]) -> OurResult<(Vec<usize>, RecordBatch)> {
        let State { levels, recent, .. } = &self.state;
        let mut rows = merge::Rows::new(levels, Some(recent), vertex_type)?;
        let (mut places, mut found) = (Vec::new(), Found::default());
        for (place, id) in ids.iter().enumerate() {
            if let Some((batch, row)) = rows.of(*id)? {
                places.push(place);
                found.push(batch, row);
            }
        }
        Ok((places, found.batch(self, &self.types()[vertex_type].attributes)?))
    }

    /// The attributes of edges, by the numbers that [`Network::numbered_neighbours`] gives: a row for each.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a number that no edge has; [`Error::Malformed`], [`Error::Io`].
    pub fn edge_attributes(&self, population: usize, numbers: &[u64]) -> OurResult<RecordBatch> {
        let State { levels, recent, .. } = &self.state;
        let mut tables = Vec::new();
        for level in levels {
            let table = level.edges(population, Side::Out)?.and_then(|edges| edges.table.as_ref());
            tables.extend(table.map(|table| (level, table)));
        }
        let lately = recent.edges(population);
        let mut held: Vec<Option<(usize, Arc<RecordBatch>)>> = vec![None; tables.len()];
        let mut found = Found::default();
        'edges: for number in numbers {
            if let Some((batch, row)) = lately.and_then(|changes| changes.rows.get(number)) {
                found.push(batch.clone(), *row);
                continue;
            }
            for ((level, table), held) in tables.iter().zip(&mut held) {
                let Ok(row) = table.rows.find(&level.segment, *number)? else { continue };
                let (batch, row) = table.place(row);
                let known = match held {
                    Some((known, own)) if *known == batch => own.clone(),
                    _ => held.insert((batch, Arc::new(table.batch(&level.segment, batch)?))).1.clone(),
                };
                found.push(known, row);
                continue 'edges;
            }
            let fault = Fault::new(0, "no attributes", "a row of them");
            return Err(fault.in_file(self.disk.name(), 0, format!("edge {number}")));
        }
        found.batch(self, &self.populations()[population].population.attributes)
    }
}
