//! Gets reads of a POD5 file by their ids: a list of them at once, and one alone.
//!
//! `cargo run -p thalweg --example pod5_by_id [FILE ID...]`
//!
//! Without arguments, a small synthetic file is made in a temporary folder. A library that reads
//! by id keeps an index beside the file or in the user's cache folder.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg::format::pod5::write::{Identity, Pod5Layout};
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::Coding;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut arguments = std::env::args().skip(1);
    let (path, ids) = match arguments.next() {
        Some(path) => (PathBuf::from(path), arguments.collect()),
        None => synthetic(folder.path())?,
    };
    let file = ReadFile::open(&path, Options::default())?;

    // A list: requests go out in the order of the file, reads arrive in the order of the list.
    let wanted = Selection::Ids(Arc::new(ids.clone()));
    let rows = file.map(&wanted, |read| (read.record.read_id.to_owned(), read.samples.len()))?;
    for row in rows {
        let (id, samples) = row?;
        println!("{id}  {samples} samples");
    }

    // Single reads: a getter works on the caller's thread and keeps its buffers between calls.
    let mut getter = file.getter()?;
    if let Some(id) = ids.first() {
        let largest = getter.get(id, |read| read.samples.iter().max().copied())?;
        println!("{id}  largest sample {largest:?}");
    }
    Ok(())
}

/// Makes a POD5 file; returns its path and the ids of every third read, the last one first.
fn synthetic(folder: &Path) -> Result<(PathBuf, Vec<String>), Box<dyn Error>> {
    let path = folder.join("reads.pod5");
    let synth = Synth::new(Recipe::with_samples(1, 500_000))?;
    let header = synth.full_header();
    let layout = Pod5Layout { identity: Some(Identity::from_seed(1)), ..Pod5Layout::default() };
    let coding = Coding::Pod5(layout);
    let target = coding.target(&header)?;
    let mut encoder = coding.encoder()?;
    let mut out = target.create(&path)?;
    let mut read = SynthRead::default();
    let mut auxiliary = Vec::new();
    let mut ids = Vec::new();
    for number in 0..synth.recipe().reads {
        synth.read(number, &mut read);
        let record = read.record(&header, &mut auxiliary)?;
        out.push(encoder.encode(&target, &record, &read.samples)?)?;
        ids.push(read.read_id.clone());
    }
    out.finish()?;
    Ok((path, ids.into_iter().step_by(3).rev().collect()))
}
