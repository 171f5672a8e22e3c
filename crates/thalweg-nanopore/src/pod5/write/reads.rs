//! Writing the Reads table: one row per read. It is the last table of the file, so that the caller
//! keeps its encoded batches until the Signal table is complete. The dictionaries, which all
//! batches share, are then written before the batches.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, UInt64Builder};
use arrow_array::types::Int16Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int16Array, RecordBatch, StringArray, new_empty_array,
};
use arrow_ipc::writer::{DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use thalweg_io::Fault;

use super::column::{ColumnValue, GrowingColumn, retyped};
use super::ipc::{EncodedMessage, IpcFile, options, push_metadata};
use super::model::NO_PORE_TYPE;
use super::{Identity, schema};
use crate::pod5::fields::{FIELDS, StoredType, WIDE_CHANNEL};

/// A read's row without its signal.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadsRow {
    /// The read's UUID.
    pub read_id: [u8; 16],
    /// The index of the read's run info.
    pub run_info: usize,
    /// Added to a sample before scaling.
    pub calibration_offset: f32,
    /// Picoamperes per step.
    pub calibration_scale: f32,
    /// The values of the columns of [`FIELDS`], in that order. A channel may need 32 bits.
    pub fields: [ColumnValue; FIELDS.len()],
    /// The values of the columns that POD5 does not define, in the order of the table.
    pub extra: Vec<ColumnValue>,
}

/// A column of the Reads table that POD5 does not define.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtraColumn {
    /// The column's name.
    pub name: String,
    /// The type of the column's values.
    pub stored: StoredType,
    /// The Arrow type, if it is not the default for `stored`: another type for the same values, or
    /// text with a dictionary.
    pub arrow: Option<DataType>,
}

/// The source of a column's values.
#[derive(Debug, Clone, Copy)]
enum ValueSource {
    Samples,
    Offset,
    Scale,
    RunInfo,
    WideChannel,
    Field(usize),
    Extra(usize),
}

/// The columns after `read_id` and `signal`, in the order of the POD5 library.
const ORDER: [&str; 23] = [
    "read_number",
    "start",
    "median_before",
    "num_minknow_events",
    "tracked_scaling_scale",
    "tracked_scaling_shift",
    "predicted_scaling_scale",
    "predicted_scaling_shift",
    "num_reads_since_mux_change",
    "time_since_mux_change",
    "num_samples",
    "channel",
    "well",
    "pore_type",
    "calibration_offset",
    "calibration_scale",
    "end_reason",
    "end_reason_forced",
    "run_info",
    "open_pore_level",
    "expected_open_pore_level",
    "selected_read_level",
    WIDE_CHANNEL,
];

/// The first entry of a column's dictionary. A reader that ignores the validity finds it for a
/// missing value.
fn first_text(column: &str) -> &'static str {
    if column == "pore_type" { NO_PORE_TYPE } else { "unknown" }
}

/// The Reads table being written.
#[derive(Debug)]
pub(super) struct ReadsTableWriter {
    rows_per_batch: usize,
    ids: FixedSizeBinaryBuilder,
    signal: ListBuilder<UInt64Builder>,
    columns: Vec<(String, ValueSource, GrowingColumn)>,
    /// The Arrow types of columns that do not have the default type, by name.
    types: HashMap<String, DataType>,
    rows: usize,
    /// The sizes of the encoded batches, in the order of `kept`.
    batches: Vec<EncodedMessage>,
    context: IpcWriteContext,
}

