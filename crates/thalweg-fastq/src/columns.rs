//! Records as Arrow batches.

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use thalweg_io::{Error, Result};

use crate::file::FastqFile;
use crate::gathered::Gathered;
use crate::piece::Gather;
use crate::record::Record;

/// The columns of batches: `name`, `description` (null where there is none), `sequence` and
/// `quality_scores` (as in the file: 33 more than the Phred quality, in ASCII), all text.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
        Arc::new(Schema::new(vec![
            text("name", false),
            text("description", true),
            text("sequence", false),
            text("quality_scores", false),
        ]))
    });
    SCHEMA.clone()
}

/// A column of text while it grows.
struct Text {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0] }
    }
}

impl Text {
    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        // A batch has the records of one piece, and those between it and the next: under 2 GiB.
        self.offsets.push(self.bytes.len() as i32);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> std::result::Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(self.bytes), nulls)?))
    }
}

/// Puts records into columns.
pub(crate) struct Columns;

/// Some records as columns.
#[derive(Default)]
pub(crate) struct Rows {
    names: Text,
    descriptions: Text,
    has_description: Vec<bool>,
    sequences: Text,
    qualities: Text,
}

impl Gather for Columns {
    type Rows = Rows;

    fn push(&self, rows: &mut Rows, record: &Record<'_>) {
        let (name, description) = record.parts();
        rows.names.push(name.as_bytes());
        rows.descriptions.push(description.unwrap_or_default().as_bytes());
        rows.has_description.push(description.is_some());
        rows.sequences.push(record.sequence);
        rows.qualities.push(record.qualities);
    }
}

impl Rows {
    fn finish(self) -> std::result::Result<RecordBatch, ArrowError> {
        let nulls = NullBuffer::from(self.has_description);
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let columns = vec![
            self.names.finish(None)?,
            self.descriptions.finish(nulls)?,
            self.sequences.finish(None)?,
            self.qualities.finish(None)?,
        ];
        RecordBatch::try_new(schema(), columns)
    }
}

/// The batches of a file, in order. It ends after an error.
pub struct Batches(Gathered<Columns>);

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let finish = |rows: Rows| {
            rows.finish().map_err(|error| Error::Usage(format!("a batch of FASTQ: {error}").into()))
        };
        Some(self.0.next()?.and_then(finish))
    }
}

impl FastqFile {
    /// The records as batches of about half a MiB of text, in the order of the file. [`schema`] has
    /// the columns.
    ///
    /// # Errors
    /// Those of [`FastqFile::map`].
    pub fn batches(&self) -> Result<Batches> {
        Ok(Batches(self.taken(Columns, None)?))
    }
}
