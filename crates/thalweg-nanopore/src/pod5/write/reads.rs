//! The Reads table: a row a read. It stands last in the file, so its batches are encoded as they
//! fill up and kept by the caller until the signal has ended; what they need of each other, the
//! dictionaries, is put before them then.

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

/// A read's row, but for its signal.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadsRow {
    /// The read's UUID.
    pub read_id: [u8; 16],
    /// Which of the run infos it belongs to.
    pub run_info: usize,
    /// Added to a sample before scaling.
    pub calibration_offset: f32,
    /// Picoampere a step.
    pub calibration_scale: f32,
    /// The columns of [`FIELDS`], in that order. A channel may need 32 bits.
    pub fields: [ColumnValue; FIELDS.len()],
    /// The columns that POD5 does not define, in the order of the table's.
    pub more: Vec<ColumnValue>,
}

/// A column of the Reads table that POD5 does not define.
#[derive(Debug, Clone, PartialEq)]
pub struct More {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub stored: StoredType,
    /// Its type, where that is another one with the same values; or text through a dictionary.
    pub arrow: Option<DataType>,
}

/// What fills a column.
#[derive(Debug, Clone, Copy)]
enum From {
    Samples,
    Offset,
    Scale,
    RunInfo,
    WideChannel,
    Field(usize),
    More(usize),
}

/// Columns in the order of the POD5 library, behind `read_id` and `signal`.
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

/// What a dictionary begins with, so that a missing value looks like nothing known.
fn first_text(column: &str) -> &'static str {
    if column == "pore_type" { NO_PORE_TYPE } else { "unknown" }
}

/// The Reads table being written.
#[derive(Debug)]
pub(super) struct ReadsTableWriter {
    rows_a_batch: usize,
    ids: FixedSizeBinaryBuilder,
    signal: ListBuilder<UInt64Builder>,
    columns: Vec<(String, From, GrowingColumn)>,
    /// Types of columns that are not their natural ones.
    types: HashMap<String, DataType>,
    rows: usize,
    /// Encoded batches, in the order in which they were handed out.
    batches: Vec<EncodedMessage>,
    context: IpcWriteContext,
}

impl ReadsTableWriter {
    /// A table with the columns of the newest version and more.
    pub(super) fn new(rows_a_batch: usize, more: &[More]) -> Self {
        let own = ORDER.iter().map(|&name| {
            let plain = |from, stored| (name.to_owned(), from, GrowingColumn::new(stored));
            match name {
                "num_samples" => plain(From::Samples, StoredType::U64),
                "calibration_offset" => plain(From::Offset, StoredType::F32),
                "calibration_scale" => plain(From::Scale, StoredType::F32),
                // Its dictionary is the run infos, which the writer knows.
                "run_info" => plain(From::RunInfo, StoredType::I16),
                WIDE_CHANNEL => plain(From::WideChannel, StoredType::U32),
                _ => {
                    let known = FIELDS.iter().enumerate().find(|(_, field)| field.column == name);
                    match known {
                        Some((i, field)) if field.stored == StoredType::Text => (
                            name.to_owned(),
                            From::Field(i),
                            GrowingColumn::dictionary(first_text(name)),
                        ),
                        Some((i, field)) => plain(From::Field(i), field.stored),
                        // Not reached: a test goes through all names.
                        None => plain(From::More(usize::MAX), StoredType::U8),
                    }
                }
            }
        });
        let column = |more: &More| match more.arrow {
            Some(DataType::Dictionary(..)) => GrowingColumn::dictionary(""),
            _ => GrowingColumn::new(more.stored),
        };
        let types = more.iter().filter_map(|more| {
            let kind =
                more.arrow.clone().filter(|kind| !matches!(kind, DataType::Dictionary(..)))?;
            Some((more.name.clone(), kind))
        });
        let types = types.collect();
        let more = more
            .iter()
            .enumerate()
            .map(|(i, more)| (more.name.clone(), From::More(i), column(more)));
        Self {
            rows_a_batch,
            ids: FixedSizeBinaryBuilder::new(16),
            signal: ListBuilder::new(UInt64Builder::new()),
            columns: own.chain(more).collect(),
            types,
            rows: 0,
            batches: Vec::new(),
            context: IpcWriteContext::default(),
        }
    }

    /// Takes a row, and appends the batch to `kept` when it is full.
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
                From::Samples => column.push(&ColumnValue::Unsigned(samples)),
                From::Offset => column.push(&ColumnValue::Float(row.calibration_offset)),
                From::Scale => column.push(&ColumnValue::Float(row.calibration_scale)),
                From::RunInfo => column.push(&ColumnValue::Unsigned(row.run_info as u64)),
                From::WideChannel => column.push(channel),
                // Readers then look at the wide one.
                From::Field(CHANNEL) if is_wide => column.push(&ColumnValue::Unsigned(0)),
                From::Field(i) => column.push(row.fields.get(i).unwrap_or(&ColumnValue::Missing)),
                From::More(i) => column.push(row.more.get(i).unwrap_or(&ColumnValue::Missing)),
            };
            outcome.map_err(|fault| {
                Fault::new(0, format!("{} for the column {name}", fault.found), fault.expected)
            })?;
        }
        self.ids.append_value(row.read_id).map_err(refused)?;
        self.signal.append_value(signal.map(Some));
        self.rows += 1;
        if self.rows == self.rows_a_batch { self.batch(kept) } else { Ok(()) }
    }

    /// Encodes the rows that wait. Codes stand where texts with a dictionary belong: in a batch
    /// they are the same bytes.
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
    /// When Arrow refuses, which it has no reason to.
    pub(super) fn flush(&mut self, kept: &mut Vec<u8>) -> Result<(), Fault> {
        if self.rows > 0 { self.batch(kept) } else { Ok(()) }
    }

    /// Appends what stands before the batches, which are to follow as they were kept. `run_infos`
    /// are the texts of the `run_info` column.
    ///
    /// # Errors
    /// When Arrow refuses, which it has no reason to.
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
                (From::RunInfo, _) => dictionary(StringArray::from_iter_values(run_infos))?,
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

/// Where the channel stands in [`FIELDS`].
const CHANNEL: usize = 0;

fn signal_field() -> Field {
    Field::new("signal", DataType::new_list(DataType::UInt64, true), true)
}

fn dictionary(texts: StringArray) -> Result<ArrayRef, Fault> {
    let codes = Int16Array::from(Vec::<i16>::new());
    Ok(Arc::new(DictionaryArray::<Int16Type>::try_new(codes, Arc::new(texts)).map_err(refused)?))
}

/// Appends a message as Arrow encoded it.
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
            assert!(
                table
                    .columns
                    .iter()
                    .any(|(name, from, _)| name == field.column && matches!(from, From::Field(_)))
            );
        }
        assert!(!table.columns.iter().any(|(_, from, _)| matches!(from, From::More(_))));
    }
}