impl ReadsTableWriter {
    /// An empty table with the columns of the newest version, followed by the columns `extra`.
    pub(super) fn new(rows_per_batch: usize, extra: &[ExtraColumn]) -> Self {
        let own = ORDER.iter().map(|&name| {
            let plain = |from, stored| (name.to_owned(), from, GrowingColumn::new(stored));
            match name {
                "num_samples" => plain(ValueSource::Samples, StoredType::U64),
                "calibration_offset" => plain(ValueSource::Offset, StoredType::F32),
                "calibration_scale" => plain(ValueSource::Scale, StoredType::F32),
                // The column is an index into the run infos, whose dictionary is written later.
                "run_info" => plain(ValueSource::RunInfo, StoredType::I16),
                WIDE_CHANNEL => plain(ValueSource::WideChannel, StoredType::U32),
                _ => {
                    let known = FIELDS.iter().enumerate().find(|(_, field)| field.column == name);
                    match known {
                        Some((i, field)) if field.stored == StoredType::Text => (
                            name.to_owned(),
                            ValueSource::Field(i),
                            GrowingColumn::dictionary(first_text(name)),
                        ),
                        Some((i, field)) => plain(ValueSource::Field(i), field.stored),
                        // Not reached: a test checks all names.
                        None => plain(ValueSource::Extra(usize::MAX), StoredType::U8),
                    }
                }
            }
        });
        let column = |extra: &ExtraColumn| match extra.arrow {
            Some(DataType::Dictionary(..)) => GrowingColumn::dictionary(""),
            _ => GrowingColumn::new(extra.stored),
        };
        let types = extra.iter().filter_map(|extra| {
            let kind =
                extra.arrow.clone().filter(|kind| !matches!(kind, DataType::Dictionary(..)))?;
            Some((extra.name.clone(), kind))
        });
        let types = types.collect();
        let extra = extra
            .iter()
            .enumerate()
            .map(|(i, extra)| (extra.name.clone(), ValueSource::Extra(i), column(extra)));
        Self {
            rows_per_batch,
            ids: FixedSizeBinaryBuilder::new(16),
            signal: ListBuilder::new(UInt64Builder::new()),
            columns: own.chain(extra).collect(),
            types,
            rows: 0,
            batches: Vec::new(),
            context: IpcWriteContext::default(),
        }
    }

    /// Adds a row. Appends the batch to `kept` when it is full.
    ///
    /// # Errors
    /// When a column cannot hold its value.
    pub(super) fn push(
        &mut self,
        row: &ReadsRow,
        signal: Range<u64>,
        samples: u64,
        kept: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let channel = &row.fields[CHANNEL];
        let is_wide = matches!(channel, ColumnValue::Unsigned(n) if *n > u64::from(u16::MAX));
        for (name, from, column) in &mut self.columns {
            let outcome = match *from {
                ValueSource::Samples => column.push(&ColumnValue::Unsigned(samples)),
                ValueSource::Offset => column.push(&ColumnValue::Float(row.calibration_offset)),
                ValueSource::Scale => column.push(&ColumnValue::Float(row.calibration_scale)),
                ValueSource::RunInfo => column.push(&ColumnValue::Unsigned(row.run_info as u64)),
                ValueSource::WideChannel => column.push(channel),
                // Readers then use the wide channel.
                ValueSource::Field(CHANNEL) if is_wide => column.push(&ColumnValue::Unsigned(0)),
                ValueSource::Field(i) => {
                    column.push(row.fields.get(i).unwrap_or(&ColumnValue::Missing))
                }
                ValueSource::Extra(i) => {
                    column.push(row.extra.get(i).unwrap_or(&ColumnValue::Missing))
                }
            };
            outcome.map_err(|fault| {
                Fault::new(0, format!("{} for the column {name}", fault.found), fault.expected)
            })?;
        }
        self.ids.append_value(row.read_id).map_err(refused)?;
        self.signal.append_value(signal.map(Some));
        self.rows += 1;
        if self.rows == self.rows_per_batch { self.batch(kept) } else { Ok(()) }
    }

