//! Lists and ids of a damaged segment, as far as they can be read, in order.

use std::ops::{Range, RangeInclusive};

use crate::storage::column::{ColumnMeta, ColumnReader};
use crate::storage::footer::Footer;
use crate::storage::lists::ListsMeta;
use crate::storage::segment::SegmentPages;

/// A segment that is there.
pub(super) struct SalvagedSegment {
    pub(super) file: String,
    pub(super) segment: SegmentPages,
    pub(super) footer: Footer,
}

/// Ranges of vertices, ascending, of which something cannot be read.
#[derive(Debug, Clone, Default)]
pub(super) struct VertexGaps {
    pub(super) ranges: Vec<RangeInclusive<u64>>,
    /// Where one began that did not end yet, and where it ends, if that is known.
    open: Option<(u64, Option<u64>)>,
}

impl VertexGaps {
    /// All vertices.
    pub(super) fn all() -> Self {
        Self { ranges: vec![0..=u64::MAX], open: None }
    }

    /// Something is missing of a vertex or, if it is not known which, of one after `last`.
    fn miss(&mut self, last: Option<u64>, vertex: Option<u64>) {
        let from = vertex.unwrap_or_else(|| last.map_or(0, |last| last.saturating_add(1)));
        self.open.get_or_insert((from, None)).1 = vertex;
    }

    /// Nothing is missing of `next`; `None`: nothing comes any more.
    fn end(&mut self, next: Option<u64>) {
        if let Some((from, to)) = self.open.take() {
            let to = to.unwrap_or_else(|| next.map_or(u64::MAX, |next| next.saturating_sub(1)));
            self.ranges.push(from..=to.max(from));
        }
    }

    /// Adds others.
    pub(super) fn add(&mut self, others: &Self) {
        self.ranges.extend(others.ranges.iter().cloned());
        self.ranges.sort_unstable_by_key(|range| *range.start());
        let mut all: Vec<RangeInclusive<u64>> = Vec::with_capacity(self.ranges.len());
        for range in self.ranges.drain(..) {
            match all.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => all.push(range),
            }
        }
        self.ranges = all;
    }

    pub(super) fn has(&self, vertex: u64) -> bool {
        let next = self.ranges.partition_point(|range| *range.start() <= vertex);
        next > 0 && self.ranges[next - 1].contains(&vertex)
    }
}

/// Numbers that are read at a time.
const PIECE: u64 = 1 << 14;

/// A part of a column that is held, and which of its numbers could be read.
#[derive(Default)]
struct ReadWindow {
    range: Range<u64>,
    values: Vec<u64>,
    are_read: Vec<bool>,
}

impl ReadWindow {
    /// Holds some numbers at least.
    fn hold(&mut self, column: &ColumnReader, segment: &SegmentPages, wanted: &Range<u64>) {
        if wanted.start < self.range.start || wanted.end > self.range.end {
            self.range =
                wanted.start..wanted.end.max(wanted.start.saturating_add(PIECE).min(column.len()));
            let len = (self.range.end - self.range.start) as usize;
            self.values.resize(len, 0);
            self.are_read.resize(len, false);
            column.read_left(segment, self.range.clone(), &mut self.values, &mut self.are_read);
        }
    }

    /// One of those that are held.
    fn get(&self, place: u64) -> Option<u64> {
        let place = (place - self.range.start) as usize;
        self.are_read[place].then(|| self.values[place])
    }
}

/// Vertices of a column, ascending.
pub(super) struct SalvageIds<'a> {
    column: &'a ColumnReader,
    segment: &'a SegmentPages,
    held: ReadWindow,
    /// The place of the next one.
    place: u64,
    last: Option<u64>,
    pub(super) holes: VertexGaps,
}

impl<'a> SalvageIds<'a> {
    pub(super) fn new(column: &'a ColumnReader, segment: &'a SegmentPages) -> Self {
        Self {
            column,
            segment,
            held: ReadWindow::default(),
            place: 0,
            last: None,
            holes: VertexGaps::default(),
        }
    }

    /// The next one, and its place.
    pub(super) fn next(&mut self) -> Option<(u64, u64)> {
        while self.place < self.column.len() {
            let place = self.place;
            self.place += 1;
            self.held.hold(self.column, self.segment, &(place..place + 1));
            match self.held.get(place).filter(|id| self.last.is_none_or(|last| last < *id)) {
                Some(id) => {
                    self.holes.end(Some(id));
                    self.last = Some(id);
                    return Some((id, place));
                }
                None => self.holes.miss(self.last, None),
            }
        }
        self.holes.end(None);
        None
    }
}

/// Columns of lists.
struct ListColumns {
    rows: ColumnReader,
    offsets: ColumnReader,
    ids: ColumnReader,
    numbers: Option<ColumnReader>,
}

impl ListColumns {
    fn open(meta: &ListsMeta, segment: &SegmentPages) -> Option<Self> {
        let open = |meta: &ColumnMeta| ColumnReader::open_left(meta, segment);
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

/// A way through lists, vertex after vertex.
pub(super) struct SalvageCursor<'a> {
    segment: &'a SegmentPages,
    /// `None` if nothing of them can be read.
    columns: Option<ListColumns>,
    held: [ReadWindow; 4],
    row: u64,
    last: Option<u64>,
    /// What could be read of the list of the vertex that came last: other vertices, and the numbers
    /// of the edges, or zeros.
    pub(super) list: Vec<(u64, u64)>,
    /// Vertices with lists that are not whole.
    pub(super) holes: VertexGaps,
}

impl<'a> SalvageCursor<'a> {
    pub(super) fn new(meta: &ListsMeta, segment: &'a SegmentPages) -> Self {
        let columns = ListColumns::open(meta, segment);
        let holes = if columns.is_some() { VertexGaps::default() } else { VertexGaps::all() };
        Self {
            segment,
            columns,
            held: Default::default(),
            row: 0,
            last: None,
            list: Vec::new(),
            holes,
        }
    }

    /// The next vertex of whose list anything is left.
    pub(super) fn next(&mut self) -> Option<u64> {
        let columns = self.columns.as_ref()?;
        let [rows, offsets, ids, numbers] = &mut self.held;
        while self.row < columns.rows.len() {
            let row = self.row;
            self.row += 1;
            rows.hold(&columns.rows, self.segment, &(row..row + 1));
            offsets.hold(&columns.offsets, self.segment, &(row..row + 2));
            let Some(vertex) =
                rows.get(row).filter(|vertex| self.last.is_none_or(|last| last < *vertex))
            else {
                self.holes.miss(self.last, None);
                continue;
            };
            let (last, range) =
                (self.last.replace(vertex), (offsets.get(row), offsets.get(row + 1)));
            let (Some(start), Some(end)) = range else {
                self.holes.miss(last, Some(vertex));
                continue;
            };
            if start > end || end > columns.ids.len() {
                self.holes.miss(last, Some(vertex));
                continue;
            }
            ids.hold(&columns.ids, self.segment, &(start..end));
            if let Some(column) = &columns.numbers {
                numbers.hold(column, self.segment, &(start..end));
            }
            self.list.clear();
            self.list.extend((start..end).filter_map(|place| {
                let number = if columns.numbers.is_some() { numbers.get(place) } else { Some(0) };
                ids.get(place).zip(number)
            }));
            if self.list.len() as u64 == end - start {
                self.holes.end(Some(vertex));
            } else {
                self.holes.miss(last, Some(vertex));
            }
            if !self.list.is_empty() {
                return Some(vertex);
            }
        }
        self.holes.end(None);
        None
    }
}
