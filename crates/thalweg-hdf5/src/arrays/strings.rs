//! Reads strings and lists of any length, and finds values in other files.

use std::ops::Range;

use thalweg_io::store::joined::JoinedPiece;
use thalweg_io::{Error, Result};

use super::{ArrayFile, ArrayRequest, Dataset, Selection};
use crate::array::{ElementPlace, Found, Variable};
use crate::dtype::Dtype;

/// Elements read at a time.
const AT_A_TIME: u64 = 4096;

impl ArrayFile {
    /// The shape and the item type of a dataset of strings or lists of any length; `None` for any
    /// other dataset.
    ///
    /// # Errors
    /// [`Error::Malformed`].
    pub fn variable(&self, dataset: &Dataset) -> Result<Option<Variable>> {
        let Some(mut variable) = dataset.node.variable()? else { return Ok(None) };
        if let ElementPlace::Virtual(_) = variable.references.place {
            variable.references = self.resolved(&dataset.node, &variable.references)?;
            variable.shape.clone_from(&variable.references.shape);
        }
        Ok(Some(variable))
    }

    /// Calls `f` with each string or list of a dataset, in C order. Strings come without a NUL;
    /// lists come as the bytes of their elements, little-endian.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a dataset of something else, the first defect, or an error from
    /// `f`.
    pub fn each_variable(
        &self,
        dataset: &Dataset,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.first_strings(dataset, u64::MAX, f)
    }

    /// Calls `f` with at most the first `most` strings or lists of a dataset.
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
        let mut left = most;
        let mut f = |element: &[u8]| match left.checked_sub(1) {
            Some(fewer) => {
                left = fewer;
                f(element)
            }
            None => Ok(()),
        };
        // Each row has an element at least.
        let rows = variable.shape.first().copied().unwrap_or(1).min(most);
        self.in_steps(dataset, &variable, 0..rows, most, &mut f)
    }

    /// Calls `f` with each string or list of these rows, of which a few thousand elements, or the
    /// rows of `most` elements, are read at a time. The dataset is not empty.
    fn in_steps(
        &self,
        dataset: &Dataset,
        variable: &Variable,
        rows: Range<u64>,
        most: u64,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let step = self.rows_at_a_time(dataset, variable, most)?;
        let mut from = rows.start;
        while from < rows.end {
            self.options.control.check()?;
            let end = rows.end.min(from.saturating_add(step));
            self.variable_rows(dataset, variable, from..end, f)?;
            from = end;
        }
        Ok(())
    }

    /// Rows that are read at a time for `most` elements. The dataset is not empty.
    fn rows_at_a_time(&self, dataset: &Dataset, variable: &Variable, most: u64) -> Result<u64> {
        let row: u64 = variable.shape.iter().skip(1).product();
        let bytes = row.saturating_mul(variable.references.dtype.size() as u64);
        if bytes > self.options.budget.memory as u64 {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{}: a row of {row} strings or lists", dataset.path()).into(),
                advice: "give more --memory".into(),
            });
        }
        Ok((AT_A_TIME.min(most) / row.max(1)).max(1))
    }

    /// Calls `f` with each string or list of these rows.
    fn variable_rows(
        &self,
        dataset: &Dataset,
        variable: &Variable,
        rows: Range<u64>,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let found = match &variable.references.place {
            ElementPlace::Virtual(mappings) => {
                self.virtual_strings(&dataset.node, variable, mappings, &rows)?
            }
            _ => {
                let row: u64 = variable.shape.iter().skip(1).product();
                let elements = Selection::Elements(rows.start * row..rows.end * row);
                self.selected(dataset, variable, elements)?
            }
        };
        found.iter().try_for_each(|element| f(element))
    }

    /// The selected strings or lists of a dataset, in C order of the selection, as
    /// [`ArrayFile::each_variable`] passes them.
    ///
    /// # Errors
    /// As [`ArrayFile::each_variable`]; [`Error::Usage`] for a selection that does not fit;
    /// [`Error::Unsupported`] for a part of a virtual dataset.
    pub fn variable_elements(
        &self,
        dataset: &Dataset,
        selection: Selection,
    ) -> Result<Vec<Vec<u8>>> {
        let Some(variable) = self.variable(dataset)? else { return self.strings(dataset) };
        let count = selection.count(&variable.shape).map_err(|what| Error::Usage(what.into()))?;
        // The address space of the vectors, which a shape alone can exceed. Rust would abort.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if Vec::<[u8; 64]>::new().try_reserve_exact(count).is_err() {
            let kind = std::io::ErrorKind::OutOfMemory;
            return Err(Error::io(
                self.store.name(),
                "making room for the selected strings or lists in",
                kind,
            ));
        }
        match selection {
            Selection::All => self.strings(dataset),
            part => self.selected(dataset, &variable, part),
        }
    }

    /// The selected strings or lists.
    pub(super) fn selected(
        &self,
        dataset: &Dataset,
        variable: &Variable,
        selection: Selection,
    ) -> Result<Vec<Vec<u8>>> {
        if variable.references.is_by_rows() {
            return Err(Error::Unsupported {
                file: self.store.name().clone(),
                what: format!("{}: strings or lists in this form", dataset.path()).into(),
                advice: "repack the file with h5repack".into(),
            });
        }
        let references = Dataset {
            node: dataset.node.clone(),
            found: Found::Array(variable.references.clone()),
        };
        let count = selection.count(&variable.shape).map_err(|what| Error::Usage(what.into()))?;
        let mut stored = vec![0; count as usize * variable.references.dtype.size()];
        self.read(&mut [ArrayRequest { dataset: &references, selection, out: &mut stored }])?;
        let item = variable.item.as_ref();
        let size = item.map_or(1, Dtype::size);
        let mut found = self.file.referenced(dataset.path(), &stored, size)?;
        for element in &mut found {
            match item {
                Some(item) => item.to_little_endian(element),
                // A string ends at its first NUL.
                None => {
                    element.truncate(element.iter().position(|&b| b == 0).unwrap_or(element.len()));
                }
            }
        }
        Ok(found)
    }

    /// Calls `f` with the strings or lists of some rows of a dataset: of a range of its first
    /// dimension. A single element is one row.
    ///
    /// # Errors
    /// As [`ArrayFile::each_variable`]; [`Error::Usage`] if the rows are outside of the dataset.
    pub fn strings_of(
        &self,
        dataset: &Dataset,
        rows: Range<u64>,
        f: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let outside = || Error::Usage(format!("{}: the rows {rows:?}", dataset.path()).into());
        let variable = self.variable(dataset)?.ok_or_else(outside)?;
        if variable.shape.first().copied().unwrap_or(1) < rows.end {
            return Err(outside());
        }
        if variable.is_empty() {
            return Ok(());
        }
        self.in_steps(dataset, &variable, rows, u64::MAX, f)
    }

    /// The pieces of other files that hold an array's values; empty if the values are in this file.
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
    /// As [`ArrayFile::each_variable`].
    pub fn strings(&self, dataset: &Dataset) -> Result<Vec<Vec<u8>>> {
        let mut strings = Vec::new();
        self.each_variable(dataset, &mut |string| {
            strings.push(string.to_vec());
            Ok(())
        })?;
        Ok(strings)
    }
}

#[cfg(all(test, feature = "libhdf5"))]
mod tests;
