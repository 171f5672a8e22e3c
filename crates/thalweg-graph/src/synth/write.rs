//! Writing a circuit as a neuroglial file, part by part.

use std::path::Path;

use thalweg_hdf5::libhdf5::{Hdf5Writer, StoredNumber, Vector, VectorSpec};
use thalweg_io::Result;
use thalweg_io::new_file::NewFile;

use super::{SynthNetwork, SynthPart};

/// Writes a [`SynthNetwork`] as a neuroglial file, which appears when it is finished. The file is
/// removed if the writer is dropped before.
#[derive(Debug)]
pub struct NeuroglialWriter {
    // Declared before `file`, so that these are closed before the file is removed.
    synapse: Vector,
    neuron: Vector,
    astrocyte: Vector,
    offsets: Vector,
    writer: Hdf5Writer,
    file: NewFile,
    /// How many elements were written: synapses, neurons, offsets of neurons, astrocytes.
    at: [u64; 4],
    bytes: Vec<u8>,
}

impl NeuroglialWriter {
    /// Starts a file, with everything except the lists.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io) if the folder cannot be written.
    pub fn create(path: &Path, network: &SynthNetwork) -> Result<Self> {
        let file = NewFile::staged(path)?;
        let writer = Hdf5Writer::create_for(file.temporary(), file.name(), false)?;
        let astrocytes = writer.group(None, "Astrocyte")?;
        let neurons = writer.group(None, "Neuron")?;
        let mut ends = [0, 0];
        let mut offsets: Vec<u8> = vec![0; 16];
        for astrocyte in 0..network.recipe().astrocytes() {
            let counts = network.counts(astrocyte);
            for (end, count) in ends.iter_mut().zip(counts) {
                *end += count;
                offsets.extend(u64::to_le_bytes(*end));
            }
        }
        writer.table(
            &astrocytes,
            "offsets",
            StoredNumber::U64,
            &["synapse", "neuron"],
            &offsets,
        )?;
        let of = |len| VectorSpec { kind: StoredNumber::U64, len, chunk: None, filters: &[] };
        let synapse = writer.vector(&astrocytes, "synapse", of(ends[0]))?;
        let neuron = writer.vector(&astrocytes, "neuron", of(ends[1]))?;
        let offsets = writer.vector(&neurons, "offsets", of(network.recipe().neurons + 1))?;
        writer.name_columns(&offsets, &["astrocyte"])?;
        writer.values(&offsets, 0, &[0; 8])?;
        let astrocyte = writer.vector(&neurons, "astrocyte", of(ends[1]))?;
        Ok(Self {
            synapse,
            neuron,
            astrocyte,
            offsets,
            writer,
            file,
            at: [0, 0, 1, 0],
            bytes: Vec::new(),
        })
    }

    /// Writes a part. Parts are written in the order of their numbers.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io), as on a full disk.
    pub fn push(&mut self, piece: &SynthPart) -> Result<()> {
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
    /// [`Error::Io`](thalweg_io::Error::Io).
    pub fn finish(self) -> Result<()> {
        drop((self.synapse, self.neuron, self.astrocyte, self.offsets));
        self.writer.finish()?;
        self.file.finish()
    }

    /// Writes a whole circuit on the calling thread.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io), as on a full disk.
    pub fn write(path: &Path, network: &SynthNetwork) -> Result<()> {
        let mut out = Self::create(path, network)?;
        (0..network.pieces()).try_for_each(|number| out.push(&network.piece(number)))?;
        out.finish()
    }
}
