//! Some records of a file, in any compression.

use std::sync::Arc;

use thalweg_codec::gzip::MemberFrame;
use thalweg_io::{Fault, Result};

use crate::convert::{EarlyText, Packer, Packing, Target};
use crate::file::FastqFile;
use crate::piece::{Gather, Piece};
use crate::record::Record;
use crate::source::Work;
use crate::summary::Count;

/// What was written of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Records and bases of the file.
    pub all: Count,
    /// Those that were written.
    pub kept: Count,
    /// Bytes that were written.
    pub written: u64,
}

/// Takes the text of some records.
struct Keep<F>(F);

/// Records that follow each other.
#[derive(Default)]
struct Kept {
    all: Count,
    kept: Count,
    text: EarlyText,
}

impl<F: Fn(&Record<'_>) -> bool + Send + Sync + 'static> Gather for Keep<F> {
    type Rows = Kept;

    fn push(&self, rows: &mut Kept, record: &Record<'_>) {
        let one = Count { reads: 1, bases: record.sequence.len() as u64 };
        rows.all += Some(one);
        if !(self.0)(record) {
            return;
        }
        rows.kept += Some(one);
        record.append(&mut rows.text.text);
    }
}

/// Finds the records of pieces that are kept, and packs most of their text.
struct PackKept<F> {
    keep: Arc<Keep<F>>,
    packing: Packing,
}

impl<F: Fn(&Record<'_>) -> bool + Send + Sync + 'static> Work for PackKept<F> {
    type Worker = Result<Packer, Fault>;
    type Made = Piece<Kept>;

    fn worker(&self) -> Self::Worker {
        self.packing.packer()
    }

    fn make(&self, packer: &mut Self::Worker, text: &[u8], is_first: bool) -> Result<Self::Made> {
        let mut piece = Piece::new(&*self.keep, text, is_first);
        self.packing.pack_early(packer, &mut piece.taken.rows.text)?;
        Ok(piece)
    }
}

impl FastqFile {
    /// Gives the records for which `keep` holds to `write`, in the order of the file and in any
    /// compression, part by part. What stands after `+` in a record is left out. With `verify`,
    /// what was compressed is decompressed again and compared before it is written.
    ///
    /// # Errors
    /// Those of [`FastqFile::convert`].
    pub fn filter(
        &self,
        target: Target,
        verify: bool,
        keep: impl Fn(&Record<'_>) -> bool + Send + Sync + 'static,
        mut write: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Filtered> {
        target.check()?;
        let keep = Arc::new(Keep(keep));
        let packing = Packing { target, verify, file: self.name().clone() };
        let mut packer = packing.packer();
        let mut stitch = self.stitch(keep.clone());
        let mut done = Filtered::default();
        let mut frame = MemberFrame::default();
        let mut rest = Vec::new();
        let mut give = |bytes: &[u8], written: &mut u64| {
            *written += bytes.len() as u64;
            write(bytes)
        };
        give(target.start(), &mut done.written)?;
        let mut push = |rows: Kept, done: &mut Filtered| {
            done.all += Some(rows.all);
            done.kept += Some(rows.kept);
            frame.push(&rows.text.crc);
            give(&rows.text.packed, &mut done.written)?;
            rest.clear();
            let text = rows.text.rest();
            if !text.is_empty() {
                packing.pack(&mut packer, text, &mut rest)?;
                frame.push(&packing.crc(text));
            }
            give(&rest, &mut done.written)
        };
        for piece in self.pieces(PackKept { keep, packing: packing.clone() }, None)? {
            if let Some(rows) = stitch.push(piece?)? {
                push(rows, &mut done)?;
            }
        }
        while let Some(rows) = stitch.finish()? {
            push(rows, &mut done)?;
        }
        give(&target.end(&frame), &mut done.written)?;
        Ok(done)
    }
}
