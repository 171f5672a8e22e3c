//! `thalweg info` of a file of arrays: what is in it, and how it is stored.

mod events;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use thalweg::arrays::{ArrayFile, Dataset};
use thalweg::hdf5::array::{Array, ElementPlace, Found, Variable};
use thalweg::text::escaped;
use thalweg_gauge::cache::Residency;
use thalweg_gauge::units::decimal_bytes;
use thalweg_io::urls;

use super::shape_in_words;
use crate::common::{Failure, complain, counted, shortened, shown_path};
use crate::evict;

/// How many strings of a dataset are shown.
const SHOWN_STRINGS: u64 = 8;

/// The share of chunks that lie after their predecessor in the file: 1 for an array that can be
/// read from front to back.
fn in_order(array: &Array) -> Option<f64> {
    let ElementPlace::Chunked(_, chunks) = &array.place else { return None };
    let pairs = chunks.len().checked_sub(1).filter(|&pairs| pairs > 0)?;
    let after = chunks
        .windows(2)
        .filter(|pair| matches!(pair, [one, two] if two.offset >= one.offset + one.size));
    Some(after.count() as f64 / pairs as f64)
}

fn stored(array: &Array) -> u64 {
    match &array.place {
        ElementPlace::Inline(bytes) => bytes.len() as u64,
        ElementPlace::Contiguous(Some(_)) => array.bytes(),
        ElementPlace::Contiguous(None) | ElementPlace::Virtual(_) => 0,
        ElementPlace::Chunked(_, chunks) => chunks.iter().map(|chunk| chunk.size).sum(),
    }
}

fn filters(array: &Array) -> Vec<String> {
    array.pipeline.0.iter().map(ToString::to_string).collect()
}

/// How an array is stored, in words.
fn layout(array: &Array) -> String {
    let mut words = match &array.place {
        ElementPlace::Inline(_) => "in the header".to_owned(),
        ElementPlace::Contiguous(Some(_)) => "in one run".to_owned(),
        ElementPlace::Contiguous(None) => "nothing stored".to_owned(),
        ElementPlace::Virtual(mappings) => {
            let mappings = counted(mappings.len() as u64, "mapping");
            return format!("virtual, {mappings} of other datasets");
        }
        ElementPlace::Chunked(chunk, chunks) => {
            let chunks = counted(chunks.len() as u64, "chunk");
            format!("{chunks} of {}", shape_in_words(chunk))
        }
    };
    if let Some(share) = in_order(array) {
        let _ = write!(words, ", {:.0} % in order", share * 100.0);
    }
    let filters = filters(array);
    if !filters.is_empty() {
        let _ = write!(words, ", {}", filters.join(" + "));
    }
    let _ = write!(words, ", {} stored", decimal_bytes(stored(array) as f64));
    words
}

/// A dataset of strings or lists of variable length: its shape, and its first strings.
struct VariableSample {
    shape: Vec<u64>,
    /// The type of the items of lists; `None` for strings.
    item: Option<String>,
    shown: Vec<String>,
    /// Why no strings are shown.
    refused: Option<String>,
}

impl VariableSample {
    fn of(file: &ArrayFile, dataset: &Dataset) -> Result<Option<Self>, Failure> {
        let Some(Variable { shape, item, .. }) = file.variable(dataset)? else { return Ok(None) };
        let mut sample = Self {
            shape,
            item: item.map(|item| item.to_string()),
            shown: Vec::new(),
            refused: None,
        };
        if sample.item.is_none() {
            let read = file.first_strings(dataset, SHOWN_STRINGS, &mut |text| {
                sample.shown.push(String::from_utf8_lossy(text).into_owned());
                Ok(())
            });
            match read {
                Err(thalweg::Error::Cancelled) => return Err(thalweg::Error::Cancelled.into()),
                read => sample.refused = read.err().map(|error| error.to_string()),
            }
        }
        Ok(Some(sample))
    }

    fn words(&self) -> String {
        let what =
            self.item.as_ref().map_or("strings".to_owned(), |item| format!("lists of {item}"));
        if let Some(why) = &self.refused {
            return format!("not read: {what} of any length; {why}");
        }
        let count = if self.shape.is_empty() {
            "one of the".to_owned()
        } else {
            shape_in_words(&self.shape)
        };
        let shown: Vec<String> =
            self.shown.iter().map(|text| format!("{:?}", shortened(text))).collect();
        let more = if self.shape.iter().product::<u64>() > SHOWN_STRINGS { ", ..." } else { "" };
        format!("{count} {what} of any length: {}{more}", shown.join(", "))
            .trim_end_matches(": ")
            .to_owned()
    }
}

