//! Pieces of text, which begin and end anywhere, and the records in them.

use crate::record::{Defect, Parsed, Record, first_start, parse};

/// Takes records.
pub(crate) trait Gather: Send + Sync + 'static {
    /// What is taken of some records that follow each other.
    type Rows: Default + Send + 'static;

    fn push(&self, rows: &mut Self::Rows, record: &Record<'_>);
}

/// What is found in a piece of text.
#[derive(Debug, Default)]
pub(crate) struct Piece<R> {
    /// The text before the first record that starts here; all of it if none does.
    pub(crate) head: Vec<u8>,
    /// Whether a record starts here.
    pub(crate) has_start: bool,
    /// The records that start and end here, but for those after a defect.
    pub(crate) taken: Taken<R>,
    /// The start of a record that goes on in the next piece.
    pub(crate) tail: Vec<u8>,
    /// The defect of the record after these.
    pub(crate) defect: Option<Defect>,
}

/// Records that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Taken<R> {
    pub(crate) rows: R,
    pub(crate) records: u64,
    /// The bytes of the records.
    pub(crate) bytes: u64,
}

impl<R: Default> Piece<R> {
    /// Finds the records of `text`. `is_first` if the text starts with a record, as a file does.
    pub(crate) fn new<G: Gather<Rows = R>>(gather: &G, text: &[u8], is_first: bool) -> Self {
        let start = if is_first { Some(0) } else { first_start(text) };
        let Some(start) = start else {
            return Self { head: text.to_vec(), ..Self::default() };
        };
        let (head, rest) = text.split_at(start);
        let mut piece = Self { head: head.to_vec(), has_start: true, ..Self::default() };
        match piece.taken.push_all(gather, rest, false) {
            Ok(used) => piece.tail = rest[used..].to_vec(),
            Err(defect) => piece.defect = Some(defect),
        }
        piece
    }
}

impl<R> Taken<R> {
    /// Takes the records at the start of `text`, and returns how many bytes they have. `is_last` if
    /// no text follows. Empty lines may end a file.
    pub(crate) fn push_all<G: Gather<Rows = R>>(
        &mut self,
        gather: &G,
        text: &[u8],
        is_last: bool,
    ) -> Result<usize, Defect> {
        let mut used = 0;
        while text[used..].iter().any(|&byte| byte != b'\n') {
            let Parsed::Record(record, len) = parse(&text[used..], is_last)? else { break };
            gather.push(&mut self.rows, &record);
            self.records += 1;
            self.bytes += len as u64;
            used += len;
        }
        Ok(used)
    }
}
