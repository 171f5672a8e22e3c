//! Datasets as the columns of a table, or as numpy's arrays.

pub(super) mod numbers;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use serde_json::json;
use thalweg::arrays::{ArrayFile, Dataset, Selection, Slab, Want};
use thalweg::hdf5::libhdf5::{Array, Found, Place};
use thalweg::new_file::{NpyArray, NpyFolder};

use self::numbers::Element;
use super::events::{is_npy, table};
use super::read::arrays_at;
use super::shape_in_words;
use crate::common::{Failure, Outcome, complain, output};
use crate::progress::Progress;
use crate::table_sink::Sink;
use crate::timing::Started;

/// What is read at a time is this part of the memory budget: it is there as read, and as columns.
const SHARE: usize = 8;

/// A dataset that has values.
type Column<'a> = (&'a Dataset, &'a Array);

/// Writes the datasets at or below the paths.
pub(super) fn run(
    file: &ArrayFile,
    paths: &[PathBuf],
    to: &Path,
    as_json: bool,
    started: &Started,
) -> Outcome {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let datasets = arrays_at(file, paths)?;
    let mut columns: Vec<Column<'_>> = Vec::new();
    for dataset in &datasets {
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
        let _progress = Progress::watch(&file.options().control, bytes);
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
            "file": &**name, "to": to.display().to_string(), "datasets": columns.len(), "bytes_decoded": bytes,
            "open_to_last_s": seconds, "cpu_s": cpu,
        });
        writeln!(out, "{line}")?;
    } else {
        writeln!(out, "{} datasets, {bytes} bytes, in {seconds:.3} s", columns.len())?;
    }
    out.flush()?;
    Ok(())
}

/// A folder with a file for each dataset, at its path.
fn arrays(file: &ArrayFile, columns: &[Column<'_>], to: &Path) -> Outcome {
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

/// A table with a column for each dataset.
fn rows(file: &ArrayFile, columns: &[Column<'_>], to: &Path) -> Outcome {
    let (path, kind) = table(to)?;
    let name = file.store().name();
    let refused = |dataset: &Dataset, found: String, expected: &str| {
        Failure::Said(format!(
            "{name}: {}: found {found}, expected {expected}; name the datasets, or write .npy",
            dataset.path()
        ))
    };
    let mut last: HashMap<&str, usize> = HashMap::new();
    columns
        .iter()
        .for_each(|(dataset, _)| *last.entry(last_part(dataset.path())).or_default() += 1);
    let length = columns.iter().find_map(|(_, array)| array.shape.first().copied()).unwrap_or(1);
    let (mut fields, mut elements, mut row, mut chunk) = (Vec::new(), Vec::new(), 0, 1);
    for (dataset, array) in columns {
        if array.shape.first() != Some(&length) {
            return Err(refused(
                dataset,
                format!("the shape {}", shape_in_words(&array.shape)),
                &format!("{length} rows, as the first has"),
            ));
        }
        let Some(element) = Element::new(array) else {
            return Err(refused(
                dataset,
                format!("elements of type {}", array.dtype),
                "numbers or strings",
            ));
        };
        let own = last_part(dataset.path());
        let unique = last.get(own) == Some(&1);
        fields.push(Field::new(
            if unique { own } else { dataset.path().trim_start_matches('/') },
            element.data_type(),
            false,
        ));
        row += array.bytes() / length.max(1);
        if let Place::Chunked(lengths, _) = &array.place {
            chunk = chunk.max(lengths.first().copied().unwrap_or(1));
        }
        elements.push(element);
    }
    let room = file.options().budget.memory as u64 / SHARE as u64;
    if row > room {
        let found = format!("{row} bytes a row");
        let (dataset, _) = columns[0];
        return Err(refused(dataset, found, &format!("at most {room}: allow more memory")));
    }
    // Whole chunks, where that is possible: each is decoded once.
    let most = (room / row.max(1)).max(1);
    let step = if most > chunk { most / chunk * chunk } else { most };
    let schema = Arc::new(Schema::new(fields));
    let mut sink = Sink::create(&path, kind, &schema)?;
    let mut from = 0;
    while from < length {
        let count = step.min(length - from);
        let mut parts: Vec<Vec<u8>> = columns
            .iter()
            .map(|(_, array)| vec![0; (array.bytes() / length * count) as usize])
            .collect();
        let mut wants: Vec<Want<'_>> = columns
            .iter()
            .zip(&mut parts)
            .map(|((dataset, array), out)| {
                let inner = array.shape.iter().skip(1).map(|&length| Slab::from(0..length));
                let slabs = [Slab::from(from..from + count)].into_iter().chain(inner).collect();
                Want { dataset, selection: Selection::Slab(slabs), out }
            })
            .collect();
        file.read(&mut wants)?;
        drop(wants);
        let arrays = elements
            .iter()
            .zip(&parts)
            .map(|(element, bytes)| element.column(bytes))
            .collect::<Result<_, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(schema.clone(), arrays));
        sink.push(&batch.map_err(|e| Failure::Said(e.to_string()))?)?;
        from += count;
    }
    sink.finish()
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
