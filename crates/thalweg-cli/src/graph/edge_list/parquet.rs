//! Edges of a Parquet file: a row is an edge.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::take::take;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use thalweg::graph::InputOptions;
use thalweg::graph::{EdgeBatch, EdgeSource, Population};
use thalweg::{Error, Fault, InFile, Result};
use thalweg_io::cells::{Number, numbers};

use super::EdgeListArgs;

/// Rows that are read at a time.
const BATCH_ROWS: usize = 1 << 15;

/// The edges of a Parquet file.
pub(super) struct ParquetEdges {
    population: Population,
    reader: ParquetRecordBatchReader,
    name: Arc<str>,
    /// The numbers of the columns with the ids of sources and targets.
    ends: [usize; 2],
    /// The numbers of the columns with attributes.
    attributes: Vec<usize>,
    total: u64,
    /// Rows that were read.
    row: u64,
    /// Edges that leave other vertices are left out.
    wanted: Range<u64>,
}

impl ParquetEdges {
    pub(super) fn open(
        path: &Path,
        name: &Arc<str>,
        options: &InputOptions,
        args: &EdgeListArgs,
    ) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(name, "opening", e))?;
        let failed = |found: String| {
            Fault::new(0, found, "a sound Parquet file").in_file(name, 0, "Parquet")
        };
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| failed(e.to_string()))?;
        let total =
            u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or_default();
        let schema = builder.schema().clone();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if names.len() < 2 {
            let found = format!("{} columns", names.len());
            let fault = Fault::new(0, found, "a source, a target, and attributes, if any");
            return Err(fault.in_file(name, 0, "columns"));
        }
        if let Some(again) = super::repeated_name(&names) {
            let fault = Fault::new(0, format!("{again:?} twice"), "a name of its own for each");
            return Err(fault.in_file(name, 0, "columns"));
        }
        let ends = super::end_columns(&names);
        for end in ends {
            let field = schema.field(end);
            if !field.data_type().is_integer() {
                let fault =
                    Fault::new(0, field.data_type().to_string(), "ids of vertices, whole numbers");
                return Err(fault.in_file(name, 0, format!("column {:?}", field.name())));
            }
        }
        let attributes: Vec<usize> =
            (0..names.len()).filter(|column| !ends.contains(column)).collect();
        let fields = attributes
            .iter()
            .map(|column| attribute_field(name, schema.field(*column)))
            .collect::<Result<Vec<_>>>()?;
        let reader =
            builder.with_batch_size(BATCH_ROWS).build().map_err(|e| failed(e.to_string()))?;
        Ok(Self {
            population: args.population(path, Arc::new(Schema::new(fields))),
            reader,
            name: name.clone(),
            ends,
            attributes,
            total,
            row: 0,
            wanted: options.sources.clone(),
        })
    }

    /// The next rows; `None` at the end of the file.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.reader.next() {
            None if self.row == self.total => Ok(None),
            None => {
                let found = format!("{} rows", self.row);
                let expected = format!("{}, as the file says", self.total);
                Err(Fault::new(0, found, expected).in_file(&self.name, 0, "Parquet"))
            }
            Some(batch) => batch.map(Some).map_err(|e| self.failed(&e)),
        }
    }

    /// The ids of the sources (`end` 0) or targets (`end` 1).
    fn ids(&self, batch: &RecordBatch, end: usize) -> Result<UInt64Array> {
        let column = batch.column(self.ends[end]);
        let number = numbers(column);
        let id = |row| match number(row)? {
            Number::Whole(id) => u64::try_from(id).ok(),
            Number::Real(_) => None,
        };
        let ids: UInt64Array = (0..column.len()).map(id).collect();
        if let Some(row) = (0..ids.len()).find(|row| ids.is_null(*row)) {
            let shown = arrow_cast::display::array_value_to_string(column, row).unwrap_or_default();
            let found = if column.is_null(row) { "nothing".into() } else { shown };
            let what = format!(
                "row {}, column {:?}",
                self.row + row as u64 + 1,
                batch.schema().field(self.ends[end]).name()
            );
            let fault = Fault::new(0, found, "the id of a vertex, a whole number below 2^64");
            return Err(fault.in_file(&self.name, 0, what));
        }
        Ok(ids)
    }

    fn failed(&self, error: &ArrowError) -> Error {
        let what = format!("row {} or after it", self.row + 1);
        Fault::new(0, error.to_string(), "a sound Parquet file").in_file(&self.name, 0, what)
    }
}

/// The field of the store for an attribute. A dictionary is stored as its values.
fn attribute_field(file: &Arc<str>, field: &Field) -> Result<Field> {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        data_type => data_type,
    };
    if data_type.is_nested() {
        let what = format!("column {:?} of type {data_type}", field.name()).into();
        let advice = "attributes are numbers, truths, times, strings or bytes".into();
        return Err(Error::Unsupported { file: file.clone(), what, advice });
    }
    Ok(Field::new(field.name(), data_type.clone(), field.is_nullable()))
}

/// A dictionary column as a column of its values; any other column as it is.
fn decoded(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None),
        None => Ok(column.clone()),
    }
}

impl EdgeSource for ParquetEdges {
    fn population(&self) -> &Population {
        &self.population
    }

    fn total(&self) -> Option<u64> {
        (self.wanted == (0..u64::MAX)).then_some(self.total)
    }

    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool> {
        edges.clear();
        let Some(batch) = self.next_batch()? else { return Ok(false) };
        let mut ends = [self.ids(&batch, 0)?, self.ids(&batch, 1)?];
        let schema = &self.population.attributes;
        let column = |column: &usize| decoded(batch.column(*column)).map_err(|e| self.failed(&e));
        let columns = self.attributes.iter().map(column).collect::<Result<Vec<_>>>()?;
        let mut attributes = match columns.is_empty() {
            true => None,
            false => {
                Some(RecordBatch::try_new(schema.clone(), columns).map_err(|e| self.failed(&e))?)
            }
        };
        if self.wanted != (0..u64::MAX) {
            let wanted: BooleanArray =
                ends[0].values().iter().map(|id| Some(self.wanted.contains(id))).collect();
            let filtered = |ids: &UInt64Array| {
                arrow_select::filter::filter(ids, &wanted).map_err(|e| self.failed(&e))
            };
            ends = [
                filtered(&ends[0])?.as_primitive::<UInt64Type>().clone(),
                filtered(&ends[1])?.as_primitive::<UInt64Type>().clone(),
            ];
            let rows = |all| {
                arrow_select::filter::filter_record_batch(&all, &wanted)
                    .map_err(|e| self.failed(&e))
            };
            attributes = attributes.map(rows).transpose()?;
        }
        self.row += batch.num_rows() as u64;
        edges.targets.extend_from_slice(ends[1].values());
        super::push_runs(ends[0].values(), edges);
        edges.attributes = attributes;
        Ok(true)
    }
}