    /// Encodes the waiting rows as a batch. A column with a dictionary is encoded as a column of
    /// codes, which has the same bytes in a batch.
    fn batch(&mut self, kept: &mut Vec<u8>) -> Result<(), Fault> {
        let mut fields = vec![schema::read_id(), signal_field()];
        let mut arrays: Vec<ArrayRef> =
            vec![Arc::new(self.ids.finish()), Arc::new(self.signal.finish())];
        for (name, _, column) in &mut self.columns {
            let mut array = column.take();
            if let Some(kind) = self.types.get(name) {
                array = retyped(array, kind).map_err(|fault| {
                    Fault::new(0, format!("{} for the column {name}", fault.found), fault.expected)
                })?;
            }
            fields.push(Field::new(name.as_str(), array.data_type().clone(), true));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(refused)?;
        let mut tracker = DictionaryTracker::new(true);
        let (_, data) = IpcDataGenerator::default()
            .encode(&batch, &mut tracker, &options(), &mut self.context)
            .map_err(refused)?;
        self.batches.push(push(&data, kept));
        self.rows = 0;
        Ok(())
    }

    /// Appends the last batch to `kept`.
    ///
    /// # Errors
    /// When Arrow fails, which is not expected.
    pub(super) fn flush(&mut self, kept: &mut Vec<u8>) -> Result<(), Fault> {
        if self.rows > 0 { self.batch(kept) } else { Ok(()) }
    }

    /// Appends the schema and the dictionaries. The caller then writes the kept batches.
    /// `run_infos` is the dictionary of the `run_info` column.
    ///
    /// # Errors
    /// When Arrow fails, which is not expected.
    pub(super) fn start(
        self,
        identity: &Identity,
        software: &str,
        run_infos: &[&str],
        out: &mut Vec<u8>,
    ) -> Result<IpcFile, Fault> {
        let mut fields = vec![schema::read_id(), signal_field()];
        let mut arrays =
            vec![new_empty_array(fields[0].data_type()), new_empty_array(fields[1].data_type())];
        for (name, from, column) in &self.columns {
            let array: ArrayRef = match (from, column) {
                (ValueSource::RunInfo, _) => dictionary(StringArray::from_iter_values(run_infos))?,
                (_, GrowingColumn::Codes(_, texts)) => dictionary(texts.texts())?,
                (_, other) => match self.types.get(name) {
                    Some(kind) => new_empty_array(kind),
                    None => new_empty_array(&other.data_type()),
                },
            };
            fields.push(Field::new(name.as_str(), array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Schema::new_with_metadata(fields, schema::metadata(identity, software));
        let mut tracker = DictionaryTracker::new(true);
        let mut file = IpcFile::start(schema.clone(), &mut tracker, out);
        let empty = RecordBatch::try_new(Arc::new(schema), arrays).map_err(refused)?;
        let encoded = IpcDataGenerator::default().encode(
            &empty,
            &mut tracker,
            &options(),
            &mut IpcWriteContext::default(),
        );
        for texts in encoded.map_err(refused)?.0 {
            file.dictionary(push(&texts, out));
        }
        for batch in self.batches {
            file.batch(batch);
        }
        Ok(file)
    }
}

/// The index of the channel in [`FIELDS`].
const CHANNEL: usize = 0;

fn signal_field() -> Field {
    Field::new("signal", DataType::new_list(DataType::UInt64, true), true)
}

fn dictionary(texts: StringArray) -> Result<ArrayRef, Fault> {
    let codes = Int16Array::from(Vec::<i16>::new());
    Ok(Arc::new(DictionaryArray::<Int16Type>::try_new(codes, Arc::new(texts)).map_err(refused)?))
}

/// Appends a message that Arrow encoded.
pub(super) fn push(data: &EncodedData, out: &mut Vec<u8>) -> EncodedMessage {
    let metadata = push_metadata(&data.ipc_message, out);
    out.extend(&data.arrow_data);
    EncodedMessage { metadata, body: data.arrow_data.len() as i64 }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn refused(error: ArrowError) -> Fault {
    Fault::new(0, format!("Arrow: {error}"), "rows that fit the table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_a_source() {
        assert_eq!(FIELDS[CHANNEL].column, "channel");
        let table = ReadsTableWriter::new(10, &[]);
        assert_eq!(table.columns.len(), FIELDS.len() + 5);
        for field in FIELDS {
            assert!(table.columns.iter().any(
                |(name, from, _)| name == field.column && matches!(from, ValueSource::Field(_))
            ));
        }
        assert!(!table.columns.iter().any(|(_, from, _)| matches!(from, ValueSource::Extra(_))));
    }
}
