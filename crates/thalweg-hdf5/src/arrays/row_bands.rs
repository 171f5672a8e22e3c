//! Divides arrays into windows of whole rows, and orders these by their offset in the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::grid::Grid;
use super::selection::Selection;
use super::window::Subject;

/// Elements of a dataset that are read at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ElementRange {
    /// The number of the dataset.
    pub(super) dataset: usize,
    /// A range of its elements, in C order.
    pub(super) elements: Range<u64>,
}

/// The rows of a dataset that are not in a window yet.
struct RowBands<'a> {
    subject: &'a Subject,
    grid: Grid,
    /// Elements of a row.
    row: u64,
    /// Rows that are left.
    rows: Range<u64>,
}

impl<'a> RowBands<'a> {
    fn new(subject: &'a Subject, elements: &Range<u64>, piece: u64) -> Self {
        let grid = Grid::new(&subject.array, &Selection::All, piece);
        let row = grid.row();
        Self { row, subject, grid, rows: elements.start / row..elements.end / row }
    }

    /// The next band: its offset in the file, which is 0 if it is not stored, and its rows.
    fn next(&self) -> Option<(u64, Range<u64>)> {
        let rows = self.grid.band(&self.rows)?;
        Some((self.grid.first_offset(&self.subject.array, &rows), rows))
    }
}

/// Divides these elements of the datasets, which are whole rows, into windows of at least `window`
/// decoded bytes. The next band is always the one that begins first in the file.
///
/// Datasets that were written side by side are read side by side. A dataset that lies behind
/// another is read after it. The elements of each dataset come in C order.
pub(super) fn windows(
    subjects: &[Subject],
    elements: &[Range<u64>],
    window: u64,
    piece: u64,
) -> Vec<Vec<ElementRange>> {
    let new = |(subject, elements)| RowBands::new(subject, elements, piece);
    let mut bands: Vec<RowBands<'_>> = subjects.iter().zip(elements).map(new).collect();
    let turn = |dataset: usize, bands: &RowBands<'_>| {
        bands.next().map(|(offset, rows)| (Reverse((offset, dataset)), rows))
    };
    let mut heap: BinaryHeap<_> = bands
        .iter()
        .enumerate()
        .filter_map(|(dataset, bands)| Some(turn(dataset, bands)?.0))
        .collect();
    let (mut windows, mut parts, mut bytes) = (Vec::new(), Vec::<ElementRange>::new(), 0);
    // The place in `parts` of each dataset; `usize::MAX` for a dataset without a part.
    let mut places = vec![usize::MAX; subjects.len()];
    while let Some(Reverse((_, dataset))) = heap.pop() {
        let bands = &mut bands[dataset];
        // Takes bands of this dataset until the next band of another dataset comes first.
        while let Some((key, rows)) = turn(dataset, bands) {
            if heap.peek().is_some_and(|other| *other > key) {
                heap.push(key);
                break;
            }
            bytes += (rows.end - rows.start) * bands.row * bands.subject.array.dtype.size() as u64;
            bands.rows.start = rows.end;
            match parts.get_mut(places[dataset]) {
                Some(part) => part.elements.end = rows.end * bands.row,
                None => {
                    places[dataset] = parts.len();
                    parts.push(ElementRange {
                        dataset,
                        elements: rows.start * bands.row..rows.end * bands.row,
                    });
                }
            }
            if bytes >= window {
                places.fill(usize::MAX);
                windows.push(std::mem::take(&mut parts));
                bytes = 0;
            }
        }
    }
    if !parts.is_empty() {
        windows.push(parts);
    }
    windows
}
