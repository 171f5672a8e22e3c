//! The records of a file in several files.

use std::ops::Range;
use std::sync::Arc;

use thalweg_codec::gzip::MemberFrame;
use thalweg_io::{Error, Fault, Result};

use crate::convert::{EarlyText, Packer, Packing, Target};
use crate::file::FastqFile;
use crate::piece::{Gather, Piece};
use crate::record::Record;
use crate::source::Work;
use crate::summary::Count;

/// Takes the files that records are split into, one after the other.
pub trait Parts {
    /// Begins the next file.
    ///
    /// # Errors
    /// Those of the implementation, which end the work.
    fn begin(&mut self) -> Result<()>;

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// Those of the implementation.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Ends the file, which has so many records.
    ///
    /// # Errors
    /// Those of the implementation.
    fn end(&mut self, count: Count) -> Result<()>;
}

/// Takes the text of records.
struct Lines;

/// Records that follow each other.
#[derive(Default)]
struct Rows {
    /// What is packed of it is used if no file ends among these records.
    text: EarlyText,
    /// Where each record ends in the text, and its bases.
    ends: Vec<(usize, u64)>,
}

impl Gather for Lines {
    type Rows = Rows;

    fn push(&self, rows: &mut Rows, record: &Record<'_>) {
        let text = &mut rows.text.text;
        record.append(text);
        rows.ends.push((text.len(), record.sequence.len() as u64));
    }
}

/// Finds the records of pieces, and packs their text.
struct PackLines(Packing);

impl Work for PackLines {
    type Worker = Result<Packer, Fault>;
    type Made = Piece<Rows>;

    fn worker(&self) -> Self::Worker {
        self.0.packer()
    }

    fn make(&self, packer: &mut Self::Worker, text: &[u8], is_first: bool) -> Result<Self::Made> {
        let mut piece = Piece::new(&Lines, text, is_first);
        self.0.pack_early(packer, &mut piece.taken.rows.text)?;
        Ok(piece)
    }
}

/// The file that is written.
struct Writer<'a, P> {
    parts: &'a mut P,
    packing: Packing,
    packer: Result<Packer, Fault>,
    /// Records of a whole file.
    reads: u64,
    frame: MemberFrame,
    /// What the file has; `None` before it begins.
    count: Option<Count>,
    all: Count,
    packed: Vec<u8>,
}

impl<P: Parts> Writer<'_, P> {
    /// Writes records, which may end files.
    fn push(&mut self, rows: &Rows) -> Result<()> {
        let mut at = 0;
        while at < rows.ends.len() {
            let room = self.reads - self.begun()?.reads;
            let to =
                rows.ends.len().min(at.saturating_add(usize::try_from(room).unwrap_or(usize::MAX)));
            if (at, to) == (0, rows.ends.len()) {
                self.frame.push(&rows.text.crc);
                self.parts.write(&rows.text.packed)?;
                self.pack(rows.text.rest())?;
            } else {
                let start = at.checked_sub(1).map_or(0, |last| rows.ends[last].0);
                self.pack(&rows.text.text[start..rows.ends[to - 1].0])?;
            }
            self.counted(rows, at..to)?;
            at = to;
        }
        Ok(())
    }

    /// What the file has, which begins if there is none.
    fn begun(&mut self) -> Result<Count> {
        if let Some(count) = self.count {
            return Ok(count);
        }
        self.parts.begin()?;
        self.parts.write(self.packing.target.start())?;
        self.frame = MemberFrame::default();
        Ok(*self.count.insert(Count::default()))
    }

    fn pack(&mut self, text: &[u8]) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.packed.clear();
        self.packing.pack(&mut self.packer, text, &mut self.packed)?;
        self.frame.push(&self.packing.crc(text));
        self.parts.write(&self.packed)
    }

    /// Counts records, and ends the file if it is whole.
    fn counted(&mut self, rows: &Rows, records: Range<usize>) -> Result<()> {
        let bases = rows.ends[records.clone()].iter().map(|record| record.1).sum();
        let more = Some(Count { reads: records.len() as u64, bases });
        self.all += more;
        let mut count = self.count.unwrap_or_default();
        count += more;
        self.count = Some(count);
        if count.reads == self.reads { self.end() } else { Ok(()) }
    }

    /// Ends the file, if one has begun.
    fn end(&mut self) -> Result<()> {
        let Some(count) = self.count.take() else { return Ok(()) };
        self.parts.write(&self.packing.target.end(&self.frame))?;
        self.parts.end(count)
    }
}

impl FastqFile {
    /// Writes the records in their order into files of `reads` records each, in any compression.
    /// The last file may have fewer. What stands after `+` in a record is left out. With `verify`,
    /// what was compressed is decompressed again and compared before it is written.
    ///
    /// # Errors
    /// Those of [`FastqFile::convert`], and those of `parts`; [`Error::Usage`] for no records a
    /// file.
    pub fn split(
        &self,
        target: Target,
        verify: bool,
        reads: u64,
        parts: &mut impl Parts,
    ) -> Result<Count> {
        target.check()?;
        if reads == 0 {
            return Err(Error::Usage("at least one record a file".into()));
        }
        let packing = Packing { target, verify, file: self.name().clone() };
        let mut writer = Writer {
            parts,
            packing: packing.clone(),
            packer: packing.packer(),
            reads,
            frame: MemberFrame::default(),
            count: None,
            all: Count::default(),
            packed: Vec::new(),
        };
        let mut stitch = self.stitch(Arc::new(Lines));
        for piece in self.pieces(PackLines(packing), None)? {
            if let Some(rows) = stitch.push(piece?)? {
                writer.push(&rows)?;
            }
        }
        while let Some(rows) = stitch.finish()? {
            writer.push(&rows)?;
        }
        writer.end()?;
        Ok(writer.all)
    }
}
