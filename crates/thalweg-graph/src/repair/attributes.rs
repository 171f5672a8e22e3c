//! Rebuilding the tables of attributes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use thalweg_io::{Error, Result};

use super::damaged::DamagedNetwork;
use super::salvage_columns::{SalvageIds, SalvagedSegment};
use crate::external_sort::EdgeSorter;
use crate::read::attributes::interleave_rows;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::storage::table::{TableMeta, TableReader, TableWriter};

/// The number of rows that one write holds.
const ROWS_PER_BATCH: usize = 1 << 16;

/// A row of attributes: a batch, and the row in it.
pub(super) type AttributeRow = (Arc<RecordBatch>, usize);

/// Writes rows of several batches to one table.
pub(super) struct SalvagedRowWriter<'a> {
    schema: &'a SchemaRef,
    table: TableWriter,
    ids: Vec<u64>,
    batches: Vec<Arc<RecordBatch>>,
    /// The batch and the row in it, for each id.
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

    /// Adds the row of an id. Each call takes a greater id than the call before.
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
        if self.ids.len() == ROWS_PER_BATCH { self.flush(segment) } else { Ok(()) }
    }

    fn flush(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let failed = |e| Error::Usage(format!("{}: {e}", segment.name()).into());
        let with_schema = |batch: &Arc<RecordBatch>| {
            RecordBatch::try_new(self.schema.clone(), batch.columns().to_vec())
        };
        let batches: Result<Vec<_>, _> = self.batches.iter().map(with_schema).collect();
        let batches = batches.map_err(failed)?;
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        let batch = interleave_rows(&batches, &self.rows).map_err(failed)?;
        self.table.push(segment, &self.ids, &batch)?;
        self.ids.clear();
        self.rows.clear();
        // The next rows come from the last batch or from later ones.
        self.batches.drain(..self.batches.len() - 1);
        Ok(())
    }

    pub(super) fn finish(mut self, segment: &mut SegmentWriter) -> Result<Option<TableMeta>> {
        self.flush(segment)?;
        self.table.finish(segment)
    }
}

/// The batch that was read last: its number, and its rows, or `None` if they cannot be read.
pub(super) type CachedBatch = Option<(usize, Option<Arc<RecordBatch>>)>;

/// The row of a table at a place, if its batch can be read.
pub(super) fn table_row(
    table: &TableReader,
    segment: &SalvagedSegment,
    cached: &mut CachedBatch,
    place: u64,
) -> Option<AttributeRow> {
    let (number, row) = table.place(place);
    if cached.as_ref().is_none_or(|(known, _)| *known != number) {
        *cached = Some((number, table.batch(&segment.segment, number).ok().map(Arc::new)));
    }
    cached.as_ref().and_then(|(_, batch)| batch.clone()).map(|batch| (batch, row))
}

/// A table of edge attributes. `table` is `None` if its column of ids cannot be read.
pub(super) struct SalvagedTable<'a> {
    segment: &'a SalvagedSegment,
    table: Option<TableReader>,
}

impl<'a> SalvagedTable<'a> {
    /// Whether every row can be read.
    fn is_whole(&self) -> bool {
        let Some(table) = &self.table else { return false };
        let pages = &self.segment.segment;
        let mut ids = SalvageIds::new(&table.rows, pages);
        while ids.next().is_some() {}
        ids.gaps.ranges.is_empty()
            && (0..table.batches()).all(|number| table.batch(pages, number).is_ok())
    }

    /// The edge numbers that can be read, ascending, each with its row if that can be read.
    fn rows(&'a self) -> impl Iterator<Item = (u64, Option<AttributeRow>)> + 'a {
        self.table.iter().flat_map(move |table| {
            let mut ids = SalvageIds::new(&table.rows, &self.segment.segment);
            let mut cached = None;
            std::iter::from_fn(move || {
                let (number, place) = ids.next()?;
                Some((number, table_row(table, self.segment, &mut cached, place)))
            })
        })
    }
}

impl DamagedNetwork<'_> {
    /// The tables of a population's attributes, the oldest first: edge numbers ascend from one to
    /// the next.
    pub(super) fn edge_tables(&self, population: usize) -> Vec<SalvagedTable<'_>> {
        let sections = self.segments().flat_map(|(_, segment)| {
            let sections = segment.footer.edges.iter();
            sections.map(move |section| (segment, section))
        });
        sections
            .filter(|(_, section)| section.population == population && section.side == Side::Out)
            .filter_map(|(segment, section)| {
                let meta = section.table.as_ref()?;
                let table = TableReader::open_damaged(meta, &segment.segment);
                Some(SalvagedTable { segment, table })
            })
            .collect()
    }
}

/// The schema with all fields nullable.
fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| (**field).clone().with_nullable(true));
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch of one row of nulls; `None` if a field is not nullable.
fn null_row(schema: &SchemaRef) -> Option<Arc<RecordBatch>> {
    let null = |field: &Arc<arrow_schema::Field>| new_null_array(field.data_type(), 1);
    let nulls: Vec<ArrayRef> = schema.fields().iter().map(null).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(schema.clone(), nulls, &options).ok().map(Arc::new)
}

/// Writes the attributes of the edges whose numbers `existing` holds. Edges whose attributes cannot
/// be read get nulls, and are counted. If any attributes cannot be read, `schema` becomes nullable.
pub(super) fn write_edge_table(
    tables: &[SalvagedTable<'_>],
    logged: &BTreeMap<u64, AttributeRow>,
    existing: EdgeSorter,
    schema: &mut SchemaRef,
    segment: &mut SegmentWriter,
) -> Result<(Option<TableMeta>, u64)> {
    if !tables.iter().all(SalvagedTable::is_whole) {
        *schema = nullable(schema);
    }
    let nulls = null_row(schema);
    let stored = tables.iter().flat_map(SalvagedTable::rows);
    let logged = logged.iter().map(|(number, row)| (*number, Some(row.clone())));
    let mut rows = stored.chain(logged).peekable();
    let mut writer = SalvagedRowWriter::new(schema);
    let mut lost = 0;
    existing.drain(&mut |lists| {
        for number in &lists.keys {
            while rows.next_if(|(known, _)| known < number).is_some() {}
            let found = rows.next_if(|(known, _)| known == number).and_then(|(_, row)| row);
            match (found, &nulls) {
                (Some((batch, row)), _) => writer.push(segment, *number, &batch, row)?,
                (None, Some(nulls)) => {
                    lost += 1;
                    writer.push(segment, *number, nulls, 0)?;
                }
                (None, None) => return Err(no_attributes(segment, *number)),
            }
        }
        Ok(())
    })?;
    Ok((writer.finish(segment)?, lost))
}

fn no_attributes(segment: &SegmentWriter, number: u64) -> Error {
    let what = format!("{}: edge {number} has no attributes, and needs some", segment.name());
    Error::Usage(what.into())
}
