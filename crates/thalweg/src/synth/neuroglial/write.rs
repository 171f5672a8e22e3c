//! Files of a network, written part by part.

use std::ops::Range;
use std::path::Path;

use super::Network;
use crate::Result;
use crate::format::hdf5::{Number, Vector, VectorOf, Writer};
use crate::write::NewFile;

/// Astrocytes, and neurons, that are made together.
const ASTROCYTES_TOGETHER: u64 = 2;
const NEURONS_TOGETHER: u64 = 512;

/// Lists that lie beside each other.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Of astrocytes: their synapses; of neurons: nothing.
    synapses: Vec<u64>,
    /// Of astrocytes: their neurons; of neurons: their astrocytes.
    others: Vec<u64>,
    /// How long each list of `others` is.
    lens: Vec<u64>,
    is_of_neurons: bool,
}

impl Piece {
    /// Bytes of its lists.
    pub fn bytes(&self) -> u64 {
        8 * (self.synapses.len() + self.others.len()) as u64
    }
}

impl Network {
    /// How many pieces make the file.
    pub fn pieces(&self) -> u64 {
        self.astrocyte_pieces() + self.recipe().neurons.div_ceil(NEURONS_TOGETHER)
    }

    fn astrocyte_pieces(&self) -> u64 {
        self.recipe().astrocytes().div_ceil(ASTROCYTES_TOGETHER)
    }

    /// Makes a piece.
    pub fn piece(&self, number: u64) -> Piece {
        let mut piece = Piece::default();
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

/// A file of a [`Network`] being written; it appears when it is whole. Dropped unfinished, it is removed.
#[derive(Debug)]
pub struct NeuroglialWriter {
    // Before the file that it writes to, so that they are closed before that is removed.
    synapse: Vector,
    neuron: Vector,
    astrocyte: Vector,
    offsets: Vector,
    writer: Writer,
    file: NewFile,
    /// Elements that were written: synapses, neurons, offsets of neurons, astrocytes.
    at: [u64; 4],
    bytes: Vec<u8>,
}

impl NeuroglialWriter {
    /// Starts a file with everything but the lists.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the folder cannot be written.
    pub fn create(path: &Path, network: &Network) -> Result<Self> {
        let file = NewFile::create(path)?;
        let writer = Writer::create_for(file.temporary(), file.name(), false)?;
        let (astrocytes, neurons) = (writer.group(None, "Astrocyte")?, writer.group(None, "Neuron")?);
        let mut ends = [0, 0];
        let mut offsets: Vec<u8> = vec![0; 16];
        for astrocyte in 0..network.recipe().astrocytes() {
            let counts = network.counts(astrocyte);
            for (end, count) in ends.iter_mut().zip(counts) {
                *end += count;
                offsets.extend(u64::to_le_bytes(*end));
            }
        }
        writer.table(&astrocytes, "offsets", Number::U64, &["synapse", "neuron"], &offsets)?;
        let of = |len| VectorOf { kind: Number::U64, len, chunk: None, filters: &[] };
        let synapse = writer.vector(&astrocytes, "synapse", of(ends[0]))?;
        let neuron = writer.vector(&astrocytes, "neuron", of(ends[1]))?;
        let offsets = writer.vector(&neurons, "offsets", of(network.recipe().neurons + 1))?;
        writer.name_columns(&offsets, &["astrocyte"])?;
        writer.values(&offsets, 0, &[0; 8])?;
        let astrocyte = writer.vector(&neurons, "astrocyte", of(ends[1]))?;
        Ok(Self { synapse, neuron, astrocyte, offsets, writer, file, at: [0, 0, 1, 0], bytes: Vec::new() })
    }

    /// Writes a piece. They come in their order.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), as on a full disk.
    pub fn push(&mut self, piece: &Piece) -> Result<()> {
        let Self { synapse, neuron, astrocyte, offsets, writer, at, bytes, .. } = self;
        let mut put = |vector: &Vector, at: &mut u64, numbers: &mut dyn Iterator<Item = u64>| {
            bytes.clear();
            bytes.extend(numbers.flat_map(u64::to_le_bytes));
            let first = std::mem::replace(at, *at + (bytes.len() / 8) as u64);
            writer.values(vector, first, bytes)
        };
        let [synapses, neurons, ends, astrocytes] = at;
        if piece.is_of_neurons {
            let mut end = *astrocytes;
            put(astrocyte, astrocytes, &mut piece.others.iter().copied())?;
            return put(
                offsets,
                ends,
                &mut piece.lens.iter().map(|len| {
                    end += len;
                    end
                }),
            );
        }
        put(synapse, synapses, &mut piece.synapses.iter().copied())?;
        put(neuron, neurons, &mut piece.others.iter().copied())
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    pub fn finish(self) -> Result<()> {
        drop((self.synapse, self.neuron, self.astrocyte, self.offsets));
        self.writer.finish()?;
        self.file.finish()
    }

    /// Writes all of a network, on this thread.
    ///
    /// # Errors
    /// As the other steps.
    pub fn write(path: &Path, network: &Network) -> Result<()> {
        let mut out = Self::create(path, network)?;
        (0..network.pieces()).try_for_each(|number| out.push(&network.piece(number)))?;
        out.finish()
    }
}
