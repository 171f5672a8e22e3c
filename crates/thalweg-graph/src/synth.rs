//! Synthetic connectivity of astrocytes, synapses and neurons, in files like those of the circuits
//! that basalt imported.
//!
//! A [`Recipe`] says how large it is, and a [`Network`] is that recipe made ready. The lists of an
//! astrocyte depend on nothing but the seed, the number of neurons and the astrocyte: fewer
//! astrocytes are the first ones of more, and their synapses have the same ids. As with
//! synthetic reads, they are the same on every machine.
//!
//! What of real tissue is modelled, and how:
//!
//! - *Domains tile the space*: astrocytes stand in the cells of a grid (a fiftieth of which is left
//!   empty, as vessels leave it), in no order, for none is known. The space goes on beyond its
//!   sides: what leaves on one side comes in on the other.
//! - *Neurons pass many domains*: the body of a neuron is in some cell, and its branches reach up
//!   to three cells from there, the nearer ones more likely. Neurons are numbered layer by layer,
//!   as circuits are built, so that the neurons of an astrocyte come from a band of ids and lie
//!   scattered in it.
//! - *Domains differ in size*: how many neurons pass one is normally distributed, and the larger a
//!   domain, the more synapses of each neuron are in it, so that the numbers of synapses are
//!   skewed. They are the published ones: synapses of an astrocyte 7, 16,201 and 61,968 (least,
//!   mean, most), neurons 6, 1,251 and 2,871.
//! - *Synapses are numbered by the neuron that receives them*, and by the neuron that sends within
//!   that. So those of one astrocyte lie in some thousand places, a dozen at each, in runs of one
//!   to a few: an axon often has several contacts in the same domain.
//! - *A synapse belongs to one astrocyte*, or, very few of them, to none.
//! - An astrocyte's neurons are those that own its synapses. All lists ascend.
//!
//! ```
//! use thalweg_graph::synth::Network;
//! use thalweg_graph::synth::Recipe;
//!
//! # fn main() -> thalweg_io::Result<()> {
//! let network = Network::new(Recipe { astrocytes: Some(10), ..Recipe::with_neurons(1, 2_000) })?;
//! let (mut synapses, mut neurons) = (Vec::new(), Vec::new());
//! network.astrocyte(3, &mut synapses, &mut neurons);
//! assert!(synapses.is_sorted() && synapses.len() > neurons.len());
//! # Ok(())
//! # }
//! ```

mod piece;
mod tissue;
#[cfg(feature = "hdf5")]
mod write;

use thalweg_io::{Error, Result};

#[cfg(not(feature = "hdf5"))]
pub use crate::without::NeuroglialWriter;
pub use piece::Piece;
pub use tissue::Network;
#[cfg(feature = "hdf5")]
pub use write::NeuroglialWriter;

/// Astrocytes and neurons of the circuit that is imitated.
const ASTROCYTES: u64 = 14_086;
const NEURONS: u64 = 219_422;
/// With more, the tables would take more than 256 MiB.
const MOST_NEURONS: u64 = 2_000_000;
/// Bytes of an astrocyte: its synapses, and its neurons from either side.
const ASTROCYTE_BYTES: u64 = 8 * (16_201 + 2 * 1_251);

/// Neurons that reach an astrocyte.
const REACHING: u64 = 5_200;

/// How large a network is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Everything random follows from it.
    pub seed: u64,
    /// Neurons, which say how much tissue there is.
    pub neurons: u64,
    /// The first so many astrocytes of those that there is room for; all of them unless it is said.
    pub astrocytes: Option<u64>,
}

impl Default for Recipe {
    /// 2.1 GB: 228 million synapses of 14,086 astrocytes among 219,422 neurons.
    fn default() -> Self {
        Self::with_neurons(1, NEURONS)
    }
}

impl Recipe {
    /// So many neurons, and as many astrocytes as there is room for.
    #[must_use]
    pub fn with_neurons(seed: u64, neurons: u64) -> Self {
        Self { seed, neurons, astrocytes: None }
    }

    /// Astrocytes that there is room for.
    pub fn room(&self) -> u64 {
        ((u128::from(self.neurons) * u128::from(ASTROCYTES) / u128::from(NEURONS)) as u64).max(1)
    }

    /// Astrocytes.
    pub fn astrocytes(&self) -> u64 {
        self.astrocytes.unwrap_or_else(|| self.room())
    }

    /// About how large its file is.
    pub fn about_bytes(&self) -> u64 {
        // Fewer neurons are within reach where there are no more.
        let mean = ASTROCYTE_BYTES * self.neurons.min(REACHING) / REACHING;
        self.astrocytes().saturating_mul(mean).saturating_add(self.neurons.saturating_mul(8))
    }

    /// A name that says all of the recipe.
    #[must_use]
    pub fn file_name(&self) -> String {
        let seed = if self.seed == 1 { String::new() } else { format!("-seed{}", self.seed) };
        format!("synth-{}-astrocytes-{}-neurons{seed}-v1.h5", self.astrocytes(), self.neurons)
    }

    /// Whether it can be made.
    ///
    /// # Errors
    /// [`Error::Usage`] with what is wrong.
    pub fn check(&self) -> Result<()> {
        let wrong = if !(1..=MOST_NEURONS).contains(&self.neurons) {
            format!("neurons is {}, expected 1 to {MOST_NEURONS}", self.neurons)
        } else if self.astrocytes() > self.room() {
            let (astrocytes, neurons, room) = (self.astrocytes(), self.neurons, self.room());
            format!("astrocytes is {astrocytes}; among {neurons} neurons there is room for {room}")
        } else {
            return Ok(());
        };
        Err(Error::Usage(format!("recipe: {wrong}").into()))
    }
}

#[cfg(test)]
mod tests;
