//! Tables of attributes in a segment: Arrow record batches, and the id of the edge or vertex that
//! each row belongs to.

use std::io::Cursor;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};
use thalweg_io::arrow_ipc::{Head, Message};
use thalweg_io::{Error, Fault, InFile, Result};

use crate::storage::column::{ColumnMeta, ColumnReader, ColumnWriter, NumberCoding};
use crate::storage::segment::{PAGE, SegmentPages, SegmentWriter};

/// A table as the footer describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableMeta {
    /// The ids, ascending.
    rows: ColumnMeta,
    batches: Vec<BatchMeta>,
}

impl TableMeta {
    /// The column of ids.
    pub(crate) fn rows(&self) -> &ColumnMeta {
        &self.rows
    }

    /// How many rows the table has.
    pub(crate) fn len(&self) -> u64 {
        self.rows.len()
    }
}

/// A batch of rows as the footer describes it. Its bytes are an Arrow IPC stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BatchMeta {
    /// The place of its first row in the table.
    first: u64,
    /// Its first page in the file.
    page: u64,
    bytes: u64,
}

/// Encodes a batch as an Arrow IPC stream.
pub(crate) fn to_bytes(batch: &RecordBatch) -> Result<Vec<u8>> {
    let failed = |e| Error::Usage(format!("attributes: {e}").into());
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(failed)?;
    writer.write(batch).map_err(failed)?;
    writer.into_inner().map_err(failed)
}

/// Checks that the buffers of a stream's batch lie within the stream: Arrow's reader panics if they
/// do not.
fn check(bytes: &[u8]) -> Result<(), Fault> {
    let wrong = |at: usize| Fault::new(at, "no whole message", "an Arrow IPC stream of one batch");
    let schema = Message::head_len(bytes).ok_or_else(|| wrong(0))?;
    let rest = bytes.get(schema..).ok_or_else(|| wrong(0))?;
    let head =
        Message::head_len(rest).and_then(|len| rest.get(..len)).ok_or_else(|| wrong(schema))?;
    let shifted = |fault: Fault| fault.shifted(schema);
    let Message::Batch { body, is_dictionary: false } = Message::parse(head).map_err(shifted)?
    else {
        return Err(wrong(schema));
    };
    if body > (rest.len() - head.len()) as u64 {
        return Err(wrong(schema));
    }
    Head::parse(head, body).map_err(shifted).map(drop)
}

/// Decodes a batch from an Arrow IPC stream.
pub(crate) fn of_bytes(bytes: &[u8]) -> Result<RecordBatch, Fault> {
    check(bytes)?;
    let failed = |e: arrow_schema::ArrowError| {
        Fault::new(0, e.to_string(), "an Arrow IPC stream of one batch")
    };
    let mut reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(failed)?;
    reader
        .next()
        .ok_or_else(|| Fault::new(0, "no batch", "an Arrow IPC stream of one batch"))?
        .map_err(failed)
}

/// Writes a table.
pub(crate) struct TableWriter {
    rows: ColumnWriter,
    batches: Vec<BatchMeta>,
}

impl TableWriter {
    /// Starts an empty table.
    pub(crate) fn new() -> Self {
        Self { rows: ColumnWriter::new(NumberCoding::Packed, true), batches: Vec::new() }
    }

    /// Appends a batch. `ids` are the ids of its rows, ascending and greater than all before.
    pub(crate) fn push(
        &mut self,
        segment: &mut SegmentWriter,
        ids: &[u64],
        batch: &RecordBatch,
    ) -> Result<()> {
        if ids.len() != batch.num_rows() {
            let what = format!(
                "{}: {} rows of attributes for {} ids",
                segment.name(),
                batch.num_rows(),
                ids.len()
            );
            return Err(Error::Usage(what.into()));
        }
        let first = self.rows.len();
        self.rows.extend(segment, ids)?;
        let mut bytes = to_bytes(batch)?;
        let len = bytes.len() as u64;
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        self.batches.push(BatchMeta { first, page: segment.append(&bytes)?, bytes: len });
        Ok(())
    }

    /// Ends the table. `None` if it has no rows.
    pub(crate) fn finish(self, segment: &mut SegmentWriter) -> Result<Option<TableMeta>> {
        if self.batches.is_empty() {
            return Ok(None);
        }
        Ok(Some(TableMeta { rows: self.rows.finish(segment)?, batches: self.batches }))
    }
}

/// A table, open for reading.
#[derive(Debug)]
pub(crate) struct TableReader {
    pub(crate) rows: ColumnReader,
    batches: Vec<BatchMeta>,
}

impl TableReader {
    /// Opens a table.
    pub(crate) fn open(meta: &TableMeta, segment: &SegmentPages) -> Result<Self> {
        let table =
            Self { rows: ColumnReader::open(&meta.rows, segment)?, batches: meta.batches.clone() };
        if !table.is_in_order() {
            let fault = Fault::new(0, "batches out of order", "each after the one before");
            return Err(fault.in_file(segment.store().name(), 0, "footer: a table"));
        }
        Ok(table)
    }

    /// Opens a table whose pages may be damaged. `None` if its parts do not fit each other.
    pub(crate) fn open_damaged(meta: &TableMeta, segment: &SegmentPages) -> Option<Self> {
        let table = Self {
            rows: ColumnReader::open_damaged(&meta.rows, segment)?,
            batches: meta.batches.clone(),
        };
        table.is_in_order().then_some(table)
    }

    fn is_in_order(&self) -> bool {
        let ascends = self.batches.windows(2).all(|pair| pair[0].first < pair[1].first);
        let starts = self.batches.first().is_some_and(|batch| batch.first == 0);
        ascends && starts && self.batches.last().is_some_and(|batch| batch.first < self.rows.len())
    }

    /// How many batches the table has.
    pub(crate) fn batches(&self) -> usize {
        self.batches.len()
    }

    /// The number of the batch that holds a row, and the row's place in the batch.
    pub(crate) fn place(&self, row: u64) -> (usize, usize) {
        let batch = self.batches.partition_point(|batch| batch.first <= row).saturating_sub(1);
        (batch, (row - self.batches.get(batch).map_or(0, |batch| batch.first)) as usize)
    }

    /// The place in the table of a batch's first row.
    pub(crate) fn first(&self, batch: usize) -> u64 {
        self.batches.get(batch).map_or(self.rows.len(), |batch| batch.first)
    }

    /// The pages of a batch.
    pub(crate) fn pages(&self, number: usize) -> Range<u64> {
        let Some(meta) = self.batches.get(number) else { return 0..0 };
        meta.page..meta.page.saturating_add(meta.bytes.div_ceil(PAGE as u64))
    }

    /// Reads a batch.
    pub(crate) fn batch(&self, segment: &SegmentPages, number: usize) -> Result<RecordBatch> {
        let meta = &self.batches[number];
        let failed = |fault: Fault| {
            fault.in_file(
                segment.store().name(),
                meta.page * PAGE as u64,
                format!("batch {number} of attributes"),
            )
        };
        let end = meta.page.checked_add(meta.bytes.div_ceil(PAGE as u64));
        let end =
            end.ok_or_else(|| failed(Fault::new(0, format!("{} bytes", meta.bytes), "fewer")))?;
        let batch = segment.with(meta.page..end, |bytes| {
            of_bytes(&bytes[..meta.bytes as usize]).map_err(failed)
        })?;
        let rows = self.first(number + 1) - meta.first;
        if batch.num_rows() as u64 != rows {
            return Err(failed(Fault::new(
                0,
                format!("{} rows", batch.num_rows()),
                format!("{rows}"),
            )));
        }
        Ok(batch)
    }
}
