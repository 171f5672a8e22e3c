//! `thalweg read --out` of datasets: writes them as the columns of a table, or as numpy's arrays.

pub(super) mod numbers;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use serde_json::json;
use thalweg::arrays::{ArrayFile, ArrayRequest, Dataset, Selection, Slab};
use thalweg::hdf5::array::{Array, ElementPlace, Found, Variable};
use thalweg::new_file::{NpyArray, NpyFolder};
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::open::open_files;
use thalweg_io::urls;

use self::numbers::{ColumnRefusal, Element, Part};
use super::read::WantedArrays;
use super::shape_in_words;
use crate::common::{Failure, VerbResult, complain, counted, print_json};
use crate::done::say_done;
use crate::progress::FetchProgress;
use crate::table_sink::{TableOut, TableSink};
use crate::timing::Started;

/// The memory budget is divided by this number to get the bytes of the rows that are read at a
/// time. They are in memory twice: as bytes and as columns.
const BUDGET_PARTS: usize = 8;

/// Most bytes of the rows that are read at a time: Arrow counts the bytes of strings in 31 bits.
const MOST_BYTES: u64 = 1 << 30;

/// Most rows of strings or lists of any length that are read at a time. Nobody knows their lengths
/// before.
const MOST_VARIABLE_ROWS: u64 = 4096;

/// A dataset that becomes a column.
struct Column<'a> {
    dataset: &'a Dataset,
    values: ColumnValues<'a>,
}

enum ColumnValues<'a> {
    Array(&'a Array),
    /// Strings or lists of any length.
    Variable(Variable),
}

impl<'a> Column<'a> {
    /// The column of a dataset; `None` if it has neither numbers nor strings nor lists.
    fn of(file: &ArrayFile, dataset: &'a Dataset) -> thalweg::Result<Option<Self>> {
        let values = match &dataset.found {
            Found::Array(array) => Some(ColumnValues::Array(array)),
            Found::Other(_) => file.variable(dataset)?.map(ColumnValues::Variable),
        };
        Ok(values.map(|values| Self { dataset, values }))
    }

    fn shape(&self) -> &[u64] {
        match &self.values {
            ColumnValues::Array(array) => &array.shape,
            ColumnValues::Variable(variable) => &variable.shape,
        }
    }

    fn element(&self) -> Option<Element> {
        match &self.values {
            ColumnValues::Array(array) => Element::new(&array.dtype, &array.shape),
            ColumnValues::Variable(variable) => Element::variable(variable),
        }
    }

    /// Bytes of a row, as far as they are known before it is read.
    fn row_bytes(&self, length: u64) -> u64 {
        match &self.values {
            ColumnValues::Array(array) => array.bytes() / length.max(1),
            ColumnValues::Variable(_) => 0,
        }
    }

    /// The type of the elements, in words.
    fn type_in_words(&self) -> String {
        match &self.values {
            ColumnValues::Array(array) => format!("elements of type {}", array.dtype),
            ColumnValues::Variable(variable) => match &variable.item {
                Some(item) => format!("lists of {item}"),
                None => "strings".into(),
            },
        }
    }
}

/// The most arrays that are written at the same time. Each takes an open file and a buffer.
const MOST_OPEN: usize = 256;

/// Writes the datasets at or below the paths.
pub(super) fn run(
    file: &ArrayFile,
    paths: &[PathBuf],
    to: TableOut<'_>,
    as_json: bool,
    started: &Started,
) -> VerbResult {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let as_arrays = to.is_npy();
    let wanted = if as_arrays {
        WantedArrays::at(file, paths)?
    } else {
        WantedArrays::with_variable(file, paths)?
    };
    let name = file.store().name();
    if wanted.datasets.is_empty() {
        return Err(Failure::Said(format!(
            "{name}: found no dataset that can be read, expected at least one"
        )));
    }
    let bytes = if as_arrays {
        arrays(file, &wanted.datasets, to.path)?
    } else {
        let columns: Vec<Column<'_>> = wanted
            .datasets
            .iter()
            .filter_map(|dataset| Column::of(file, dataset).transpose())
            .collect::<thalweg::Result<_>>()?;
        rows(file, &columns, to)?
    };
    let (seconds, cpu) = started.seconds();
    if as_json {
        print_json(&json!({
            "schema": "thalweg.table/1", "file": &**name, "path": &**name,
            "to": urls::shown_path(to.path), "datasets": wanted.datasets.len(),
            "bytes_decoded": bytes, "open_to_last_s": seconds, "cpu_s": cpu,
        }))?;
    } else {
        let datasets = counted(wanted.datasets.len() as u64, "dataset");
        say_done(&format!("{datasets}, {} decoded", decimal_bytes(bytes as f64)), to.path, seconds);
    }
    wanted.end()
}

