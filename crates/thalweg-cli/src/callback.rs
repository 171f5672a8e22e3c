//! Keeps the failure of a callback that the library calls.

use crate::common::{Failure, VerbResult};

/// The failure of a callback. The library only knows errors of its own: it stops with
/// [`Cancelled`](thalweg::Error::Cancelled), and the failure is kept here.
#[derive(Default)]
pub(crate) struct CallbackFailure(Option<Failure>);

impl CallbackFailure {
    /// What the callback returns to the library. A failure is kept.
    pub(crate) fn keep(&mut self, outcome: VerbResult) -> thalweg::Result<()> {
        outcome.map_err(|failure| {
            self.0 = Some(failure);
            thalweg::Error::Cancelled
        })
    }

    /// The kept failure, or else the outcome of the library's call.
    pub(crate) fn or<T>(self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        self.0.map_or(outcome, Err)
    }
}
