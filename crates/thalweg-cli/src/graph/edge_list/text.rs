//! Edges of a text: a line each, with commas or tabs between values, which may be in quotes.
//!
//! The text is read twice, for the type of a column follows from all of its values: whole numbers,
//! numbers, `true` and `false`, or else strings. A value that is empty is none.

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

/// Edges of a piece, and bytes of their text, at most.
const PIECE: usize = 1 << 16;
const PIECE_BYTES: usize = 4 << 20;

/// The most bytes of a line: a longer one most likely has a quote that nothing closes.
const LINE: usize = 1 << 20;

/// Columns, at most.
const COLUMNS: usize = 1 << 12;

/// Between looks at whether to stop.
const EVERY: u64 = 1 << 12;

/// A file that refuses to give more than a line may have.
struct Bounded {
    file: File,
    /// Bytes since the last line was whole.
    since: usize,
}

impl Read for Bounded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.since > LINE + BUFFER {
            let what =
                format!("a line of more than {LINE} bytes: is there a quote that nothing ends?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let read = self.file.read(out)?;
        self.since += read;
        Ok(read)
    }
}

/// What is read at a time.
const BUFFER: usize = 1 << 16;

/// The lines of a file.
struct EdgeLines {
    reader: Reader<Bounded>,
    name: Arc<str>,
    /// Where the line begins: the number of the line, and of the byte.
    at: (u64, u64),
}