/// Writes a folder with a file for each dataset, at its path. Returns the bytes of all.
fn arrays(file: &ArrayFile, datasets: &[Dataset], to: &Path) -> Result<u64, Failure> {
    let arrays: Vec<(&Dataset, &Array)> = datasets
        .iter()
        .filter_map(|dataset| match &dataset.found {
            Found::Array(array) => Some((dataset, &**array)),
            Found::Other(_) => None,
        })
        .collect();
    let bytes = arrays.iter().map(|(_, array)| array.bytes()).sum();
    let stored = file.store().size().min(bytes);
    let _progress = FetchProgress::watch(&file.options().control, stored);
    let folder = NpyFolder::create(to)?;
    let create = |(dataset, array): &(&Dataset, &Array)| {
        let inner = array.shape.get(1..).unwrap_or_default();
        folder.array(dataset.path(), &array.dtype.to_string(), array.dtype.size(), inner)
    };
    for together in arrays.chunks(open_files(MOST_OPEN)) {
        let mut out: Vec<NpyArray> = together.iter().map(create).collect::<thalweg::Result<_>>()?;
        let datasets: Vec<&Dataset> = together.iter().map(|(dataset, _)| *dataset).collect();
        file.each(&datasets, &mut |at, part| {
            out.get_mut(at).map_or(Ok(()), |array| array.push(part))
        })?;
        for (array, (_, own)) in out.into_iter().zip(together) {
            array.finish(Some(&own.shape))?;
        }
    }
    folder.finish()?;
    Ok(bytes)
}

/// Writes a table with a column for each dataset. Returns the bytes of all values.
fn rows(file: &ArrayFile, columns: &[Column<'_>], to: TableOut<'_>) -> Result<u64, Failure> {
    let name = file.store().name();
    let length = columns.iter().find_map(|column| column.shape().first().copied()).unwrap_or(1);
    let mut elements = elements(name, columns, length)?;
    let known = columns.iter().map(|column| column.row_bytes(length)).sum::<u64>() * length;
    let stored = file.store().size().min(known);
    let _progress = FetchProgress::watch(&file.options().control, stored);
    // Only a string that is not UTF-8 says that a column cannot be one of text.
    loop {
        match rows_as(file, columns, &elements, length, to)? {
            Written::Whole(bytes) => return Ok(bytes),
            Written::NotText(at) => {
                let path = columns[at].dataset.path();
                complain(&format!("{name}: {path}: a string is not UTF-8; its column has bytes"));
                elements[at].make_bytes();
            }
        }
    }
}

/// How far a table got.
enum Written {
    /// All of it, with so many bytes of values.
    Whole(u64),
    /// The column with this number has a string that is not UTF-8. No table was written.
    NotText(usize),
}

/// Writes a table whose columns have these elements.
fn rows_as(
    file: &ArrayFile,
    columns: &[Column<'_>],
    elements: &[Element],
    length: u64,
    to: TableOut<'_>,
) -> Result<Written, Failure> {
    let fields: Vec<Field> = names(columns)
        .into_iter()
        .zip(elements)
        .map(|(name, element)| Field::new(name, element.data_type(), false))
        .collect();
    let step = rows_at_a_time(file, columns, length)?;
    let schema = Arc::new(Schema::new(fields));
    let mut sink = TableSink::create(to, &schema)?;
    let mut from = 0;
    let mut bytes = 0;
    while from < length {
        let count = step.min(length - from);
        let parts = read_rows(file, columns, length, from..from + count)?;
        bytes += parts.iter().map(Part::bytes).sum::<u64>();
        let mut arrays = Vec::with_capacity(parts.len());
        for (at, (element, part)) in elements.iter().zip(&parts).enumerate() {
            match element.column(part) {
                Ok(array) => arrays.push(array),
                Err(ColumnRefusal::NotText) => return Ok(Written::NotText(at)),
                Err(ColumnRefusal::TooLong(bytes)) => {
                    let found = format!("{bytes} bytes in {count} rows");
                    return Err(refused(
                        file.store().name(),
                        columns[at].dataset,
                        &found,
                        "at most 2 GiB",
                    ));
                }
                Err(ColumnRefusal::Arrow(error)) => return Err(Failure::Said(error.to_string())),
            }
        }
        let batch = RecordBatch::try_new(schema.clone(), arrays);
        let batch = batch.map_err(|e| Failure::Said(e.to_string()))?;
        sink.push_long(&batch, &file.options().control)?;
        from += count;
    }
    sink.finish()?;
    Ok(Written::Whole(bytes))
}

/// The failure for a dataset that cannot be a column of the table.
fn refused(name: &str, dataset: &Dataset, found: &str, expected: &str) -> Failure {
    Failure::Said(format!(
        "{name}: {}: found {found}, expected {expected}; name the datasets, or write .npy",
        dataset.path()
    ))
}

/// The type of the elements of each column. Fails if a column does not have `length` rows.
fn elements(name: &str, columns: &[Column<'_>], length: u64) -> Result<Vec<Element>, Failure> {
    let element = |column: &Column<'_>| {
        // A single element is one row.
        if column.shape().first().copied().unwrap_or(1) != length {
            let found = format!("the shape {}", shape_in_words(column.shape()));
            let expected = format!("{length} rows, as the first has");
            return Err(refused(name, column.dataset, &found, &expected));
        }
        column.element().ok_or_else(|| {
            let expected = "numbers, strings, or lists of numbers";
            refused(name, column.dataset, &column.type_in_words(), expected)
        })
    };
    columns.iter().map(element).collect()
}

/// The names of the columns: the last parts of the datasets' paths, where they differ.
fn names<'a>(columns: &[Column<'a>]) -> Vec<&'a str> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    for column in columns {
        *last.entry(last_part(column.dataset.path())).or_default() += 1;
    }
    let name = |column: &Column<'a>| {
        let path = column.dataset.path();
        let own = last_part(path);
        if last.get(own) == Some(&1) { own } else { path.trim_start_matches('/') }
    };
    columns.iter().map(name).collect()
}

