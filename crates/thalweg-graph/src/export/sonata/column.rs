//! Writing attributes as datasets.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Fields};
use thalweg_hdf5::libhdf5::{Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber, is_name};
use thalweg_io::{Error, Result};

/// The most names of codes: `input/columns.rs` reads no more.
const MOST_NAMES: usize = 1 << 20;

/// The code of a null string: it has no name.
const MISSING: u32 = u32::MAX;

/// Writes the attributes of a population.
pub(super) struct AttributeWriter {
    columns: Vec<AttributeDataset>,
    /// The group `0`, which holds the datasets.
    group: NewGroup,
    file: Arc<str>,
}

struct AttributeDataset {
    name: String,
    rows: RowsWriter,
    kind: AttributeEncoding,
}

enum AttributeEncoding {
    /// Numbers, and the size of one in bytes.
    Number(usize),
    /// Booleans, as the numbers 0 and 1.
    Boolean,
    /// Strings.
    Text,
    /// Nullable strings: codes, and their names in `@library`.
    Codes(StringLibrary),
}

/// The codes of strings, which count from 0.
struct StringLibrary {
    codes: HashMap<String, u32>,
    bytes: usize,
    /// The most bytes of all names.
    most: usize,
}

impl StringLibrary {
    /// The code of a name. `None` if there are too many names.
    fn code(&mut self, name: &str) -> Option<u32> {
        if let Some(code) = self.codes.get(name) {
            return Some(*code);
        }
        self.bytes += name.len();
        let code =
            u32::try_from(self.codes.len()).ok().filter(|code| (*code as usize) < MOST_NAMES)?;
        self.codes.insert(name.to_owned(), code);
        (self.bytes <= self.most).then_some(code)
    }
}

fn number(kind: &DataType) -> Option<StoredNumber> {
    Some(match kind {
        DataType::Int8 => StoredNumber::I8,
        DataType::Int16 => StoredNumber::I16,
        DataType::Int32 => StoredNumber::I32,
        DataType::Int64 => StoredNumber::I64,
        DataType::UInt8 => StoredNumber::U8,
        DataType::UInt16 => StoredNumber::U16,
        DataType::UInt32 => StoredNumber::U32,
        DataType::UInt64 => StoredNumber::U64,
        DataType::Float32 => StoredNumber::F32,
        DataType::Float64 => StoredNumber::F64,
        _ => return None,
    })
}

/// The bytes of a column of numbers, little-endian.
fn bytes(column: &ArrayRef, size: usize) -> Vec<u8> {
    let data = column.to_data();
    let start = data.offset() * size;
    let mut bytes = data.buffers()[0].as_slice()[start..start + data.len() * size].to_vec();
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    bytes
}

/// The group within group `0` for attributes with this prefix.
const DYNAMICS_PARAMS: &str = "dynamics_params";

/// The group within group `0` for the names of codes.
const LIBRARY: &str = "@library";

