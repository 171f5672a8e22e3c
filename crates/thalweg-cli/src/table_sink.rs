//! Writes the rows of a table to an Arrow, Parquet or text file, which appears when it is complete,
//! or to standard output.

use std::io::{self, Write};
use std::path::Path;

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
use crate::output_name::check_name;

/// Rows that are written before a signal is looked for: text takes microseconds a row.
const ROWS_BETWEEN_SIGNALS: usize = 1 << 16;

/// The memory in which rows of Parquet are gathered. Signals of the usual number of rows would take
/// gigabytes.
const ROW_GROUP_MEMORY: usize = 32 << 20;

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TableFormat {
    Arrow,
    Parquet,
    Csv,
    Tsv,
    /// A folder of numpy's arrays
    Npy,
}

/// Where a table is written to: a file, a folder of numpy's arrays, or `-`, the standard output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableOut<'a> {
    pub(crate) path: &'a Path,
    pub(crate) format: TableFormat,
}

impl TableFormat {
    const ALL: [Self; 5] = [Self::Arrow, Self::Parquet, Self::Csv, Self::Tsv, Self::Npy];

    /// The end of the names of its files, and its name.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Arrow => ("arrow", "Arrow IPC"),
            Self::Parquet => ("parquet", "Parquet"),
            Self::Csv => ("csv", "CSV"),
            Self::Tsv => ("tsv", "TSV"),
            Self::Npy => ("npy", "numpy's arrays"),
        }
    }

    /// The format that the end of a name says.
    fn of_name(path: &Path) -> Option<Self> {
        let end = path.extension()?;
        Self::ALL.into_iter().find(|format| end == format.names().0)
    }
}

/// What is wrong with a folder of arrays for rows.
fn no_rows(path: &Path) -> String {
    let path = shown_path(path);
    format!("{path}: these rows are no arrays of numpy; Parquet can hold them")
}

impl<'a> TableOut<'a> {
    /// The output at a path, in the format that is asked for or that the name says. Standard output
    /// gets CSV.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a name that says no format, or another one.
    pub(crate) fn new(path: &'a Path, asked: Option<TableFormat>) -> Result<Self, Failure> {
        let format = match asked {
            Some(asked) => {
                let (end, name) = asked.names();
                check_name(path, name, &[end])?;
                asked
            }
            None if is_stream(path) => TableFormat::Csv,
            None => TableFormat::of_name(path).ok_or_else(|| {
                let path = shown_path(path);
                let ends = "the name must end in .arrow, .parquet, .csv, .tsv or, for a folder of \
                            arrays, .npy; or --to must say which";
                Failure::Usage(format!("{path}: {ends}"))
            })?,
        };
        if is_stream(path) && !matches!(format, TableFormat::Csv | TableFormat::Tsv) {
            let name = format.names().1;
            let what = format!("-: {name} cannot be written to standard output; CSV and TSV can");
            return Err(Failure::Usage(what));
        }
        Ok(Self { path, format })
    }

    /// The output whose format its name says.
    pub(crate) fn by_name(path: &'a Path) -> Option<Self> {
        TableFormat::of_name(path).map(|format| Self { path, format })
    }

    /// [`TableOut::new`] for rows that cannot be a folder of arrays.
    ///
    /// # Errors
    /// [`Failure::Usage`] for such a folder, too.
    pub(crate) fn of_rows(path: &'a Path, asked: Option<TableFormat>) -> Result<Self, Failure> {
        let out = Self::new(path, asked)?;
        if out.is_npy() { Err(Failure::Usage(no_rows(path))) } else { Ok(out) }
    }

    /// Whether it is a folder of numpy's arrays.
    pub(crate) fn is_npy(self) -> bool {
        self.format == TableFormat::Npy
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
    /// Starts a table in a file or on standard output. A folder of arrays is none.
    ///
    /// # Errors
    /// Those of making the file.
    pub(crate) fn create(out: TableOut<'_>, schema: &Schema) -> Result<Self, Failure> {
        let TableOut { path, format } = out;
        let delimiter = if format == TableFormat::Tsv { b'\t' } else { b',' };
        Ok(match format {
            TableFormat::Csv | TableFormat::Tsv if is_stream(path) => {
                Self::stdout(delimiter, schema)?
            }
            TableFormat::Arrow => Self::Arrow(ArrowWriter::create(path, schema)?),
            TableFormat::Parquet => {
                let stream = NewFileStream(NewFile::create(path)?);
                let properties =
                    WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer =
                    ParquetWriter::try_new(stream, schema.clone().into(), Some(properties))
                        .map_err(parquet)?;
                Self::Parquet(Box::new(writer))
            }
            TableFormat::Npy => return Err(Failure::Usage(no_rows(path))),
            TableFormat::Csv | TableFormat::Tsv => {
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
