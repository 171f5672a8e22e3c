//! `thalweg read --to` of datasets: writes them as the columns of a table, or as numpy's arrays.

pub(super) mod numbers;

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use serde_json::json;
use thalweg::arrays::{ArrayFile, ArrayRequest, Dataset, Selection, Slab};
use thalweg::hdf5::array::{Array, ElementPlace, Found};
use thalweg::new_file::{NpyArray, NpyFolder};

use self::numbers::Element;
use super::events::{is_npy, table};
use super::read::WantedArrays;
use super::shape_in_words;
use crate::common::{Failure, VerbResult, complain, counted, output};
use crate::progress::FetchProgress;
use crate::table_sink::TableSink;
use crate::timing::Started;

/// The memory budget is divided by this number to get the bytes of the rows that are read at a
/// time. They are in memory twice: as bytes and as columns.
const BUDGET_PARTS: usize = 8;

/// A dataset that becomes a column, and its array.
type Column<'a> = (&'a Dataset, &'a Array);

/// Writes the datasets at or below the paths.
pub(super) fn run(
    file: &ArrayFile,
    paths: &[PathBuf],
    to: &Path,
    as_json: bool,
    started: &Started,
) -> VerbResult {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let wanted = WantedArrays::at(file, paths)?;
    let mut columns: Vec<Column<'_>> = Vec::new();
    for dataset in &wanted.datasets {
        if let Found::Array(array) = &dataset.found {
            columns.push((dataset, array));
        }
    }
    let name = file.store().name();
    if columns.is_empty() {
        return Err(Failure::Said(format!(
            "{name}: found no dataset that can be read, expected at least one"
        )));
    }
    let bytes: u64 = columns.iter().map(|(_, array)| array.bytes()).sum();
    {
        let _progress = FetchProgress::watch(&file.options().control, bytes);
        if is_npy(to) {
            arrays(file, &columns, to)?;
        } else {
            rows(file, &columns, to)?;
        }
    }
    let (seconds, cpu) = started.seconds();
    let mut out = output();
    if as_json {
        let line = json!({
            "file": &**name, "to": to.display().to_string(), "datasets": columns.len(),
            "bytes_decoded": bytes, "open_to_last_s": seconds, "cpu_s": cpu,
        });
        writeln!(out, "{line}")?;
    } else {
        let datasets = counted(columns.len() as u64, "dataset");
        writeln!(out, "{datasets}, {bytes} bytes, in {seconds:.3} s")?;
    }
    out.flush()?;
    wanted.end()
}

/// Writes a folder with a file for each dataset, at its path.
fn arrays(file: &ArrayFile, columns: &[Column<'_>], to: &Path) -> VerbResult {
    let folder = NpyFolder::create(to)?;
    let create = |(dataset, array): &Column<'_>| {
        let inner = array.shape.get(1..).unwrap_or_default();
        folder.array(dataset.path(), &array.dtype.to_string(), array.dtype.size(), inner)
    };
    let mut out: Vec<NpyArray> = columns.iter().map(create).collect::<thalweg::Result<_>>()?;
    let datasets: Vec<&Dataset> = columns.iter().map(|(dataset, _)| *dataset).collect();
    file.each(&datasets, &mut |at, part| out.get_mut(at).map_or(Ok(()), |array| array.push(part)))?;
    for (array, (_, own)) in out.into_iter().zip(columns) {
        array.finish(Some(&own.shape))?;
    }
    folder.finish()?;
    Ok(())
}

/// Writes a table with a column for each dataset.
fn rows(file: &ArrayFile, columns: &[Column<'_>], to: &Path) -> VerbResult {
    let (path, kind) = table(to)?;
    let length = columns.iter().find_map(|(_, array)| array.shape.first().copied()).unwrap_or(1);
    let name = file.store().name();
    let elements = elements(name, columns, length)?;
    let fields: Vec<Field> = names(columns)
        .into_iter()
        .zip(&elements)
        .map(|(name, element)| Field::new(name, element.data_type(), false))
        .collect();
    let step = rows_at_a_time(file, columns, length)?;
    let schema = Arc::new(Schema::new(fields));
    let mut sink = TableSink::create(&path, kind, &schema)?;
    let mut from = 0;
    while from < length {
        let count = step.min(length - from);
        let parts = read_rows(file, columns, length, from..from + count)?;
        let arrays = elements
            .iter()
            .zip(&parts)
            .map(|(element, bytes)| element.column(bytes))
            .collect::<Result<_, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(schema.clone(), arrays));
        let batch = batch.map_err(|e| Failure::Said(e.to_string()))?;
        sink.push_long(&batch, &file.options().control)?;
        from += count;
    }
    sink.finish()
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
    let element = |(dataset, array): &Column<'_>| {
        if array.shape.first() != Some(&length) {
            let found = format!("the shape {}", shape_in_words(&array.shape));
            let expected = format!("{length} rows, as the first has");
            return Err(refused(name, dataset, &found, &expected));
        }
        Element::new(array).ok_or_else(|| {
            let found = format!("elements of type {}", array.dtype);
            refused(name, dataset, &found, "numbers or strings")
        })
    };
    columns.iter().map(element).collect()
}

/// The names of the columns: the last parts of the datasets' paths, where they differ.
fn names<'a>(columns: &[Column<'a>]) -> Vec<&'a str> {
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (dataset, _) in columns {
        *last.entry(last_part(dataset.path())).or_default() += 1;
    }
    let name = |(dataset, _): &Column<'a>| {
        let own = last_part(dataset.path());
        if last.get(own) == Some(&1) { own } else { dataset.path().trim_start_matches('/') }
    };
    columns.iter().map(name).collect()
}

/// Rows that are read at a time: as many as the memory allows, and if possible whole chunks, so
/// that each chunk is decoded once.
fn rows_at_a_time(file: &ArrayFile, columns: &[Column<'_>], length: u64) -> Result<u64, Failure> {
    let row: u64 = columns.iter().map(|(_, array)| array.bytes() / length.max(1)).sum();
    let chunk = columns.iter().filter_map(|(_, array)| match &array.place {
        ElementPlace::Chunked(lengths, _) => lengths.first().copied(),
        _ => None,
    });
    let chunk = chunk.max().unwrap_or(1).max(1);
    let room = file.options().budget.memory as u64 / BUDGET_PARTS as u64;
    if row > room {
        let (dataset, _) = columns[0];
        let found = format!("{row} bytes a row");
        let expected = format!("at most {room}: allow more memory");
        return Err(refused(file.store().name(), dataset, &found, &expected));
    }
    let most = (room / row.max(1)).max(1);
    Ok(if most > chunk { most / chunk * chunk } else { most })
}

/// The bytes of some rows of each column.
fn read_rows(
    file: &ArrayFile,
    columns: &[Column<'_>],
    length: u64,
    rows: Range<u64>,
) -> Result<Vec<Vec<u8>>, Failure> {
    let count = rows.end - rows.start;
    let mut parts: Vec<Vec<u8>> = columns
        .iter()
        .map(|(_, array)| vec![0; (array.bytes() / length * count) as usize])
        .collect();
    let mut wants: Vec<ArrayRequest<'_>> = columns
        .iter()
        .zip(&mut parts)
        .map(|((dataset, array), out)| {
            let inner = array.shape.iter().skip(1).map(|&length| Slab::from(0..length));
            let slabs = [Slab::from(rows.clone())].into_iter().chain(inner).collect();
            ArrayRequest { dataset, selection: Selection::Slab(slabs), out }
        })
        .collect();
    file.read(&mut wants)?;
    drop(wants);
    Ok(parts)
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
