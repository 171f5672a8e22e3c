//! Reading rows of attributes from segments and the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;
use arrow_select::take::take_record_batch;
use thalweg_io::{Error, Fault, InFile, Result as OurResult};

use crate::read::merge;
use crate::read::network::Network;
use crate::read::snapshot::Snapshot;
use crate::storage::column::ColumnFinder;
use crate::storage::schema::Side;
use crate::storage::segment::{Ahead, announce};
use crate::storage::segment_reader::{Section, SegmentReader, announce_indexes};
use crate::storage::table::TableReader;

/// Collects rows of several batches of one schema. A row is given by the number of its batch, and
/// its place in the batch.
pub(crate) fn interleave_rows(
    batches: &[&RecordBatch],
    rows: &[(usize, usize)],
) -> Result<RecordBatch, ArrowError> {
    let Some(first) = batches.first() else {
        return Err(ArrowError::InvalidArgumentError("no batches".into()));
    };
    let columns: Vec<ArrayRef> = (0..first.num_columns())
        .map(|column| {
            let arrays: Vec<&dyn Array> =
                batches.iter().map(|batch| &**batch.column(column)).collect();
            interleave(&arrays, rows)
        })
        .collect::<Result<_, _>>()?;
    RecordBatch::try_new(first.schema(), columns)
}

/// Collects rows of batches that arrive one after the other. It holds one batch at a time, and
/// sorts the rows at the end.
struct RowGatherer {
    schema: SchemaRef,
    /// The wanted columns; `None` for all.
    columns: Option<Vec<usize>>,
    /// The batch that holds `rows`.
    batch: Option<Arc<RecordBatch>>,
    rows: Vec<u64>,
    taken: Vec<RecordBatch>,
    /// The place of each row in the result.
    places: Vec<usize>,
}

