//! Neighbour lists in a segment (compressed sparse rows): writing and reading them.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thalweg_io::{Error, Fault, InFile, Result};

use crate::storage::column::{ColumnMeta, ColumnReader, ColumnWriter, NumberCoding};
use crate::storage::grouped_lists::GroupedLists;
use crate::storage::segment::{SegmentPages, SegmentWriter};

/// Neighbour lists as the footer describes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListsMeta {
    /// The vertices that have a list, ascending.
    pub(crate) rows: ColumnMeta,
    /// The place in `ids` where each vertex's list begins, and where the last list ends.
    pub(crate) offsets: ColumnMeta,
    /// The vertices at the other ends, list after list, ascending in each list.
    pub(crate) ids: ColumnMeta,
    /// The numbers of the edges, if edges of the population have numbers.
    pub(crate) edges: Option<ColumnMeta>,
}

impl ListsMeta {
    /// All columns.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &ColumnMeta> {
        [&self.rows, &self.offsets, &self.ids].into_iter().chain(&self.edges)
    }
}

/// Writes lists, vertex by vertex.
pub(crate) struct ListsWriter {
    rows: ColumnWriter,
    offsets: ColumnWriter,
    ids: ColumnWriter,
    edges: Option<ColumnWriter>,
    last: Option<u64>,
    starts: Vec<u64>,
}

impl ListsWriter {
    /// Starts without lists. `numbered`: the edges have numbers.
    pub(crate) fn new(ids: NumberCoding, numbered: bool) -> Self {
        Self {
            rows: ColumnWriter::new(NumberCoding::Packed, true),
            offsets: ColumnWriter::new(NumberCoding::Packed, false),
            ids: ColumnWriter::solid(ids),
            edges: numbered.then(|| ColumnWriter::new(NumberCoding::Packed, false)),
            last: None,
            starts: Vec::new(),
        }
    }

    /// How many edges were written so far.
    pub(crate) fn len(&self) -> u64 {
        self.ids.len()
    }

    /// Appends the list of a vertex. Each call takes a greater vertex than the call before. `ids`
    /// ascend; `edges` are the numbers of the edges, if they have any.
    pub(crate) fn push(
        &mut self,
        segment: &mut SegmentWriter,
        row: u64,
        ids: &[u64],
        edges: &[u64],
    ) -> Result<()> {
        self.begin(segment, row)?;
        self.ids.extend(segment, ids)?;
        match &mut self.edges {
            Some(column) if edges.len() == ids.len() => column.extend(segment, edges),
            None => Ok(()),
            Some(_) => {
                let what =
                    format!("{}: {} numbers for {} edges", segment.name(), edges.len(), ids.len());
                Err(Error::Usage(what.into()))
            }
        }
    }

    /// Appends the lists of many vertices. Each vertex is greater than all those that were appended
    /// before.
    pub(crate) fn push_all(
        &mut self,
        segment: &mut SegmentWriter,
        lists: &GroupedLists,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (lists.keys.first(), lists.keys.last()) else {
            return Ok(());
        };
        let before = self.ids.len();
        self.begin(segment, *first)?;
        self.rows.extend(segment, &lists.keys[1..])?;
        self.last = Some(*last);
        self.starts.clear();
        self.starts
            .extend(lists.ends[..lists.ends.len() - 1].iter().map(|end| before + *end as u64));
        self.offsets.extend(segment, &self.starts)?;
        self.ids.extend(segment, &lists.ids)?;
        match &mut self.edges {
            Some(column) => column.extend(segment, &lists.numbers),
            None => Ok(()),
        }
    }

    fn begin(&mut self, segment: &mut SegmentWriter, row: u64) -> Result<()> {
        if self.last.is_some_and(|last| last >= row) {
            let what = format!(
                "{}: the list of vertex {row} after that of {:?}",
                segment.name(),
                self.last
            );
            return Err(Error::Usage(what.into()));
        }
        self.last = Some(row);
        self.rows.push(segment, row)?;
        self.offsets.push(segment, self.ids.len())
    }

    /// Ends the lists. `None` if there are none.
    pub(crate) fn finish(mut self, segment: &mut SegmentWriter) -> Result<Option<ListsMeta>> {
        if self.last.is_none() {
            return Ok(None);
        }
        self.offsets.push(segment, self.ids.len())?;
        Ok(Some(ListsMeta {
            rows: self.rows.finish(segment)?,
            offsets: self.offsets.finish(segment)?,
            ids: self.ids.finish(segment)?,
            edges: self.edges.map(|edges| edges.finish(segment)).transpose()?,
        }))
    }
}

/// Receives a vertex, its neighbours, and the numbers of its edges.
pub(crate) type VisitList<'a> = dyn FnMut(u64, &[u64], &[u64]) -> Result<()> + 'a;

/// Lists, open for reading.
#[derive(Debug)]
pub(crate) struct ListsReader {
    pub(crate) rows: ColumnReader,
    pub(crate) offsets: ColumnReader,
    pub(crate) ids: ColumnReader,
    pub(crate) edges: Option<ColumnReader>,
}

