//! The batches that the caller gets.

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

/// The owner of a batch's memory, which gets it back when the batch is dropped.
#[derive(Debug)]
enum Home {
    Run(Recycler<Rows>),
    Pool(Pool),
}

/// Some reads as an Arrow batch. When it is dropped, its memory is reused, except for arrays that
/// the caller keeps.
#[derive(Debug)]
pub struct Batch {
    record: RecordBatch,
    /// The columns without their values.
    rows: Option<Rows>,
    home: Home,
    /// A process that is forked off has no threads of the run, and maybe its locks in their hands.
    process: u32,
    file: usize,
}

impl Batch {
    fn new(mut rows: Rows, table: &Table, home: Home, file: usize) -> Result<Self> {
        let process = std::process::id();
        Ok(Self { record: rows.export(table)?, rows: Some(rows), home, process, file })
    }

    fn is_at_home(&self) -> bool {
        self.process == std::process::id()
    }

    /// The number of the file that the reads are from: 0 for a single file. A batch holds reads of
    /// one file.
    pub fn file(&self) -> usize {
        self.file
    }

    /// The Arrow batch. Its memory belongs to the caller from now on, and is no longer part of the
    /// run's budget.
    pub fn into_inner(mut self) -> RecordBatch {
        self.rows = None;
        match &self.home {
            Home::Run(recycler) if self.is_at_home() => recycler.forget(),
            _ => {}
        }
        std::mem::replace(&mut self.record, empty_batch())
    }
}

fn empty_batch() -> RecordBatch {
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
        let Some(mut rows) = self.rows.take().filter(|_| self.is_at_home()) else { return };
        rows.reclaim(std::mem::replace(&mut self.record, empty_batch()));
        match &self.home {
            Home::Run(recycler) => recycler.recycle(rows),
            Home::Pool(pool) => pool.recycle(rows),
        }
    }
}

/// An iterator over the batches of a run. It ends after an error.
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
    /// If `reorder` is given, rows are put into the order of the selection, in batches of this many
    /// bytes, and converted to picoampere if it says so.
    pub(super) fn new(
        run: Run<ReadDecoder<Tabulate>>,
        table: Arc<Table>,
        file: usize,
        reorder: Option<(usize, bool)>,
    ) -> Self {
        let recycler = run.recycler();
        let reorder =
            reorder.map(|(limit, converts)| Reorder::new(recycler.clone(), limit, converts));
        Self { run, recycler, table, file, reorder, over: false }
    }

    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    /// The time that each part of the run took so far.
    pub fn clocks(&self) -> Clocks {
        self.run.clocks()
    }

    /// A batch as the run made it.
    fn of_run(&self, rows: Rows) -> Result<Batch> {
        Batch::new(rows, &self.table, Home::Run(self.recycler.clone()), self.file)
    }

    /// The next batch of the run.
    fn forward(&mut self) -> Option<Result<Batch>> {
        Some(self.run.next()?.and_then(|rows| self.of_run(rows)))
    }

    /// The next batch of rows in the order of the selection.
    fn reordered(&mut self) -> Option<Result<Batch>> {
        let reorder = self.reorder.as_mut()?;
        while !reorder.is_full() {
            match self.run.next() {
                Some(Ok(rows)) if reorder.skip(&rows) => return Some(self.of_run(rows)),
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
                // An empty batch comes from a group whose reads were all handed over before its
                // end. It is skipped.
                Some(Ok(batch)) if batch.num_rows() == 0 => {}
                other => return other,
            }
        }
    }
}
