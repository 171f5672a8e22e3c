//! The filters of chunks, and pieces of datasets that went through them.

use std::fmt;
use std::str::FromStr;

use thalweg_io::Fault;

use super::{BankField, DatasetLayout, DatasetPiece, SynthRun};
use crate::encode;
use crate::encode::Coder;

/// What compresses a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    /// Nothing.
    None,
    /// Deflate, of a level from 0 to 12.
    Gzip(u8),
    /// LZ4 (the filter 32004).
    Lz4,
    /// Zstandard (the filter 32015), of a level from 1 to 22.
    Zstd(u8),
}

/// The filters of a file's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkCoding {
    /// Whether bytes are sorted by significance first.
    pub shuffle: bool,
    /// What compresses them then.
    pub press: Press,
}

impl ChunkCoding {
    /// No filter.
    pub const NONE: Self = Self { shuffle: false, press: Press::None };
}

const LEVELS: &str =
    "none, gzip, lz4, zstd, shuffle+gzip, shuffle+lz4 or shuffle+zstd, with a level as in gzip:6";

/// As in `gzip`, `shuffle+gzip:1`, `zstd`. The default levels are 4 (that of h5py) and 3.
impl FromStr for ChunkCoding {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let refused = || Fault::new(0, format!("{text:?}"), LEVELS);
        let (shuffle, press) =
            text.strip_prefix("shuffle+").map_or((false, text), |press| (true, press));
        let (name, level) =
            press.split_once(':').map_or((press, None), |(name, level)| (name, Some(level)));
        let level = level.map(|level| level.parse::<u8>().map_err(|_| refused())).transpose()?;
        let press = match (name, level) {
            ("none", None) if !shuffle => Press::None,
            ("gzip", level) if level.is_none_or(|level| (0..=12).contains(&level)) => {
                Press::Gzip(level.unwrap_or(4))
            }
            ("zstd", level) if level.is_none_or(|level| (1..=22).contains(&level)) => {
                Press::Zstd(level.unwrap_or(3))
            }
            ("lz4", None) => Press::Lz4,
            _ => return Err(refused()),
        };
        Ok(Self { shuffle, press })
    }
}

impl fmt::Display for ChunkCoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shuffle {
            f.write_str("shuffle+")?;
        }
        match self.press {
            Press::None => f.write_str("none"),
            Press::Gzip(level) => write!(f, "gzip:{level}"),
            Press::Lz4 => f.write_str("lz4"),
            Press::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}

impl BankField {
    /// Bytes of an element.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::EventId | Self::EventTimeOffset => 4,
            Self::EventIndex | Self::EventTimeZero => 8,
        }
    }
}

impl ChunkCoding {
    /// The filters, in their order.
    pub(super) fn coders(self) -> Vec<Coder> {
        let press = match self.press {
            Press::None => None,
            Press::Gzip(level) => Some(Coder::Deflate(level)),
            Press::Lz4 => Some(Coder::Lz4),
            Press::Zstd(level) => Some(Coder::Zstd(level)),
        };
        self.shuffle.then_some(Coder::Shuffle).into_iter().chain(press).collect()
    }
}

/// A piece as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedPiece {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// A bit for each filter that would have made it no smaller, and that it skipped.
    pub mask: u32,
}

/// Makes pieces ready to be written, on one thread.
#[derive(Debug)]
pub struct Encoder {
    coders: Vec<Coder>,
    encoder: encode::ChunkEncoder,
}

impl Encoder {
    /// An encoder for a file of this coding.
    pub fn new(coding: ChunkCoding) -> Self {
        Self { coders: coding.coders(), encoder: encode::ChunkEncoder::default() }
    }

    /// A piece as it is stored. The last chunk of a dataset is as long as the others, with zeros at
    /// its end.
    ///
    /// # Errors
    /// What the compressor says.
    pub fn encode(&mut self, run: &SynthRun, piece: DatasetPiece) -> Result<EncodedPiece, Fault> {
        let DatasetPiece { bank, field, number } = piece;
        let elements = run.piece(bank, field);
        let range = number * elements..((number + 1) * elements).min(run.len(bank, field));
        let mut bytes = Vec::new();
        match field {
            BankField::EventId => run.ids(bank, range, &mut bytes),
            BankField::EventTimeOffset => run.offsets(bank, range, &mut bytes),
            BankField::EventIndex => run.index(bank, range, &mut bytes),
            BankField::EventTimeZero => run.zeros(range, &mut bytes),
        }
        if matches!(run.recipe.layout, DatasetLayout::Chunked(_)) {
            bytes.resize(elements as usize * field.bytes(), 0);
        }
        let mask = self.encoder.encode(&self.coders, field.bytes(), &mut bytes)?;
        Ok(EncodedPiece { bytes, mask })
    }
}
