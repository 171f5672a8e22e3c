//! Parts of a circuit: lists that are computed together, on any thread.

use std::ops::Range;

use super::SynthNetwork;

/// How many astrocytes or how many neurons a part has.
const ASTROCYTES_TOGETHER: u64 = 2;
const NEURONS_TOGETHER: u64 = 512;

/// Consecutive lists of a circuit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SynthPart {
    /// The synapses of astrocytes; empty for a part of neurons.
    pub(super) synapses: Vec<u64>,
    /// The neurons of astrocytes, or the astrocytes of neurons.
    pub(super) others: Vec<u64>,
    /// The length of each list in `others`, for a part of neurons.
    pub(super) lens: Vec<u64>,
    /// Whether the lists belong to neurons.
    pub(super) is_of_neurons: bool,
}

impl SynthPart {
    /// The bytes of the lists.
    pub fn bytes(&self) -> u64 {
        8 * (self.synapses.len() + self.others.len()) as u64
    }
}

impl SynthNetwork {
    /// How many parts the file has.
    pub fn pieces(&self) -> u64 {
        self.astrocyte_pieces() + self.recipe().neurons.div_ceil(NEURONS_TOGETHER)
    }

    fn astrocyte_pieces(&self) -> u64 {
        self.recipe().astrocytes().div_ceil(ASTROCYTES_TOGETHER)
    }

    /// Computes a part.
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

    /// The bytes of all lists.
    pub fn bytes(&self) -> u64 {
        let [synapses, neurons] = self.totals();
        8 * (synapses + 2 * neurons)
    }
}
