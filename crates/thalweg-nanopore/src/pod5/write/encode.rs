//! Encoding samples as rows of the Signal table. This is the slow part of writing, so that workers
//! do it in parallel.

use std::fmt;

use thalweg_codec::{svb16, zstd};
use thalweg_io::Fault;

use super::SignalCoding;

/// The compression level of the POD5 library.
pub(super) const ZSTD_LEVEL: i32 = 1;

/// Most samples in a row of the POD5 library.
pub(super) const ROW_SAMPLES: u32 = 102_400;

/// A read's signal, split into rows: the number of samples and the stored bytes of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedSignal {
    pub(crate) chunks: Vec<(u32, Vec<u8>)>,
}

impl EncodedSignal {
    /// A signal from the stored rows of another file with the same coding.
    pub fn stored(chunks: Vec<(u32, Vec<u8>)>) -> Self {
        Self { chunks }
    }

    /// The total number of samples.
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
    /// An encoder that makes rows of at most `row_samples` samples.
    ///
    /// # Errors
    /// For a compression level that zstd does not have.
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
    /// When zstd fails, for example for lack of memory.
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
