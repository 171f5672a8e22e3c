//! Writes the rows of a table to an Arrow, Parquet or text file, which appears when it is complete,
//! or to standard output.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, Schema};
use parquet::arrow::ArrowWriter as ParquetWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use thalweg::control::Control;
use thalweg::new_file::{ArrowWriter, NewFile};
use thalweg::text::escaped;

use crate::common::{Failure, VerbResult, is_stream, listing, shown_path};

/// Rows that are written before a signal is looked for: text takes microseconds a row.
const ROWS_BETWEEN_SIGNALS: usize = 1 << 16;

/// The memory in which rows of Parquet are gathered. Signals of the usual number of rows would take
/// gigabytes.
const ROW_GROUP_MEMORY: usize = 32 << 20;

/// Whether a path names a folder of numpy's arrays.
pub(crate) fn is_npy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npy")
}

/// The format of the table at a path.
///
/// # Errors
/// [`Failure::Usage`] for a name that says none.
pub(crate) fn table(path: &Path) -> Result<TableKind, Failure> {
    let usage =
        |e| Failure::Usage(format!("{}: {e}, or .npy for a folder of arrays", shown_path(path)));
    TableKind::of_path(path).map_err(usage)
}

/// The format of a table's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableKind {
    Arrow,
    Parquet,
    Text { delimiter: u8 },
}

impl TableKind {
    /// A path, and the format that its ending names.
    pub(crate) fn parse_path(text: &str) -> Result<(PathBuf, Self), String> {
        let path = PathBuf::from(text);
        let kind = Self::of_path(&path)?;
        Ok((path, kind))
    }

    /// The format that the ending of a path names. Standard output gets CSV.
    pub(crate) fn of_path(path: &Path) -> Result<Self, String> {
        if is_stream(path) {
            return Ok(Self::Text { delimiter: b',' });
        }
        match path.extension().and_then(|e| e.to_str()) {
            Some("arrow") => Ok(Self::Arrow),
            Some("parquet") => Ok(Self::Parquet),
            Some("csv") => Ok(Self::Text { delimiter: b',' }),
            Some("tsv") => Ok(Self::Text { delimiter: b'\t' }),
            _ => Err("the name must end in .arrow, .parquet, .csv or .tsv".into()),
        }
    }
}

/// A new file as a [`Write`].
pub(crate) struct NewFileStream(NewFile);

impl Write for NewFileStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    /// Does nothing: finishing the file flushes everything.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A table that is being written.
pub(crate) enum TableSink {
    Arrow(ArrowWriter),
    Parquet(Box<ParquetWriter<NewFileStream>>),
    Text(TextTable<NewFileStream>),
    Stdout(TextTable<Box<dyn Write>>),
}

impl TableSink {
    /// Starts a table in a file, or for `-` on standard output.
    pub(crate) fn create(path: &Path, kind: TableKind, schema: &Schema) -> Result<Self, Failure> {
        Ok(match kind {
            TableKind::Text { delimiter } if is_stream(path) => Self::stdout(delimiter, schema)?,
            TableKind::Arrow => Self::Arrow(ArrowWriter::create(path, schema)?),
            TableKind::Parquet => {
                let stream = NewFileStream(NewFile::create(path)?);
                let properties =
                    WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer =
                    ParquetWriter::try_new(stream, schema.clone().into(), Some(properties))
                        .map_err(parquet)?;
                Self::Parquet(Box::new(writer))
            }
            TableKind::Text { delimiter } => {
                let to = NewFileStream(NewFile::create(path)?);
                Self::Text(TextTable::new(delimiter, delimiter == b'\t', schema, to)?)
            }
        })
    }

    pub(crate) fn stdout(delimiter: u8, schema: &Schema) -> Result<Self, Failure> {
        let to: Box<dyn Write> = Box::new(listing());
        Ok(Self::Stdout(TextTable::new(delimiter, true, schema, to)?))
    }

    /// [`TableSink::push`] for a batch of any number of rows, unless a signal cancels `control`.
    pub(crate) fn push_long(&mut self, batch: &RecordBatch, control: &Control) -> VerbResult {
        let rows = batch.num_rows();
        for from in (0..rows).step_by(ROWS_BETWEEN_SIGNALS) {
            control.check()?;
            self.push(&batch.slice(from, ROWS_BETWEEN_SIGNALS.min(rows - from)))?;
        }
        Ok(())
    }

    pub(crate) fn push(&mut self, batch: &RecordBatch) -> VerbResult {
        match self {
            Self::Arrow(writer) => writer.push(batch)?,
            Self::Parquet(writer) => {
                writer.write(batch).map_err(parquet)?;
                if writer.memory_size() > ROW_GROUP_MEMORY {
                    writer.flush().map_err(parquet)?;
                }
            }
            Self::Text(table) => table.rows(batch)?,
            Self::Stdout(table) => table.rows(batch)?,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> VerbResult {
        match self {
            Self::Arrow(writer) => writer.finish()?,
            Self::Parquet(writer) => writer.into_inner().map_err(parquet)?.0.finish()?,
            Self::Text(table) => {
                let stream = table.writer.into_inner().map_err(|e| Failure::Said(e.to_string()))?;
                stream.0.finish()?;
            }
            Self::Stdout(mut table) => table.writer.flush()?,
        }
        Ok(())
    }
}

/// A table as text.
pub(crate) struct TextTable<W: Write> {
    writer: csv::Writer<W>,
    /// Whether cells are escaped: on standard output, which may be a terminal, and where columns
    /// are separated by tabs. Files of CSV keep what the cells hold, in quotes where necessary.
    is_escaped: bool,
}

impl<W: Write> TextTable<W> {
    /// Starts a table with the names of its columns.
    fn new(delimiter: u8, is_escaped: bool, schema: &Schema, to: W) -> Result<Self, Failure> {
        let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(to);
        let mut table = Self { writer, is_escaped };
        for field in schema.fields() {
            table.cell(field.name())?;
        }
        table.end_row()?;
        Ok(table)
    }

    fn cell(&mut self, text: &str) -> VerbResult {
        let text = if self.is_escaped { escaped(text) } else { text.into() };
        self.writer.write_field(&*text).map_err(in_text)
    }

    fn end_row(&mut self) -> VerbResult {
        self.writer.write_record(None::<&[u8]>).map_err(in_text)
    }

    /// Writes a batch. Missing values are empty, lists are written as in `[1, 2]`.
    fn rows(&mut self, batch: &RecordBatch) -> VerbResult {
        let options = FormatOptions::new();
        let columns: Result<Vec<ArrayFormatter<'_>>, ArrowError> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options))
            .collect();
        let columns = columns.map_err(|e| Failure::Said(e.to_string()))?;
        let mut cell = String::new();
        for row in 0..batch.num_rows() {
            for column in &columns {
                cell.clear();
                column.value(row).write(&mut cell).map_err(|e| Failure::Said(e.to_string()))?;
                self.cell(&cell)?;
            }
            self.end_row()?;
        }
        Ok(())
    }
}

fn in_text(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.get_ref().is_none() => error.into(),
        csv::ErrorKind::Io(error) => Failure::Said(error.to_string()),
        other => Failure::Said(format!("{other:?}")),
    }
}

fn parquet(error: ParquetError) -> Failure {
    Failure::Said(error.to_string())
}
