//! The records of a file, in order.

use std::sync::Arc;

use thalweg_io::{Error, Result};

use crate::piece::{Gather, Piece};
use crate::pieces::Pieces;
use crate::source::Work;
use crate::stitch::Stitch;

/// Finds the records of pieces.
pub(crate) struct FindRecords<G>(pub(crate) Arc<G>);

impl<G: Gather> Work for FindRecords<G> {
    type Worker = ();
    type Made = Piece<G::Rows>;

    fn worker(&self) {}

    fn make(&self, (): &mut (), text: &[u8], is_first: bool) -> Result<Self::Made> {
        Ok(Piece::new(&*self.0, text, is_first))
    }
}

/// The rows of a file, some at a time. It ends after an error.
pub(crate) struct Gathered<G: Gather> {
    pieces: Pieces<FindRecords<G>>,
    stitch: Stitch<G>,
    /// The error of the pieces.
    failed: Option<Error>,
    is_over: bool,
}

impl<G: Gather> Gathered<G> {
    pub(crate) fn new(pieces: Pieces<FindRecords<G>>, stitch: Stitch<G>) -> Self {
        Self { pieces, stitch, failed: None, is_over: false }
    }

    fn step(&mut self) -> Result<Option<G::Rows>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        for piece in self.pieces.by_ref() {
            let rows = match piece {
                Ok(piece) => self.stitch.push(piece)?,
                // The records before it come first.
                Err(error) => match self.stitch.give_rest() {
                    None => return Err(error),
                    rows => {
                        self.failed = Some(error);
                        rows
                    }
                },
            };
            if rows.is_some() {
                return Ok(rows);
            }
        }
        self.stitch.finish()
    }
}

impl<G: Gather> Iterator for Gathered<G> {
    type Item = Result<G::Rows>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.step();
        self.is_over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}
