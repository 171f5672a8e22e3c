//! Scanning many files: a table with one row per read, without signal.
//!
//! In addition to the columns of [`ReadFile::scan`](super::ReadFile::scan), there are `file` (the
//! file's path), and a column for each requested attribute of the read groups. These columns are
//! dictionaries, so that each takes four bytes per row.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::filter::filter_record_batch;
use thalweg_io::condition::{Bound, Condition};
use thalweg_io::urls;
use thalweg_io::{Error, Result};

use super::columns::Signal;
use super::read_set::files_in_words;
use super::{Batch, BatchOptions, Order, ReadSet, Selection, Strings};
use crate::record::Header;

/// Name of the column with the path of a read's file.
pub const FILE_COLUMN: &str = "file";

/// Name of the column of read groups.
const GROUP_COLUMN: &str = "read_group";

/// Rows of a joined batch. The batches of the engine have few reads each, because they are sized
/// for reads with signal.
const BATCH_ROWS: usize = 8192;

/// Bytes of a joined batch.
const BATCH_BYTES: usize = 8 << 20;

/// Options for scanning a data set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanOptions {
    /// The columns, in this order. Empty for all columns of the reads and `file`. A name that is
    /// not a column is an attribute of the read groups, such as `run_id`. It becomes text, and null
    /// if a read group does not have it.
    pub columns: Vec<String>,
    /// The condition that rows must meet. It may use attributes.
    pub condition: Option<Condition>,
    /// The column type of strings.
    pub strings: Strings,
    /// The order of rows.
    pub order: Order,
}

impl ReadSet {
    /// The fields of the selected reads without their samples: one row per read, with the number of
    /// its samples, its file, and the requested attributes. Samples are not decoded, and not
    /// fetched if the format stores them separately.
    ///
    /// # Errors
    /// Those of [`ReadSet::batches`], but defects of the signal are not detected;
    /// [`Error::NotFound`] for a name that is neither a column nor an attribute; [`Error::Usage`]
    /// for a condition that does not fit the columns.
    pub fn scan(&self, selection: &Selection, options: &ScanOptions) -> Result<Scan> {
        let own = self.scan_schema(options.strings)?;
        let mut fields: Vec<Field> = own.fields().iter().map(|field| (**field).clone()).collect();
        fields.push(text_field(FILE_COLUMN, false));
        let everything: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let asked = options.condition.iter().flat_map(Condition::columns);
        let headers: Vec<&Header> = self.headers().collect();
        let mut attributes: Vec<ScanAttribute> = Vec::new();
        for name in options.columns.iter().map(String::as_str).chain(asked) {
            if !fields.iter().any(|field| field.name() == name) {
                attributes.push(attribute(name, &headers, &everything)?);
                fields.push(text_field(name, true));
            }
        }
        let schema = Arc::new(Schema::new(fields));
        let condition =
            options.condition.as_ref().map(|condition| condition.bind(&schema)).transpose()?;
        let shown = if options.columns.is_empty() { &everything } else { &options.columns };
        let shown: Vec<usize> =
            shown.iter().filter_map(|name| schema.index_of(name).ok()).collect();
        let out = Arc::new(schema.project(&shown).map_err(refused)?);
        let paths: Vec<String> = self.paths().map(urls::shown_path).collect();
        let files: ArrayRef = Arc::new(StringArray::from_iter_values(&paths));
        let (order, strings) = (options.order, options.strings);
        let columns = BatchOptions { order, strings, ..BatchOptions::default() };
        let batches = Box::new(self.tabulate(selection, columns, Signal::Length)?);
        Ok(Scan {
            schema,
            out,
            shown,
            condition,
            batches,
            files,
            attributes,
            looked_at: 0,
            over: false,
        })
    }
}

fn text_field(name: &str, nullable: bool) -> Field {
    Field::new_dictionary(name, DataType::Int32, DataType::Utf8, nullable)
}

/// An attribute of the read groups of all files.
#[derive(Debug)]
struct ScanAttribute {
    /// The distinct values of the attribute.
    values: ArrayRef,
    /// For each file and read group, the index of its value.
    codes: Vec<Vec<Option<i32>>>,
}

fn attribute(name: &str, headers: &[&Header], columns: &[String]) -> Result<ScanAttribute> {
    let mut values: Vec<&str> = Vec::new();
    let mut known: HashMap<&str, i32> = HashMap::new();
    let mut found = false;
    let mut codes = Vec::with_capacity(headers.len());
    for header in headers {
        let attribute = header.attributes.iter().find(|attribute| attribute.name == name);
        found |= attribute.is_some();
        let mut here = Vec::new();
        for value in attribute.map(|attribute| attribute.values.as_slice()).unwrap_or_default() {
            here.push(value.as_deref().map(|value| {
                *known.entry(value).or_insert_with(|| {
                    values.push(value);
                    (values.len() - 1) as i32
                })
            }));
        }
        codes.push(here);
    }
    if !found {
        let mut names: Vec<&str> =
            headers.iter().flat_map(|h| &h.attributes).map(|a| a.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        return Err(Error::NotFound {
            file: files_in_words(headers.len()).into(),
            what: format!("column {name:?}").into(),
            advice: format!(
                "columns are {}; attributes are {}",
                columns.join(", "),
                names.join(", ")
            )
            .into(),
        });
    }
    Ok(ScanAttribute { values: Arc::new(StringArray::from_iter_values(values)), codes })
}

/// The rows of a scan, in batches of thousands of rows. The iterator ends after an error.
pub struct Scan {
    /// All columns, including those that only the condition uses.
    schema: SchemaRef,
    /// The columns of the result.
    out: SchemaRef,
    /// The indices of the columns of the result in `schema`.
    shown: Vec<usize>,
    condition: Option<Bound>,
    batches: Box<dyn Iterator<Item = Result<Batch>> + Send>,
    files: ArrayRef,
    attributes: Vec<ScanAttribute>,
    looked_at: u64,
    over: bool,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("schema", &self.out).finish_non_exhaustive()
    }
}

