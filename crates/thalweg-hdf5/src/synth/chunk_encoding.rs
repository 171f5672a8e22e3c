//! The filters of chunks, and the encoding of pieces of datasets.

use std::fmt;
use std::str::FromStr;

use thalweg_io::Fault;

use super::{BankField, DatasetLayout, DatasetPiece, SynthRun};
use crate::encode;
use crate::encode::Coder;

/// The compressor of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    /// No compressor.
    None,
    /// Deflate, with a level from 0 to 12.
    Gzip(u8),
    /// LZ4 (the filter 32004).
    Lz4,
    /// Zstandard (the filter 32015), with a level from 1 to 22.
    Zstd(u8),
}

/// The filters of a file's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkCoding {
    /// Whether the bytes are first sorted by significance.
    pub shuffle: bool,
    /// The compressor that is applied then.
    pub press: Press,
}

impl ChunkCoding {
    /// No filter.
    pub const NONE: Self = Self { shuffle: false, press: Press::None };
}

const LEVELS: &str =
    "none, gzip, lz4, zstd, shuffle+gzip, shuffle+lz4 or shuffle+zstd, with a level as in gzip:6";

/// Parses filters such as `gzip`, `shuffle+gzip:1` or `zstd`. The default level of gzip is 4, as in
/// h5py; that of zstd is 3.
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
    /// Bytes per element.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::EventId | Self::EventTimeOffset => 4,
            Self::EventIndex | Self::EventTimeZero => 8,
        }
    }
}

impl ChunkCoding {
    /// The filters, in the order of application.
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

/// An encoded piece, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedPiece {
    /// The stored bytes.
    pub bytes: Vec<u8>,
    /// A set bit for each filter that was skipped because it would not have shrunk the piece.
    pub mask: u32,
}

/// Encodes pieces on one thread.
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

    /// Encodes a piece. The last chunk of a dataset is padded with zeros to the length of the
    /// others.
    ///
    /// # Errors
    /// The error of the compressor.
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