/// The shape of a chunk, and how many chunks there are.
fn chunks(array: &Array) -> Option<(&[u64], usize)> {
    match &array.place {
        ElementPlace::Chunked(chunk, chunks) => Some((chunk, chunks.len())),
        _ => None,
    }
}

fn row(file: &ArrayFile, dataset: &Dataset) -> Result<Value, Failure> {
    let other: Vec<String> =
        file.elsewhere(dataset).iter().map(|piece| urls::shown_path(&piece.path)).collect();
    Ok(match &dataset.found {
        Found::Other(what) => {
            let sample = VariableSample::of(file, dataset)?;
            let sample = sample.as_ref();
            json!({
                "path": dataset.path(),
                "not_read": what,
                "shape": sample.map(|sample| &sample.shape),
                "items": sample.and_then(|sample| sample.item.as_ref()),
                "strings": sample
                    .filter(|sample| sample.item.is_none() && sample.refused.is_none())
                    .map(|sample| &sample.shown),
                "refused": sample.and_then(|sample| sample.refused.as_ref()),
            })
        }
        Found::Array(array) => json!({
            "path": dataset.path(),
            "shape": array.shape,
            "dtype": array.dtype.to_string(),
            "bytes": array.bytes(),
            "bytes_stored": stored(array),
            "chunk": chunks(array).map(|(chunk, _)| chunk),
            "chunks": chunks(array).map(|(_, count)| count),
            "in_order": in_order(array),
            "filters": filters(array),
            "other_files": other,
            "mappings": match &array.place {
                ElementPlace::Virtual(mappings) => Some(mappings.len()),
                _ => None,
            },
            "not_read": array.pipeline.unknown(),
        }),
    })
}

/// Describes a file. The second value is whether something in it could not be read, which was
/// printed.
pub(crate) fn describe(
    path: &Path,
    file: &ArrayFile,
    cached: &Residency,
    as_json: bool,
) -> Result<(String, bool), Failure> {
    if let Some(note) = file.note() {
        complain(&note);
    }
    let (datasets, is_partial) = super::survey(file, &[])?;
    let events = events::look(file)?;
    if as_json {
        return Ok((in_json(path, file, cached, &datasets, events)?, is_partial));
    }
    let mut words = format!("{}\n", shown_path(path));
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(words, "  {name:<12} {}", escaped(value));
    };
    line("format", "HDF5");
    line("size", &decimal_bytes(file.store().size() as f64));
    line("cached", &format!("{}; {}", evict::cached(cached), evict::method(&cached.method)));
    events.iter().flat_map(|events| &events.lines).for_each(|(name, value)| line(name, value));
    if let Some(index) = file.index() {
        line("chunks from", &urls::shown_path(index));
    }
    line("datasets", &datasets.len().to_string());
    for dataset in &datasets {
        line("", &format!("{}: {}", dataset.path(), dataset_in_words(file, dataset)?));
    }
    Ok((words, is_partial))
}

fn in_json(
    path: &Path,
    file: &ArrayFile,
    cached: &Residency,
    datasets: &[Dataset],
    events: Option<events::EventSummary>,
) -> Result<String, Failure> {
    let rows =
        datasets.iter().map(|dataset| row(file, dataset)).collect::<Result<Vec<Value>, _>>()?;
    let line = json!({
        "schema": "thalweg.info/1",
        "file": urls::shown_path(path),
        "path": urls::shown_path(path),
        "format": "HDF5",
        "size_bytes": file.store().size(),
        "bytes_stored": file.store().size(),
        "cached_share": cached.fraction(),
        "datasets": rows,
        "index": file.index().map(urls::shown_path),
        "nexus": events.map(|events| events.json),
    });
    Ok(format!("{line}\n"))
}

fn dataset_in_words(file: &ArrayFile, dataset: &Dataset) -> Result<String, Failure> {
    let array = match &dataset.found {
        Found::Array(array) => array,
        Found::Other(what) => {
            let sample = VariableSample::of(file, dataset)?;
            return Ok(sample.map_or_else(|| format!("not read: {what}"), |known| known.words()));
        }
    };
    let count =
        if array.shape.is_empty() { "one".to_owned() } else { shape_in_words(&array.shape) };
    let other_files = file.elsewhere(dataset).len();
    let place = if other_files > 0 {
        format!("in {other_files} pieces of other files")
    } else {
        layout(array)
    };
    Ok(format!("{count} {}, {place}", array.dtype))
}
