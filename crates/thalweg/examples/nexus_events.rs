//! Reads the events of the first tenth of a second in one bank of a NeXus file.
//!
//! `cargo run -p thalweg --example nexus_events [FILE BANK]`
//!
//! Without arguments, a small synthetic file is made in a temporary folder.

use std::error::Error;
use std::path::{Path, PathBuf};

use thalweg::Options;
use thalweg::arrays::ArrayFile;
use thalweg::nexus::{EventSelection, Moment, Nexus};
use thalweg::synth::nexus::{NexusRecipe, NexusWriter, SynthRun};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut arguments = std::env::args().skip(1);
    let path = match arguments.next() {
        Some(path) => PathBuf::from(path),
        None => synthetic(folder.path())?,
    };
    let bank = arguments.next().unwrap_or_else(|| "bank1_events".into());

    let file = ArrayFile::open(&path, Options::default())?;
    let nexus = Nexus::find(&file)?;
    for bank in nexus.banks() {
        println!("{}: {} events, {} pulses", bank.name(), bank.events(), bank.pulses());
    }

    // From the start of the run to 0.1 s later. Only the pulses of this time are read.
    let time = (Some(Moment::Into(0)), Some(Moment::Into(100_000_000)));
    let wanted =
        EventSelection { banks: vec![bank], time: Some(time), ..EventSelection::default() };
    let mut events = 0;
    let mut last = None;
    let summary = nexus.events(&wanted, &mut |batch| {
        // A batch has the pulse and the time of each event, and the stored bytes of each column.
        events += batch.pulses.len();
        last = batch.pulses.last().copied().or(last);
        Ok(())
    })?;
    println!("{events} events of that time; the last one is of pulse {last:?}");

    // Defects of the index of pulses, and how they were handled.
    for finding in &summary.findings {
        println!("{finding}");
    }
    Ok(())
}

/// Makes a NeXus file of three banks and about 50,000 events.
fn synthetic(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join("run.nxs");
    let recipe =
        NexusRecipe { banks: 3, events_per_pulse: 2_000.0, ..NexusRecipe::with_bytes(1, 400_000) };
    NexusWriter::write(&path, &SynthRun::new(recipe)?)?;
    Ok(path)
}