impl ListsReader {
    pub(crate) fn open(meta: &ListsMeta, segment: &SegmentPages) -> Result<Self> {
        let lists = Self {
            rows: ColumnReader::open(&meta.rows, segment)?,
            offsets: ColumnReader::open(&meta.offsets, segment)?,
            ids: ColumnReader::open(&meta.ids, segment)?,
            edges: meta
                .edges
                .as_ref()
                .map(|edges| ColumnReader::open(edges, segment))
                .transpose()?,
        };
        let rows = lists.rows.len();
        let ids = lists.ids.len();
        if lists.ids.is_range()
            || rows.checked_add(1) != Some(lists.offsets.len())
            || lists.edges.as_ref().is_some_and(|edges| edges.len() != ids)
        {
            let found = format!("{} places of {rows} lists of {ids} ids", lists.offsets.len());
            let fault = Fault::new(
                0,
                found,
                "one more than lists, ids that lie in the file, and as many numbers of edges, \
                 if any",
            );
            return Err(fault.in_file(segment.store().name(), 0, "footer: lists"));
        }
        Ok(lists)
    }

    /// The places of a row's list in the column of ids.
    pub(crate) fn range(&self, segment: &SegmentPages, row: u64) -> Result<Range<u64>> {
        let mut ends = [0; 2];
        self.offsets.read(segment, row..row + 2, &mut ends)?;
        self.checked(segment, ends)
    }

    /// The range between two offsets. Fails if they do not ascend or lie beyond the ids.
    pub(crate) fn checked(
        &self,
        segment: &SegmentPages,
        [start, end]: [u64; 2],
    ) -> Result<Range<u64>> {
        if start > end || end > self.ids.len() {
            let fault = Fault::new(
                0,
                format!("a list from {start} to {end}"),
                format!("a part of {}", self.ids.len()),
            );
            return Err(fault.in_file(segment.store().name(), 0, "lists of neighbours"));
        }
        Ok(start..end)
    }

    /// The places of a vertex's list in the column of ids; `None` if it has no list.
    pub(crate) fn of(&self, segment: &SegmentPages, vertex: u64) -> Result<Option<Range<u64>>> {
        match self.rows.find(segment, vertex)? {
            Ok(row) => self.range(segment, row).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The numbers of the edges between a vertex and another one; 0 for an edge without a number.
    pub(crate) fn between(&self, segment: &SegmentPages, vertex: u64, id: u64) -> Result<Vec<u64>> {
        let Some(range) = self.of(segment, vertex)? else { return Ok(Vec::new()) };
        let found = self.ids.find_in(segment, range, id)?;
        let mut numbers = vec![0; (found.end - found.start) as usize];
        if let Some(edges) = &self.edges {
            edges.read(segment, found, &mut numbers)?;
        }
        Ok(numbers)
    }

    /// Passes all lists to `f` in order: the vertex, its neighbours, the numbers of the edges.
    pub(crate) fn each(&self, segment: &SegmentPages, f: &mut VisitList<'_>) -> Result<()> {
        let mut cursor = self.cursor();
        while let Some(vertex) = cursor.next(segment)? {
            f(vertex, cursor.ids(), cursor.numbers())?;
        }
        Ok(())
    }

    /// A cursor before the first list.
    pub(crate) fn cursor(&self) -> ListsCursor<'_> {
        ListsCursor {
            lists: self,
            first: 0,
            rows: Vec::new(),
            ends: Vec::new(),
            place: 0,
            until: 0,
            base: 0,
            ids: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

/// Rows that a cursor reads at a time.
const ROWS: u64 = 8192;

/// Ids that a cursor reads at a time, unless a single list has more.
const IDS: u64 = 1 << 16;

/// Goes through lists in order.
pub(crate) struct ListsCursor<'a> {
    lists: &'a ListsReader,
    /// The number of the first row in `rows`.
    first: u64,
    rows: Vec<u64>,
    ends: Vec<u64>,
    /// The next row, and the first row whose list is not in memory.
    place: usize,
    until: usize,
    /// The place of the first id in `ids`.
    base: u64,
    ids: Vec<u64>,
    numbers: Vec<u64>,
}

impl ListsCursor<'_> {
    /// Moves to the next list. Returns its vertex.
    pub(crate) fn next(&mut self, segment: &SegmentPages) -> Result<Option<u64>> {
        let lists = self.lists;
        if self.place == self.rows.len() {
            self.first += self.rows.len() as u64;
            let last = (self.first + ROWS).min(lists.rows.len());
            self.rows.resize((last - self.first) as usize, 0);
            self.ends.resize(self.rows.len() + 1, 0);
            (self.place, self.until) = (0, 0);
            if self.rows.is_empty() {
                return Ok(None);
            }
            lists.rows.read(segment, self.first..last, &mut self.rows)?;
            lists.offsets.read(segment, self.first..last + 1, &mut self.ends)?;
            self.ends
                .windows(2)
                .try_for_each(|pair| lists.checked(segment, [pair[0], pair[1]]).map(drop))?;
        }
        if self.place == self.until {
            let start = self.ends[self.place];
            let fits = self.ends[self.place + 1..].partition_point(|end| end - start <= IDS).max(1);
            self.until = self.place + fits;
            let range = start..self.ends[self.until];
            self.ids.resize((range.end - range.start) as usize, 0);
            lists.ids.read(segment, range.clone(), &mut self.ids)?;
            if let Some(edges) = &lists.edges {
                self.numbers.resize(self.ids.len(), 0);
                edges.read(segment, range, &mut self.numbers)?;
            }
            self.base = start;
        }
        self.place += 1;
        Ok(Some(self.rows[self.place - 1]))
    }

    /// The neighbours in the current list.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids[self.held()]
    }

    /// The numbers of the edges of the current list; empty if they have none.
    pub(crate) fn numbers(&self) -> &[u64] {
        self.numbers.get(self.held()).unwrap_or_default()
    }

    fn held(&self) -> Range<usize> {
        let end = |place: usize| (self.ends[place] - self.base) as usize;
        end(self.place - 1)..end(self.place)
    }
}
