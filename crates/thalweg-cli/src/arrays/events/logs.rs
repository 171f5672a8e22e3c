//! Logs as Arrow columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use glob::Pattern;
use thalweg::event_table::{name_type, time_type, times};
use thalweg::nexus::{Log, LogColumn, LogValues, NO_TIME, Nexus};

use super::npy;
use crate::common::{Failure, VerbResult, complain};
use crate::table_sink::{TableOut, TableSink};

fn failed(error: arrow_schema::ArrowError) -> Failure {
    Failure::Said(error.to_string())
}

/// Rows of a log in one record batch.
const LOG_BATCH_ROWS: usize = 1 << 16;

/// Reads a log. Warns about a log of a kind that is not supported, and returns `None`: the other
/// logs can still be read.
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

/// Seconds since a log's start; NaN if the time is not known.
pub(super) fn seconds(time: i64, start: Option<i64>) -> f64 {
    if time == NO_TIME { f64::NAN } else { time.saturating_sub(start.unwrap_or(0)) as f64 / 1e9 }
}

/// Writes the logs whose path or name matches a pattern, as a table or as arrays.
pub(super) fn logs(nexus: &Nexus<'_>, pattern: &str, to: Option<TableOut<'_>>) -> VerbResult {
    let logs = matching_logs(nexus, pattern)?;
    if let Some(to) = to.filter(|to| to.is_npy()) {
        return npy::logs(nexus, &logs, to.path);
    }
    let columns = LogColumns::new(&logs);
    let mut sink = match to {
        Some(to) => TableSink::create(to, &columns.schema)?,
        None => TableSink::stdout(b',', &columns.schema)?,
    };
    for (key, log) in (0..).zip(&logs) {
        let Some(read) = read(nexus, log)? else { continue };
        for from in (0..read.times.len()).step_by(LOG_BATCH_ROWS) {
            nexus.file().options().control.check()?;
            let rows = from..(from + LOG_BATCH_ROWS).min(read.times.len());
            sink.push(&columns.batch(key, log, &read, rows)?)?;
        }
    }
    sink.finish()
}

/// The logs whose path, or a name in it, matches a pattern; fails if there is none.
fn matching_logs<'a>(nexus: &'a Nexus<'_>, pattern: &str) -> Result<Vec<&'a Log>, Failure> {
    let text = pattern.trim_start_matches('/');
    let pattern = Pattern::new(text)
        .map_err(|e| Failure::Usage(format!("{pattern:?} is no pattern: {e}")))?;
    let matches = |path: &str| {
        let path = path.trim_start_matches('/');
        pattern.matches(path) || path.split('/').any(|name| pattern.matches(name))
    };
    for (path, why) in nexus.unread_logs().iter().filter(|(path, _)| matches(path)) {
        complain(&format!("{path}: not read: {why}"));
    }
    let logs: Vec<&Log> = nexus.logs().iter().filter(|log| matches(log.path())).collect();
    if logs.is_empty() {
        let name = nexus.file().store().name();
        return Err(Failure::Said(match nexus.logs().len() {
            0 => format!("{name}: it has no logs; `thalweg info` lists what it has"),
            count => format!(
                "{name}: found none of its {count} logs that matches {text:?}; \
                 `thalweg info` lists them"
            ),
        }));
    }
    Ok(logs)
}

/// A table of logs.
struct LogColumns {
    schema: SchemaRef,
    /// The path and the units of each log; its number is the key in the dictionary columns.
    paths: Arc<StringArray>,
    units: Arc<StringArray>,
}

impl LogColumns {
    fn new(logs: &[&Log]) -> Self {
        let schema = Schema::new(vec![
            Field::new("log", name_type(), false),
            Field::new("time", time_type(), true),
            Field::new("seconds", DataType::Float64, true),
            Field::new("value", DataType::Float64, true),
            Field::new("text", DataType::Utf8, true),
            Field::new("units", name_type(), true),
        ]);
        let units = logs.iter().map(|log| Some(log.units().unwrap_or_default()));
        Self {
            schema: Arc::new(schema),
            paths: Arc::new(logs.iter().map(|log| Some(log.path())).collect()),
            units: Arc::new(units.collect()),
        }
    }

    /// Rows of the log with number `key`.
    fn batch(
        &self,
        key: i32,
        log: &Log,
        read: &LogValues,
        rows: Range<usize>,
    ) -> Result<RecordBatch, Failure> {
        let count = rows.len();
        let start = log.start();
        let row_times = read.times.get(rows.clone()).unwrap_or_default();
        let absolute = row_times.iter().map(|&time| if start.is_some() { time } else { NO_TIME });
        let relative =
            row_times.iter().map(|&time| (time != NO_TIME).then(|| seconds(time, start)));
        let (value, text) = value_and_text(&read.values, rows);
        let unit_keys = std::iter::repeat_n(log.units().map(|_| key), count).collect();
        let columns = vec![
            names_column(vec![key; count].into(), &self.paths)?,
            times(absolute),
            Arc::new(relative.collect::<Float64Array>()),
            value,
            text,
            names_column(unit_keys, &self.units)?,
        ];
        RecordBatch::try_new(self.schema.clone(), columns).map_err(failed)
    }
}

/// The columns `value` and `text` of some rows; one of them is empty.
fn value_and_text(values: &LogColumn, rows: Range<usize>) -> (ArrayRef, ArrayRef) {
    let count = rows.len();
    match values {
        LogColumn::Numbers(numbers) => {
            let numbers = numbers.get(rows).unwrap_or_default().to_vec();
            (Arc::new(Float64Array::from(numbers)), new_null_array(&DataType::Utf8, count))
        }
        LogColumn::Text(text) => {
            let text = StringArray::from_iter_values(text.get(rows).unwrap_or_default());
            (new_null_array(&DataType::Float64, count), Arc::new(text))
        }
    }
}

/// A column of names, by their places in `names`.
fn names_column(keys: Int32Array, names: &Arc<StringArray>) -> Result<ArrayRef, Failure> {
    let column = DictionaryArray::<Int32Type>::try_new(keys, names.clone()).map_err(failed)?;
    Ok(Arc::new(column))
}
