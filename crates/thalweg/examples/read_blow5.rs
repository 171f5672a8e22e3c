//! Reads a BLOW5 file in file order and prints each read's id, length and mean current.
//!
//! `cargo run -p thalweg --example read_blow5 [FILE]`
//!
//! Without FILE, a small synthetic file is made in a temporary folder. SLOW5, POD5 and FAST5 files
//! are read by the same calls.

use std::error::Error;
use std::path::{Path, PathBuf};

use thalweg::format::slow5::{RecordEncoder, RecordPress, SignalPress};
use thalweg::reads::{Options, ReadFile, Selection};
use thalweg::synth::{Recipe, Synth, SynthRead};
use thalweg::write::ReadWriter;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => synthetic(folder.path())?,
    };

    // The default options choose the store, the threads and a memory budget of 192 MiB.
    let file = ReadFile::open(&path, Options::default())?;

    // The closure runs on the decoding threads. Its results arrive here in file order.
    let rows = file.map(&Selection::All, |read| {
        let sum: f64 = read.samples.iter().map(|&sample| f64::from(sample)).sum();
        let mean = sum / read.samples.len().max(1) as f64;
        // Three fields of the record convert raw samples to picoampere.
        let record = read.record;
        let current = (mean + record.offset) * record.range / record.digitisation;
        (record.read_id.to_owned(), read.samples.len(), current)
    })?;
    for row in rows {
        // A damaged record gives an error in its place, after the reads before it.
        let (id, samples, current) = row?;
        println!("{id}  {samples:>7} samples  {current:.1} pA");
    }
    Ok(())
}

/// Makes a BLOW5 file of about 100,000 samples.
fn synthetic(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join("reads.blow5");
    let synth = Synth::new(Recipe::with_samples(1, 100_000))?;
    let header = synth.header(RecordPress::Zstd, SignalPress::SvbZd);
    let mut out = ReadWriter::create(&path, &header)?;
    let mut encoder = RecordEncoder::new()?;
    let mut read = SynthRead::default();
    for number in 0..synth.recipe().reads {
        synth.read(number, &mut read);
        out.push(&read.read_id, &read.frame(&header, &mut encoder)?)?;
    }
    out.finish()?;
    Ok(path)
}
