//! Events and logs as Arrow columns.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use glob::Pattern;
use thalweg::nexus::{Bank, Batch, Column, Log, LogValues, NO_TIME, Nexus, Number, Values};

use super::super::table::numbers;
use super::{is_npy, npy, table};
use crate::common::{Failure, Outcome, complain};
use crate::table_sink::TableSink;

/// UTC as an offset: Arrow needs a table of time zones for names.
const UTC: &str = "+00:00";

fn failed(error: arrow_schema::ArrowError) -> Failure {
    Failure::Said(error.to_string())
}

fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()))
}

fn times(times: impl Iterator<Item = i64>) -> ArrayRef {
    let known = times.map(|time| (time != NO_TIME).then_some(time));
    Arc::new(known.collect::<TimestampNanosecondArray>().with_timezone(UTC))
}

/// Strings of which few are different.
fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// A table of events.
pub(super) struct Events {
    schema: SchemaRef,
    names: Arc<StringArray>,
    keys: HashMap<String, i32>,
    /// The types of what events have, in the order of [`Column::ALL`].
    numbers: [Option<Number>; 3],
}

impl Events {
    /// The columns that these banks have in common.
    pub(super) fn new(banks: &[&Bank], file: &str) -> Result<Self, Failure> {
        let mut numbers = [None; 3];
        let mut fields = vec![Field::new("bank", name_type(), false)];
        for (column, number) in Column::ALL.into_iter().zip(&mut numbers) {
            *number = common(banks, file, column.name(), |bank| bank.number(column))?;
            let Some(number) = *number else { continue };
            let all = banks.iter().all(|bank| bank.number(column).is_some());
            let mut field = Field::new(column.name(), numbers::data_type(number), !all);
            let own = |bank: &Bank| bank.number(column).map(|_| bank.unit());
            if column == Column::Offset
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

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(super) fn batch(&self, bank: &Bank, batch: &Batch<'_>) -> Result<RecordBatch, Failure> {
        let rows = batch.pulses.len();
        let key = self.keys.get(bank.path()).copied().unwrap_or(0);
        let keys = Int32Array::from(vec![key; rows]);
        let bank_column =
            DictionaryArray::<Int32Type>::try_new(keys, self.names.clone()).map_err(failed)?;
        let pulses: Int64Array =
            batch.pulses.iter().map(|&pulse| (pulse >= 0).then_some(pulse)).collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(bank_column)];
        for ((column, number), bytes) in
            Column::ALL.into_iter().zip(self.numbers).zip(batch.columns)
        {
            columns.extend(number.map(|number| match bank.number(column) {
                Some(_) => numbers::array(number, bytes),
                None => new_null_array(&numbers::data_type(number), rows),
            }));
        }
        columns.push(times(batch.times.iter().copied()));
        columns.push(Arc::new(pulses));
        RecordBatch::try_new(self.schema.clone(), columns).map_err(failed)
    }
}

/// The value that all banks agree on which have one. A failure if two banks differ.
fn common<T: PartialEq + Copy + std::fmt::Debug>(
    banks: &[&Bank],
    file: &str,
    what: &str,
    of: impl Fn(&Bank) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let mut known: Option<(T, &str)> = None;
    for bank in banks {
        match (of(bank), known) {
            (Some(own), Some((other, name))) if own != other => {
                return Err(Failure::Said(format!(
                    "{file}: found {what} {own:?} in {} and {other:?} in {name}, expected one for \
                     all rows of a table; choose with --bank, or write .npy",
                    bank.name()
                )));
            }
            (Some(own), None) => known = Some((own, bank.name())),
            _ => {}
        }
    }
    Ok(known.map(|(own, _)| own))
}

/// Rows of a log that go into a batch.
const BATCH: usize = 1 << 16;

/// What a log holds, if that can be told; others may still be read.
pub(super) fn read(nexus: &Nexus<'_>, log: &Log) -> Result<Option<LogValues>, Failure> {
    match nexus.log(log) {
        Ok(read) => Ok(Some(read)),
        Err(error @ thalweg::Error::Unsupported { .. }) => {
            complain(&error);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Seconds since a log's start; NaN for what is no time.
pub(super) fn seconds(time: i64, start: Option<i64>) -> f64 {
    if time == NO_TIME { f64::NAN } else { time.saturating_sub(start.unwrap_or(0)) as f64 / 1e9 }
}

/// Writes logs as a table, or as arrays.
pub(super) fn logs(nexus: &Nexus<'_>, pattern: &str, to: Option<&Path>) -> Outcome {
    let text = pattern.trim_start_matches('/');
    let pattern = Pattern::new(text)
        .map_err(|e| Failure::Usage(format!("{pattern:?} is no pattern: {e}")))?;
    let matches = |log: &&Log| {
        let path = log.path().trim_start_matches('/');
        pattern.matches(path) || path.split('/').any(|name| pattern.matches(name))
    };
    let wanted: Vec<&Log> = nexus.logs().iter().filter(matches).collect();
    let name = nexus.file().store().name();
    if wanted.is_empty() {
        let count = nexus.logs().len();
        return Err(Failure::Said(format!(
            "{name}: found none of its {count} logs that matches {text:?}; \
             `thalweg info` lists them"
        )));
    }
    if let Some(to) = to.filter(|to| is_npy(to)) {
        return npy::logs(nexus, &wanted, to);
    }
    let schema = Arc::new(Schema::new(vec![
        Field::new("log", name_type(), false),
        Field::new("time", time_type(), true),
        Field::new("seconds", DataType::Float64, true),
        Field::new("value", DataType::Float64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("units", name_type(), true),
    ]));
    let paths: Arc<StringArray> = Arc::new(wanted.iter().map(|log| Some(log.path())).collect());
    let units: Arc<StringArray> =
        Arc::new(wanted.iter().map(|log| Some(log.units().unwrap_or_default())).collect());
    let mut sink = match to {
        Some(to) => {
            let (path, kind) = table(to)?;
            TableSink::create(&path, kind, &schema)?
        }
        None => TableSink::stdout(b',', &schema)?,
    };
    for (key, log) in (0..).zip(&wanted) {
        let Some(read) = read(nexus, log)? else { continue };
        let start = log.start();
        for from in (0..read.times.len()).step_by(BATCH) {
            let rows = from..(from + BATCH).min(read.times.len());
            let some = read.times.get(rows.clone()).unwrap_or_default();
            let at = times(some.iter().map(|&time| if start.is_some() { time } else { NO_TIME }));
            let seconds = |&time: &i64| (time != NO_TIME).then(|| seconds(time, start));
            let (value, text): (ArrayRef, ArrayRef) = match &read.values {
                Values::Numbers(numbers) => (
                    Arc::new(Float64Array::from(
                        numbers.get(rows.clone()).unwrap_or_default().to_vec(),
                    )),
                    new_null_array(&DataType::Utf8, rows.len()),
                ),
                Values::Text(text) => (
                    new_null_array(&DataType::Float64, rows.len()),
                    Arc::new(StringArray::from_iter_values(
                        text.get(rows.clone()).unwrap_or_default(),
                    )),
                ),
            };
            let named = |keys: Int32Array, names: &Arc<StringArray>| -> Result<ArrayRef, Failure> {
                Ok(Arc::new(
                    DictionaryArray::<Int32Type>::try_new(keys, names.clone()).map_err(failed)?,
                ))
            };
            let columns = vec![
                named(vec![key; rows.len()].into(), &paths)?,
                at,
                Arc::new(some.iter().map(seconds).collect::<Float64Array>()),
                value,
                text,
                named(std::iter::repeat_n(log.units().map(|_| key), rows.len()).collect(), &units)?,
            ];
            sink.push(&RecordBatch::try_new(schema.clone(), columns).map_err(failed)?)?;
        }
    }
    sink.finish()
}
