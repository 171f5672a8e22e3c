//! Edges of a text file: one edge per line, with commas or tabs between the values, which may be in
//! quotes.
//!
//! The file is read twice, because the type of a column depends on all of its values: whole
//! numbers, numbers, `true` and `false`, or else strings. An empty value is missing.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use csv::{Reader, ReaderBuilder, StringRecord};
use thalweg::control::Control;
use thalweg::graph::InputOptions;
use thalweg::graph::{EdgeBatch, EdgeSource, Population};
use thalweg::{Error, Fault, InFile, Result};

use super::EdgeListArgs;

/// A batch ends after this many edges, or this many bytes of text.
const BATCH_EDGES: usize = 1 << 16;
const BATCH_BYTES: usize = 4 << 20;

/// Longer lines are refused: most likely, a quote is never closed.
const MAX_LINE_BYTES: usize = 1 << 20;

const MAX_COLUMNS: usize = 1 << 12;

/// Lines between two checks whether the user has cancelled.
const CANCEL_CHECK_LINES: u64 = 1 << 12;

/// Bytes that are read from the file at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// A file that returns an error in the middle of a line that is too long.
struct Bounded {
    file: File,
    /// Bytes that were read since the last complete line.
    since_line: usize,
}

impl Read for Bounded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.since_line > MAX_LINE_BYTES + BUFFER_BYTES {
            let what = format!(
                "a line of more than {MAX_LINE_BYTES} bytes: is there a quote that nothing ends?"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let read = self.file.read(out)?;
        self.since_line += read;
        Ok(read)
    }
}

/// Reads the lines of a file.
struct EdgeLines {
    reader: Reader<Bounded>,
    name: Arc<str>,
    /// The number of the current line, and the offset of its first byte.
    at: (u64, u64),
}

impl EdgeLines {
    fn open(path: &Path, name: &Arc<str>, delimiter: u8) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(name, "opening", e))?;
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).delimiter(delimiter).buffer_capacity(BUFFER_BYTES);
        let reader = builder.from_reader(Bounded { file, since_line: 0 });
        Ok(Self { reader, name: name.clone(), at: (1, 0) })
    }

    /// Reads the next line. Returns false at the end of the file.
    fn next(&mut self, record: &mut StringRecord) -> Result<bool> {
        self.reader.get_mut().since_line = 0;
        let more = self.reader.read_record(record).map_err(|e| self.failed(e))?;
        if let Some(position) = record.position() {
            self.at = (position.line(), position.byte());
        }
        if record.len() > MAX_COLUMNS {
            return Err(
                self.defect(format!("{} columns", record.len()), format!("at most {MAX_COLUMNS}"))
            );
        }
        Ok(more)
    }

    /// The error for a defect of the line that was read last.
    fn defect(&self, found: impl Into<String>, expected: impl Into<String>) -> Error {
        let (line, byte) = self.at;
        Fault::new(0, found.into(), expected.into()).in_file(
            &self.name,
            byte,
            format!("line {line}"),
        )
    }

    /// The error for a line that the parser refuses.
    fn failed(&self, error: csv::Error) -> Error {
        let at = error.position().map(|position| (position.line(), position.byte()));
        // Without a position, the error is about the line after the last complete one.
        let (line, byte) =
            at.unwrap_or((self.reader.position().line(), self.reader.position().byte()));
        let (found, expected) = match error.into_kind() {
            csv::ErrorKind::Io(e) if e.kind() == io::ErrorKind::InvalidData => {
                (e.to_string(), "lines".into())
            }
            csv::ErrorKind::Io(e) => return Error::io(&self.name, "reading", e),
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                (format!("{len} values"), format!("{expected_len}, as in the line before"))
            }
            csv::ErrorKind::Utf8 { err, .. } => (format!("no text: {err}"), "UTF-8".into()),
            other => (format!("{other:?}"), "values".into()),
        };
        Fault::new(0, found, expected).in_file(&self.name, byte, format!("line {line}"))
    }
}

/// The types that all values of a column so far can have.
#[derive(Debug, Clone, Copy)]
struct PossibleTypes {
    integer: bool,
    float: bool,
    boolean: bool,
    has_values: bool,
    has_missing: bool,
}

impl PossibleTypes {
    const ANY: Self =
        Self { integer: true, float: true, boolean: true, has_values: false, has_missing: false };

