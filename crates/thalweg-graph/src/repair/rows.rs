//! Attributes of edges and vertices.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use thalweg_io::{Error, Result};

use super::Repair;
use super::salvage::{SalvageIds, SalvagedSegment};
use crate::external_sort::EdgeSorter;
use crate::read::attributes::interleave_rows;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::storage::table::{TableMeta, TableReader, TableWriter};

/// Rows that are written together.
const ROWS: usize = 1 << 16;

/// Rows on their way to a table.
pub(super) struct SalvagedRowWriter<'a> {
    schema: &'a SchemaRef,
    table: TableWriter,
    ids: Vec<u64>,
    batches: Vec<Arc<RecordBatch>>,
    rows: Vec<(usize, usize)>,
}

impl<'a> SalvagedRowWriter<'a> {
    pub(super) fn new(schema: &'a SchemaRef) -> Self {
        Self {
            schema,
            table: TableWriter::new(),
            ids: Vec::new(),
            batches: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of an id that comes after all those before.
    pub(super) fn push(
        &mut self,
        segment: &mut SegmentWriter,
        id: u64,
        batch: &Arc<RecordBatch>,
        row: usize,
    ) -> Result<()> {
        let known = self.batches.iter().rposition(|known| Arc::ptr_eq(known, batch));
        let number = known.unwrap_or_else(|| {
            self.batches.push(batch.clone());
            self.batches.len() - 1
        });
        self.ids.push(id);
        self.rows.push((number, row));
        if self.ids.len() == ROWS { self.flush(segment) } else { Ok(()) }
    }

    fn flush(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let failed = |e| Error::Usage(format!("{}: {e}", segment.name()).into());
        let alike = |batch: &Arc<RecordBatch>| {
            RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())
        };
        let batches =
            self.batches.iter().map(alike).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        let batch = interleave_rows(&batches, &self.rows).map_err(failed)?;
        self.table.push(segment, &self.ids, &batch)?;
        self.ids.clear();
        self.rows.clear();
        // The next rows are out of the last one, or later ones.
        self.batches.drain(..self.batches.len() - 1);
        Ok(())
    }

    pub(super) fn finish(mut self, segment: &mut SegmentWriter) -> Result<Option<TableMeta>> {
        self.flush(segment)?;
        self.table.finish(segment)
    }
}

/// A table; `None` in it if it is not known which rows are whose.
pub(super) struct SalvagedTable<'a> {
    reader: &'a SalvagedSegment,
    table: Option<TableReader>,
}

/// A batch that is held, `None` in it if it cannot be read.
pub(super) type HeldBatch = Option<(usize, Option<Arc<RecordBatch>>)>;

/// A row of a table.
pub(super) fn row_of(
    table: &TableReader,
    reader: &SalvagedSegment,
    held: &mut HeldBatch,
    place: u64,
) -> Option<(Arc<RecordBatch>, usize)> {
    let (number, row) = table.place(place);
    if held.as_ref().is_none_or(|(known, _)| *known != number) {
        *held = Some((number, table.batch(&reader.segment, number).ok().map(Arc::new)));
    }
    held.as_ref().and_then(|(_, batch)| batch.clone()).map(|batch| (batch, row))
}

impl Repair<'_> {
    /// Tables of the attributes of a population, the oldest first: later ones are of greater
    /// numbers.
    pub(super) fn tables(&self, population: usize) -> Vec<SalvagedTable<'_>> {
        let parts = self
            .readers()
            .flat_map(|(_, reader)| reader.footer.edges.iter().map(move |part| (reader, part)));
        let parts =
            parts.filter(|(_, part)| part.population == population && part.side == Side::Out);
        parts
            .filter_map(|(reader, part)| {
                Some(SalvagedTable {
                    reader,
                    table: TableReader::open_left(part.table.as_ref()?, &reader.segment),
                })
            })
            .collect()
    }
}

/// Writes the attributes of edges that are there, out of tables and the log; how many have none,
/// and get nulls. Then all attributes may be missing from here on, whatever their schema said.
pub(super) fn edge_table(
    tables: &[SalvagedTable<'_>],
    logged: &BTreeMap<u64, (Arc<RecordBatch>, usize)>,
    alive: EdgeSorter,
    schema: &mut SchemaRef,
    segment: &mut SegmentWriter,
) -> Result<(Option<TableMeta>, u64)> {
    let is_whole = |rows: &SalvagedTable<'_>| {
        let Some(table) = &rows.table else { return false };
        let mut ids = SalvageIds::new(&table.rows, &rows.reader.segment);
        while ids.next().is_some() {}
        ids.holes.ranges.is_empty()
            && (0..table.batches()).all(|number| table.batch(&rows.reader.segment, number).is_ok())
    };
    if !tables.iter().all(is_whole) {
        let fields: Vec<_> =
            schema.fields().iter().map(|field| (**field).clone().with_nullable(true)).collect();
        *schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    }
    let nulls: Vec<ArrayRef> =
        schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let missing =
        RecordBatch::try_new_with_options(schema.clone(), nulls, &options).ok().map(Arc::new);
    let of_tables = tables.iter().filter_map(|rows| Some((rows.reader, rows.table.as_ref()?)));
    let of_tables = of_tables.flat_map(|(reader, table)| {
        let (mut ids, mut held) = (SalvageIds::new(&table.rows, &reader.segment), None);
        std::iter::from_fn(move || {
            let (number, place) = ids.next()?;
            Some((number, row_of(table, reader, &mut held, place)))
        })
    });
    let mut rows =
        of_tables.chain(logged.iter().map(|(number, row)| (*number, Some(row.clone())))).peekable();
    let (mut picked, mut lost) = (SalvagedRowWriter::new(schema), 0);
    alive.drain(&mut |lists| {
        for number in &lists.keys {
            while rows.next_if(|(known, _)| known < number).is_some() {}
            let found = rows.next_if(|(known, _)| known == number).and_then(|(_, row)| row);
            match (found, &missing) {
                (Some((batch, row)), _) => picked.push(segment, *number, &batch, row)?,
                (None, Some(missing)) => {
                    lost += 1;
                    picked.push(segment, *number, missing, 0)?;
                }
                (None, None) => {
                    let what = format!(
                        "{}: edge {number} has no attributes, and needs some",
                        segment.name()
                    );
                    return Err(Error::Usage(what.into()));
                }
            }
        }
        Ok(())
    })?;
    Ok((picked.finish(segment)?, lost))
}
