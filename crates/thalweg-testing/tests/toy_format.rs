//! Tests that a format of another crate works with the code that the verbs use, without a change in
//! `thalweg-nanopore`.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use thalweg_io::Error;
use thalweg_io::condition::Condition;
use thalweg_io::control::Control;
use thalweg_nanopore::convert::{Conversion, convert};
use thalweg_nanopore::format::Format;
use thalweg_nanopore::reads::{
    IndexOrigin, Options, ReadFile, ReadSet, ScanOptions, Selection, find, index_path,
};
use thalweg_nanopore::slow5::{RecordPress, SignalPress};
use thalweg_nanopore::write::Coding;
use thalweg_testing::toy::{register_toy, toy_file};

type Reads = Vec<(String, Vec<i16>)>;

/// Makes reads of different lengths, one of them without samples.
fn reads() -> Reads {
    let samples = |i: i16| (0..i * 10).map(|x| x * 3 - i).collect();
    (0..50).map(|i| (format!("read-{i:02}"), samples(i))).collect()
}

/// Writes `bytes` to a file in a temporary folder, and returns the folder and the path.
fn written(bytes: &[u8]) -> (TempDir, PathBuf) {
    register_toy();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reads.toy");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn open(path: &Path) -> ReadFile {
    ReadFile::open(path, Options::default()).unwrap()
}

fn all(file: &ReadFile, selection: &Selection) -> Reads {
    let show = |read: &thalweg_nanopore::reads::Read<'_>| {
        (read.record.read_id.to_owned(), read.samples.to_vec())
    };
    file.map(selection, show).unwrap().map(Result::unwrap).collect()
}

fn ids(ids: &[&str]) -> Selection {
    Selection::Ids(Arc::new(ids.iter().map(|&id| id.to_owned()).collect()))
}

#[test]
fn the_toy_format_is_recognised_and_read() {
    let toy = register_toy();
    let (folder, path) = written(&toy_file(&reads()));
    let file = open(&path);
    assert_eq!((file.format(), toy.name(), Format::of_path(&path)), (toy, "TOY", Some(toy)));
    assert!(all(&file, &Selection::All) == reads());
    assert_eq!(find([folder.path()], &Control::new()).unwrap(), [path]);
    let empty = tempfile::tempdir().unwrap();
    let error = find([empty.path()], &Control::new()).unwrap_err().to_string();
    assert!(error.contains(".slow5, .blow5, .pod5, .fast5 or .toy"), "{error}");
}

#[test]
fn the_reads_of_the_toy_format_are_read_by_id() {
    let (_folder, path) = written(&toy_file(&reads()));
    let file = open(&path);
    let wanted: Reads = [7, 3, 7].map(|i| reads()[i].clone()).into();
    assert!(all(&file, &ids(&["read-07", "read-03", "read-07"])) == wanted);
    let mut getter = file.getter().unwrap();
    assert_eq!(getter.get("read-09", |read| read.samples.len()).unwrap(), 90);
    assert!(matches!(getter.get("none", |_| ()), Err(Error::NotFound { .. })));
}

#[test]
fn the_index_of_the_toy_format_is_built_saved_and_loaded() {
    let (_folder, path) = written(&toy_file(&reads()));
    assert_eq!(open(&path).load_index().unwrap(), IndexOrigin::Built);
    assert!(index_path(&path).exists());
    let file = open(&path);
    assert_eq!(file.load_index().unwrap(), IndexOrigin::Loaded);
    assert_eq!(file.known_reads().unwrap(), Some(50));
    assert_eq!(file.read_ids().unwrap().len(), 50);
}

#[test]
fn damage_is_found_and_intact_reads_are_salvaged() {
    let mut bytes = toy_file(&reads());
    let (_intact, path) = written(&bytes);
    assert!(open(&path).check().unwrap().is_whole());

    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let (folder, path) = written(&bytes);
    let out = folder.path().join("salvaged.toy");
    let report = open(&path).salvage(&out).unwrap();
    assert_eq!((report.reads, report.defect_count, report.salvaged), (49, 1, 49));
    assert!(all(&open(&out), &Selection::All) == reads()[..49]);
}

#[test]
fn a_file_that_is_cut_short_is_refused() {
    let mut bytes = toy_file(&reads());
    bytes.truncate(bytes.len() - 5);
    let (_folder, path) = written(&bytes);
    let file = open(&path);
    let last = file.map(&Selection::All, |_| ()).unwrap().last().unwrap();
    assert!(matches!(last, Err(Error::Truncated { .. })));
}

#[test]
fn the_toy_format_is_scanned_and_converted() {
    let (folder, path) = written(&toy_file(&reads()));
    let set = ReadSet::open([&path], Options::default()).unwrap();
    let batches = set.batches(&Selection::All).unwrap();
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 50);
    let options = ScanOptions {
        condition: Some(Condition::parse("samples > 400").unwrap()),
        ..ScanOptions::default()
    };
    let rows = set.scan(&Selection::All, &options).unwrap();
    assert_eq!(rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 9);

    let out = folder.path().join("reads.blow5");
    let conversion = Conversion {
        coding: Coding::Blow5(RecordPress::Zstd, SignalPress::SvbZd),
        copy: false,
        lossy: false,
        verify: Some(Options::default()),
        takes_first: false,
    };
    let report = convert(&set, &Selection::All, &out, &conversion).unwrap();
    assert!(report.verified && all(&open(&out), &Selection::All) == reads());
}
