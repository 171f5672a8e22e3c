//! Compresses reads for FAST5.

use thalweg_codec::{deflate, vbz};
use thalweg_io::Fault;

use crate::record::Record;

/// The compression of signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// zlib streams of this level.
    Gzip(i32),
    /// VBZ with this level of zstd.
    Vbz(i32),
}

impl Default for Compression {
    /// The compression that MinKNOW uses.
    fn default() -> Self {
        Self::Vbz(1)
    }
}

/// Compresses signals. Each thread has its own.
#[derive(Debug)]
pub enum SignalCompressor {
    /// See [`Compression::None`].
    None,
    /// See [`Compression::Gzip`].
    Gzip(deflate::DeflateCompressor),
    /// See [`Compression::Vbz`].
    Vbz(vbz::VbzCompressor),
}

impl SignalCompressor {
    /// A compressor for signals.
    ///
    /// # Errors
    /// If the level does not exist.
    pub fn new(compression: Compression) -> Result<Self, Fault> {
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Gzip(level) => Self::Gzip(deflate::DeflateCompressor::new(level)?),
            Compression::Vbz(level) => Self::Vbz(vbz::VbzCompressor::new(level)?),
        })
    }

    /// Encodes a read.
    ///
    /// # Errors
    /// If the read id cannot be the name of a group, or if there are more samples than a chunk can
    /// hold.
    pub fn encode(&mut self, record: &Record<'_>, samples: &[i16]) -> Result<EncodedRead, Fault> {
        if record.read_id.is_empty() || record.read_id.contains(['/', '\0']) {
            return Err(Fault::new(
                0,
                format!("the read id {:?}", record.read_id),
                "one without slashes, for FAST5",
            ));
        }
        let plain = || samples.iter().flat_map(|sample| sample.to_le_bytes()).collect::<Vec<u8>>();
        let mut chunk = Vec::new();
        match self {
            Self::None => chunk = plain(),
            Self::Gzip(deflate) => deflate.compress(&plain(), &mut chunk)?,
            Self::Vbz(vbz) => vbz.chunk(samples, &mut chunk)?,
        }
        // A chunk is below 4 GiB before and after compression.
        if u32::try_from(size_of_val(samples)).is_err() || u32::try_from(chunk.len()).is_err() {
            return Err(Fault::new(
                0,
                format!("{} samples", samples.len()),
                "a chunk below 4 GiB, for FAST5",
            ));
        }
        Ok(EncodedRead {
            read_id: record.read_id.to_owned(),
            read_group: record.read_group,
            channel: [record.digitisation, record.offset, record.range, record.sampling_rate],
            aux: record.aux.to_vec(),
            len: samples.len() as u64,
            chunk,
        })
    }
}

/// A read in the form in which it is stored.
#[derive(Debug)]
pub struct EncodedRead {
    /// Its id.
    pub read_id: String,
    /// Its read group.
    pub read_group: u32,
    /// Digitisation, offset, range and sampling rate (Hz).
    pub channel: [f64; 4],
    /// Its auxiliary fields, as BLOW5 stores them.
    pub aux: Vec<u8>,
    /// The number of samples.
    pub len: u64,
    /// The signal, compressed.
    pub chunk: Vec<u8>,
}
