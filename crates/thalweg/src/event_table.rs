//! Events as Arrow tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, PrimitiveArray, RecordBatch, StringArray,
    TimestampNanosecondArray, new_null_array,
};
use arrow_buffer::Buffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::nexus::{Bank, EventBatch, EventColumn, NO_TIME, NumericType};
use crate::{Error, Result};

/// UTC as an offset: names of time zones would need a table of them.
const UTC: &str = "+00:00";

/// The Arrow type of a moment, in nanoseconds since 1970.
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()))
}

/// Moments in nanoseconds since 1970 as a column; [`NO_TIME`] is null.
pub fn times(times: impl Iterator<Item = i64>) -> ArrayRef {
    let known = times.map(|time| (time != NO_TIME).then_some(time));
    Arc::new(known.collect::<TimestampNanosecondArray>().with_timezone(UTC))
}

/// The Arrow type of columns of strings that have few distinct values.
pub fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The Arrow type of a type of numbers.
pub fn number_type(number: NumericType) -> DataType {
    match number {
        NumericType::U8 => DataType::UInt8,
        NumericType::U16 => DataType::UInt16,
        NumericType::U32 => DataType::UInt32,
        NumericType::U64 => DataType::UInt64,
        NumericType::I8 => DataType::Int8,
        NumericType::I16 => DataType::Int16,
        NumericType::I32 => DataType::Int32,
        NumericType::I64 => DataType::Int64,
        NumericType::F32 => DataType::Float32,
        NumericType::F64 => DataType::Float64,
    }
}

/// Little-endian numbers as a column.
pub fn numbers(number: NumericType, bytes: &[u8]) -> ArrayRef {
    match number {
        NumericType::U8 => fixed::<UInt8Type>(bytes),
        NumericType::U16 => fixed::<UInt16Type>(bytes),
        NumericType::U32 => fixed::<UInt32Type>(bytes),
        NumericType::U64 => fixed::<UInt64Type>(bytes),
        NumericType::I8 => fixed::<Int8Type>(bytes),
        NumericType::I16 => fixed::<Int16Type>(bytes),
        NumericType::I32 => fixed::<Int32Type>(bytes),
        NumericType::I64 => fixed::<Int64Type>(bytes),
        NumericType::F32 => fixed::<Float32Type>(bytes),
        NumericType::F64 => fixed::<Float64Type>(bytes),
    }
}

fn fixed<T: ArrowPrimitiveType>(bytes: &[u8]) -> ArrayRef {
    // `Buffer::from` copies the bytes into a buffer that is aligned for every type.
    Arc::new(PrimitiveArray::<T>::new(Buffer::from(bytes).into(), None))
}

/// The table of the events of some banks. Its columns are `bank`, `event_id`, `event_time_offset`
/// and `event_weight`, as far as a bank has them, `pulse_time` and `pulse`. The unit of
/// `event_time_offset` is in the metadata of the column, as `units`.
#[derive(Debug)]
pub struct EventTable {
    schema: SchemaRef,
    names: Arc<StringArray>,
    keys: HashMap<String, i32>,
    /// The number type of each column, in the order of [`EventColumn::ALL`]; `None` if no bank has
    /// it.
    numbers: [Option<NumericType>; 3],
}

impl EventTable {
    /// A table with every column that a bank has. `file` is for messages.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if banks differ in the type of a column.
    pub fn new(banks: &[&Bank], file: &str) -> Result<Self> {
        let mut numbers = [None; 3];
        let mut fields = vec![Field::new("bank", name_type(), false)];
        for (column, number) in EventColumn::ALL.into_iter().zip(&mut numbers) {
            *number = common(banks, file, column.name(), |bank| bank.number(column))?;
            let Some(number) = *number else { continue };
            let all = banks.iter().all(|bank| bank.number(column).is_some());
            let mut field = Field::new(column.name(), number_type(number), !all);
            let own = |bank: &Bank| bank.number(column).map(|_| bank.unit());
            if column == EventColumn::Offset
                && let Some(unit) = common(banks, file, "the unit of event_time_offset", own)?
            {
                field = field.with_metadata([("units".to_owned(), unit.to_string())]);
            }
            fields.push(field);
        }
        fields.push(Field::new("pulse_time", time_type(), true));
        fields.push(Field::new("pulse", DataType::Int64, true));
        let names = Arc::new(banks.iter().map(|bank| Some(bank.name())).collect());
        let keys = banks.iter().zip(0..).map(|(bank, key)| (bank.path().to_owned(), key)).collect();
        Ok(Self { schema: Arc::new(Schema::new(fields)), names, keys, numbers })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Events of one of the banks as rows.
    ///
    /// # Errors
    /// [`ArrowError`] if the batch is not one of `bank`.
    pub fn rows(
        &self,
        bank: &Bank,
        batch: &EventBatch<'_>,
    ) -> std::result::Result<RecordBatch, ArrowError> {
        let rows = batch.pulses.len();
        let key = self.keys.get(bank.path()).copied().unwrap_or(0);
        let names =
            DictionaryArray::<Int32Type>::try_new(vec![key; rows].into(), self.names.clone())?;
        let pulses: Int64Array =
            batch.pulses.iter().map(|&pulse| (pulse >= 0).then_some(pulse)).collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(names)];
        for ((column, number), bytes) in
            EventColumn::ALL.into_iter().zip(self.numbers).zip(batch.columns)
        {
            columns.extend(number.map(|number| match bank.number(column) {
                Some(_) => self::numbers(number, bytes),
                None => new_null_array(&number_type(number), rows),
            }));
        }
        columns.push(times(batch.times.iter().copied()));
        columns.push(Arc::new(pulses));
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

/// The value that all banks with a value share. Banks without a value do not count.
fn common<T: PartialEq + Copy + std::fmt::Debug>(
    banks: &[&Bank],
    file: &str,
    what: &str,
    of: impl Fn(&Bank) -> Option<T>,
) -> Result<Option<T>> {
    let mut known: Option<(T, &str)> = None;
    for bank in banks {
        match (of(bank), known) {
            (Some(own), Some((other, name))) if own != other => {
                return Err(Error::Unsupported {
                    file: file.into(),
                    what: format!(
                        "a table of banks that differ in {what} ({other:?} in {name}, {own:?} in \
                         {})",
                        bank.name()
                    )
                    .into(),
                    advice: "choose banks (--bank), or read them as arrays (.npy)".into(),
                });
            }
            (Some(own), None) => known = Some((own, bank.name())),
            _ => {}
        }
    }
    Ok(known.map(|(own, _)| own))
}
