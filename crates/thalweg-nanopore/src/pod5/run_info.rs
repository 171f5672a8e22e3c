//! Runs: the properties that all reads of an acquisition share, and their conversion to and from
//! the attributes of a read group.
//!
//! The conversion is that of blue-crab. Each column is an attribute of the same name. The pairs of
//! `context_tags` and `tracking_id` are attributes named by their keys. Later values hide earlier
//! ones of the same name. `run_id` is the acquisition id. Three attributes hold, as JSON, the
//! information that would be lost:
//!
//! - `pod5_context_tags`, `pod5_tracking_id`: the keys in their order. An entry is `[key, value]`
//!   if the attribute of that name has another value.
//! - `pod5_run_info`, only if it is not empty: the columns whose attribute has another value
//!   (because a tag hides it, or an attribute cannot hold the text), and the columns that this
//!   library does not know.

use serde_json::{Value, json};
use thalweg_io::Fault;

use super::batch::{BatchArray, TableBatch};
use super::fields::{CONTEXT_TAGS, RUN_INFO, RunStored};
use super::schema::{ColumnKind, ColumnSchema};
use crate::record::{Attribute, Header};

/// A value of a run's column.
#[derive(Debug, Clone, PartialEq)]
pub enum RunValue {
    /// No value.
    Missing,
    /// Text.
    Text(String),
    /// An integer, or a bool as 0 or 1.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// Milliseconds since 1970 (UTC).
    Millis(i64),
    /// Pairs, in their order; keys may repeat.
    Tags(Vec<(String, String)>),
}

/// One run: columns and their values, in the order of the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunInfo {
    /// Names and values.
    pub columns: Vec<(String, RunValue)>,
}

/// The attribute with the columns that other attributes cannot hold.
pub(crate) const RUN_INFO_ATTRIBUTE: &str = "pod5_run_info";

/// The prefix of an attribute with the keys of tags. The name of the column of tags follows.
pub(crate) const TAGS_PREFIX: &str = "pod5_";

/// The other name of the acquisition id, which SLOW5 takes from FAST5.
const RUN_ID: &str = "run_id";

impl RunInfo {
    /// The value of a column.
    pub fn get(&self, name: &str) -> Option<&RunValue> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, value)| value)
    }

    /// The integer in a column, zero if there is none.
    pub fn integer(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(&RunValue::Integer(value)) => value,
            _ => 0,
        }
    }

    /// The text in a column, empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(RunValue::Text(value)) => value,
            _ => "",
        }
    }

    /// The rows of a batch with these columns, and the names of columns that a run cannot hold.
    ///
    /// # Errors
    /// Columns whose buffers do not fit their type.
    pub fn rows(
        batch: &TableBatch<'_>,
        columns: &[ColumnSchema],
    ) -> Result<(Vec<Self>, Vec<String>), Fault> {
        let mut lost = Vec::new();
        let mut runs: Vec<Self> = Vec::new();
        for column in columns {
            if !is_held(column) {
                lost.push(column.name.clone());
                continue;
            }
            let values = batch.array(column)?;
            // The number of runs comes from a column with stored values, whose buffers bound it. A
            // row count alone could be arbitrarily large.
            if runs.is_empty() {
                runs.resize_with(values.len(), Self::default);
            }
            for (i, run) in runs.iter_mut().enumerate() {
                run.columns.push((column.name.clone(), value(batch, column, &values, i)?));
            }
        }
        Ok((runs, lost))
    }
}

fn is_held(column: &ColumnSchema) -> bool {
    column.dictionary.is_none()
        && match column.kind {
            ColumnKind::Text(_)
            | ColumnKind::Unsigned(_)
            | ColumnKind::Signed(_)
            | ColumnKind::Float(_)
            | ColumnKind::Bool
            | ColumnKind::Millis => true,
            ColumnKind::Map => column
                .children
                .iter()
                .flat_map(|pair| &pair.children)
                .all(|c| matches!(c.kind, ColumnKind::Text(_))),
            _ => false,
        }
}

