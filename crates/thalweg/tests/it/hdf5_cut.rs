//! Real HDF5 files that are cut short, or end in zeros. Each structure is in one of them.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_testing::fuzz::hdf5_file;
use thalweg_testing::fuzz_corpus::zeros_from;
use thalweg_testing::one_of;
use thalweg_testing::real_files::shared;

/// The most bytes of a small file.
const SMALL: u64 = 12 << 10;

/// The files in a folder and its folders.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.metadata().unwrap().len() <= SMALL {
            found.push(path);
        }
    }
}

/// At every byte with `CUT_STEP=1`.
#[test]
fn cut_files_hold() {
    let Some(folder) = shared("hdf5") else { return };
    let asked = std::env::var("CUT_STEP").ok().and_then(|text| text.parse().ok());
    let step = asked.unwrap_or(211 * one_of());
    let mut paths = Vec::new();
    files(&folder, &mut paths);
    let mut cut = 0;
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        if !bytes.starts_with(&thalweg::hdf5::SIGNATURE) {
            continue;
        }
        println!("{}", path.display());
        for at in (0..bytes.len()).step_by(step) {
            println!("byte {at}");
            hdf5_file(&bytes[..at]);
            hdf5_file(&zeros_from(&bytes, at));
        }
        cut += 1;
    }
    assert!(cut >= 40, "{cut} files");
}
