//! rust-hdf5 as a benchmark peer for arrays.

use rust_hdf5::H5File;
use thalweg_rust_readers::{expanded, names, run};

fn main() {
    run("rust-hdf5", "0.7.9", "parallel, mmap, simd", |asked| {
        let file = H5File::open(&asked.file).expect("a file that it reads");
        let read = |path: String| {
            file.dataset(&path).expect("the dataset").read_raw_bytes().expect("its values")
        };
        expanded(&asked.paths, || names(&file)).into_iter().map(read).collect()
    });
}
