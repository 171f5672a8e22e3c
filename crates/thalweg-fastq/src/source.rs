//! Where text comes from: plain files and BGZF in parallel, other gzip files in parts.

use std::ops::Range;
use std::sync::Arc;

use thalweg_codec::gzip::{self, BlockDecompressor, Header};
use thalweg_io::engine::Decoder;
use thalweg_io::extent::{Framer, Group, Step};
use thalweg_io::{Error, Fault, InFile, Result};

/// The most bytes of text that a worker takes at a time: whole BGZF blocks of them.
pub(crate) const PIECE: usize = 8 * gzip::PLAIN;
/// The fewest.
pub(crate) const LEAST_PIECE: usize = gzip::PLAIN;

/// Sees the stored bytes of a file, in order, each once.
pub type OnStored = Box<dyn FnMut(&[u8]) + Send>;

/// What is done with each piece of text.
pub(crate) trait Work: Send + Sync + 'static {
    /// What a thread keeps between pieces.
    type Worker: Send + 'static;
    type Made: Send + 'static;

    fn worker(&self) -> Self::Worker;

    /// `is_first` for the first piece of the file.
    fn make(&self, worker: &mut Self::Worker, text: &[u8], is_first: bool) -> Result<Self::Made>;
}

/// Cuts stored bytes into pieces of at most so many bytes.
pub(crate) struct Cuts(pub(crate) usize);

impl Framer for Cuts {
    fn frame(
        &mut self,
        _at: u64,
        bytes: &[u8],
        _last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        // The pieces of a block are about as long as each other.
        let piece = bytes.len().div_ceil(bytes.len().div_ceil(self.0).max(1)).max(1);
        let starts = (0..bytes.len()).step_by(piece);
        found.extend(starts.map(|start| start..(start + piece).min(bytes.len())));
        Ok(Step::More { used: bytes.len(), need: 0 })
    }
}

/// Finds BGZF blocks.
pub(crate) struct Blocks {
    pub(crate) file: Arc<str>,
    pub(crate) size: u64,
    /// The last block is over.
    pub(crate) is_padded: bool,
}

impl Framer for Blocks {
    fn frame(
        &mut self,
        at: u64,
        bytes: &[u8],
        last: bool,
        found: &mut Vec<Range<usize>>,
    ) -> Result<Step> {
        let mut used = 0;
        while used < bytes.len() {
            if self.is_padded || (bytes[used] == 0 && at + used as u64 > 0) {
                // Zeros may follow the last block.
                self.is_padded = true;
                let Some(more) = bytes[used..].iter().position(|&byte| byte != 0) else {
                    return Ok(Step::More { used: bytes.len(), need: 0 });
                };
                used += more;
                return Err(Fault::new(used, "more bytes", "zeros up to the file's end").in_file(
                    &self.file,
                    at,
                    "the padding of a BGZF file",
                ));
            }
            let here = at + used as u64;
            let header = Header::parse(&bytes[used..])
                .map_err(|fault| fault.in_file(&self.file, here, "a BGZF block"))?;
            let need = match header {
                Some(Header { block: Some(len), .. }) => len,
                Some(_) => {
                    return Err(Error::Malformed {
                        file: self.file.clone(),
                        what: "a member of a BGZF file".into(),
                        offset: here,
                        found: "a gzip member that does not say how long it is".into(),
                        expected: "a BGZF block, as before; `gzip -dc FILE | thalweg ... -` reads \
                                   files of both kinds"
                            .into(),
                    });
                }
                // A name in a header is short.
                None => bytes.len() - used + 1,
            };
            if need as u64 > self.size - here || (last && header.is_none()) {
                return Err(cut(&self.file, here, self.size));
            }
            if header.is_none() || need > bytes.len() - used {
                return Ok(Step::More { used, need });
            }
            found.push(used..used + need);
            used += need;
        }
        Ok(Step::More { used, need: 0 })
    }
}

/// The error about a gzip file that ends in a member, which starts at `offset`.
pub(crate) fn cut(file: &Arc<str>, offset: u64, size: u64) -> Error {
    let advice = "; fetch the file again";
    Error::Truncated { file: file.clone(), what: "a gzip member".into(), offset, size, advice }
}

/// Does the work on pieces of a file, which are extents or made of them.
pub(crate) struct PieceDecoder<W> {
    pub(crate) work: Arc<W>,
    pub(crate) file: Arc<str>,
    /// Extents are BGZF blocks.
    pub(crate) is_bgzf: bool,
    /// Bytes of text in a piece, or a few more.
    pub(crate) piece: usize,
    /// Whether the stored bytes of pieces are kept.
    pub(crate) keeps_stored: bool,
}

/// What was made of a piece, and its stored bytes if they are kept.
pub(crate) struct Made<T> {
    pub(crate) made: T,
    pub(crate) stored: Vec<u8>,
}

pub(crate) struct PieceWorker<W: Work> {
    own: W::Worker,
    blocks: BlockDecompressor,
    text: Vec<u8>,
    bytes: u64,
}

impl<W: Work> Decoder for PieceDecoder<W> {
    type Worker = PieceWorker<W>;
    type Batch = Option<Made<W::Made>>;

    fn worker(&self) -> Self::Worker {
        let blocks = BlockDecompressor::default();
        PieceWorker { own: self.work.worker(), blocks, text: Vec::new(), bytes: 0 }
    }

    fn batch(&self) -> Self::Batch {
        None
    }

    fn decode(
        &self,
        worker: &mut Self::Worker,
        group: &Group,
        next: &mut usize,
        batch: &mut Self::Batch,
    ) -> Result<()> {
        let PieceWorker { own, blocks, text, bytes } = worker;
        let Some(first) = group.get(*next) else { return Ok(()) };
        let begin = *next;
        let text = if self.is_bgzf {
            text.clear();
            while let Some(extent) = group.get(*next).filter(|_| text.len() < self.piece) {
                match blocks.append(extent.bytes, text) {
                    Ok(()) => *next += 1,
                    // The text before it comes first.
                    Err(_) if *next > begin => break,
                    Err(fault) => {
                        return Err(fault.in_file(&self.file, extent.offset, "a BGZF block"));
                    }
                }
            }
            text
        } else {
            *next += 1;
            first.bytes
        };
        let mut stored = Vec::new();
        if self.keeps_stored {
            let extents = (begin..*next).filter_map(|place| group.get(place));
            extents.for_each(|extent| stored.extend_from_slice(extent.bytes));
        }
        *bytes += text.len() as u64;
        *batch = Some(Made { made: self.work.make(own, text, first.offset == 0)?, stored });
        Ok(())
    }

    fn decoded_bytes(worker: &Self::Worker) -> u64 {
        worker.bytes
    }
}