impl RowGatherer {
    fn new(schema: &SchemaRef, columns: Option<&[usize]>) -> Result<Self, ArrowError> {
        let schema = match columns {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => schema.clone(),
        };
        let columns = columns.map(<[usize]>::to_vec);
        Ok(Self {
            schema,
            columns,
            batch: None,
            rows: Vec::new(),
            taken: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Adds a row, with its place in the result. Rows of one batch should follow each other.
    fn push(
        &mut self,
        batch: &Arc<RecordBatch>,
        row: usize,
        place: usize,
    ) -> Result<(), ArrowError> {
        if self.batch.as_ref().is_none_or(|known| !Arc::ptr_eq(known, batch)) {
            self.take()?;
            self.batch = Some(batch.clone());
        }
        self.rows.push(row as u64);
        self.places.push(place);
        Ok(())
    }

    fn take(&mut self) -> Result<(), ArrowError> {
        if let Some(batch) = self.batch.take() {
            let rows = UInt64Array::from(std::mem::take(&mut self.rows));
            let taken = match &self.columns {
                Some(columns) => take_record_batch(&batch.project(columns)?, &rows)?,
                None => take_record_batch(&batch, &rows)?,
            };
            let types = taken.columns().iter().map(|column| column.data_type());
            if !types.eq(self.schema.fields().iter().map(|field| field.data_type())) {
                let what = "a page of attributes with other columns than the manifest has";
                return Err(ArrowError::SchemaError(what.into()));
            }
            self.taken.push(taken);
        }
        Ok(())
    }

    /// Returns the rows in the order of their places.
    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        self.take()?;
        let all = concat_batches(&self.schema, &self.taken)?;
        if self.places.is_sorted() {
            return Ok(all);
        }
        let mut order: Vec<u64> = (0..self.places.len() as u64).collect();
        order.sort_unstable_by_key(|row| self.places[*row as usize]);
        take_record_batch(&all, &UInt64Array::from(order))
    }
}

/// The places of the numbers, in ascending order of the numbers.
fn ascending(numbers: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    if !numbers.is_sorted() {
        order.sort_by_key(|place| numbers[*place]);
    }
    order
}

impl Network {
    /// The attributes of vertices: the places in `ids` of those that have any, and a row for each
    /// of these.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn vertex_attributes(
        &self,
        vertex_type: usize,
        ids: &[u64],
    ) -> OurResult<(Vec<usize>, RecordBatch)> {
        self.vertex_columns(vertex_type, ids, None)
    }

    /// Some columns of the attributes of vertices (all, if `columns` is `None`): the places in
    /// `ids` of those that have any, and a row for each of these.
    pub(crate) fn vertex_columns(
        &self,
        vertex_type: usize,
        ids: &[u64],
        columns: Option<&[usize]>,
    ) -> OurResult<(Vec<usize>, RecordBatch)> {
        let Snapshot { readers, memtable, .. } = &self.state;
        let failed = |e| self.failed(&e);
        let _ahead = self.announce_attributes(vertex_type, ids)?;
        let mut rows = merge::MergedAttributes::new(
            readers,
            Some(memtable),
            vertex_type,
            &self.fetcher.control,
        )?;
        let mut found =
            RowGatherer::new(&self.types()[vertex_type].attributes, columns).map_err(failed)?;
        for place in ascending(ids) {
            if let Some((batch, row)) = rows.of(ids[place])? {
                found.push(&batch, row, place).map_err(failed)?;
            }
        }
        let mut places = found.places.clone();
        places.sort_unstable();
        Ok((places, found.finish().map_err(failed)?))
    }

    /// Announces the pages that hold the attributes of vertices, in segments that are far away.
    fn announce_attributes(&self, vertex_type: usize, ids: &[u64]) -> OurResult<[Ahead<'_>; 2]> {
        let readers = &self.state.readers;
        let lookups = merge::announce_vertices(readers, vertex_type, ids)?;
        let mut wanted = Vec::new();
        for reader in readers.iter().filter(|reader| reader.segment.cached().is_some()) {
            let Some(vertices) = reader.vertices(vertex_type)? else { continue };
            let Some(table) = &vertices.table else { continue };
            let mut finder = table.rows.finder(&reader.segment);
            let mut batches = BTreeSet::new();
            for place in ascending(ids) {
                if let Ok(row) = finder.find(ids[place])? {
                    batches.insert(table.place(row).0);
                }
            }
            let pages = batches.iter().map(|batch| table.pages(*batch)).collect();
            wanted.push((&reader.segment, pages));
        }
        Ok([lookups, announce(wanted)?])
    }

    /// The attributes of edges, a row for each. `numbers` are edge numbers, as
    /// [`Network::numbered_neighbours`] returns them.
    ///
    /// # Errors
    /// [`Error::Malformed`] also for a number that no edge has; [`Error::Io`].
    pub fn edge_attributes(&self, population: usize, numbers: &[u64]) -> OurResult<RecordBatch> {
        self.edge_columns(population, numbers, None)
    }

    /// Some columns of the attributes of edges (all, if `columns` is `None`). Each stored batch is
    /// decoded once.
    pub(crate) fn edge_columns(
        &self,
        population: usize,
        numbers: &[u64],
        columns: Option<&[usize]>,
    ) -> OurResult<RecordBatch> {
        let Snapshot { readers, memtable, .. } = &self.state;
        let failed = |e| self.failed(&e);
        let is_table = |section| section == Section::Edges(population, Side::Out);
        let _indexes = announce_indexes(readers, is_table)?;
        let mut tables = Vec::new();
        for reader in readers {
            let table = reader.edges(population, Side::Out)?.and_then(|edges| edges.table.as_ref());
            tables.extend(table.map(|table| TableRows::of(reader, table)));
        }
        let mut found =
            RowGatherer::new(&self.populations()[population].population.attributes, columns)
                .map_err(failed)?;
        let logged = memtable.edges(population);
        let _rows = announce(tables.iter().filter(|table| table.is_far()).map(|table| {
            let pages = numbers.iter().filter_map(|number| table.table.rows.page_of(*number));
            (&table.reader.segment, pages.collect())
        }))?;
        // Consecutive numbers are mostly in the same table.
        let mut last = 0;
        for place in ascending(numbers) {
            let number = numbers[place];
            if let Some((batch, row)) = logged.and_then(|changes| changes.rows.get(&number)) {
                found.push(batch, *row, place).map_err(failed)?;
                continue;
            }
            let mut at = None;
            for table in (last..tables.len()).chain(0..last.min(tables.len())) {
                if let Ok(row) = tables[table].finder.find(number)? {
                    at = Some((table, row));
                    break;
                }
            }
            let Some((table, row)) = at else {
                let fault = Fault::new(0, "no attributes", "a row of them");
                return Err(fault.in_file(self.disk.name(), 0, format!("edge {number}")));
            };
            tables[table].rows.push((row, place));
            last = table;
        }
        let _batches = announce(tables.iter().filter(|table| table.is_far()).map(|table| {
            let mut batches: Vec<usize> =
                table.rows.iter().map(|(row, _)| table.table.place(*row).0).collect();
            batches.dedup();
            let pages = batches.iter().map(|batch| table.table.pages(*batch));
            (&table.reader.segment, pages.collect())
        }))?;
        for TableRows { reader, table, rows, .. } in tables {
            let mut held: Option<(usize, Arc<RecordBatch>)> = None;
            for (row, place) in rows {
                let (number, row) = table.place(row);
                let batch = match held.take().filter(|(known, _)| *known == number) {
                    Some((_, batch)) => batch,
                    None => Arc::new(table.batch(&reader.segment, number)?),
                };
                found.push(&batch, row, place).map_err(failed)?;
                held = Some((number, batch));
            }
        }
        found.finish().map_err(failed)
    }

    /// An error of Arrow, with the name of the network.
    pub(crate) fn failed(&self, error: &ArrowError) -> Error {
        Error::Usage(format!("{}: {error}", self.disk.name()).into())
    }
}

/// The wanted rows of a table, ascending, and their places in the result.
struct TableRows<'a> {
    reader: &'a SegmentReader,
    table: &'a TableReader,
    finder: ColumnFinder<'a>,
    rows: Vec<(u64, usize)>,
}

impl<'a> TableRows<'a> {
    fn is_far(&self) -> bool {
        self.reader.segment.cached().is_some()
    }

    fn of(reader: &'a SegmentReader, table: &'a TableReader) -> Self {
        Self { reader, table, finder: table.rows.finder(&reader.segment), rows: Vec::new() }
    }
}
