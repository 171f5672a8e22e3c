//! Edges of a Parquet file: a row is an edge.

use std::any::Any;
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Once};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::take::take;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
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
        let bytes = file.metadata().map_err(|e| Error::io(name, "opening", e))?.len();
        let builder =
            unless_it_panics(|| ParquetRecordBatchReaderBuilder::try_new(file)).map_err(&failed)?;
        if let Some(found) = misplaced_column(builder.metadata(), bytes) {
            return Err(failed(found));
        }
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
            unless_it_panics(|| builder.with_batch_size(BATCH_ROWS).build()).map_err(&failed)?;
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
        let batch = unless_it_panics(|| self.reader.next().transpose())
            .map_err(|found| self.failed(found))?;
        match batch {
            None if self.row == self.total => Ok(None),
            None => {
                let found = format!("{} rows", self.row);
                let expected = format!("{}, as the file says", self.total);
                Err(Fault::new(0, found, expected).in_file(&self.name, 0, "Parquet"))
            }
            batch => Ok(batch),
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

    fn failed(&self, found: impl ToString) -> Error {
        let what = format!("row {} or after it", self.row + 1);
        Fault::new(0, found.to_string(), "a sound Parquet file").in_file(&self.name, 0, what)
    }
}

/// Calls a function of the crate for Parquet, which panics over some damaged files. The error is
/// what the function returned, or what it said when it panicked.
fn unless_it_panics<T, E: ToString>(f: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    thread_local!(static IS_QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                before(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(f));
    IS_QUIET.set(false);
    outcome.map_err(|panic| said(&*panic))?.map_err(|e| e.to_string())
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("damage").into()
}

/// What is wrong with the place of a column in a file of so many bytes: the crate panics if it asks
/// for a negative one.
fn misplaced_column(file: &ParquetMetaData, bytes: u64) -> Option<String> {
    let columns = file.row_groups().iter().flat_map(RowGroupMetaData::columns);
    columns.into_iter().find_map(|column| {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let len = column.compressed_size();
        let end = start.checked_add(len).and_then(|end| u64::try_from(end).ok());
        let lies_inside = start >= 0 && len >= 0 && end.is_some_and(|end| end <= bytes);
        (!lies_inside).then(|| {
            format!("column {} at byte {start}, {len} bytes long", column.column_path().string())
        })
    })
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
        let column = |column: &usize| decoded(batch.column(*column)).map_err(|e| self.failed(e));
        let columns = self.attributes.iter().map(column).collect::<Result<Vec<_>>>()?;
        let mut attributes = match columns.is_empty() {
            true => None,
            false => {
                Some(RecordBatch::try_new(schema.clone(), columns).map_err(|e| self.failed(e))?)
            }
        };
        if self.wanted != (0..u64::MAX) {
            let wanted: BooleanArray =
                ends[0].values().iter().map(|id| Some(self.wanted.contains(id))).collect();
            let filtered = |ids: &UInt64Array| {
                arrow_select::filter::filter(ids, &wanted).map_err(|e| self.failed(e))
            };
            ends = [
                filtered(&ends[0])?.as_primitive::<UInt64Type>().clone(),
                filtered(&ends[1])?.as_primitive::<UInt64Type>().clone(),
            ];
            let rows = |all| {
                arrow_select::filter::filter_record_batch(&all, &wanted).map_err(|e| self.failed(e))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
    use parquet::arrow::ArrowWriter;
    use thalweg::graph::{EdgeBatch, EdgeSource, InputOptions};

    use super::{EdgeListArgs, ParquetEdges};

    fn file() -> Vec<u8> {
        let ids = || Arc::new((0..20).collect::<UInt64Array>()) as ArrayRef;
        let weights: Float64Array = (0..20).map(f64::from).collect();
        let labels: StringArray = (0..20).map(|i| Some(format!("n{}", i % 3))).collect();
        let batch = RecordBatch::try_from_iter([
            ("source", ids()),
            ("target", ids()),
            ("weight", Arc::new(weights)),
            ("label", Arc::new(labels)),
        ])
        .unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// How many edges are read, or the reason why not.
    fn read(path: &Path) -> thalweg::Result<usize> {
        let args = EdgeListArgs {
            population: None,
            from_type: None,
            to_type: None,
            directed: false,
            undirected: false,
            several: false,
        };
        let name = path.to_string_lossy().into();
        let mut edges = ParquetEdges::open(path, &name, &InputOptions::default(), &args)?;
        let (mut batch, mut count) = (EdgeBatch::default(), 0);
        while edges.next(&mut batch)? {
            count += batch.targets.len();
        }
        Ok(count)
    }

    #[test]
    fn damaged_files_are_no_panics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("edges.parquet");
        let file = file();
        std::fs::write(&path, &file).unwrap();
        assert_eq!(read(&path).unwrap(), 20);
        let damaged = |at: usize, change: u8| {
            let mut file = file.clone();
            file[at] ^= change;
            std::fs::write(&path, &file).unwrap();
            read(&path)
        };
        let footer = u32::from_le_bytes(file[file.len() - 8..][..4].try_into().unwrap()) as usize;
        let mut refused = 0;
        for at in file.len() - 8 - footer..file.len() - 8 {
            // Numbers are zigzag: the least bit is the sign.
            for change in [1, 0x80] {
                refused += usize::from(damaged(at, change).is_err());
            }
        }
        assert!(refused > footer / 4, "{refused} of {footer} bytes");
        for at in 4..file.len() - 8 - footer {
            for change in [1, 0x80] {
                let _ = damaged(at, change);
            }
        }
    }
}