fn value(
    batch: &TableBatch<'_>,
    column: &ColumnSchema,
    values: &BatchArray<'_>,
    i: usize,
) -> Result<RunValue, Fault> {
    if !values.is_valid(i) {
        return Ok(RunValue::Missing);
    }
    Ok(match column.kind {
        ColumnKind::Text(_) => RunValue::Text(values.text(i)?.to_owned()),
        ColumnKind::Bool => RunValue::Integer(i64::from(values.bool(i)?)),
        ColumnKind::Float(4) => RunValue::Float(f64::from(f32::from_le_bytes(values.fixed(i)?))),
        ColumnKind::Float(_) => RunValue::Float(f64::from_le_bytes(values.fixed(i)?)),
        ColumnKind::Millis => RunValue::Millis(i64::from_le_bytes(values.fixed(i)?)),
        ColumnKind::Map => {
            let [pair] = column.children.as_slice() else { return Ok(RunValue::Missing) };
            let [key, value] = pair.children.as_slice() else { return Ok(RunValue::Missing) };
            let keys = batch.array(key)?;
            let values_of = batch.array(value)?;
            let text = |values: &BatchArray<'_>, i: usize| -> Result<String, Fault> {
                Ok(if values.is_valid(i) { values.text(i)?.to_owned() } else { String::new() })
            };
            let span = values.span(i)?;
            if span.end > keys.len() || span.end > values_of.len() {
                return Err(Fault::new(
                    0,
                    format!("pairs up to {}", span.end),
                    format!("{} pairs", keys.len()),
                ));
            }
            RunValue::Tags(
                span.map(|i| Ok((text(&keys, i)?, text(&values_of, i)?)))
                    .collect::<Result<_, Fault>>()?,
            )
        }
        _ => RunValue::Integer(values.integer(i)?),
    })
}

/// The text of the attribute for a value; `None` if the value has no attribute.
fn shown(value: &RunValue) -> Option<String> {
    match value {
        RunValue::Missing | RunValue::Tags(_) => None,
        RunValue::Text(text) => Some(text.clone()),
        RunValue::Integer(value) => Some(value.to_string()),
        RunValue::Float(value) => Some(value.to_string()),
        RunValue::Millis(millis) => Some(time_text(*millis)),
    }
}

/// Whether a SLOW5 header preserves this text. There, `.` and the empty text are missing values,
/// and a value cannot contain a tab or a line break.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text != "." && !text.contains(['\t', '\n', '\r'])
}

/// Whether a SLOW5 header can have an attribute of this name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['\t', '\n', '\r'])
}

/// Milliseconds since 1970 as Python formats a time in UTC: `2023-03-27 04:54:59.593000+00:00`.
fn time_text(millis: i64) -> String {
    let days = millis.div_euclid(86_400_000);
    let of_day = millis.rem_euclid(86_400_000);
    let (year, month, day) = civil(days);
    let hour = of_day / 3_600_000;
    let minute = of_day / 60_000 % 60;
    let second = of_day / 1000 % 60;
    let fraction = match of_day % 1000 {
        0 => String::new(),
        millis => format!(".{:06}", millis * 1000),
    };
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}+00:00")
}

/// Converts days since 1970 to year, month and day in the Gregorian calendar. The calendar repeats
/// every 400 years (146,097 days). Years are counted from March, so that the leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let era = from_march.div_euclid(146_097);
    let day_of_era = from_march.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn to_json(value: &RunValue) -> Value {
    match value {
        RunValue::Missing => Value::Null,
        RunValue::Text(text) => json!(text),
        RunValue::Integer(value) | RunValue::Millis(value) => json!(value),
        RunValue::Float(value) => json!(value),
        RunValue::Tags(tags) => json!(tags),
    }
}

