//! The fuzz target that repacks files.

use std::cell::RefCell;
use std::fs;

use tempfile::TempDir;
use thalweg_hdf5::repack::{Chunking, Coder, Repack, TargetLayout, repack};
use thalweg_io::control::Control;
use thalweg_io::open::Options;
use thalweg_io::plan::Budget;

thread_local! {
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// Repacks an HDF5 file, as it is and with other chunks and filters. A file is copied with the same
/// values, or refused.
pub fn hdf5_repack(data: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().unwrap());
        let (path, out) = (folder.path().join("in.h5"), folder.path().join("out.h5"));
        fs::write(&path, data).unwrap();
        let other = TargetLayout {
            chunk: Some(Chunking::Rows(3)),
            coders: Some(vec![Coder::Shuffle, Coder::Deflate(1)]),
        };
        for layout in [TargetLayout::default(), other] {
            let how =
                Repack { paths: vec![("/".into(), layout)], verify: true, ..Repack::default() };
            let budget = Budget { threads: 1, memory: 4 << 20 };
            let options = Options { budget, control: Control::new(), ..Options::default() };
            match repack(&path, &out, options, &how) {
                Ok(_) => fs::remove_file(&out).unwrap(),
                // What was written is wrong.
                Err(error) => assert!(!error.to_string().contains("as it was written"), "{error}"),
            }
            assert!(!out.exists());
        }
    });
}
