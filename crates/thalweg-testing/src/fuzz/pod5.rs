//! POD5 files, intact and damaged: all ways of reading give the same reads, or an error names the
//! file and the byte.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;
use thalweg_io::store::MemoryStore;
use thalweg_io::{Error, Result};
use thalweg_nanopore::format::Format;
use thalweg_nanopore::reads::{BatchOptions, ReadFile, Selection};

const NAME: &str = "fuzz.pod5";

/// The value; `None` for an error that names the file. Panics at any other error.
fn kept<T>(outcome: Result<T>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(
            Error::Malformed { file, .. }
            | Error::Truncated { file, .. }
            | Error::Unsupported { file, .. }
            | Error::NotFound { file, .. },
        ) if *file == *NAME => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Footers, tables, batches and signal. The file is read in order, without signal, by a check, read
/// by read, and by a list of ids.
pub fn pod5(data: &[u8]) {
    let store = Arc::new(MemoryStore::new(NAME, data.to_vec()));
    let options = Options { budget: Budget { threads: 1, memory: 2 << 20 }, ..Options::default() };
    let Some(file) =
        ReadFile::from_store(store, options).ok().filter(|file| file.format() == Format::Pod5)
    else {
        return;
    };
    let mut reads: Vec<(String, Vec<i16>)> = Vec::new();
    let seen = |read: &thalweg_nanopore::reads::Read<'_>| {
        (read.record.read_id.to_owned(), read.samples.to_vec())
    };
    let mut all = file.map(&Selection::All, seen).unwrap();
    let is_whole = all.by_ref().all(|item| kept(item).map(|read| reads.push(read)).is_some());
    drop(all);

    let fields = fields(&file);
    assert!(fields.len() >= reads.len(), "{} rows of {} reads", fields.len(), reads.len());
    for ((id, samples), field) in reads.iter().zip(&fields) {
        assert_eq!((id, samples.len() as u64), (&field.0, field.1));
    }

    let report = kept(file.check()).unwrap();
    // A check finds every defect that reading finds, and also rows of signal that belong to another
    // read.
    assert!(!report.is_whole() || is_whole && report.reads == reads.len() as u64);

    // If several reads have the same id, the first one is found.
    let Some(mut getter) = kept(file.getter()) else { return assert!(!is_whole) };
    let first = |id: &str| reads.iter().position(|read| read.0 == id);
    for (i, (id, samples)) in
        reads.iter().enumerate().filter(|(i, read)| first(&read.0) == Some(*i))
    {
        let got = kept(getter.get(id, |read| read.samples.to_vec()));
        assert_eq!(got.as_ref(), Some(samples), "read {i}");
    }
    let distinct = || reads.iter().enumerate().rev().filter(|(i, read)| first(&read.0) == Some(*i));
    let ids = Selection::Ids(Arc::new(distinct().map(|(_, read)| read.0.clone()).collect()));
    let mut wanted = distinct().map(|(_, read)| read);
    for item in file.map(&ids, seen).unwrap() {
        assert_eq!(kept(item).as_ref(), wanted.next());
    }
    assert!(wanted.next().is_none());
}

/// The ids and the numbers of samples, read without the signal.
fn fields(file: &ReadFile) -> Vec<(String, u64)> {
    let mut fields = Vec::new();
    for batch in file.scan(&Selection::All, BatchOptions::default()).unwrap() {
        let Some(batch) = kept(batch) else { break };
        let batch = batch.into_inner();
        let ids = batch.column_by_name("read_id").unwrap().as_string::<i32>().clone();
        let samples = batch.column_by_name("samples").unwrap().as_primitive::<UInt64Type>().clone();
        fields.extend(
            ids.iter().zip(samples.iter()).map(|(id, n)| (id.unwrap().to_owned(), n.unwrap())),
        );
    }
    fields
}
