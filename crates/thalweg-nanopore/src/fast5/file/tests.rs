//! Compares reads that are parsed while they are decoded with a list of all reads.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::Refused;
use thalweg_io::control::Control;
use thalweg_io::model::StoreModel;
use thalweg_io::open::Options;
use thalweg_io::store::{MemoryStore, Store};

use super::Fast5File;
use super::open::{OpenContext, table_of};
use crate::fast5;
use crate::file;
use crate::format::AnyFile;
use crate::reads::{Read, ReadFile, Selection};
use crate::record::Record;

/// The seeds of the fuzz target, and the real files if there are any.
fn files() -> Vec<PathBuf> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let shared = std::env::var_os("THALWEG_SHARED")
        .map_or_else(|| PathBuf::from(root).join("../shared"), PathBuf::from);
    let mut files = Vec::new();
    for folder in
        [PathBuf::from(root).join("fuzz/corpus/hdf5_meta"), shared.join("data/nanopore/fast5")]
    {
        // The real files may be absent; `thalweg_testing::real_files` documents their place.
        files
            .extend(fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path()));
    }
    assert!(!files.is_empty());
    files.sort();
    files
}

fn store(bytes: Vec<u8>) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new("file", bytes))
}

fn listed(store: &Arc<dyn Store>, depth: usize) -> meta::Result<fast5::Fast5Layout> {
    let model = StoreModel { depth, ..StoreModel::MEMORY };
    table_of(OpenContext { store, control: &Control::new(), model, memory: 64 << 20 })
}

/// All fields of each read as text, and its samples.
fn all(file: &ReadFile) -> Vec<(String, Vec<i16>)> {
    let show = |read: &Read<'_>| {
        let Record { read_id, read_group, digitisation, offset, range, sampling_rate, .. } =
            *read.record;
        let own = format!("{read_id} {read_group} {digitisation} {offset} {range} {sampling_rate}");
        let aux: Vec<_> = read.record.aux_values(read.header).map(Result::unwrap).collect();
        (format!("{own} {aux:?}"), read.samples.to_vec())
    };
    file.map(&Selection::All, show).unwrap().map(Result::unwrap).collect()
}

#[test]
fn reads_parsed_on_the_way_are_those_that_are_listed() {
    let mut streams = 0;
    for path in files() {
        let store = store(fs::read(&path).unwrap());
        let open = || ReadFile::from_store(store.clone(), Options::default()).unwrap();
        let ours = open();
        let mut table_file = open();
        streams +=
            usize::from(matches!(ours.reads.as_any().downcast_ref(), Some(Fast5File::Stream(_))));
        let table = listed(&store, 7).unwrap();
        let header = table.header().clone();
        let file = Fast5File::Table(Arc::new(table));
        let opened = AnyFile::listed(file::OpenedFormat { file, header, requests: 0 });
        (table_file.file.header, table_file.reads) = (opened.header, opened.file);
        // The header of all reads is loaded first. Otherwise a read could have fewer fields.
        assert_eq!(ours.header(), table_file.header(), "{}", path.display());
        assert_eq!(ours.left_out(), table_file.left_out(), "{}", path.display());
        assert!(all(&ours) == all(&table_file), "{}", path.display());
    }
    assert!(streams >= 2);
}

/// Flips bits all over a file, and cuts it to many lengths.
#[test]
fn damaged_files_are_refused_or_read_in_bounded_work() {
    for path in files() {
        let whole = fs::read(&path).unwrap();
        // Real files are mostly signal, which this test does not read, so the steps are larger.
        let step = if whole.len() > 200_000 { 997 } else { 13 };
        // CI tries all of them.
        let step = if std::env::var_os("THOROUGH").is_some() { step } else { step * 5 };
        let mut read = 0;
        let mut refused = 0;
        for at in (0..whole.len()).step_by(step) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            match listed(&store(bytes), 1) {
                Ok(_) => read += 1,
                Err(Refused::Store(error)) => {
                    assert!(!matches!(error, thalweg_io::Error::Io { .. }), "{error}");
                }
                Err(_) => refused += 1,
            }
        }
        for cut in (0..whole.len()).step_by(step) {
            let outcome = listed(&store(whole[..cut].to_vec()), 1);
            assert!(matches!(outcome, Err(Refused::Damaged(_))), "{} cut to {cut}", path.display());
        }
        assert!(read > 0 && refused > 0, "{}: {read} read, {refused} refused", path.display());
    }
}
