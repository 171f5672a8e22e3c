//! Connectivity of astrocytes, synapses and neurons.

use std::path::Path;

use thalweg::synth::neuroglial::CircuitRecipe;

use crate::common::parse_count;

const HEADING: &str = "Neuroglial connectivity";

/// How large a network is.
#[derive(Debug, clap::Args)]
pub(super) struct NeuroglialArgs {
    /// Neurons, which determine the volume of tissue
    #[arg(
        long,
        value_name = "M",
        default_value = "219422",
        value_parser = parse_count,
        help_heading = HEADING
    )]
    neurons: u64,
    /// Only the first N of the astrocytes that the tissue has room for (14,086 with the default
    /// neurons); their lists do not depend on N
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = HEADING)]
    astrocytes: Option<u64>,
}

impl NeuroglialArgs {
    pub(super) fn recipe(&self, seed: u64) -> thalweg::Result<CircuitRecipe> {
        let recipe = CircuitRecipe {
            astrocytes: self.astrocytes,
            ..CircuitRecipe::with_neurons(seed, self.neurons)
        };
        recipe.check()?;
        Ok(recipe)
    }
}

/// Writes a network. All cores make lists; this thread writes them in the order of the file.
pub(super) fn write(
    path: &Path,
    recipe: CircuitRecipe,
    stopped: &dyn Fn() -> bool,
) -> thalweg::Result<()> {
    use thalweg::synth::neuroglial::{NeuroglialWriter, SynthNetwork};

    let network = SynthNetwork::stoppable(recipe, stopped)?;
    let mut out = NeuroglialWriter::create(path, &network)?;
    let bar = super::bar(network.bytes());
    let make = || |number| network.piece(number);
    super::in_order(path, network.pieces(), make, stopped, |piece| {
        out.push(&piece)?;
        bar.inc(piece.bytes());
        Ok(())
    })?;
    out.finish()?;
    Ok(())
}