impl EdgeLines {
    fn open(path: &Path, name: &Arc<str>, comma: u8) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(name, "opening", e))?;
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).delimiter(comma).buffer_capacity(BUFFER);
        let reader = builder.from_reader(Bounded { file, since: 0 });
        Ok(Self { reader, name: name.clone(), at: (1, 0) })
    }

    fn next(&mut self, record: &mut StringRecord) -> Result<bool> {
        self.reader.get_mut().since = 0;
        let more = self.reader.read_record(record).map_err(|e| self.failed(e))?;
        if let Some(position) = record.position() {
            self.at = (position.line(), position.byte());
        }
        if record.len() > COLUMNS {
            return Err(
                self.wrong(format!("{} columns", record.len()), format!("at most {COLUMNS}"))
            );
        }
        Ok(more)
    }

    /// A defect of the line that was read last.
    fn wrong(&self, found: impl Into<String>, expected: impl Into<String>) -> Error {
        let (line, byte) = self.at;
        Fault::new(0, found.into(), expected.into()).in_file(
            &self.name,
            byte,
            format!("line {line}"),
        )
    }

    fn failed(&self, error: csv::Error) -> Error {
        let at = error.position().map(|position| (position.line(), position.byte()));
        // Where no line became whole, it is the one after the last.
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

/// What all values of a column can be.
#[derive(Debug, Clone, Copy)]
struct PossibleTypes {
    whole: bool,
    number: bool,
    truth: bool,
    has_value: bool,
    has_none: bool,
}

impl PossibleTypes {
    const ANY: Self =
        Self { whole: true, number: true, truth: true, has_value: false, has_none: false };

    fn see(&mut self, text: &str) {
        if text.is_empty() {
            self.has_none = true;
            return;
        }
        self.has_value = true;
        // What a number would not give back as it was written, as in 007, is a name.
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_name = text.starts_with('+')
            || digits.len() > 1
                && digits.starts_with('0')
                && digits.bytes().all(|b| b.is_ascii_digit());
        self.whole = self.whole && !is_name && text.parse::<i64>().is_ok();
        // Digits beyond 64 bits would be lost.
        let is_long = digits.bytes().all(|b| b.is_ascii_digit()) && text.parse::<i64>().is_err();
        self.number = self.number && !is_name && !is_long && text.parse::<f64>().is_ok();
        self.truth = self.truth && truth(text).is_some();
    }

    fn kind(self) -> DataType {
        match self {
            Self { has_value: false, .. } => DataType::Utf8,
            Self { truth: true, .. } => DataType::Boolean,
            Self { whole: true, .. } => DataType::Int64,
            Self { number: true, .. } => DataType::Float64,
            _ => DataType::Utf8,
        }
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// ColumnBuilder of a column, until they are an array.
enum ColumnBuilder {
    Whole(Int64Builder),
    Number(Float64Builder),
    Truth(BooleanBuilder),
    Text(StringBuilder),
}

impl ColumnBuilder {
    fn of(kind: &DataType) -> Self {
        match kind {
            DataType::Int64 => Self::Whole(Int64Builder::new()),
            DataType::Float64 => Self::Number(Float64Builder::new()),
            DataType::Boolean => Self::Truth(BooleanBuilder::new()),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Whether it is a value of the column's type.
    fn push(&mut self, text: &str) -> bool {
        if text.is_empty() {
            match self {
                Self::Whole(values) => values.append_null(),
                Self::Number(values) => values.append_null(),
                Self::Truth(values) => values.append_null(),
                Self::Text(values) => values.append_null(),
            }
            return true;
        }
        match self {
            Self::Whole(values) => text.parse().map(|value| values.append_value(value)).is_ok(),
            Self::Number(values) => text.parse().map(|value| values.append_value(value)).is_ok(),
            Self::Truth(values) => truth(text).map(|value| values.append_value(value)).is_some(),
            Self::Text(values) => {
                values.append_value(text);
                true
            }
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Whole(values) => Arc::new(values.finish()),
            Self::Number(values) => Arc::new(values.finish()),
            Self::Truth(values) => Arc::new(values.finish()),
            Self::Text(values) => Arc::new(values.finish()),
        }
    }
}

/// Edges of a text.
pub(super) struct TextEdges {
    population: Population,
    lines: EdgeLines,
    /// The columns of the ends, and of the attributes.
    ends: [usize; 2],
    others: Vec<usize>,
    has_head: bool,
    total: u64,
    wanted: Range<u64>,
    control: Control,
    record: StringRecord,
    sources: Vec<u64>,
}

impl TextEdges {
    /// Reads all of it once.
    pub(super) fn open(
        path: &Path,
        name: &Arc<str>,
        comma: u8,
        options: &InputOptions,
        args: &EdgeListArgs,
    ) -> Result<Self> {
        let mut lines = EdgeLines::open(path, name, comma)?;
        let mut record = StringRecord::new();
        if !lines.next(&mut record)? {
            return Err(lines.wrong("no line", "a list of edges, one a line"));
        }
        if record.len() < 2 {
            let found = format!("{} column", record.len());
            return Err(lines.wrong(found, "a source, a target, and attributes, if any"));
        }
        let first: Vec<String> = record.iter().map(|text| text.trim().to_owned()).collect();
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        // Names, if neither of the first two could be an id that is merely written wrong.
        let has_head = first.iter().take(2).all(|text| text.parse::<f64>().is_err());
        let numbered: Vec<String> =
            (1..=first.len()).map(|number| format!("column{number}")).collect();
        let names: Vec<&str> =
            if has_head { first } else { numbered.iter().map(String::as_str).collect() };
        if let Some(again) = super::twice(&names) {
            return Err(lines.wrong(
                format!("the column {again:?} twice"),
                "a name of its own for each column",
            ));
        }
        let ends = super::ends(&names);
        let others: Vec<usize> = (0..names.len()).filter(|column| !ends.contains(column)).collect();
        let (mut can, mut total) = (vec![PossibleTypes::ANY; others.len()], 0_u64);
        let mut more = if has_head { lines.next(&mut record)? } else { true };
        while more {
            total += 1;
            if total.is_multiple_of(EVERY) && options.read.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            for end in ends {
                id(&lines, &record, end)?;
            }
            for (can, column) in can.iter_mut().zip(&others) {
                can.see(record.get(*column).unwrap_or_default());
            }
            more = lines.next(&mut record)?;
        }
        let fields = can
            .iter()
            .zip(&others)
            .map(|(can, column)| Field::new(names[*column], can.kind(), can.has_none));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self {
            population: args.population(path, schema),
            lines: EdgeLines::open(path, name, comma)?,
            ends,
            others,
            has_head,
            total,
            wanted: options.sources.clone(),
            control: options.read.control.clone(),
            record,
            sources: Vec::new(),
        })
    }
}

fn id(lines: &EdgeLines, record: &StringRecord, column: usize) -> Result<u64> {
    let text = record.get(column).unwrap_or_default();
    text.trim().parse().map_err(|_| {
        let number = column + 1;
        lines.wrong(
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
        if std::mem::take(&mut self.has_head) {
            lines.next(record)?;
        }
        let schema = &self.population.attributes;
        let mut values: Vec<ColumnBuilder> =
            schema.fields().iter().map(|field| ColumnBuilder::of(field.data_type())).collect();
        let (mut more, mut bytes) = (true, 0);
        while self.sources.len() < PIECE && bytes < PIECE_BYTES {
            more = lines.next(record)?;
            if !more {
                break;
            }
            if lines.at.0.is_multiple_of(EVERY) && self.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            bytes += record.as_slice().len();
            let [source, target] = self.ends;
            let (source, target) = (id(lines, record, source)?, id(lines, record, target)?);
            if !(self.wanted.contains(&source) || self.wanted == (0..u64::MAX)) {
                continue;
            }
            self.sources.push(source);
            edges.targets.push(target);
            for ((values, column), field) in
                values.iter_mut().zip(&self.others).zip(schema.fields())
            {
                let text = record.get(*column).unwrap_or_default();
                if !values.push(text) || text.is_empty() && !field.is_nullable() {
                    let expected = format!("{}, as when it was read before", field.data_type());
                    return Err(lines.wrong(format!("{text:?} in column {}", column + 1), expected));
                }
            }
        }
        super::runs(&self.sources, edges);
        if !values.is_empty() {
            let columns = values.iter_mut().map(ColumnBuilder::finish).collect();
            let batch = RecordBatch::try_new(schema.clone(), columns);
            edges.attributes =
                Some(batch.map_err(|e| Error::Usage(format!("{}: {e}", lines.name).into()))?);
        }
        Ok(more || !self.sources.is_empty())
    }
}

#[cfg(test)]
mod tests;
