//! Divides arrays into windows of whole rows, and orders these by their offset in the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::grid::Grid;
use super::selection::Selection;
use super::window::Subject;
use crate::array::Array;

/// Elements of a dataset that are read at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElementRange {
    /// The number of the dataset.
    pub(super) dataset: usize,
    /// A range of its elements, in C order.
    pub(super) elements: Range<u64>,
}

/// The rows of a dataset that are not in a window yet.
struct RowBands {
    array: Arc<Array>,
    grid: Grid,
    /// Elements of a row.
    row: u64,
    /// Rows that are left.
    rows: Range<u64>,
}

impl RowBands {
    fn new(subject: &Subject, elements: &Range<u64>, piece: u64) -> Self {
        let grid = Grid::new(&subject.array, &Selection::All, piece);
        let row = grid.row();
        let rows = elements.start / row..elements.end / row;
        Self { row, array: subject.array.clone(), grid, rows }
    }

    /// The next band: its offset in the file, which is 0 if it is not stored, and its rows. A band
    /// that is not stored ends where it fills `room` bytes.
    fn next(&self, room: u64) -> Option<(u64, Range<u64>)> {
        self.grid.band(&self.array, &self.rows, room)
    }
}

/// Divides elements of datasets, which are whole rows, into windows of at least `window` decoded
/// bytes. The next band is always the one that begins first in the file.
///
/// Datasets that were written side by side are read side by side. A dataset that lies behind
/// another is read after it. The elements of each dataset come in C order. A window is made when it
/// is asked for: a file of a few bytes may claim more windows than memory can hold.
pub(super) struct WindowParts {
    bands: Vec<RowBands>,
    /// The datasets with rows left, each after the offset of its next band.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    /// The place in the next window of each dataset; `usize::MAX` for a dataset without a part.
    places: Vec<usize>,
    window: u64,
}

impl WindowParts {
    pub(super) fn new(
        subjects: &[Subject],
        elements: &[Range<u64>],
        window: u64,
        piece: u64,
    ) -> Self {
        let new = |(subject, elements)| RowBands::new(subject, elements, piece);
        let bands: Vec<RowBands> = subjects.iter().zip(elements).map(new).collect();
        let turn = |(dataset, bands): (usize, &RowBands)| {
            bands.next(0).map(|(offset, _)| Reverse((offset, dataset)))
        };
        let heap = bands.iter().enumerate().filter_map(turn).collect();
        Self { heap, places: vec![usize::MAX; bands.len()], bands, window: window.max(1) }
    }
}

impl Iterator for WindowParts {
    type Item = Vec<ElementRange>;

    fn next(&mut self) -> Option<Vec<ElementRange>> {
        let mut parts = Vec::<ElementRange>::new();
        let mut bytes = 0;
        while bytes < self.window
            && let Some(Reverse((_, dataset))) = self.heap.pop()
        {
            let bands = &mut self.bands[dataset];
            let Some((_, rows)) = bands.next(self.window - bytes) else { continue };
            bytes += (rows.end - rows.start) * bands.row * bands.array.dtype.size() as u64;
            bands.rows.start = rows.end;
            match parts.get_mut(self.places[dataset]) {
                Some(part) => part.elements.end = rows.end * bands.row,
                None => {
                    self.places[dataset] = parts.len();
                    parts.push(ElementRange {
                        dataset,
                        elements: rows.start * bands.row..rows.end * bands.row,
                    });
                }
            }
            if let Some((offset, _)) = bands.next(0) {
                self.heap.push(Reverse((offset, dataset)));
            }
        }
        parts.iter().for_each(|part| self.places[part.dataset] = usize::MAX);
        (!parts.is_empty()).then_some(parts)
    }
}