    /// Leaves out the types that a value cannot have.
    fn narrow(&mut self, text: &str) {
        if text.is_empty() {
            self.has_missing = true;
            return;
        }
        self.has_values = true;
        // A number would lose the leading zeros of 007, or the sign of +7: such values are names.
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_name = text.starts_with('+')
            || digits.len() > 1
                && digits.starts_with('0')
                && digits.bytes().all(|b| b.is_ascii_digit());
        self.integer = self.integer && !is_name && text.parse::<i64>().is_ok();
        // A float would round whole numbers that do not fit into its mantissa.
        let is_whole = digits.bytes().all(|b| b.is_ascii_digit());
        let is_long = is_whole && !text.parse().is_ok_and(is_exact);
        self.float = self.float && !is_name && !is_long && text.parse::<f64>().is_ok();
        self.boolean = self.boolean && parse_boolean(text).is_some();
    }

    /// The most specific possible type.
    fn data_type(self) -> DataType {
        match self {
            Self { has_values: false, .. } => DataType::Utf8,
            Self { boolean: true, .. } => DataType::Boolean,
            Self { integer: true, .. } => DataType::Int64,
            Self { float: true, .. } => DataType::Float64,
            _ => DataType::Utf8,
        }
    }
}

/// Whether a float has exactly this value.
fn is_exact(number: i64) -> bool {
    number as f64 as i128 == i128::from(number)
}

fn parse_boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Collects the values of a column of a batch.
enum ColumnBuilder {
    Integer(Int64Builder),
    Float(Float64Builder),
    Boolean(BooleanBuilder),
    Text(StringBuilder),
}

