//! Compares real POD5 files of every version with the values that the `pod5` package decoded.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thalweg::Error;
use thalweg::format::Format;
use thalweg::reads::{IndexOrigin, IndexState, Options, Read, ReadFile, Selection, StoreKind};
use thalweg_testing::real_files::nanopore;

const STORES: [StoreKind; 6] = [
    StoreKind::Auto,
    StoreKind::Buffered,
    StoreKind::Direct,
    StoreKind::Uring,
    StoreKind::Mmap,
    StoreKind::Memory,
];

/// Every POD5 file, with its expected values.
fn files() -> Vec<(PathBuf, Value)> {
    let Some(folder) = nanopore() else { return Vec::new() };
    let text = fs::read(folder.join("expect/expectations.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&text).unwrap();
    let files = expected.into_iter().filter(|(name, _)| name.starts_with("pod5/"));
    let files: Vec<_> = files.map(|(name, expected)| (folder.join(name), expected)).collect();
    assert!(files.len() >= 9);
    files
}

fn sha256(samples: &[i16]) -> String {
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn show(read: &Read<'_>) -> Value {
    assert!(read.record.aux_values(read.header).all(|value| value.is_ok()));
    json!({
        "read_id": read.record.read_id,
        "n": read.samples.len(),
        "sum": read.samples.iter().map(|&sample| i64::from(sample)).sum::<i64>(),
        "sha256": sha256(read.samples),
    })
}

fn expected(of: &Value) -> Vec<Value> {
    let fields = ["read_id", "n", "sum", "sha256"];
    let show = |read: &Value| {
        fields.iter().map(|&field| (field.to_owned(), read[field].clone())).collect::<Value>()
    };
    of["reads"].as_array().unwrap().iter().map(show).collect()
}

#[test]
fn samples_are_what_pod5_decoded_on_every_store() {
    for (path, expectation) in files() {
        for store in STORES {
            let file = ReadFile::open(&path, Options { store, ..Options::default() }).unwrap();
            assert_eq!(file.format(), Format::Pod5);
            let found: Result<Vec<Value>, Error> =
                file.map(&Selection::All, show).unwrap().collect();
            assert_eq!(found.unwrap(), expected(&expectation), "{} {store:?}", path.display());
        }
    }
}

#[test]
fn reads_come_in_the_order_of_the_ids() {
    let folder = tempfile::tempdir().unwrap();
    for (original, expectation) in files() {
        // An index is written beside the file, so the test uses a copy.
        let path = folder.path().join(original.file_name().unwrap());
        fs::copy(&original, &path).unwrap();
        let file = ReadFile::open(&path, Options::default()).unwrap();
        let mut wanted = expected(&expectation);
        wanted.reverse();
        wanted.push(wanted[0].clone());
        let ids: Vec<String> =
            wanted.iter().map(|read| read["read_id"].as_str().unwrap().to_owned()).collect();
        let selection = Selection::Ids(Arc::new(ids.clone()));
        let found: Result<Vec<Value>, Error> = file.map(&selection, show).unwrap().collect();
        assert_eq!(found.unwrap(), wanted, "{}", path.display());
        let mut getter = file.getter().unwrap();
        for (id, wanted) in ids.iter().zip(&wanted) {
            assert_eq!(&getter.get(id, show).unwrap(), wanted);
        }
        let again = ReadFile::open(&path, Options::default()).unwrap();
        assert_eq!(again.index().unwrap().1, IndexOrigin::Loaded);
        assert_eq!(again.check().unwrap().index, IndexState::Consistent);
        let unknown = "00000000-0000-0000-0000-000000000000";
        assert!(matches!(getter.get(unknown, |_| ()), Err(Error::NotFound { .. })));
        let selection =
            Selection::Ids(Arc::new(vec![ids[0].clone(), unknown.into(), "no uuid".into()]));
        assert!(matches!(file.map(&selection, |_| ()), Err(Error::NotFound { .. })));
    }
}
