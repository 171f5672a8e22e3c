//! Reading attributes: datasets with an element for each edge or vertex become Arrow columns.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray,
};
use arrow_buffer::{Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use thalweg_hdf5::array::Found;
use thalweg_hdf5::arrays::{ArrayFile, ArrayRequest, Dataset, Selection, Slab};
use thalweg_hdf5::types::Value;
use thalweg_io::{Error, Result};

use super::LostValues;

/// The assumed size of a string in bytes, for the number of rows that are read at a time.
const TEXT: u64 = 64;

/// About how many bytes of attributes are read at a time.
const PIECE: u64 = 8 << 20;

/// A dataset of names for codes is ignored if it has more elements than this.
const MOST_NAMES: u64 = 1 << 20;

/// A dataset, and how it becomes a column.
#[derive(Debug)]
struct AttributeColumn {
    dataset: Dataset,
    kind: AttributeStorage,
    lost: Arc<LostValues>,
}

#[derive(Debug)]
enum AttributeStorage {
    Number(DataType, usize),
    Boolean,
    /// Strings of one size.
    Text(usize),
    /// Strings of any length.
    Texts,
    /// Integer codes with these names.
    Codes(DataType, usize, Vec<String>),
}

/// Reads datasets as columns.
#[derive(Debug)]
pub(super) struct AttributeReader {
    file: Arc<ArrayFile>,
    columns: Vec<AttributeColumn>,
    /// The schema of the columns.
    pub(super) schema: SchemaRef,
}

/// Collects the datasets for an [`AttributeReader`].
pub(super) struct AttributeReaderBuilder {
    file: Arc<ArrayFile>,
    rows: u64,
    columns: Vec<AttributeColumn>,
    fields: Vec<Field>,
}

impl AttributeReaderBuilder {
    /// Starts without columns, for datasets of `rows` elements.
    pub(super) fn new(file: &Arc<ArrayFile>, rows: u64) -> Self {
        Self { file: file.clone(), rows, columns: Vec::new(), fields: Vec::new() }
    }

    /// Adds a dataset; its elements are codes if `names` is given. Returns a description of what of
    /// it does not become a column.
    pub(super) fn add(
        &mut self,
        name: &str,
        dataset: Dataset,
        names: Option<&Dataset>,
    ) -> Result<Option<String>> {
        let mut left_out = None;
        let lost = LostValues::new(dataset.path());
        let kind = match &dataset.found {
            Found::Array(array) if array.shape != [self.rows] => {
                return Ok(Some(format!(
                    "the shape {:?}, not an element for each of {}",
                    array.shape, self.rows
                )));
            }
            Found::Array(array) => {
                let name = array.dtype.to_string();
                let size = array.dtype.size();
                match (number(&name), names) {
                    (Some(kind), Some(names)) if kind.is_integer() => {
                        if let Some(names) = self.names(names, &lost)? {
                            AttributeStorage::Codes(kind, size, names)
                        } else {
                            left_out = Some("the names of its codes, which are no strings".into());
                            AttributeStorage::Number(kind, size)
                        }
                    }
                    (Some(kind), _) => {
                        left_out = dataset
                            .is_enumeration()?
                            .then(|| "the names of an enumeration; its numbers are kept".into());
                        AttributeStorage::Number(kind, size)
                    }
                    (None, _) if name == "|b1" => AttributeStorage::Boolean,
                    (None, _) if name.starts_with("|S") => AttributeStorage::Text(size),
                    (None, _) => return Ok(Some(format!("elements of type {name}"))),
                }
            }
            Found::Other(what) => match self.file.variable(&dataset)? {
                Some(texts) if texts.item.is_none() && texts.shape == [self.rows] => {
                    AttributeStorage::Texts
                }
                Some(texts) if texts.item.is_none() => {
                    return Ok(Some(format!(
                        "the shape {:?}, not an element for each of {}",
                        texts.shape, self.rows
                    )));
                }
                _ => return Ok(Some(what.clone())),
            },
        };
        let (of, nullable) = match &kind {
            AttributeStorage::Number(kind, _) => (kind.clone(), false),
            AttributeStorage::Boolean => (DataType::Boolean, false),
            AttributeStorage::Text(_) | AttributeStorage::Texts => (DataType::Utf8, false),
            AttributeStorage::Codes(..) => (DataType::Utf8, true),
        };
        self.fields.push(Field::new(name, of, nullable));
        self.columns.push(AttributeColumn { dataset, kind, lost });
        Ok(left_out)
    }

    /// The names of codes, if the dataset holds strings.
    fn names(&self, dataset: &Dataset, lost: &LostValues) -> Result<Option<Vec<String>>> {
        if let Found::Array(array) = &dataset.found {
            let size = array.dtype.size();
            let is_text = array.dtype.to_string().starts_with("|S") && array.shape.len() == 1;
            if !is_text || array.len() > MOST_NAMES || array.bytes() > PIECE {
                return Ok(None);
            }
            let mut bytes = vec![0; array.bytes() as usize];
            let out = &mut bytes[..];
            self.file.read(&mut [ArrayRequest { dataset, selection: Selection::All, out }])?;
            let names = bytes.chunks_exact(size.max(1)).map(|name| lost.text(unpadded(name)));
            return Ok(Some(names.map(Cow::into_owned).collect()));
        }
        let Some(texts) = self.file.variable(dataset)? else { return Ok(None) };
        if texts.item.is_some() || texts.len() > MOST_NAMES {
            return Ok(None);
        }
        let names = self.file.strings(dataset)?;
        Ok(Some(names.iter().map(|name| lost.text(name).into_owned()).collect()))
    }

    pub(super) fn done(self) -> AttributeReader {
        AttributeReader {
            file: self.file,
            columns: self.columns,
            schema: Arc::new(Schema::new(self.fields)),
        }
    }
}

/// The Arrow type for a numpy type.
fn number(dtype: &str) -> Option<DataType> {
    Some(match dtype {
        "|u1" => DataType::UInt8,
        "<u2" => DataType::UInt16,
        "<u4" => DataType::UInt32,
        "<u8" => DataType::UInt64,
        "|i1" => DataType::Int8,
        "<i2" => DataType::Int16,
        "<i4" => DataType::Int32,
        "<i8" => DataType::Int64,
        "<f4" => DataType::Float32,
        "<f8" => DataType::Float64,
        _ => return None,
    })
}

fn primitive<T: ArrowPrimitiveType>(bytes: Buffer, len: usize) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(bytes, 0, len), None))
}

