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
use thalweg::new_file::{ArrowWriter, NewFile};

use crate::common::{Failure, VerbResult, listing};

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
        let kind = match path.extension().and_then(|e| e.to_str()) {
            Some("arrow") => Self::Arrow,
            Some("parquet") => Self::Parquet,
            Some("csv") => Self::Text { delimiter: b',' },
            Some("tsv") => Self::Text { delimiter: b'\t' },
            _ => return Err("the name must end in .arrow, .parquet, .csv or .tsv".into()),
        };
        Ok((path, kind))
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
    Text(csv::Writer<NewFileStream>),
    Stdout(csv::Writer<Box<dyn Write>>),
}

impl TableSink {
    pub(crate) fn create(path: &Path, kind: TableKind, schema: &Schema) -> Result<Self, Failure> {
        Ok(match kind {
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
                Self::Text(text(delimiter, schema, NewFileStream(NewFile::create(path)?))?)
            }
        })
    }

    pub(crate) fn stdout(delimiter: u8, schema: &Schema) -> Result<Self, Failure> {
        let to: Box<dyn Write> = Box::new(listing());
        Ok(Self::Stdout(text(delimiter, schema, to)?))
    }

    pub(crate) fn push(&mut self, batch: &RecordBatch) -> VerbResult {
        match self {
            Self::Arrow(writer) => writer.push(batch)?,
            Self::Parquet(writer) => writer.write(batch).map_err(parquet)?,
            Self::Text(writer) => rows(batch, writer)?,
            Self::Stdout(writer) => rows(batch, writer)?,
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> VerbResult {
        match self {
            Self::Arrow(writer) => writer.finish()?,
            Self::Parquet(writer) => writer.into_inner().map_err(parquet)?.0.finish()?,
            Self::Text(writer) => {
                let stream = writer.into_inner().map_err(|e| Failure::Said(e.to_string()))?;
                stream.0.finish()?;
            }
            Self::Stdout(mut writer) => writer.flush()?,
        }
        Ok(())
    }
}

/// Starts a table as text, with the names of its columns.
fn text<W: Write>(delimiter: u8, schema: &Schema, to: W) -> Result<csv::Writer<W>, Failure> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(to);
    writer.write_record(schema.fields().iter().map(|field| field.name())).map_err(in_text)?;
    Ok(writer)
}

/// Writes a batch as text. Missing values are empty, lists are written as in `[1, 2]`.
fn rows<W: Write>(batch: &RecordBatch, writer: &mut csv::Writer<W>) -> VerbResult {
    let options = FormatOptions::new();
    let columns: Result<Vec<ArrayFormatter<'_>>, ArrowError> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect();
    let columns = columns.map_err(|e| Failure::Said(e.to_string()))?;
    for row in 0..batch.num_rows() {
        for column in &columns {
            let cell =
                column.value(row).try_to_string().map_err(|e| Failure::Said(e.to_string()))?;
            writer.write_field(cell).map_err(in_text)?;
        }
        writer.write_record(None::<&[u8]>).map_err(in_text)?;
    }
    Ok(())
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
