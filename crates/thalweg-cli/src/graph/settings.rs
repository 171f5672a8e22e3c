//! Attributes that are named on the command line.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use thalweg::graph::Network;

use crate::common::Failure;

/// An attribute and its value: `NAME=VALUE`.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    name: String,
    value: String,
}

/// The columns beside the attributes.
const RESERVED: [&str; 5] = ["id", "source", "target", "from", "to"];

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or("expected NAME=VALUE, as in layer=4")?;
        if RESERVED.contains(&name) {
            return Err(format!("{name} is the name of a column of ids"));
        }
        Ok(Self { name: name.into(), value: value.into() })
    }
}

impl Setting {
    /// The type that its value has where the network does not know the attribute.
    fn data_type(&self) -> DataType {
        // `nan` and `inf` may be words, and 007 a name. What a float would round is no float.
        let is_number = self.value.contains(|c: char| c.is_ascii_digit())
            && !(self.value.starts_with('0')
                && self.value[1..].starts_with(|c: char| c.is_ascii_digit()));
        let is_whole =
            self.value.bytes().all(|byte| byte.is_ascii_digit() || b"+-".contains(&byte));
        let float = self.value.parse::<f64>().is_ok_and(f64::is_finite);
        let is = [
            (is_number && self.value.parse::<i64>().is_ok(), DataType::Int64),
            (is_number && self.value.parse::<u64>().is_ok(), DataType::UInt64),
            (is_number && float && !is_whole, DataType::Float64),
            (self.value.parse::<bool>().is_ok(), DataType::Boolean),
        ];
        let found = is.into_iter().find(|(is, _)| *is);
        found.map_or(DataType::Utf8, |(_, data_type)| data_type)
    }

    /// The value, `count` times, as a column of a type.
    fn column(&self, data_type: &DataType, count: usize) -> Result<ArrayRef, Failure> {
        let text = StringArray::from(vec![self.value.as_str()]);
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let value = cast_with_options(&text, data_type, &options).map_err(|_| {
            let Self { name, value } = self;
            let kind = match data_type {
                DataType::Boolean => "true or false".to_owned(),
                other if other.is_integer() => format!("whole number ({other})"),
                other if other.is_floating() => format!("number ({other})"),
                other => format!("{other}"),
            };
            Failure::Usage(format!("--set {name}={value}: {value:?} is no {kind}"))
        })?;
        let zeros = UInt32Array::from(vec![0; count]);
        let column = arrow_select::take::take(&value, &zeros, None);
        column.map_err(|error| Failure::Said(error.to_string()))
    }
}

/// The attributes for a type or population that is new or has none. Of settings of one name, the
/// last counts.
pub(super) fn schema_of(settings: &[Setting]) -> SchemaRef {
    let mut fields: Vec<Field> = Vec::new();
    for set in settings {
        fields.retain(|field| *field.name() != set.name);
        fields.push(Field::new(&set.name, set.data_type(), true));
    }
    Arc::new(Schema::new(fields))
}

/// Rows of attributes with the values that were set. The others come from `before`, which has the
/// ids in its first column, or are missing.
pub(super) fn rows(
    schema: &SchemaRef,
    settings: &[Setting],
    before: Option<&RecordBatch>,
    count: usize,
) -> Result<RecordBatch, Failure> {
    if let Some(unknown) = settings.iter().find(|set| schema.index_of(&set.name).is_err()) {
        let names: Vec<&str> = schema.fields().iter().map(|field| &**field.name()).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let name = &unknown.name;
        return Err(Failure::Usage(format!("--set {name}: no such attribute; there are {known}")));
    }
    let column = |(place, field): (usize, &Arc<Field>)| {
        if let Some(set) = settings.iter().rfind(|set| set.name == *field.name()) {
            return set.column(field.data_type(), count);
        }
        let old = before.map(|rows| rows.column(1 + place));
        Ok(old.map_or_else(|| arrow_array::new_null_array(field.data_type(), count), Arc::clone))
    };
    let columns =
        schema.fields().iter().enumerate().map(column).collect::<Result<Vec<_>, Failure>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        .map_err(|error| Failure::Said(error.to_string()))
}

/// Rows for vertices, those that exist with the attributes that are not set as they were.
pub(super) fn vertex_rows(
    network: &Network,
    vertex_type: usize,
    ids: &[u64],
    settings: &[Setting],
) -> Result<RecordBatch, Failure> {
    let before = network.vertex_rows_of(vertex_type, ids)?;
    let schema = &network.types()[vertex_type].attributes;
    rows(schema, settings, Some(&before), ids.len())
}