impl AttributeWriter {
    /// Creates a dataset for each attribute in the group `0`, in chunks of `chunk` rows. The names
    /// of codes take up to `memory` bytes for each dataset.
    pub(super) fn new(
        writer: &Hdf5Writer,
        population: &NewGroup,
        fields: &Fields,
        chunk: u64,
        memory: usize,
        file: &Arc<str>,
    ) -> Result<Self> {
        let group = writer.group(Some(population), "0")?;
        let mut inner = None;
        let mut columns = Vec::new();
        for field in fields {
            let name = field.name();
            let inside = name.strip_prefix(DYNAMICS_PARAMS).and_then(|rest| rest.strip_prefix('/'));
            let own = inside.unwrap_or(name);
            if !is_name(own) || [DYNAMICS_PARAMS, LIBRARY].contains(&own) {
                return Err(refused(
                    file,
                    format!("the attribute {name:?}, a name that it cannot have"),
                ));
            }
            if inside.is_some() && inner.is_none() {
                inner = Some(writer.group(Some(&group), DYNAMICS_PARAMS)?);
            }
            let parent = if inside.is_some() { inner.as_ref().unwrap_or(&group) } else { &group };
            let of = RowsSpec { columns: None, chunk };
            let list = |kind: StoredNumber| writer.rows(parent, own, kind, None, of);
            let (rows, kind) = match field.data_type() {
                DataType::Boolean => (list(StoredNumber::U8)?, AttributeEncoding::Boolean),
                DataType::Utf8 if field.is_nullable() && inside.is_none() => {
                    let names = StringLibrary { codes: HashMap::new(), bytes: 0, most: memory };
                    (list(StoredNumber::U32)?, AttributeEncoding::Codes(names))
                }
                DataType::Utf8 => (writer.texts(parent, own, chunk)?, AttributeEncoding::Text),
                kind => match (number(kind), kind.primitive_width()) {
                    (Some(number), Some(size)) => (list(number)?, AttributeEncoding::Number(size)),
                    _ => {
                        return Err(refused(
                            file,
                            format!("the attribute {name:?} of type {kind}"),
                        ));
                    }
                },
            };
            columns.push(AttributeDataset { name: name.clone(), rows, kind });
        }
        Ok(Self { columns, group, file: file.clone() })
    }

    /// Appends the columns of a batch from number `first` on. `of` names a row in errors.
    pub(super) fn push(
        &mut self,
        writer: &Hdf5Writer,
        batch: &RecordBatch,
        first: usize,
        of: &dyn Fn(usize) -> String,
    ) -> Result<()> {
        for (AttributeDataset { name, rows, kind }, column) in
            self.columns.iter_mut().zip(&batch.columns()[first..])
        {
            let missing = || (0..column.len()).find(|row| column.is_null(*row));
            if let (false, Some(row)) = (matches!(kind, AttributeEncoding::Codes(_)), missing()) {
                return Err(refused(
                    &self.file,
                    format!("the attribute {name:?}, missing of {}", of(row)),
                ));
            }
            match kind {
                AttributeEncoding::Number(size) => writer.push(rows, &bytes(column, *size))?,
                AttributeEncoding::Boolean => {
                    let values: Vec<u8> =
                        column.as_boolean().values().iter().map(u8::from).collect();
                    writer.push(rows, &values)?;
                }
                AttributeEncoding::Text => {
                    writer.push_texts(rows, column.as_string::<i32>().iter().flatten())?;
                }
                AttributeEncoding::Codes(names) => {
                    let mut codes = Vec::with_capacity(column.len() * 4);
                    for text in column.as_string::<i32>() {
                        let code = text.map_or(Some(MISSING), |text| names.code(text));
                        let code = code.ok_or_else(|| {
                            let what = format!(
                                "the attribute {name:?}, some missing and more than \
                                         {MOST_NAMES} different"
                            );
                            refused(&self.file, what)
                        })?;
                        codes.extend_from_slice(&code.to_le_bytes());
                    }
                    writer.push(rows, &codes)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the names of the codes.
    pub(super) fn finish(self, writer: &Hdf5Writer) -> Result<()> {
        let mut library = None;
        for AttributeDataset { name, kind, .. } in self.columns {
            let AttributeEncoding::Codes(names) = kind else { continue };
            if library.is_none() {
                library = Some(writer.group(Some(&self.group), LIBRARY)?);
            }
            let mut names: Vec<(String, u32)> = names.codes.into_iter().collect();
            names.sort_unstable_by_key(|(_, code)| *code);
            let group = library.as_ref().unwrap_or(&self.group);
            let mut rows = writer.texts(group, &name, names.len() as u64)?;
            writer.push_texts(&mut rows, names.iter().map(|(name, _)| name.as_str()))?;
        }
        Ok(())
    }
}

fn refused(file: &Arc<str>, what: String) -> Error {
    let advice = "SONATA has numbers and strings, and no missing numbers; write .parquet or .csv";
    Error::Unsupported { file: file.clone(), what: what.into(), advice: advice.into() }
}
