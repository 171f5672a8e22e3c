//! Samples to rows of the Signal table: the part of writing that takes time, made for workers.

use std::fmt;

use thalweg_codec::{svb16, zstd};
use thalweg_io::Fault;

use super::SignalCoding;

/// The level that the POD5 library compresses with.
pub(super) const ZSTD_LEVEL: i32 = 1;

/// Samples of a row at most, as the POD5 library has it.
pub(super) const ROW_SAMPLES: u32 = 102_400;

/// A read's signal, cut into rows: how many samples each has, and what is stored of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedSignal {
    pub(crate) chunks: Vec<(u32, Vec<u8>)>,
}

impl EncodedSignal {
    /// A signal from rows as another file stores them, in the same coding.
    pub fn stored(chunks: Vec<(u32, Vec<u8>)>) -> Self {
        Self { chunks }
    }

    /// How many samples it has.
    pub fn samples(&self) -> u64 {
        self.chunks.iter().map(|&(samples, _)| u64::from(samples)).sum()
    }
}

/// Encodes signals for one worker.
pub struct SignalEncoder {
    coding: SignalCoding,
    row_samples: usize,
    zstd: zstd::ZstdCompressor,
    plain: Vec<u8>,
}

impl fmt::Debug for SignalEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalEncoder").field("coding", &self.coding).finish_non_exhaustive()
    }
}

impl SignalEncoder {
    /// An encoder into rows of at most `row_samples` samples.
    ///
    /// # Errors
    /// For a level that zstd does not know.
    pub fn new(coding: SignalCoding, row_samples: u32) -> Result<Self, Fault> {
        let level = match coding {
            SignalCoding::Vbz { level } => level,
            SignalCoding::Plain => ZSTD_LEVEL,
        };
        let zstd = zstd::ZstdCompressor::new(level)?;
        Ok(Self { coding, row_samples: row_samples.max(1) as usize, zstd, plain: Vec::new() })
    }

    /// Encodes one read's samples.
    ///
    /// # Errors
    /// When zstd refuses, as without memory.
    pub fn encode(&mut self, samples: &[i16]) -> Result<EncodedSignal, Fault> {
        let mut chunks = Vec::with_capacity(samples.len().div_ceil(self.row_samples));
        for row in samples.chunks(self.row_samples) {
            let mut stored = Vec::new();
            match self.coding {
                SignalCoding::Vbz { .. } => {
                    self.plain.clear();
                    svb16::encode(row, &mut self.plain);
                    self.zstd.compress(&self.plain, &mut stored)?;
                }
                SignalCoding::Plain => {
                    stored.extend(row.iter().flat_map(|sample| sample.to_le_bytes()));
                }
            }
            chunks.push((row.len() as u32, stored));
        }
        Ok(EncodedSignal { chunks })
    }
}
