//! Putting rows into the order of an id list or of a table. Within a window of the list, rows
//! arrive in the order of their offsets in the file.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_io::engine::Recycler;
use thalweg_io::{Error, Result};

use super::rows::{CONVERTED_RATIO, Rows};
use super::table::Table;
use crate::reads::InOrder;

/// Most empty batches kept for reuse: one is with the consumer while another is filled.
const POOLED: usize = 2;

/// Batches for reuse that do not belong to a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Rows>>>);

impl Pool {
    pub(super) fn recycle(&self, rows: Rows) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() < POOLED {
            pool.push(rows);
        }
    }

    fn take(&self) -> Option<Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// A decoded batch with rows that still wait for their turn.
#[derive(Debug)]
struct HeldBatch {
    rows: Option<Rows>,
    waiting: usize,
}

/// Gathers rows in the order of their ordinals.
#[derive(Debug)]
pub(super) struct Reorder {
    recycler: Recycler<Rows>,
    pool: Pool,
    /// Bytes at which a batch is handed over.
    limit: usize,
    /// Decoded batches in the order of their numbers.
    held: VecDeque<HeldBatch>,
    /// The number of the first held batch.
    first: u64,
    /// Batch, row and bytes of the rows that are not next.
    early: InOrder<(u64, usize, usize)>,
    /// Batch, row and bytes of the rows that are next, in order.
    ready: VecDeque<(u64, usize, usize)>,
    ready_bytes: usize,
    /// Whether picoampere are calculated when a row is copied.
    converts: bool,
    failed: Option<Error>,
}

impl Reorder {
    pub(super) fn new(recycler: Recycler<Rows>, limit: usize, converts: bool) -> Self {
        Self {
            recycler,
            pool: Pool::default(),
            limit,
            held: VecDeque::new(),
            first: 0,
            early: InOrder::default(),
            ready: VecDeque::new(),
            ready_bytes: 0,
            converts,
            failed: None,
        }
    }

    pub(super) fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Takes a decoded batch. The run may allocate another one, because this one may be needed
    /// until the end of its window.
    pub(super) fn extend(&mut self, rows: Rows) {
        self.recycler.forget();
        if rows.is_empty() {
            return self.recycler.restock(rows);
        }
        let number = self.first + self.held.len() as u64;
        let items = rows
            .places
            .iter()
            .enumerate()
            .map(|(row, &(ordinal, bytes))| (ordinal, (number, row, bytes)));
        self.early.extend(items);
        self.held.push_back(HeldBatch { waiting: rows.places.len(), rows: Some(rows) });
        while let Some(row) = self.early.pop() {
            self.ready_bytes += row.2;
            self.ready.push_back(row);
        }
    }

    /// Counts the rows of a batch as handed over if all of them are next, so that the batch can be
    /// handed over as it is. Returns whether they are.
    pub(super) fn skip(&mut self, rows: &Rows) -> bool {
        let is_next = !self.converts
            && self.held.is_empty()
            && !rows.is_empty()
            && rows.places.iter().zip(self.early.next..).all(|(place, next)| place.0 == next);
        if is_next {
            self.early.next += rows.places.len() as u64;
        }
        is_next
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.failed = Some(error);
    }

    /// The error. The caller asks for it after all rows before it were handed over.
    pub(super) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Whether enough rows are ready, or the run failed.
    pub(super) fn is_full(&self) -> bool {
        self.ready_bytes >= self.limit || self.failed.is_some()
    }

    /// The next rows in order, if there are any.
    pub(super) fn pop(&mut self, table: &Table) -> Result<Option<Rows>> {
        if self.ready.is_empty() {
            return Ok(None);
        }
        let mut out = self.pool.take().unwrap_or_else(|| Rows::new(table));
        out.clear(self.limit);
        out.reserve_signal(self.limit);
        while let Some(&(number, row, bytes)) = self.ready.front() {
            let size = if self.converts { bytes * CONVERTED_RATIO } else { bytes };
            if !out.is_empty() && out.bytes() + size > self.limit {
                break;
            }
            self.ready.pop_front();
            self.ready_bytes -= bytes;
            let Some(held) = self.held.get_mut((number - self.first) as usize) else { continue };
            if let Some(from) = &held.rows {
                out.copy_row(from, row).map_err(|f| {
                    Error::Usage(format!("{}, expected {}", f.found, f.expected).into())
                })?;
            }
            held.waiting -= 1;
            if held.waiting == 0
                && let Some(rows) = held.rows.take()
            {
                self.recycler.restock(rows);
            }
        }
        while self.held.front().is_some_and(|held| held.rows.is_none()) {
            self.held.pop_front();
            self.first += 1;
        }
        Ok(Some(out))
    }
}