/// The value of a column that POD5 does not define.
fn of_json(value: &Value) -> RunValue {
    match value {
        Value::String(text) => RunValue::Text(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(value) => RunValue::Integer(value),
            None => RunValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        _ => RunValue::Missing,
    }
}

/// The attributes of these runs, sorted by name. Each run is one read group.
pub fn attributes(runs: &[RunInfo]) -> Vec<Attribute> {
    let mut attributes = Vec::new();
    for (group, run) in runs.iter().enumerate() {
        for (name, value) in group_attributes(run) {
            let found = attributes.iter().position(|attribute: &Attribute| attribute.name == name);
            let at = found.unwrap_or_else(|| {
                attributes.push(Attribute { name, values: vec![None; runs.len()] });
                attributes.len() - 1
            });
            attributes[at].values[group] = Some(value);
        }
    }
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    attributes
}

/// The attributes of one run.
fn group_attributes(run: &RunInfo) -> Vec<(String, String)> {
    // Later values replace earlier ones of the same name.
    let mut shown_as: std::collections::HashMap<String, String> = std::collections::HashMap::new();
    for (name, value) in &run.columns {
        if let RunValue::Tags(tags) = value {
            shown_as.extend(tags.iter().cloned());
        } else if let Some(text) = shown(value) {
            if name == "acquisition_id" {
                shown_as.insert(RUN_ID.to_owned(), text.clone());
            }
            shown_as.insert(name.clone(), text);
        }
    }
    shown_as
        .retain(|name, value| is_name(name) && is_plain(value) && !name.starts_with(TAGS_PREFIX));
    let mut rest = serde_json::Map::new();
    let mut keys_of = Vec::new();
    for (name, value) in &run.columns {
        if let RunValue::Tags(tags) = value {
            let entry = |(key, value): &(String, String)| match shown_as.get(key) {
                Some(shown) if shown == value => json!(key),
                _ => json!([key, value]),
            };
            keys_of.push((
                format!("{TAGS_PREFIX}{name}"),
                Value::Array(tags.iter().map(entry).collect()).to_string(),
            ));
        } else if RUN_INFO.iter().all(|(known, _)| known != name)
            || shown(value).as_ref() != shown_as.get(name)
        {
            rest.insert(name.clone(), to_json(value));
        }
    }
    if !rest.is_empty() {
        shown_as.insert(RUN_INFO_ATTRIBUTE.to_owned(), Value::Object(rest).to_string());
    }
    shown_as.extend(keys_of);
    shown_as.into_iter().collect()
}

impl RunInfo {
    /// The run of a read group of a header. All columns of [`RUN_INFO`] are present and come first.
    ///
    /// A header that was not made from a POD5 file has no `pod5_` attributes. An attribute that is
    /// no column then becomes a tag: of `context_tags` if [`CONTEXT_TAGS`] contains it, otherwise
    /// of `tracking_id`.
    pub fn of_group(header: &Header, group: u32) -> Self {
        let attribute = |name: &str| header.attribute(name, group);
        let rest: serde_json::Map<String, Value> = attribute(RUN_INFO_ATTRIBUTE)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let is_ours = attribute(&format!("{TAGS_PREFIX}tracking_id")).is_some();
        let mut columns = Vec::with_capacity(RUN_INFO.len() + rest.len());
        for (name, stored) in RUN_INFO {
            let value = match (stored, rest.get(name).and_then(|value| column_of(stored, value))) {
                (RunStored::Tags, _) if is_ours => {
                    RunValue::Tags(listed(attribute(&format!("{TAGS_PREFIX}{name}")), attribute))
                }
                (RunStored::Tags, _) => RunValue::Tags(unlisted(header, group, name)),
                (_, Some(value)) => value,
                (RunStored::Text, None) => {
                    let other = (name == "acquisition_id").then(|| attribute(RUN_ID)).flatten();
                    attribute(name)
                        .or(other)
                        .map_or(RunValue::Missing, |text| RunValue::Text(text.to_owned()))
                }
                (RunStored::Millis, None) => {
                    attribute(name).and_then(parse_time).map_or(RunValue::Missing, RunValue::Millis)
                }
                (_, None) => attribute(name)
                    .and_then(|text| text.parse().ok())
                    .map_or(RunValue::Missing, RunValue::Integer),
            };
            columns.push((name.to_owned(), value));
        }
        let others =
            rest.into_iter().filter(|(name, _)| RUN_INFO.iter().all(|(known, _)| known != name));
        columns.extend(others.map(|(name, value)| (name, of_json(&value))));
        if !is_ours {
            hide(&mut columns, attribute);
        }
        Self { columns }
    }
}

/// The value of a column that is not of tags; `None` if the JSON value is of another type.
fn column_of(stored: RunStored, value: &Value) -> Option<RunValue> {
    match stored {
        _ if value.is_null() => Some(RunValue::Missing),
        RunStored::Text => value.as_str().map(|text| RunValue::Text(text.to_owned())),
        RunStored::Millis => value.as_i64().map(RunValue::Millis),
        _ => value.as_i64().map(RunValue::Integer),
    }
}

/// Adds attributes to the tags of `tracking_id` if they have the name of a column but another text
/// than the column's value gives. An example is a time in FAST5's notation.
fn hide<'a>(columns: &mut [(String, RunValue)], attribute: impl Fn(&str) -> Option<&'a str>) {
    let hiding = |(name, value): &(String, RunValue)| {
        let text = attribute(name).filter(|_| !matches!(value, RunValue::Tags(_)))?;
        (shown(value).as_deref() != Some(text)).then(|| (name.clone(), text.to_owned()))
    };
    let hiding: Vec<_> = columns.iter().filter_map(hiding).collect();
    if let Some((_, RunValue::Tags(tags))) =
        columns.iter_mut().find(|(name, _)| name == "tracking_id")
    {
        tags.extend(hiding);
    }
}

