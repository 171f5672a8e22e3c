//! Counts what a run owes and what it has delivered, so that no run ends with values left out.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_io::{Error, Result};

use super::window::Subject;

/// What a target is owed, and how much of it is there. The count is of elements, or of entries if
/// some wanted elements are not stored: those have the fill value, which nobody copies.
#[derive(Debug)]
pub(super) struct Tally {
    owed: u64,
    counts_entries: bool,
    filled: AtomicU64,
}

impl Tally {
    /// A tally of the elements of a target that is stored completely.
    pub(super) fn of_elements(owed: u64) -> Self {
        Self { owed, counts_entries: false, filled: AtomicU64::new(0) }
    }

    /// A tally of the entries of a target that is stored in part.
    pub(super) fn of_entries(owed: u64) -> Self {
        Self { owed, counts_entries: true, filled: AtomicU64::new(0) }
    }

    /// Counts an entry whose wanted elements were copied.
    pub(super) fn add(&self, elements: u64) {
        let count = if self.counts_entries { 1 } else { elements };
        // The lock of the run orders this before the end of the run.
        self.filled.fetch_add(count, Ordering::Relaxed);
    }

    /// Checks that all that is owed is there.
    ///
    /// # Errors
    /// [`Error::Usage`], which shows a defect of this crate.
    pub(super) fn check(&self, subject: &Subject) -> Result<()> {
        let filled = self.filled.load(Ordering::Relaxed);
        let what = if self.counts_entries { "stored parts" } else { "elements" };
        missing(subject, what, filled, self.owed)
    }
}

/// The bytes of each dataset that a run owes its caller, and those that it has delivered.
#[derive(Debug)]
pub(super) struct Delivered(Vec<(u64, u64)>);

impl Delivered {
    /// Nothing is delivered of these elements.
    pub(super) fn new(subjects: &[Subject], elements: &[Range<u64>]) -> Self {
        let owed = subjects.iter().zip(elements).map(|(subject, elements)| {
            (elements.end - elements.start) * subject.array.dtype.size() as u64
        });
        Self(owed.map(|owed| (owed, 0)).collect())
    }

    /// Counts bytes of a dataset that the caller took.
    pub(super) fn add(&mut self, dataset: usize, bytes: usize) {
        if let Some((_, delivered)) = self.0.get_mut(dataset) {
            *delivered += bytes as u64;
        }
    }

    /// Checks that all bytes were delivered.
    ///
    /// # Errors
    /// [`Error::Usage`], which shows a defect of this crate.
    pub(super) fn check(&self, subjects: &[Subject]) -> Result<()> {
        self.0.iter().zip(subjects).try_for_each(|((owed, delivered), subject)| {
            missing(subject, "bytes", *delivered, *owed)
        })
    }
}

fn missing(subject: &Subject, what: &str, found: u64, owed: u64) -> Result<()> {
    if found == owed {
        return Ok(());
    }
    let Subject { file, path, .. } = subject;
    let what = format!("{file}: {path}: the read ended with {found} of {owed} {what} delivered");
    Err(Error::Usage(what.into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::array::{Array, ElementPlace};
    use crate::dtype::Dtype;
    use crate::filter::Pipeline;

    fn subject() -> Subject {
        let array = Array {
            shape: vec![3, 2],
            dtype: Dtype::number('u', 2, false),
            fill: Vec::new(),
            place: ElementPlace::Contiguous(None),
            pipeline: Pipeline::default(),
        };
        Subject { file: "file".into(), path: "/array".into(), array: Arc::new(array) }
    }

    #[test]
    fn a_run_that_delivers_less_than_it_owes_is_an_error() {
        let subjects = [subject(), subject()];
        let mut delivered = Delivered::new(&subjects, &[0..6, 2..4]);
        delivered.add(0, 12);
        delivered.add(1, 2);
        let missing = delivered.check(&subjects).unwrap_err().to_string();
        assert_eq!(missing, "file: /array: the read ended with 2 of 4 bytes delivered");
        delivered.add(1, 2);
        delivered.check(&subjects).unwrap();
        delivered.add(1, 2);
        assert!(delivered.check(&subjects).is_err(), "values that nobody asked for");
    }

    #[test]
    fn targets_are_owed_elements_or_parts() {
        for (tally, each) in [(Tally::of_elements(6), 3), (Tally::of_entries(2), 1)] {
            tally.add(each);
            assert!(tally.check(&subject()).is_err());
            tally.add(each);
            tally.check(&subject()).unwrap();
        }
    }
}
