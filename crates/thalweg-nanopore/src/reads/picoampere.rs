//! Samples in picoampere: (sample + offset) · range / digitisation (SLOW5 specification, "SLOW5
//! record").

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type};
use arrow_array::{Array, ArrayRef, Float32Array, ListArray, RecordBatch};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use thalweg_io::{Error, Result};

use super::Read;

/// Name of the column of picoampere, which replaces `signal`.
pub const PICOAMPERE_COLUMN: &str = "signal_pa";

/// The conversion of a read's samples to picoampere. It is calculated in 64 bits and rounded once.
fn calibration(offset: f64, range: f64, digitisation: f64) -> impl Fn(i16) -> f32 {
    move |sample| ((f64::from(sample) + offset) * range / digitisation) as f32
}

impl Read<'_> {
    /// The samples in picoampere.
    pub fn picoampere(&self) -> impl ExactSizeIterator<Item = f32> {
        let record = self.record;
        self.samples.iter().copied().map(calibration(
            record.offset,
            record.range,
            record.digitisation,
        ))
    }
}

/// The columns of [`in_picoampere`].
///
/// # Errors
/// [`Error::Usage`] if there is no column of samples.
pub fn picoampere_schema(schema: &Schema) -> Result<Schema> {
    let at = schema.index_of("signal").map_err(refused)?;
    let unit = HashMap::from([("unit".to_owned(), "pA".to_owned())]);
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let pa = Field::new(PICOAMPERE_COLUMN, DataType::List(item), false).with_metadata(unit);
    let fields = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(i, field)| if i == at { Arc::new(pa.clone()) } else { field.clone() });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// A batch of reads with picoampere (lists of float32) in place of samples.
///
/// # Errors
/// [`Error::Usage`] if the batch lacks the columns for the conversion.
pub fn in_picoampere(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = Arc::new(picoampere_schema(&batch.schema())?);
    let at = batch.schema().index_of("signal").map_err(refused)?;
    let double = |name: &str| {
        let column =
            batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<Float64Type>());
        column.ok_or_else(|| {
            refused(ArrowError::SchemaError(format!("no column of doubles {name:?}")))
        })
    };
    let offset = double("offset")?;
    let range = double("range")?;
    let digitisation = double("digitisation")?;
    let samples = batch.column(at).as_list_opt::<i32>();
    let samples =
        samples.ok_or_else(|| refused(ArrowError::SchemaError("no lists of samples".into())))?;
    // A slice of a batch has the samples of all its reads.
    let ends = |end: Option<&i32>| end.map_or(0, |&end| end as usize);
    let offsets = samples.value_offsets();
    let mut values = Vec::with_capacity(ends(offsets.last()) - ends(offsets.first()));
    for row in 0..batch.num_rows() {
        let scale = calibration(offset.value(row), range.value(row), digitisation.value(row));
        values.extend(
            samples
                .value(row)
                .as_primitive::<Int16Type>()
                .values()
                .iter()
                .map(|&sample| scale(sample)),
        );
    }
    let lengths = (0..batch.num_rows()).map(|row| samples.value(row).len());
    let item = Arc::new(Field::new("item", DataType::Float32, false));
    let lists = ListArray::try_new(
        item,
        OffsetBuffer::from_lengths(lengths),
        Arc::new(Float32Array::from(values)),
        None,
    );
    let mut columns = batch.columns().to_vec();
    if let Some(column) = columns.get_mut(at) {
        *column = Arc::new(lists.map_err(refused)?) as ArrayRef;
    }
    RecordBatch::try_new(schema, columns).map_err(refused)
}

fn refused(error: ArrowError) -> Error {
    Error::Usage(format!("picoampere: {error}").into())
}
