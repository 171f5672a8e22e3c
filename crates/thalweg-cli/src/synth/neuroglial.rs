//! Connectivity of astrocytes, synapses and neurons.

use std::path::Path;

use thalweg::synth::neuroglial::Recipe;

use crate::common::{Outcome, parse_count};

const HEADING: &str = "Neuroglial connectivity";

/// How large a network is.
#[derive(Debug, clap::Args)]
pub(super) struct NeuroglialArgs {
    /// Neurons, which say how much tissue there is
    #[arg(long, value_name = "M", default_value = "219422", value_parser = parse_count, help_heading = HEADING)]
    neurons: u64,
    /// The first N astrocytes of those that there is room for (14,086 among as many neurons as are
    /// the default), whose lists do not depend on N; all of them unless it is said
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = HEADING)]
    astrocytes: Option<u64>,
}

impl NeuroglialArgs {
    pub(super) fn recipe(&self, seed: u64) -> thalweg::Result<Recipe> {
        let recipe =
            Recipe { astrocytes: self.astrocytes, ..Recipe::with_neurons(seed, self.neurons) };
        recipe.check()?;
        Ok(recipe)
    }
}

/// Lists are made by all cores, and written in the order of the file by this one.
pub(super) fn write(path: &Path, recipe: Recipe, stopped: &dyn Fn() -> bool) -> Outcome {
    use thalweg::synth::neuroglial::{Network, NeuroglialWriter};

    let network = Network::new(recipe)?;
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
