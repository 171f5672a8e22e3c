//! Strings and lists of any length, which libhdf5 reads, and values in other files.

use std::ops::Range;

use thalweg_io::store::joined::JoinedPiece;
use thalweg_io::{Error, Result};

use super::{ArrayFile, Dataset};
use crate::libhdf5::{ElementPlace, Found, Variable};

/// Elements read at a time.
const AT_A_TIME: u64 = 4096;

impl ArrayFile {
    /// The element type of a dataset of strings or lists of any length; `None` for any other
    /// dataset.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn variable(&self, dataset: &Dataset) -> Result<Option<Variable>> {
        dataset.node.variable()
    }

    /// Passes the strings or lists of a dataset to `f`, one after the other in C order: strings
    /// without a NUL, lists as their elements' bytes, little-endian.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a dataset of something else, the first defect, or an error of
    /// `f`'s.
    pub fn each_variable(
        &self,
        dataset: &Dataset,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.first_strings(dataset, u64::MAX, f)
    }

    /// Passes at most the first `most` strings or lists of a dataset to `f`.
    ///
    /// # Errors
    /// As [`ArrayFile::each_variable`].
    pub fn first_strings(
        &self,
        dataset: &Dataset,
        most: u64,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(variable) = self.variable(dataset)? else {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{}: reading it as strings or lists", dataset.path()).into(),
                advice: "`ArrayFile::values` reads arrays".into(),
            });
        };
        if variable.is_empty() {
            return Ok(());
        }
        let rows = variable.shape.first().copied().unwrap_or(1);
        let step = (AT_A_TIME.min(most) / (variable.len() / rows).max(1)).max(1);
        let mut from = 0;
        let mut left = most;
        let mut f = |element: &[u8]| match left.checked_sub(1) {
            Some(fewer) => {
                left = fewer;
                f(element)
            }
            None => Ok(()),
        };
        while from < rows.min(most) {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let step = step.min(rows - from);
            dataset.node.each_variable(&variable, from, step, &mut f)?;
            from += step;
        }
        Ok(())
    }

    /// Passes a range of the strings or lists of a dataset with one dimension to `f`.
    ///
    /// # Errors
    /// As [`ArrayFile::each_variable`]; [`Error::Usage`] for a range outside of the dataset.
    pub fn strings_of(
        &self,
        dataset: &Dataset,
        elements: Range<u64>,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let outside =
            || Error::Usage(format!("{}: the elements {elements:?}", dataset.path()).into());
        let variable = self.variable(dataset)?.ok_or_else(outside)?;
        if variable.shape.len() != 1 || variable.len() < elements.end {
            return Err(outside());
        }
        for from in elements.clone().step_by(AT_A_TIME as usize) {
            if self.options.control.is_cancelled() {
                return Err(Error::Cancelled);
            }
            dataset.node.each_variable(&variable, from, AT_A_TIME.min(elements.end - from), f)?;
        }
        Ok(())
    }

    /// The pieces of other files that hold an array's values, if they are not in this one.
    pub fn elsewhere(&self, dataset: &Dataset) -> Vec<JoinedPiece> {
        match &dataset.found {
            Found::Array(array) => match array.place {
                ElementPlace::Contiguous(Some(offset)) => self.joined.pieces(offset, array.bytes()),
                _ => Vec::new(),
            },
            Found::Other(_) => Vec::new(),
        }
    }

    /// The strings or lists of a dataset, as [`ArrayFile::each_variable`] passes them.
    ///
    /// # Errors
    /// Those of [`ArrayFile::each_variable`].
    pub fn strings(&self, dataset: &Dataset) -> Result<Vec<Vec<u8>>> {
        let mut strings = Vec::new();
        self.each_variable(dataset, &mut |string| {
            strings.push(string.to_vec());
            Ok(())
        })?;
        Ok(strings)
    }
}

#[cfg(test)]
mod tests;
