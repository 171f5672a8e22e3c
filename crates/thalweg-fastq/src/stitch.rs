//! Records in file order: those of each piece, and those that lie across pieces.

use std::sync::Arc;

use thalweg_io::{Error, Result};

use crate::piece::{Gather, Piece, Taken};
use crate::record::{Defect, parse};

/// Joins pieces that come in order.
///
/// A piece guesses where its first record starts. The guess is proved here: the record before it,
/// whose start is known, must end there.
pub(crate) struct Stitch<G: Gather> {
    file: Arc<str>,
    gather: Arc<G>,
    /// The most bytes of a record.
    most: usize,
    /// The records of the piece before, and the defect after them.
    last: Taken<G::Rows>,
    defect: Option<Defect>,
    /// The start of the record after these, from one or more pieces.
    open: Vec<u8>,
    /// Bytes of `open` in which no record ends.
    searched: usize,
    /// Records and bytes of the file before those of `last`.
    records: u64,
    bytes: u64,
}

impl<G: Gather> Stitch<G> {
    pub(crate) fn new(file: Arc<str>, gather: Arc<G>, most: usize) -> Self {
        let (last, open) = (Taken::default(), Vec::new());
        Self { file, gather, most, last, defect: None, open, searched: 0, records: 0, bytes: 0 }
    }

    /// Takes the next piece. Returns the records before it, if they are complete.
    ///
    /// # Errors
    /// The first defect of the text. All records before it have been returned.
    pub(crate) fn push(&mut self, mut piece: Piece<G::Rows>) -> Result<Option<G::Rows>> {
        if let Some(defect) = self.defect.take() {
            return self.fail(defect);
        }
        if self.open.is_empty() {
            self.open = std::mem::take(&mut piece.head);
        } else {
            self.open.extend_from_slice(&piece.head);
        }
        // Long records are not searched again for each of their pieces.
        let is_long = self.open.len() > self.most || self.open.len() / 2 >= self.searched;
        if (piece.has_start || is_long)
            && let Err(defect) = self.close(false)
        {
            return self.fail(defect);
        }
        if !piece.has_start {
            if self.open.len() > self.most {
                return self.fail(Defect {
                    at: 0,
                    found: format!("over {} bytes without an end", self.most).into(),
                    expected: "a record of four lines that fits into the memory",
                });
            }
            return Ok(self.give_last(Taken::default()));
        }
        if !self.open.is_empty() {
            let defect = parse(&self.open, true).err().unwrap_or_else(|| Defect {
                at: 0,
                found: "a record that does not end where another starts".into(),
                expected: "four lines: @title, bases, +, qualities",
            });
            return self.fail(defect);
        }
        self.open = std::mem::take(&mut piece.tail);
        self.searched = self.open.len();
        self.defect = piece.defect;
        Ok(self.give_last(piece.taken))
    }

    /// The records after the last piece. They may come with several calls; `None` follows them.
    ///
    /// # Errors
    /// As [`Stitch::push`].
    pub(crate) fn finish(&mut self) -> Result<Option<G::Rows>> {
        if let Some(defect) = self.defect.take() {
            return self.fail(defect);
        }
        match self.close(true) {
            Ok(()) => Ok(self.give_last(Taken::default())),
            Err(defect) => self.fail(defect),
        }
    }

    /// The records that were found, where no more can be read.
    pub(crate) fn give_rest(&mut self) -> Option<G::Rows> {
        self.give_last(Taken::default())
    }

    /// Takes the records that end in `open`.
    fn close(&mut self, is_last: bool) -> std::result::Result<(), Defect> {
        let open = std::mem::take(&mut self.open);
        let used = self.last.push_all(&*self.gather, &open, is_last)?;
        self.open = open;
        self.open.drain(..used);
        self.searched = self.open.len();
        Ok(())
    }

    /// Gives the records before a defect. The next call, or this one if there are none, fails.
    fn fail(&mut self, defect: Defect) -> Result<Option<G::Rows>> {
        let rows = self.give_last(Taken::default());
        if rows.is_none() {
            return Err(self.defective(&defect));
        }
        self.defect = Some(defect);
        Ok(rows)
    }

    fn give_last(&mut self, next: Taken<G::Rows>) -> Option<G::Rows> {
        let last = std::mem::replace(&mut self.last, next);
        self.records += last.records;
        self.bytes += last.bytes;
        (last.records > 0).then_some(last.rows)
    }

    fn defective(&self, defect: &Defect) -> Error {
        Error::Malformed {
            file: self.file.clone(),
            what: format!("record {}", self.records + self.last.records + 1).into(),
            offset: self.bytes + self.last.bytes + defect.at as u64,
            found: defect.found.clone(),
            expected: defect.expected.into(),
        }
    }
}
