//! What is known of reads without their signal: a table with a row a read, from many files.
//!
//! Beside the columns of [`ReadFile::scan`](super::ReadFile::scan) there is `file` (the file's
//! path), and a column for each attribute of the read groups that was asked for. Both are
//! dictionaries, so a row costs four bytes for each.

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
use thalweg_io::{Error, Result};

use super::{Batch, BatchOptions, Order, ReadSet, Selection, Strings};
use crate::record::Header;

/// Name of the column that says which file a read is from.
pub const FILE_COLUMN: &str = "file";

/// Name of the column of read groups.
const GROUP_COLUMN: &str = "read_group";

/// Rows and bytes of a batch. The engine's own hold a few reads each, as they come with their
/// signal.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 8 << 20;

/// How a data set is scanned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanOptions {
    /// The columns, in this order; empty for all of the reads' own and `file`. Names that are no
    /// columns are attributes of the read groups, such as `run_id`, which become text; null where a
    /// read group has none.
    pub columns: Vec<String>,
    /// Only rows for which this holds; it may ask about attributes, too.
    pub condition: Option<Condition>,
    /// What strings become.
    pub strings: Strings,
    /// In which order rows come.
    pub order: Order,
}

impl ReadSet {
    /// Everything about the selected reads but their samples, which are not decoded, and need not
    /// be fetched where the format keeps them apart: one row a read, with the number of its
    /// samples, its file, and the attributes that were asked for.
    ///
    /// # Errors
    /// As for [`ReadSet::batches`], but for defects of the signal, which is not looked at;
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
        let paths: Vec<String> = self.paths().map(|path| path.display().to_string()).collect();
        let files: ArrayRef = Arc::new(StringArray::from_iter_values(&paths));
        let columns = BatchOptions { order: options.order, strings: options.strings };
        let batches = Box::new(self.tabulate(selection, columns, false)?);
        Ok(Scan { schema, out, shown, condition, batches, files, attributes, over: false })
    }
}

fn text_field(name: &str, nullable: bool) -> Field {
    Field::new_dictionary(name, DataType::Int32, DataType::Utf8, nullable)
}

/// An attribute of the read groups of all files.
#[derive(Debug)]
struct ScanAttribute {
    /// Its distinct values.
    values: ArrayRef,
    /// For each file and read group, which value.
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
            file: format!("{} files", headers.len()).into(),
            what: format!("the column {name:?}").into(),
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

/// The rows of a scan, in batches of some thousands. After an error there are no more.
pub struct Scan {
    /// All columns, and those that are shown.
    schema: SchemaRef,
    out: SchemaRef,
    shown: Vec<usize>,
    condition: Option<Bound>,
    batches: Box<dyn Iterator<Item = Result<Batch>>>,
    files: ArrayRef,
    attributes: Vec<ScanAttribute>,
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

    /// Adds the columns that are the same for many reads.
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

    fn gather(&mut self) -> Result<Option<RecordBatch>> {
        let mut parts = Vec::new();
        let mut rows = 0;
        let mut bytes = 0;
        let most = if joinable(&self.out) { BATCH_ROWS } else { 1 };
        while rows < most && bytes < BATCH_BYTES {
            let Some(batch) = self.batches.next().transpose()? else { break };
            let all = batch.num_rows();
            let size = batch.get_array_memory_size();
            let batch = self.complete(batch).map_err(refused)?;
            // Without rows it has lost its dictionaries, too.
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

/// Batches as one. Their dictionaries are the same, and stay so: Arrow would put them together.
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

/// Whether batches can be put together: not where lists hold labels, whose dictionaries would grow.
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
