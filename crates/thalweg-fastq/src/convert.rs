//! The same text in another compression.

use std::sync::Arc;

use thalweg_codec::gzip::{
    self, BlockCompressor, BlockDecompressor, Crc, Header, MemberFrame, PartCompressor,
};
use thalweg_io::{Error, Fault, InFile, Result};

use crate::file::FastqFile;
use crate::piece::Piece;
use crate::source::{OnStored, Work};
use crate::summary::{Count, Counter};

/// A compression to write, and its level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Text as it is.
    Plain,
    /// One member of gzip, for programs that read no more than one. Levels are 0 to 9.
    Gzip(u32),
    /// gzip in blocks, as bgzip writes it, which can be read in parallel. Levels are 0 to 12.
    Bgzf(i32),
}

impl Target {
    /// The level that gzip and bgzip use by default.
    pub const LEVEL: u8 = 6;

    /// Whether there is such a level.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn check(self) -> Result<()> {
        let (level, most) = match self {
            Self::Plain => return Ok(()),
            Self::Gzip(level) => (i64::from(level), 9),
            Self::Bgzf(level) => (i64::from(level), 12),
        };
        if (0..=most).contains(&level) {
            return Ok(());
        }
        Err(Error::Usage(format!("level {level}: expected 0 to {most}").into()))
    }

    /// What comes before the text.
    pub(crate) fn start(self) -> &'static [u8] {
        if let Self::Gzip(_) = self { &MemberFrame::HEADER } else { &[] }
    }

    /// What comes after it.
    pub(crate) fn end(self, frame: &MemberFrame) -> Vec<u8> {
        match self {
            Self::Plain => Vec::new(),
            Self::Gzip(_) => frame.end().to_vec(),
            Self::Bgzf(_) => gzip::END.to_vec(),
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Converted {
    /// Records and bases.
    pub count: Count,
    /// Bytes of the text.
    pub text: u64,
    /// Bytes that were written.
    pub written: u64,
}

/// How text is packed.
#[derive(Debug, Clone)]
pub(crate) struct Packing {
    pub(crate) target: Target,
    /// Whether it is decompressed again and compared.
    pub(crate) verify: bool,
    pub(crate) file: Arc<str>,
}

/// Packs pieces of text, and counts their records.
struct Pack(Packing);

/// A packed piece of text.
struct Packed {
    piece: Piece<Count>,
    bytes: Vec<u8>,
    text: u64,
    crc: Crc,
}

/// Text of which the start is packed.
#[derive(Default)]
pub(crate) struct EarlyText {
    pub(crate) text: Vec<u8>,
    /// Bytes of the text that are packed, as they are stored, and their checksum.
    pub(crate) whole: usize,
    pub(crate) packed: Vec<u8>,
    pub(crate) crc: Crc,
}

impl EarlyText {
    /// The text that is not packed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.text[self.whole..]
    }
}

/// A thread's context.
pub(crate) enum Packer {
    Plain,
    Gzip(PartCompressor),
    Bgzf(BlockCompressor, BlockDecompressor),
}

impl Packing {
    pub(crate) fn packer(&self) -> Result<Packer, Fault> {
        Ok(match self.target {
            Target::Plain => Packer::Plain,
            Target::Gzip(level) => Packer::Gzip(PartCompressor::new(level)?),
            Target::Bgzf(level) => {
                Packer::Bgzf(BlockCompressor::new(level)?, BlockDecompressor::default())
            }
        })
    }

    /// Appends text as it is stored.
    pub(crate) fn pack(
        &self,
        packer: &mut Result<Packer, Fault>,
        text: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let packed = packer.as_mut().map_err(|fault| fault.clone()).and_then(|packer| {
            let start = bytes.len();
            match packer {
                Packer::Plain => bytes.extend_from_slice(text),
                Packer::Gzip(part) => {
                    part.append(text, bytes)?;
                    if self.verify && !gzip::is_part_of(&bytes[start..], text) {
                        return Err(other_text());
                    }
                }
                Packer::Bgzf(block, decompressor) => {
                    block.append(text, bytes)?;
                    if self.verify {
                        is_text(decompressor, &bytes[start..], text)?;
                    }
                }
            }
            Ok(())
        });
        packed.map_err(|fault| fault.in_file(&self.file, 0, "its text, compressed"))
    }

    /// Packs as much as can be packed while more text may follow: BGZF blocks are to be full.
    pub(crate) fn pack_early(
        &self,
        packer: &mut Result<Packer, Fault>,
        early: &mut EarlyText,
    ) -> Result<()> {
        let len = early.text.len();
        early.whole = match self.target {
            Target::Plain => 0,
            Target::Gzip(_) => len,
            Target::Bgzf(_) => len / gzip::PLAIN * gzip::PLAIN,
        };
        let text = &early.text[..early.whole];
        if !text.is_empty() {
            self.pack(packer, text, &mut early.packed)?;
            early.crc = self.crc(text);
        }
        Ok(())
    }

    /// The checksum of text, if it is stored.
    pub(crate) fn crc(&self, text: &[u8]) -> Crc {
        match self.target {
            Target::Gzip(_) => gzip::crc(text),
            _ => Crc::new(),
        }
    }
}

impl Work for Pack {
    type Worker = Result<Packer, Fault>;
    type Made = Packed;

    fn worker(&self) -> Self::Worker {
        self.0.packer()
    }

    fn make(&self, packer: &mut Self::Worker, text: &[u8], is_first: bool) -> Result<Packed> {
        let piece = Piece::new(&Counter, text, is_first);
        let mut bytes = Vec::new();
        self.0.pack(packer, text, &mut bytes)?;
        Ok(Packed { piece, bytes, text: text.len() as u64, crc: self.0.crc(text) })
    }
}

/// Checks that blocks decode to `text`.
fn is_text(
    decompressor: &mut BlockDecompressor,
    mut blocks: &[u8],
    text: &[u8],
) -> Result<(), Fault> {
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(Header { block: Some(len), .. }) = Header::parse(blocks)? {
        let (block, rest) = blocks.split_at(len);
        decompressor.append(block, &mut decoded)?;
        blocks = rest;
    }
    if decoded == text {
        return Ok(());
    }
    Err(other_text())
}

fn other_text() -> Fault {
    Fault::new(0, "data that decode to other text", "the text of the input")
}

impl FastqFile {
    /// Gives the text of the file in another compression to `write`, part by part. With `verify`,
    /// it is decompressed again and compared with the text before it is written.
    /// `on_stored` sees the bytes of the input.
    ///
    /// # Errors
    /// Those of [`FastqFile::map`]; [`Error::Usage`] for a level that does not exist; the errors of
    /// `write`.
    pub fn convert(
        &self,
        target: Target,
        verify: bool,
        on_stored: Option<OnStored>,
        mut write: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Converted> {
        target.check()?;
        let mut stitch = self.stitch(Arc::new(Counter));
        let mut done = Converted::default();
        let mut frame = MemberFrame::default();
        let mut give = |bytes: &[u8], done: &mut Converted| {
            done.written += bytes.len() as u64;
            write(bytes)
        };
        give(target.start(), &mut done)?;
        let packing = Packing { target, verify, file: self.name().clone() };
        for packed in self.pieces(Pack(packing), on_stored)? {
            let Packed { piece, bytes, text, crc } = packed?;
            done.text += text;
            done.count += stitch.push(piece)?;
            frame.push(&crc);
            give(&bytes, &mut done)?;
        }
        while let Some(rest) = stitch.finish()? {
            done.count += Some(rest);
        }
        give(&target.end(&frame), &mut done)?;
        Ok(done)
    }
}