impl Scan {
    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.out.clone()
    }

    /// How many reads were looked at so far, those for which the condition does not hold included.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Adds the columns of the file and of attributes, and applies the condition.
    fn complete(&self, batch: Batch) -> Result<RecordBatch, ArrowError> {
        let file = batch.file();
        let batch = batch.into_inner();
        let groups = batch
            .column_by_name(GROUP_COLUMN)
            .map(|column| column.as_primitive::<UInt32Type>().clone());
        let groups =
            groups.ok_or_else(|| ArrowError::SchemaError("no column of read groups".into()))?;
        let mut columns = batch.columns().to_vec();
        let code = i32::try_from(file).unwrap_or(i32::MAX);
        columns.push(dictionary(Int32Array::from_value(code, batch.num_rows()), &self.files)?);
        for attribute in &self.attributes {
            let codes = attribute.codes.get(file).map(Vec::as_slice).unwrap_or_default();
            let keys: Int32Array = groups
                .iter()
                .map(|group| *codes.get(group.unwrap_or(u32::MAX) as usize)?)
                .collect();
            columns.push(dictionary(keys, &attribute.values)?);
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns)?;
        let batch = match &self.condition {
            Some(condition) => filter_record_batch(&batch, &condition.holds(&batch))?,
            None => batch,
        };
        batch.project(&self.shown)
    }

    /// The next joined batch; `None` at the end.
    fn gather(&mut self) -> Result<Option<RecordBatch>> {
        let mut parts = Vec::new();
        let mut rows = 0;
        let mut bytes = 0;
        let most = if joinable(&self.out) { BATCH_ROWS } else { 1 };
        while rows < most && bytes < BATCH_BYTES {
            let Some(batch) = self.batches.next().transpose()? else { break };
            let all = batch.num_rows();
            self.looked_at += all as u64;
            let size = batch.get_array_memory_size();
            let batch = self.complete(batch).map_err(refused)?;
            // A batch without rows has lost its dictionaries, so that it cannot be joined.
            if batch.num_rows() == 0 {
                continue;
            }
            rows += batch.num_rows();
            bytes += size * batch.num_rows() / all.max(1);
            parts.push(batch);
        }
        if parts.is_empty() {
            return Ok(None);
        }
        joined(&self.out, &parts).map(Some).map_err(refused)
    }
}

/// Joins batches. All have the same dictionaries, and the first one is used. Arrow would merge the
/// dictionaries.
fn joined(schema: &SchemaRef, parts: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    if let [only] = parts {
        return Ok(only.clone());
    }
    let column = |at: usize| {
        let arrays: Vec<&dyn Array> = parts.iter().map(|part| part.column(at).as_ref()).collect();
        let dictionaries: Option<Vec<_>> =
            arrays.iter().map(|array| array.as_any_dictionary_opt()).collect();
        let Some(dictionaries) = dictionaries else { return concat(&arrays) };
        let keys =
            concat(&dictionaries.iter().map(|dictionary| dictionary.keys()).collect::<Vec<_>>())?;
        let values = dictionaries.first().map(|dictionary| dictionary.values().clone());
        let values = values.ok_or_else(|| ArrowError::ComputeError("no batches".into()))?;
        Ok(match keys.as_primitive_opt::<UInt8Type>() {
            Some(codes) => {
                Arc::new(DictionaryArray::<UInt8Type>::try_new(codes.clone(), values)?) as ArrayRef
            }
            None => dictionary(keys.as_primitive::<Int32Type>().clone(), &values)?,
        })
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<Vec<_>, _>>()?;
    let rows = parts.iter().map(RecordBatch::num_rows).sum();
    RecordBatch::try_new_with_options(
        schema.clone(),
        columns,
        &RecordBatchOptions::new().with_row_count(Some(rows)),
    )
}

/// Whether batches can be joined. Lists of labels cannot, because their dictionaries would grow.
fn joinable(schema: &Schema) -> bool {
    let labels = |field: &Field| match field.data_type() {
        DataType::List(item) => matches!(item.data_type(), DataType::Dictionary(..)),
        _ => false,
    };
    !schema.fields().iter().any(|field| labels(field))
}

fn dictionary(keys: Int32Array, values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values.clone())?))
}

fn refused(error: ArrowError) -> Error {
    Error::Usage(format!("rows do not make an Arrow batch: {error}").into())
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        if self.over {
            return None;
        }
        let next = self.gather().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}
