//! Reads a part of an HDF5 dataset: the first dimension's elements START to END.
//!
//! `cargo run -p thalweg --example hdf5_selection [FILE DATASET START END]`
//!
//! Without arguments, a small synthetic NeXus file is made in a temporary folder.

use std::error::Error;
use std::path::{Path, PathBuf};

use thalweg::Options;
use thalweg::arrays::{ArrayFile, ArrayRequest, Selection, Slab};
use thalweg::hdf5::array::Found;
use thalweg::synth::nexus::{NexusRecipe, NexusWriter, SynthRun};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, name, rows) = match arguments.as_slice() {
        [path, name, start, end] => (path.into(), name.as_str(), start.parse()?..end.parse()?),
        _ => (synthetic(folder.path())?, "/entry/bank1_events/event_id", 1000..5000),
    };
    let file = ArrayFile::open(&path, Options::default())?;
    let dataset = file.below(name)?.into_iter().next().ok_or("no dataset there")?;
    let Found::Array(array) = &dataset.found else {
        return Err("the dataset is no array of elements of one size".into());
    };
    let element = array.dtype.size();
    println!("{name}: shape {:?}, {element} bytes an element", array.shape);

    // One slab for each dimension: some rows of the first, and all of the others.
    let mut slabs = vec![Slab::from(rows)];
    slabs.extend(array.shape.iter().skip(1).map(|&length| Slab::from(0..length)));
    let elements: u64 = slabs.iter().map(Slab::len).product();
    let mut out = vec![0; usize::try_from(elements)? * element];

    // Several selections of several datasets can be read at once, in the order of the file.
    let selection = Selection::Slab(slabs);
    let summary = file.read(&mut [ArrayRequest { dataset: &dataset, selection, out: &mut out }])?;
    println!("{} bytes out of {} stored bytes", summary.bytes, summary.stored);

    // The values are in C order and little-endian. Event ids are 32-bit unsigned numbers.
    if element == 4 {
        let values = out.chunks_exact(4).filter_map(|bytes| bytes.try_into().ok());
        let first: Vec<u32> = values.map(u32::from_le_bytes).take(5).collect();
        println!("as 32-bit numbers they begin with {first:?}");
    }
    Ok(())
}

/// Makes a NeXus file of about 200,000 bytes of events.
fn synthetic(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join("run.nxs");
    let run = SynthRun::new(NexusRecipe { banks: 2, ..NexusRecipe::with_bytes(1, 200_000) })?;
    NexusWriter::write(&path, &run)?;
    Ok(path)
}
