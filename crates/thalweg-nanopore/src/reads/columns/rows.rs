//! A batch under construction, and the collector that fills it.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use thalweg_codec::picoampere::Calibration;
use thalweg_io::{Error, Fault, InFile, Result};

use super::Signal;
use super::column::Column;
use super::table::{CALIBRATION, Fit, SIGNAL, Table};
use crate::reads::Read;
use crate::reads::decoder::Collect;
use crate::record::AuxValue;

/// Bytes of a row besides its samples, read id and auxiliary values: offsets and the columns of
/// fixed width.
const ROW_BYTES: usize = 48;

/// Samples that a stored byte of signal decodes to, approximately.
const LIKELY_SAMPLES: usize = 1;

/// Bytes of picoampere for each byte of samples.
pub(super) const CONVERTED_RATIO: usize = size_of::<f32>() / size_of::<i16>();

/// Rows under construction, column by column.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Vec<Column>,
    /// The position of each row in the selection, and its size in bytes.
    pub(super) places: Vec<(u64, usize)>,
    bytes: usize,
}

impl Rows {
    pub(super) fn new(table: &Table) -> Self {
        let columns = table.specs.iter().map(|spec| Column::new(spec.kind)).collect();
        Self { columns, places: Vec::new(), bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self, keep: usize) {
        self.columns.iter_mut().for_each(|column| column.clear(keep));
        self.places.clear();
        self.bytes = 0;
    }

    /// Makes room for so many bytes of signal: a vector that grows is copied each time.
    pub(super) fn reserve_signal(&mut self, bytes: usize) {
        if let Some(column) = self.columns.get_mut(SIGNAL) {
            column.reserve(bytes);
        }
    }

    fn push(&mut self, read: &Read<'_>, fit: &Fit) -> Result<(), Fault> {
        let record = read.record;
        let specs = &fit.table.specs;
        let primary = [
            AuxValue::String(record.read_id.as_bytes()),
            AuxValue::Uint32(record.read_group),
            AuxValue::Double(record.digitisation),
            AuxValue::Double(record.offset),
            AuxValue::Double(record.range),
            AuxValue::Double(record.sampling_rate),
        ];
        for ((column, spec), value) in self.columns.iter_mut().zip(specs).zip(primary) {
            column.push(value, spec, None)?;
        }
        if let (Some(column), Some(spec)) = (self.columns.get_mut(SIGNAL), specs.get(SIGNAL)) {
            match fit.table.signal {
                Signal::Samples => column.end_samples(read.samples.len())?,
                Signal::Picoampere => column.push_picoampere(read)?,
                Signal::Length => column.push(AuxValue::Uint64(read.sample_count), spec, None)?,
            }
        }
        for (value, (place, codes)) in record.aux_values(read.header).zip(&fit.fields) {
            let (_, value) = value?;
            if let (Some(column), Some(spec)) = (self.columns.get_mut(*place), specs.get(*place)) {
                column.push(value, spec, codes.as_deref())?;
            }
        }
        for &place in &fit.absent {
            if let (Some(column), Some(spec)) = (self.columns.get_mut(place), specs.get(place)) {
                column.push(AuxValue::Missing, spec, None)?;
            }
        }
        let signal = fit.table.signal.sample_bytes() * read.samples.len();
        let bytes = ROW_BYTES + record.read_id.len() + record.aux.len() + signal;
        self.places.push((read.ordinal, bytes));
        self.bytes += bytes;
        Ok(())
    }

    /// Removes the values of a row that could not be pushed.
    fn drop_unfinished(&mut self) {
        let rows = self.places.len();
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
    }

    /// Appends a row of another batch of the same table, or of its
    /// [`with_samples`](Table::with_samples).
    pub(super) fn copy_row(&mut self, from: &Self, row: usize) -> Result<(), Fault> {
        let mut converted = false;
        for (column, of) in self.columns.iter_mut().zip(&from.columns) {
            if !column.copy_row(of, row)? {
                let [digitisation, offset, range] = CALIBRATION
                    .map(|at| from.columns.get(at).map_or(0.0, |column| column.double(row)));
                column.convert_row(of, row, Calibration::new(offset, range, digitisation))?;
                converted = true;
            }
        }
        if let Some(&(ordinal, bytes)) = from.places.get(row) {
            let bytes = if converted { bytes * CONVERTED_RATIO } else { bytes };
            self.places.push((ordinal, bytes));
            self.bytes += bytes;
        }
        Ok(())
    }

    /// Turns the rows into an Arrow batch without copying values.
    pub(super) fn export(&mut self, table: &Table) -> Result<RecordBatch> {
        let columns: Result<Vec<ArrayRef>, _> = self
            .columns
            .iter_mut()
            .zip(&table.specs)
            .map(|(column, spec)| column.export(spec))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.places.len()));
        columns
            .and_then(|columns| {
                RecordBatch::try_new_with_options(table.schema.clone(), columns, &options)
            })
            .map_err(|e| Error::Usage(format!("rows do not make an Arrow batch: {e}").into()))
    }

    /// Takes back the memory of a batch from [`Rows::export`], except for buffers that are still in
    /// use.
    pub(super) fn reclaim(&mut self, batch: RecordBatch) {
        let (_, arrays, _) = batch.into_parts();
        for (column, array) in self.columns.iter_mut().zip(arrays) {
            column.reclaim(array);
        }
        self.places.clear();
        self.bytes = 0;
    }
}

/// Collects reads into rows. Samples are decoded directly into their column; picoampere are
/// calculated from the worker's scratch memory.
pub(super) struct Tabulate {
    pub(super) name: Arc<str>,
    pub(super) fit: Fit,
    /// Bytes at which a batch is handed over.
    pub(super) limit: usize,
}

impl Collect for Tabulate {
    type State = ();
    type Batch = Rows;

    fn wants_signal(&self) -> bool {
        self.fit.table.signal != Signal::Length
    }

    fn state(&self) {}

    fn batch(&self) -> Rows {
        Rows::new(&self.fit.table)
    }

    fn lend(&self, rows: &mut Rows) -> Option<Vec<i16>> {
        let lends = self.fit.table.signal == Signal::Samples;
        rows.columns.get_mut(SIGNAL).filter(|_| lends).map(Column::lend)
    }

    fn restore(&self, rows: &mut Rows, samples: Vec<i16>) {
        if let Some(signal) = rows.columns.get_mut(SIGNAL) {
            signal.restore(samples);
        }
    }

    fn has_room(&self, rows: &Rows, stored: usize) -> bool {
        let likely = LIKELY_SAMPLES * self.fit.table.signal.sample_bytes();
        rows.is_empty() || rows.bytes.saturating_add(stored.saturating_mul(likely)) <= self.limit
    }

    fn take(&self, (): &mut (), rows: &mut Rows, read: &Read<'_>) -> Result<bool> {
        rows.push(read, &self.fit).map_err(|fault| {
            rows.drop_unfinished();
            fault.in_file(
                &self.name,
                read.offset,
                format!("record {} (read {})", read.ordinal + 1, read.record.read_id),
            )
        })?;
        Ok(rows.bytes < self.limit)
    }

    fn clear(&self, rows: &mut Rows) {
        rows.clear(self.limit);
    }
}