impl ColumnBuilder {
    fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Int64 => Self::Integer(Int64Builder::new()),
            DataType::Float64 => Self::Float(Float64Builder::new()),
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Adds a value, or a missing value if the text is empty. Returns false if the text is not a
    /// value of the column's type.
    fn push(&mut self, text: &str) -> bool {
        if text.is_empty() {
            match self {
                Self::Integer(values) => values.append_null(),
                Self::Float(values) => values.append_null(),
                Self::Boolean(values) => values.append_null(),
                Self::Text(values) => values.append_null(),
            }
            return true;
        }
        match self {
            Self::Integer(values) => text.parse().map(|value| values.append_value(value)).is_ok(),
            Self::Float(values) => text.parse().map(|value| values.append_value(value)).is_ok(),
            Self::Boolean(values) => {
                parse_boolean(text).map(|value| values.append_value(value)).is_some()
            }
            Self::Text(values) => {
                values.append_value(text);
                true
            }
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integer(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Boolean(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
        }
    }
}

/// The edges of a text file.
pub(super) struct TextEdges {
    population: Population,
    lines: EdgeLines,
    columns: TextColumns,
    total: u64,
    /// Edges that leave other vertices are left out.
    wanted: Range<u64>,
    control: Control,
    record: StringRecord,
    sources: Vec<u64>,
}

/// The columns of a text file.
struct TextColumns {
    names: Vec<String>,
    /// Whether the first line has the names, and was not read yet.
    has_names: bool,
    /// The numbers of the columns with the ids of sources and targets.
    ends: [usize; 2],
    /// The numbers of the columns with attributes.
    attributes: Vec<usize>,
}

impl TextColumns {
    /// The columns of the file whose first line is `record`.
    fn of(lines: &EdgeLines, record: &StringRecord) -> Result<Self> {
        if record.len() < 2 {
            let found = format!("{} column", record.len());
            return Err(lines.defect(found, "a source, a target, and attributes, if any"));
        }
        let first: Vec<String> = record.iter().map(|text| text.trim().to_owned()).collect();
        // The first line holds names if neither of its first two values is a number. An id that is
        // written incorrectly is not taken for a name.
        let has_names = first.iter().take(2).all(|text| text.parse::<f64>().is_err());
        let names = if has_names {
            first
        } else {
            (1..=first.len()).map(|number| format!("column{number}")).collect()
        };
        let name_refs: Vec<&str> = names.iter().map(String::as_str).collect();
        if let Some(again) = super::repeated_name(&name_refs) {
            return Err(lines.defect(
                format!("the column {again:?} twice"),
                "a name of its own for each column",
            ));
        }
        let ends = super::end_columns(&name_refs);
        let attributes = (0..names.len()).filter(|column| !ends.contains(column)).collect();
        Ok(Self { names, has_names, ends, attributes })
    }
}

impl TextEdges {
    /// Opens a file, and reads all of it once to find the number of edges and the types of columns.
    pub(super) fn open(
        path: &Path,
        name: &Arc<str>,
        delimiter: u8,
        options: &InputOptions,
        args: &EdgeListArgs,
    ) -> Result<Self> {
        let mut lines = EdgeLines::open(path, name, delimiter)?;
        let mut record = StringRecord::new();
        if !lines.next(&mut record)? {
            return Err(lines.defect("no line", "a list of edges, one a line"));
        }
        let columns = TextColumns::of(&lines, &record)?;
        let control = &options.read.control;
        let (total, types) = scan(&mut lines, &mut record, &columns, control)?;
        let fields = types.iter().zip(&columns.attributes).map(|(types, column)| {
            Field::new(&columns.names[*column], types.data_type(), types.has_missing)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self {
            population: args.population(path, schema),
            lines: EdgeLines::open(path, name, delimiter)?,
            columns,
            total,
            wanted: options.sources.clone(),
            control: control.clone(),
            record,
            sources: Vec::new(),
        })
    }
}

/// Reads all lines, of which `record` is the first. Returns the number of edges and the possible
/// types of each attribute.
fn scan(
    lines: &mut EdgeLines,
    record: &mut StringRecord,
    columns: &TextColumns,
    control: &Control,
) -> Result<(u64, Vec<PossibleTypes>)> {
    let mut types = vec![PossibleTypes::ANY; columns.attributes.len()];
    let mut total = 0_u64;
    let mut more = if columns.has_names { lines.next(record)? } else { true };
    while more {
        total += 1;
        if total.is_multiple_of(CANCEL_CHECK_LINES) && control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        for end in columns.ends {
            id(lines, record, end)?;
        }
        for (types, column) in types.iter_mut().zip(&columns.attributes) {
            types.narrow(record.get(*column).unwrap_or_default());
        }
        more = lines.next(record)?;
    }
    Ok((total, types))
}

/// The id in a column of a line.
fn id(lines: &EdgeLines, record: &StringRecord, column: usize) -> Result<u64> {
    let text = record.get(column).unwrap_or_default();
    text.trim().parse().map_err(|_| {
        let number = column + 1;
        lines.defect(
            format!("{text:?} in column {number}"),
            "the id of a vertex, a whole number below 2^64",
        )
    })
}

impl EdgeSource for TextEdges {
    fn population(&self) -> &Population {
        &self.population
    }

    fn total(&self) -> Option<u64> {
        (self.wanted == (0..u64::MAX)).then_some(self.total)
    }

    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool> {
        edges.clear();
        self.sources.clear();
        let Self { lines, record, .. } = self;
        if std::mem::take(&mut self.columns.has_names) {
            lines.next(record)?;
        }
        let schema = &self.population.attributes;
        let mut builders: Vec<ColumnBuilder> =
            schema.fields().iter().map(|field| ColumnBuilder::of(field.data_type())).collect();
        let mut more = true;
        let mut bytes = 0;
        while self.sources.len() < BATCH_EDGES && bytes < BATCH_BYTES {
            more = lines.next(record)?;
            if !more {
                break;
            }
            if lines.at.0.is_multiple_of(CANCEL_CHECK_LINES) && self.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            bytes += record.as_slice().len();
            let source = id(lines, record, self.columns.ends[0])?;
            let target = id(lines, record, self.columns.ends[1])?;
            if !(self.wanted.contains(&source) || self.wanted == (0..u64::MAX)) {
                continue;
            }
            self.sources.push(source);
            edges.targets.push(target);
            push_attributes(&mut builders, lines, record, &self.columns.attributes, schema)?;
        }
        super::push_runs(&self.sources, edges);
        if !builders.is_empty() {
            let columns = builders.iter_mut().map(ColumnBuilder::finish).collect();
            let batch = RecordBatch::try_new(schema.clone(), columns);
            edges.attributes =
                Some(batch.map_err(|e| Error::Usage(format!("{}: {e}", lines.name).into()))?);
        }
        Ok(more || !self.sources.is_empty())
    }
}

/// Adds the attributes of a line. Fails if the file has changed since its types were found.
fn push_attributes(
    builders: &mut [ColumnBuilder],
    lines: &EdgeLines,
    record: &StringRecord,
    columns: &[usize],
    schema: &Schema,
) -> Result<()> {
    for ((builder, column), field) in builders.iter_mut().zip(columns).zip(schema.fields()) {
        let text = record.get(*column).unwrap_or_default();
        if !builder.push(text) || text.is_empty() && !field.is_nullable() {
            let expected = format!("{}, as when it was read before", field.data_type());
            return Err(lines.defect(format!("{text:?} in column {}", column + 1), expected));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
