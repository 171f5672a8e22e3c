//! Compares Arrow batches of real files with the values that pyslow5 decoded. See
//! `thalweg_testing::real_files` for the place of the files.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int16Type, UInt32Type};
use serde_json::Value;
use sha2::{Digest, Sha256};
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg_testing::real_files::nanopore;

#[test]
fn real_files_give_what_pyslow5_gave() {
    let Some(folder) = nanopore() else { return };
    let text = std::fs::read(folder.join("expect/expectations.json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&text).unwrap();
    let mut files = 0;
    for (name, expected) in expected.iter().filter(|(name, _)| name.contains("low5/")) {
        let Ok(file) = ReadFile::open(folder.join(name), Options::default()) else { continue };
        let Some(want) = expected["reads"].as_array() else {
            // Other files have no expected reads, because pyslow5 refuses their version.
            let damaged = expected["expect"].as_str().is_some_and(|text| text.starts_with("error"));
            assert_eq!(
                file.batches(&Selection::All).unwrap().any(|batch| batch.is_err()),
                damaged,
                "{name}"
            );
            continue;
        };
        let mut rows = Vec::new();
        for batch in file.batches(&Selection::All).unwrap() {
            let batch = batch.unwrap();
            let float = |i: usize, row| batch.column(i).as_primitive::<Float64Type>().value(row);
            for row in 0..batch.num_rows() {
                let signal = batch.column(6).as_list::<i32>().value(row);
                let samples = signal.as_primitive::<Int16Type>().values();
                let bytes: Vec<u8> =
                    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
                let digest = Sha256::digest(&bytes);
                let sha256: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                rows.push(serde_json::json!({
                    "read_id": batch.column(0).as_string::<i32>().value(row),
                    "read_group": batch.column(1).as_primitive::<UInt32Type>().value(row),
                    "digitisation": float(2, row),
                    "offset": float(3, row),
                    "range": float(4, row),
                    "sampling_rate": float(5, row),
                    "n": samples.len(),
                    "sum": samples.iter().map(|&s| i64::from(s)).sum::<i64>(),
                    "sha256": sha256,
                }));
            }
        }
        assert_eq!(rows, *want, "{name}");
        files += 1;
    }
    assert!(files >= 20, "{files} files");
}