/// A column of numbers from their bytes in native order.
fn numbers(kind: &DataType, bytes: Buffer, len: usize) -> ArrayRef {
    match kind {
        DataType::UInt8 => primitive::<UInt8Type>(bytes, len),
        DataType::UInt16 => primitive::<UInt16Type>(bytes, len),
        DataType::UInt32 => primitive::<UInt32Type>(bytes, len),
        DataType::UInt64 => primitive::<UInt64Type>(bytes, len),
        DataType::Int8 => primitive::<Int8Type>(bytes, len),
        DataType::Int16 => primitive::<Int16Type>(bytes, len),
        DataType::Int32 => primitive::<Int32Type>(bytes, len),
        DataType::Int64 => primitive::<Int64Type>(bytes, len),
        DataType::Float32 => primitive::<Float32Type>(bytes, len),
        _ => primitive::<Float64Type>(bytes, len),
    }
}

/// Decodes a little-endian code. `None` if it is negative.
fn code(bytes: &[u8], is_signed: bool) -> Option<usize> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let is_negative = is_signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
    if is_negative { None } else { usize::try_from(u64::from_le_bytes(wide)).ok() }
}

/// A string without the NULs that fill it up.
fn unpadded(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &text[..end]
}

impl AttributeReader {
    /// Counts of lost values, by column.
    pub(super) fn lost(&self) -> impl Iterator<Item = Arc<LostValues>> {
        self.columns.iter().map(|column| column.lost.clone())
    }

    /// How many rows are read at a time.
    pub(super) fn rows(&self) -> u64 {
        let size = |column: &AttributeColumn| match column.kind {
            AttributeStorage::Number(_, size) => size as u64,
            AttributeStorage::Boolean => 1,
            AttributeStorage::Text(size) => size as u64,
            AttributeStorage::Texts | AttributeStorage::Codes(..) => TEXT,
        };
        (PIECE / self.columns.iter().map(size).sum::<u64>().max(1)).max(1)
    }

    /// Reads some rows. `None` if there are no columns.
    pub(super) fn read(&self, rows: &Range<u64>) -> Result<Option<RecordBatch>> {
        if self.columns.is_empty() {
            return Ok(None);
        }
        let len = (rows.end - rows.start) as usize;
        let columns = self
            .columns
            .iter()
            .map(|column| self.column(column, rows, len))
            .collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        batch
            .map(Some)
            .map_err(|wrong| Error::Usage(format!("{}: {wrong}", self.file.store().name()).into()))
    }

    fn column(&self, column: &AttributeColumn, rows: &Range<u64>, len: usize) -> Result<ArrayRef> {
        let AttributeColumn { dataset, kind, lost } = column;
        let bytes = |size: usize| {
            let mut bytes = MutableBuffer::from_len_zeroed(len * size);
            let selection = Selection::Slab(vec![Slab::from(rows.clone())]);
            let out = bytes.as_slice_mut();
            self.file.read(&mut [ArrayRequest { dataset, selection, out }]).map(|_| bytes)
        };
        Ok(match kind {
            AttributeStorage::Number(kind, size) => {
                let mut bytes = bytes(*size)?;
                if cfg!(target_endian = "big") {
                    bytes.as_slice_mut().chunks_exact_mut(*size).for_each(<[u8]>::reverse);
                }
                numbers(kind, bytes.into(), len)
            }
            AttributeStorage::Boolean => {
                Arc::new(bytes(1)?.iter().map(|&byte| Some(byte != 0)).collect::<BooleanArray>())
            }
            AttributeStorage::Text(size) => {
                let bytes = bytes(*size)?;
                let texts =
                    bytes.chunks_exact((*size).max(1)).map(|text| lost.text(unpadded(text)));
                Arc::new(StringArray::from_iter_values(texts))
            }
            AttributeStorage::Texts => {
                let mut texts = Vec::with_capacity(len);
                self.file.strings_of(dataset, rows.clone(), &mut |text| {
                    texts.push(lost.text(text).into_owned());
                    Ok(())
                })?;
                Arc::new(StringArray::from_iter_values(texts))
            }
            AttributeStorage::Codes(kind, size, names) => {
                let bytes = bytes(*size)?;
                // A code without a name is null.
                let name = |bytes: &[u8]| {
                    names.get(code(bytes, kind.is_signed_integer())?).map(String::as_str)
                };
                let texts: StringArray = bytes.chunks_exact((*size).max(1)).map(name).collect();
                lost.add_unnamed(texts.null_count() as u64);
                Arc::new(texts)
            }
        })
    }
}

/// The value of a text attribute, unless it is empty.
pub(super) fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}
