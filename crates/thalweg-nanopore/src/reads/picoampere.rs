//! Samples in picoampere.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type};
use thalweg_codec::picoampere::Calibration;
use thalweg_io::{Error, Result};

use super::Read;

/// Name of the column of picoampere, which replaces `signal`.
pub const PICOAMPERE_COLUMN: &str = "signal_pa";

impl Read<'_> {
    /// What makes picoampere of the samples.
    pub fn calibration(&self) -> Calibration {
        let record = self.record;
        Calibration::new(record.offset, record.range, record.digitisation)
    }
}

/// The samples of a row of a batch, in picoampere.
///
/// # Errors
/// [`Error::Usage`] if the batch has no such row, or lacks a column for the conversion.
pub fn picoampere_of(batch: &RecordBatch, row: usize) -> Result<Vec<f32>> {
    let refused = |what: String| Error::Usage(format!("picoampere: {what}").into());
    if row >= batch.num_rows() {
        return Err(refused(format!("no row {row} in a batch of {}", batch.num_rows())));
    }
    let double = |name: &str| {
        let column = batch.column_by_name(name);
        let values = column.and_then(|column| column.as_primitive_opt::<Float64Type>());
        values.map(|values| values.value(row)).ok_or_else(|| refused(format!("no column {name:?}")))
    };
    let calibration =
        Calibration::new(double("offset")?, double("range")?, double("digitisation")?);
    let samples = batch.column_by_name("signal").and_then(|column| column.as_list_opt::<i32>());
    let samples = samples.ok_or_else(|| refused("no column \"signal\"".to_owned()))?.value(row);
    let mut picoampere = Vec::new();
    calibration.convert(samples.as_primitive::<Int16Type>().values(), &mut picoampere);
    Ok(picoampere)
}
