//! Synthetic connectivity of astrocytes, synapses and neurons, in files like those of the circuits
//! that basalt imported.
//!
//! A [`CircuitRecipe`] gives the size, and a [`SynthNetwork`] computes the lists. The lists of an
//! astrocyte depend only on the seed, the number of neurons and the astrocyte: a circuit of fewer
//! astrocytes has the first ones of a larger one, with the same synapse ids. The lists are equal on
//! every machine.
//!
//! These properties of real tissue are modelled:
//!
//! - *Domains tile the space*: each astrocyte has a cell of a grid, in random order. A fiftieth of
//!   the cells is empty, for vessels. The space is periodic: a branch that leaves on one side
//!   enters on the opposite side.
//! - *Neurons pass many domains*: the body of a neuron is in a random cell, and its branches reach
//!   up to three cells from there, nearer ones with greater probability. Neurons are numbered layer
//!   by layer, as in built circuits, so that the neurons of an astrocyte are scattered over a
//!   limited range of ids.
//! - *Domains differ in size*: the number of neurons that pass a domain is normally distributed. A
//!   larger domain has more synapses of each neuron, so that the numbers of synapses are skewed.
//!   The figures are the published ones: an astrocyte has 7, 16,201 and 61,968 synapses (least,
//!   mean, most), and 6, 1,251 and 2,871 neurons.
//! - *Synapses are numbered by the receiving neuron*, then by the sending one. The synapses of an
//!   astrocyte lie in about a thousand ranges of ids, a dozen in each, in short runs: an axon often
//!   has several contacts in the same domain.
//! - *A synapse belongs to one astrocyte*; very few belong to none.
//! - The neurons of an astrocyte are those that own its synapses. All lists ascend.
//!
//! ```
//! use thalweg_graph::synth::{CircuitRecipe, SynthNetwork};
//!
//! # fn main() -> thalweg_io::Result<()> {
//! let recipe = CircuitRecipe { astrocytes: Some(10), ..CircuitRecipe::with_neurons(1, 2_000) };
//! let network = SynthNetwork::new(recipe)?;
//! let mut synapses = Vec::new();
//! let mut neurons = Vec::new();
//! network.astrocyte(3, &mut synapses, &mut neurons);
//! assert!(synapses.is_sorted() && synapses.len() > neurons.len());
//! # Ok(())
//! # }
//! ```

#[cfg(not(feature = "hdf5"))]
mod no_hdf5;
mod piece;
mod tissue;
#[cfg(feature = "hdf5")]
mod write;

use thalweg_io::{Error, Result};

#[cfg(not(feature = "hdf5"))]
pub use no_hdf5::NeuroglialWriter;
pub use piece::SynthPart;
pub use tissue::SynthNetwork;
#[cfg(feature = "hdf5")]
pub use write::NeuroglialWriter;

/// Astrocytes and neurons of the published circuit that is the default.
const ASTROCYTES: u64 = 14_086;
const NEURONS: u64 = 219_422;
/// The most neurons. With more, the tables would take more than 256 MiB.
const MOST_NEURONS: u64 = 2_000_000;
/// The mean bytes of an astrocyte: its synapses, and its neurons from both sides.
const ASTROCYTE_BYTES: u64 = 8 * (16_201 + 2 * 1_251);

/// How many neurons reach an astrocyte.
const REACHING: u64 = 5_200;

/// The size of a synthetic circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitRecipe {
    /// The seed of all random choices.
    pub seed: u64,
    /// The number of neurons, which determines the amount of tissue.
    pub neurons: u64,
    /// The number of astrocytes, the first of those that fit; `None` for all that fit.
    pub astrocytes: Option<u64>,
}

impl Default for CircuitRecipe {
    /// 2.1 GB: 228 million synapses of 14,086 astrocytes among 219,422 neurons.
    fn default() -> Self {
        Self::with_neurons(1, NEURONS)
    }
}

impl CircuitRecipe {
    /// A circuit of `neurons` neurons and all astrocytes that fit.
    #[must_use]
    pub fn with_neurons(seed: u64, neurons: u64) -> Self {
        Self { seed, neurons, astrocytes: None }
    }

    /// How many astrocytes fit.
    pub fn room(&self) -> u64 {
        ((u128::from(self.neurons) * u128::from(ASTROCYTES) / u128::from(NEURONS)) as u64).max(1)
    }

    /// The number of astrocytes.
    pub fn astrocytes(&self) -> u64 {
        self.astrocytes.unwrap_or_else(|| self.room())
    }

    /// The approximate size of the file in bytes.
    pub fn about_bytes(&self) -> u64 {
        // A small circuit has fewer neurons within reach.
        let mean = ASTROCYTE_BYTES * self.neurons.min(REACHING) / REACHING;
        self.astrocytes().saturating_mul(mean).saturating_add(self.neurons.saturating_mul(8))
    }

    /// A file name that contains the whole recipe.
    #[must_use]
    pub fn file_name(&self) -> String {
        let seed = if self.seed == 1 { String::new() } else { format!("-seed{}", self.seed) };
        format!("synth-{}-astrocytes-{}-neurons{seed}-v1.h5", self.astrocytes(), self.neurons)
    }

    /// Checks that the circuit is possible.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the wrong value.
    pub fn check(&self) -> Result<()> {
        let wrong = if !(1..=MOST_NEURONS).contains(&self.neurons) {
            format!("neurons is {}, expected 1 to {MOST_NEURONS}", self.neurons)
        } else if self.astrocytes() > self.room() {
            let astrocytes = self.astrocytes();
            let neurons = self.neurons;
            let room = self.room();
            format!("astrocytes is {astrocytes}; among {neurons} neurons there is room for {room}")
        } else {
            return Ok(());
        };
        Err(Error::Usage(format!("recipe: {wrong}").into()))
    }
}

#[cfg(test)]
mod tests;