/// The tags that a `pod5_` attribute lists.
fn listed<'a>(
    text: Option<&str>,
    attribute: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(String, String)> {
    let entries: Vec<Value> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let tag = |entry: &Value| match entry {
        Value::String(key) => Some((key.clone(), attribute(key)?.to_owned())),
        Value::Array(pair) => {
            Some((pair.first()?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()))
        }
        _ => None,
    };
    entries.iter().filter_map(tag).collect()
}

/// The attributes that are tags of `column`, in a header without `pod5_` attributes.
fn unlisted(header: &Header, group: u32, column: &str) -> Vec<(String, String)> {
    let named = header.attributes.iter().filter(|attribute| {
        let name = attribute.name.as_str();
        RUN_INFO.iter().all(|(known, _)| *known != name)
            && CONTEXT_TAGS.contains(&name) == (column == "context_tags")
    });
    named
        .filter_map(|a| Some((a.name.clone(), header.attribute(&a.name, group)?.to_owned())))
        .collect()
}

/// Parses the format of [`time_text`] to milliseconds since 1970. Also accepts a `T` between date
/// and time, and any time zone. Without a zone, the time is in UTC.
fn parse_time(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let year = parts.next()??;
    let month = parts.next()??;
    let day = parts.next()??;
    let rest = rest.strip_prefix([' ', 'T'])?;
    let zone_at = rest.find(['+', '-', 'Z']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    let mut parts = clock.splitn(3, ':');
    let (hour, minute): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let second: f64 = parts.next().unwrap_or("0").parse().ok()?;
    let ahead = match zone.split_at_checked(1) {
        Some((sign @ ("+" | "-"), offset)) => {
            let (hours, minutes) = offset.split_once(':').unwrap_or((offset, "0"));
            let minutes =
                hours.parse::<i64>().ok()?.checked_mul(60)? + minutes.parse::<i64>().ok()?;
            if sign == "-" { -minutes } else { minutes }
        }
        _ => 0,
    };
    let in_range =
        (-9999..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    (in_range && hour < 48 && minute < 60 && (0.0..61.0).contains(&second) && ahead.abs() < 3000)
        .then_some(())?;
    let minutes = days(year, month, day) * 1440 + hour * 60 + minute - ahead;
    Some(minutes * 60_000 + (second * 1000.0 + 1e-6).floor() as i64)
}

/// Converts a date to days since 1970: the inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests;