/// Rows that are read at a time: as many as the memory allows, and if possible whole chunks, so
/// that each chunk is decoded once.
fn rows_at_a_time(file: &ArrayFile, columns: &[Column<'_>], length: u64) -> Result<u64, Failure> {
    let row: u64 = columns.iter().map(|column| column.row_bytes(length)).sum();
    let chunk = columns.iter().filter_map(|column| match &column.values {
        ColumnValues::Array(array) => match &array.place {
            ElementPlace::Chunked(lengths, _) => lengths.first().copied(),
            _ => None,
        },
        ColumnValues::Variable(_) => None,
    });
    let chunk = chunk.max().unwrap_or(1).max(1);
    let room = (file.options().budget.memory as u64 / BUDGET_PARTS as u64).min(MOST_BYTES);
    if row > room {
        let dataset = columns[0].dataset;
        let found = format!("{row} bytes a row");
        let expected = format!("at most {room}: allow more memory");
        return Err(refused(file.store().name(), dataset, &found, &expected));
    }
    let has_variable =
        columns.iter().any(|column| matches!(column.values, ColumnValues::Variable(_)));
    let limit = if has_variable { MOST_VARIABLE_ROWS } else { u64::MAX };
    let most = (room / row.max(1)).max(1).min(limit);
    Ok(if most > chunk { most / chunk * chunk } else { most })
}

/// Some rows of each column.
fn read_rows(
    file: &ArrayFile,
    columns: &[Column<'_>],
    length: u64,
    rows: Range<u64>,
) -> Result<Vec<Part>, Failure> {
    let count = rows.end - rows.start;
    let mut parts = Vec::with_capacity(columns.len());
    for column in columns {
        parts.push(match &column.values {
            ColumnValues::Array(_) => {
                Part::Elements(vec![0; (column.row_bytes(length) * count) as usize])
            }
            ColumnValues::Variable(_) => {
                let mut found = Vec::new();
                file.strings_of(column.dataset, rows.clone(), &mut |element| {
                    found.push(element.to_vec());
                    Ok(())
                })?;
                Part::Variable(found)
            }
        });
    }
    let mut wants = Vec::with_capacity(columns.len());
    for (column, part) in columns.iter().zip(&mut parts) {
        let Part::Elements(out) = part else { continue };
        // A single element has no dimension.
        let inner = column.shape().iter().skip(1).map(|&length| Slab::from(0..length));
        let outer = (!column.shape().is_empty()).then(|| Slab::from(rows.clone()));
        let slabs = outer.into_iter().chain(inner).collect();
        let selection = Selection::Slab(slabs);
        wants.push(ArrayRequest { dataset: column.dataset, selection, out });
    }
    file.read(&mut wants)?;
    drop(wants);
    Ok(parts)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
