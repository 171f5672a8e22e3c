//! hdf5-reader as a benchmark peer for arrays.

use hdf5_reader::{Dataset, Datatype, Hdf5File};
use ndarray::ArrayD;
use rust_hdf5::H5File;
use thalweg_rust_readers::{expanded, names, run};

fn main() {
    run("hdf5-reader", "0.12.1", "rayon", |asked| {
        // Its own walk reads every dataset's header to tell groups from datasets, too.
        let paths = expanded(&asked.paths, || {
            names(&H5File::open(&asked.file).expect("a file that rust-hdf5 reads"))
        });
        let file = Hdf5File::open(&asked.file).expect("a file that it reads");
        let read = |path: String| values(&file.dataset(&path).expect("the dataset"));
        paths.into_iter().map(read).collect()
    });
}

/// An array, whose bytes are those of its values on a little-endian machine.
enum Values {
    U32(ArrayD<u32>),
    U64(ArrayD<u64>),
    F32(ArrayD<f32>),
    Bytes(Vec<u8>),
}

impl AsRef<[u8]> for Values {
    fn as_ref(&self) -> &[u8] {
        fn of<T: Copy>(array: &ArrayD<T>) -> &[u8] {
            let values = array.as_slice().expect("values in C order");
            // SAFETY: numbers have no padding, and any byte is a value of `u8`.
            unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
        }
        match self {
            Self::U32(array) => of(array),
            Self::U64(array) => of(array),
            Self::F32(array) => of(array),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The values of a dataset of numbers, by its parallel reader where the type has one.
fn values(dataset: &Dataset) -> Values {
    match dataset.dtype() {
        Datatype::FixedPoint { size: 4, signed: false, .. } => {
            Values::U32(dataset.read_array_parallel().expect("its values"))
        }
        Datatype::FixedPoint { size: 8, signed: false, .. } => {
            Values::U64(dataset.read_array_parallel().expect("its values"))
        }
        Datatype::FloatingPoint { size: 4, .. } => {
            Values::F32(dataset.read_array_parallel().expect("its values"))
        }
        _ => Values::Bytes(dataset.read_native_bytes().expect("its values")),
    }
}
