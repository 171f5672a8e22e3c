//! Parts of a network: lists that are made together, by any thread.

use std::ops::Range;

use super::SynthNetwork;

/// Astrocytes, and neurons, that are made together.
const ASTROCYTES_TOGETHER: u64 = 2;
const NEURONS_TOGETHER: u64 = 512;

/// Lists that lie beside each other.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SynthPart {
    /// Of astrocytes: their synapses; of neurons: nothing.
    pub(super) synapses: Vec<u64>,
    /// Of astrocytes: their neurons; of neurons: their astrocytes.
    pub(super) others: Vec<u64>,
    /// How long each list of `others` is.
    pub(super) lens: Vec<u64>,
    /// Whether the lists are those of neurons.
    pub(super) is_of_neurons: bool,
}

impl SynthPart {
    /// Bytes of its lists.
    pub fn bytes(&self) -> u64 {
        8 * (self.synapses.len() + self.others.len()) as u64
    }
}

impl SynthNetwork {
    /// How many pieces make the file.
    pub fn pieces(&self) -> u64 {
        self.astrocyte_pieces() + self.recipe().neurons.div_ceil(NEURONS_TOGETHER)
    }

    fn astrocyte_pieces(&self) -> u64 {
        self.recipe().astrocytes().div_ceil(ASTROCYTES_TOGETHER)
    }

    /// Makes a piece.
    pub fn piece(&self, number: u64) -> SynthPart {
        let mut piece = SynthPart::default();
        let range = |number: u64, together: u64, all: u64| -> Range<u64> {
            (number * together).min(all)..((number + 1) * together).min(all)
        };
        match number.checked_sub(self.astrocyte_pieces()) {
            None => {
                for astrocyte in range(number, ASTROCYTES_TOGETHER, self.recipe().astrocytes()) {
                    self.astrocyte(astrocyte, &mut piece.synapses, &mut piece.others);
                }
            }
            Some(number) => {
                piece.is_of_neurons = true;
                for neuron in range(number, NEURONS_TOGETHER, self.recipe().neurons) {
                    let before = piece.others.len();
                    self.neuron(neuron, &mut piece.others);
                    piece.lens.push((piece.others.len() - before) as u64);
                }
            }
        }
        piece
    }

    /// Bytes of all lists.
    pub fn bytes(&self) -> u64 {
        let [synapses, neurons] = self.totals();
        8 * (synapses + 2 * neurons)
    }
}
