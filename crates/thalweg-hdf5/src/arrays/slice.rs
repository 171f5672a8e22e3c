//! Divides arrays into slices, one for each of several processes that read them.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thalweg_io::Result;

use super::fill::whole;
use super::row_bands::{ElementRange, WindowParts};
use super::{ArrayFile, Dataset};

/// The elements that one of several processes reads. Any launcher can pass it to its processes in
/// serialised form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// The shares, sorted by path. A dataset of which nothing is read is left out.
    pub shares: Vec<Share>,
}

/// The elements that are read of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The path of the dataset.
    pub path: String,
    /// A range of its elements in C order, of whole chunks if the dataset has chunks.
    pub elements: Range<u64>,
}

/// The number of windows for each slice. With more windows, the sizes of the slices differ less.
const WINDOWS_A_SLICE: u64 = 64;

impl ArrayFile {
    /// Divides all elements of the datasets into `count` slices of about the same number of bytes.
    /// The bytes of a slice lie close together in the file if the datasets were written side by
    /// side or one after the other.
    ///
    /// # Errors
    /// [`Error::Unsupported`](thalweg_io::Error::Unsupported) for a dataset that is not an array.
    pub fn slices(&self, datasets: &[&Dataset], count: usize) -> Result<Vec<Slice>> {
        let subjects = self.subjects(datasets)?;
        let size = |part: &ElementRange| {
            (part.elements.end - part.elements.start)
                * subjects[part.dataset].array.dtype.size() as u64
        };
        let total: u64 =
            subjects.iter().fold(0, |total, subject| subject.array.bytes().saturating_add(total));
        let count = count.max(1);
        let window = total / (count as u64 * WINDOWS_A_SLICE) + 1;
        let mut slices = vec![Slice::default(); count];
        let mut bytes = 0;
        for parts in WindowParts::new(&subjects, &whole(&subjects), window, self.piece()) {
            // The middle of a window says which slice it goes to.
            let own: u64 = parts.iter().map(size).sum();
            let place =
                (u128::from(bytes + own / 2) * count as u128 / u128::from(total.max(1))) as usize;
            bytes += own;
            for ElementRange { dataset, elements } in parts {
                let shares = &mut slices[place.min(count - 1)].shares;
                let path = &*subjects[dataset].path;
                match shares.iter_mut().find(|share| share.path == path) {
                    Some(share) => share.elements.end = elements.end,
                    None => shares.push(Share { path: path.into(), elements: elements.clone() }),
                }
            }
        }
        slices.iter_mut().for_each(|slice| slice.shares.sort_by(|a, b| a.path.cmp(&b.path)));
        Ok(slices)
    }
}
