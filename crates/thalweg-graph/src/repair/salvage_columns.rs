//! Reading the columns and lists of a damaged segment in order, skipping what cannot be read.

use std::ops::Range;

use super::gaps::VertexGaps;
use crate::storage::column::{ColumnMeta, ColumnReader};
use crate::storage::footer::Footer;
use crate::storage::lists::ListsMeta;
use crate::storage::segment::SegmentPages;

/// A segment whose footer could be read; its pages may be damaged.
pub(super) struct SalvagedSegment {
    pub(super) file: String,
    pub(super) segment: SegmentPages,
    pub(super) footer: Footer,
}

/// Numbers that are read at a time: 128 KiB.
const NUMBERS_PER_READ: u64 = 1 << 14;

/// A part of a column in memory, and which of its numbers could be read.
#[derive(Default)]
struct ReadWindow {
    range: Range<u64>,
    values: Vec<u64>,
    are_read: Vec<bool>,
}

impl ReadWindow {
    /// Moves the window so that it contains `wanted`.
    fn cover(&mut self, column: &ColumnReader, segment: &SegmentPages, wanted: &Range<u64>) {
        if wanted.start >= self.range.start && wanted.end <= self.range.end {
            return;
        }
        let ahead = wanted.start.saturating_add(NUMBERS_PER_READ).min(column.len());
        self.range = wanted.start..wanted.end.max(ahead);
        let len = (self.range.end - self.range.start) as usize;
        self.values.resize(len, 0);
        self.are_read.resize(len, false);
        column.read_salvageable(segment, self.range.clone(), &mut self.values, &mut self.are_read);
    }

    /// A number in the window; `None` if it could not be read.
    fn get(&self, place: u64) -> Option<u64> {
        let place = (place - self.range.start) as usize;
        self.are_read[place].then(|| self.values[place])
    }
}

/// The vertices of a column that can be read, ascending.
pub(super) struct SalvageIds<'a> {
    column: &'a ColumnReader,
    segment: &'a SegmentPages,
    window: ReadWindow,
    /// The place of the next number.
    place: u64,
    last: Option<u64>,
    /// Ranges of vertices that cannot be read; complete once [`Self::next`] returns `None`.
    pub(super) gaps: VertexGaps,
}

impl<'a> SalvageIds<'a> {
    pub(super) fn new(column: &'a ColumnReader, segment: &'a SegmentPages) -> Self {
        Self {
            column,
            segment,
            window: ReadWindow::default(),
            place: 0,
            last: None,
            gaps: VertexGaps::default(),
        }
    }

    /// The next vertex, and its place in the column.
    pub(super) fn next(&mut self) -> Option<(u64, u64)> {
        while self.place < self.column.len() {
            let place = self.place;
            self.place += 1;
            self.window.cover(self.column, self.segment, &(place..place + 1));
            let id = self.window.get(place);
            match id.filter(|id| self.last.is_none_or(|last| last < *id)) {
                Some(id) => {
                    self.gaps.close(Some(id));
                    self.last = Some(id);
                    return Some((id, place));
                }
                None => self.gaps.extend(self.last, None),
            }
        }
        self.gaps.close(None);
        None
    }
}

/// The columns of neighbour lists.
struct ListColumns {
    rows: ColumnReader,
    offsets: ColumnReader,
    ids: ColumnReader,
    numbers: Option<ColumnReader>,
}

impl ListColumns {
    fn open(meta: &ListsMeta, segment: &SegmentPages) -> Option<Self> {
        let open = |meta: &ColumnMeta| ColumnReader::open_damaged(meta, segment);
        let columns = Self {
            rows: open(&meta.rows)?,
            offsets: open(&meta.offsets)?,
            ids: open(&meta.ids)?,
            numbers: match &meta.edges {
                Some(meta) => Some(open(meta)?),
                None => None,
            },
        };
        let fits = columns.rows.len().checked_add(1) == Some(columns.offsets.len())
            && columns.numbers.as_ref().is_none_or(|numbers| numbers.len() == columns.ids.len());
        fits.then_some(columns)
    }
}

/// A window into each of the columns of lists.
#[derive(Default)]
struct ListWindows {
    rows: ReadWindow,
    offsets: ReadWindow,
    ids: ReadWindow,
    numbers: ReadWindow,
}

impl ListWindows {
    /// Where the list of a row begins and ends, if its offsets can be read and make sense.
    fn range(
        &mut self,
        columns: &ListColumns,
        segment: &SegmentPages,
        row: u64,
    ) -> Option<Range<u64>> {
        self.offsets.cover(&columns.offsets, segment, &(row..row + 2));
        let start = self.offsets.get(row)?;
        let end = self.offsets.get(row + 1)?;
        (start <= end && end <= columns.ids.len()).then_some(start..end)
    }

    /// Replaces `list` by the elements of a list that can be read.
    fn read_list(
        &mut self,
        columns: &ListColumns,
        segment: &SegmentPages,
        range: Range<u64>,
        list: &mut Vec<(u64, u64)>,
    ) {
        self.ids.cover(&columns.ids, segment, &range);
        if let Some(column) = &columns.numbers {
            self.numbers.cover(column, segment, &range);
        }
        list.clear();
        list.extend(range.filter_map(|place| {
            let number = if columns.numbers.is_some() { self.numbers.get(place) } else { Some(0) };
            self.ids.get(place).zip(number)
        }));
    }
}

/// Goes through the lists of a damaged segment, vertex by vertex.
pub(super) struct SalvageCursor<'a> {
    segment: &'a SegmentPages,
    /// `None` if the columns cannot be opened.
    columns: Option<ListColumns>,
    windows: ListWindows,
    row: u64,
    last: Option<u64>,
    /// The readable part of the current vertex's list: other vertices, and the numbers of the
    /// edges, or zeros.
    pub(super) list: Vec<(u64, u64)>,
    /// Vertices whose lists are not whole; complete once [`Self::next`] returns `None`.
    pub(super) gaps: VertexGaps,
}

impl<'a> SalvageCursor<'a> {
    pub(super) fn new(meta: &ListsMeta, segment: &'a SegmentPages) -> Self {
        let columns = ListColumns::open(meta, segment);
        let gaps = if columns.is_some() { VertexGaps::default() } else { VertexGaps::all() };
        Self {
            segment,
            columns,
            windows: ListWindows::default(),
            row: 0,
            last: None,
            list: Vec::new(),
            gaps,
        }
    }

    /// The next vertex whose list can be read at least in part.
    pub(super) fn next(&mut self) -> Option<u64> {
        let columns = self.columns.as_ref()?;
        while self.row < columns.rows.len() {
            let row = self.row;
            self.row += 1;
            self.windows.rows.cover(&columns.rows, self.segment, &(row..row + 1));
            let vertex = self.windows.rows.get(row);
            let Some(vertex) = vertex.filter(|vertex| self.last.is_none_or(|last| last < *vertex))
            else {
                self.gaps.extend(self.last, None);
                continue;
            };
            let last = self.last.replace(vertex);
            let Some(range) = self.windows.range(columns, self.segment, row) else {
                self.gaps.extend(last, Some(vertex));
                continue;
            };
            let len = range.end - range.start;
            self.windows.read_list(columns, self.segment, range, &mut self.list);
            if self.list.len() as u64 == len {
                self.gaps.close(Some(vertex));
            } else {
                self.gaps.extend(last, Some(vertex));
            }
            if !self.list.is_empty() {
                return Some(vertex);
            }
        }
        self.gaps.close(None);
        None
    }
}
