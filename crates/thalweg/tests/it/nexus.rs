//! NeXus events of synthetic files.

use thalweg::arrays::ArrayFile;
use thalweg::nexus::Nexus;
use thalweg::plan::Budget;
use thalweg::synth::nexus::{NexusRecipe, NexusWriter, SynthRun};
use thalweg::{Options, Result};

/// The number and the span of each bank's pulses, and the number of its defects.
type Found = Vec<(usize, Option<(i64, i64)>, usize)>;

#[test]
fn pulses_are_the_same_one_by_one_and_together() -> Result<()> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.nxs");
    let recipe =
        NexusRecipe { banks: 7, events_per_pulse: 3.0, ..NexusRecipe::with_bytes(1, 200_000) };
    let run = SynthRun::new(recipe)?;
    NexusWriter::write(&path, &run)?;
    let found = |memory: usize| -> Result<[Found; 2]> {
        let options = Options { budget: Budget { threads: 2, memory }, ..Options::default() };
        let file = ArrayFile::open(&path, options)?;
        let nexus = Nexus::find(&file)?;
        let (mut alone, mut together) = (Found::new(), Found::new());
        for bank in nexus.banks() {
            let (pulses, found) = nexus.pulses(bank)?;
            alone.push((pulses.len(), pulses.span(), found.len()));
        }
        nexus.each_pulses(nexus.banks(), &mut |_, pulses, found| {
            together.push((pulses.len(), pulses.span(), found.len()));
        })?;
        Ok([alone, together])
    };
    // In the first budget, the pulses of one bank fit; in the second, those of a few; in the
    // third, all.
    let bank = run.pulses() as usize * 16;
    for memory in [bank, 12 * bank, 64 << 20] {
        let [alone, together] = found(memory)?;
        assert_eq!(alone.len(), 7);
        assert!(alone.iter().all(|(pulses, span, _)| *pulses > 1000 && span.is_some()));
        assert_eq!(alone, together, "{memory} bytes of memory");
    }
    Ok(())
}
