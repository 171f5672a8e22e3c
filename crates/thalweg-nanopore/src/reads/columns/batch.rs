//! Batches as the caller gets them.

use std::ops::Deref;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use thalweg_io::Result;
use thalweg_io::engine::{Clocks, Recycler, Run};

use super::reorder::{Pool, Reorder};
use super::rows::{Rows, Tabulate};
use super::table::Table;
use crate::reads::decoder::ReadDecoder;

/// Where a batch's memory goes when it is dropped.
#[derive(Debug)]
enum Home {
    Run(Recycler<Rows>),
    Pool(Pool),
}

/// Some reads as an Arrow batch. Dropped, it gives its memory back for another, as far as the
/// caller kept no array.
#[derive(Debug)]
pub struct Batch {
    record: RecordBatch,
    /// The columns without their values.
    rows: Option<Rows>,
    home: Home,
    file: usize,
}

impl Batch {
    fn new(mut rows: Rows, table: &Table, home: Home, file: usize) -> Result<Self> {
        Ok(Self { record: rows.export(table)?, rows: Some(rows), home, file })
    }

    /// Number of the file that the reads are from; 0 unless there are several. A batch holds reads
    /// of one file.
    pub fn file(&self) -> usize {
        self.file
    }

    /// The Arrow batch for keeps: its memory is the caller's from now on, beyond the budget of the
    /// read.
    pub fn into_inner(mut self) -> RecordBatch {
        self.rows = None;
        if let Home::Run(recycler) = &self.home {
            recycler.forget();
        }
        std::mem::replace(&mut self.record, nothing())
    }
}

fn nothing() -> RecordBatch {
    RecordBatch::new_empty(Arc::new(Schema::empty()))
}

impl Deref for Batch {
    type Target = RecordBatch;

    fn deref(&self) -> &RecordBatch {
        &self.record
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let Some(mut rows) = self.rows.take() else { return };
        rows.reclaim(std::mem::replace(&mut self.record, nothing()));
        match &self.home {
            Home::Run(recycler) => recycler.recycle(rows),
            Home::Pool(pool) => pool.recycle(rows),
        }
    }
}

/// The batches of a read: an iterator. After an error there are no more.
#[derive(Debug)]
pub struct Batches {
    run: Run<ReadDecoder<Tabulate>>,
    recycler: Recycler<Rows>,
    table: Arc<Table>,
    file: usize,
    reorder: Option<Reorder>,
    over: bool,
}

impl Batches {
    /// `reorder` asks for the order of the selection, in batches of so many bytes.
    pub(super) fn new(
        run: Run<ReadDecoder<Tabulate>>,
        table: Arc<Table>,
        file: usize,
        reorder: Option<usize>,
    ) -> Self {
        let recycler = run.recycler();
        let reorder = reorder.map(|limit| Reorder::new(recycler.clone(), limit));
        Self { run, recycler, table, file, reorder, over: false }
    }

    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    /// Where the time went so far.
    pub fn clocks(&self) -> Clocks {
        self.run.clocks()
    }

    fn forward(&mut self) -> Option<Result<Batch>> {
        let rows = match self.run.next()? {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error)),
        };
        Some(Batch::new(rows, &self.table, Home::Run(self.recycler.clone()), self.file))
    }

    /// The next batch of rows that were put in order.
    fn reordered(&mut self) -> Option<Result<Batch>> {
        let reorder = self.reorder.as_mut()?;
        while !reorder.is_full() {
            match self.run.next() {
                Some(Ok(rows)) => reorder.extend(rows),
                Some(Err(error)) => reorder.fail(error),
                None => break,
            }
        }
        let rows = match reorder.pop(&self.table) {
            Ok(Some(rows)) => rows,
            Ok(None) => return reorder.failure().map(Err),
            Err(error) => return Some(Err(error)),
        };
        Some(Batch::new(rows, &self.table, Home::Pool(reorder.pool()), self.file))
    }
}

impl Iterator for Batches {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        loop {
            if self.over {
                return None;
            }
            let next = if self.reorder.is_some() { self.reordered() } else { self.forward() };
            self.over = !matches!(next, Some(Ok(_)));
            match next {
                // A group of which all was handed over before its end leaves an empty batch: not
                // worth a round.
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                other => return other,
            }
        }
    }
}
