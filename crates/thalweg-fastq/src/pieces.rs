//! What is made of the pieces of a file's text.

use thalweg_io::Result;
use thalweg_io::engine::Run;

use crate::serial::Serial;
use crate::source::{Made, OnStored, PieceDecoder, Work};

/// What was made of each piece of a file's text, in order. It ends after an error.
pub(crate) enum Pieces<W: Work> {
    Run(Run<PieceDecoder<W>>, Option<OnStored>),
    Serial(Serial<W>),
}

impl<W: Work> Iterator for Pieces<W> {
    type Item = Result<W::Made>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Run(run, on_stored) => loop {
                let next = run.next()?;
                if next.is_ok() {
                    // What was made is the caller's: the run may make as many again.
                    run.recycle(None);
                }
                match next {
                    // A batch that the run has made, but not filled.
                    Ok(None) => {}
                    Ok(Some(Made { made, stored })) => {
                        if let Some(on_stored) = on_stored {
                            on_stored(&stored);
                        }
                        break Some(Ok(made));
                    }
                    Err(error) => break Some(Err(error)),
                }
            },
            Self::Serial(serial) => serial.next(),
        }
    }
}
