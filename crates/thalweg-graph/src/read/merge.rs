//! Merging all vertices, lists or attributes of a network, in order, from its segments and the log.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_io::control::Control;
use thalweg_io::{Error, Result};

use crate::read::memtable::{ListChange, Memtable};
use crate::storage::column::ColumnReader;
use crate::storage::lists::ListsCursor;
use crate::storage::schema::Side;
use crate::storage::segment::{Ahead, announce};
use crate::storage::segment_reader::{Section, SegmentReader, announce_indexes};

/// Ids that are read at a time.
pub(crate) const BATCH: usize = 8192;

/// Reads the ids of a column in order.
struct ColumnIds<'a> {
    reader: &'a SegmentReader,
    column: &'a ColumnReader,
    /// The age of the segment, and whether the column lists vertices that exist.
    record: (usize, bool),
    next: u64,
    end: u64,
    held: Vec<u64>,
    place: usize,
}

impl ColumnIds<'_> {
    fn peek(&mut self) -> Result<Option<u64>> {
        if self.place == self.held.len() {
            if self.next >= self.end {
                return Ok(None);
            }
            let last = (self.next + BATCH as u64).min(self.end);
            self.held.resize((last - self.next) as usize, 0);
            self.column.read(&self.reader.segment, self.next..last, &mut self.held)?;
            (self.next, self.place) = (last, 0);
        }
        Ok(Some(self.held[self.place]))
    }
}

/// Announces the pages in which vertices of a type are looked up, with those of their attributes,
/// in segments that are far away. The columns are opened.
pub(crate) fn announce_vertices<'a>(
    readers: &'a [Arc<SegmentReader>],
    vertex_type: usize,
    ids: &[u64],
) -> Result<Ahead<'a>> {
    let _indexes = announce_indexes(readers, |section| section == Section::Vertices(vertex_type))?;
    let mut wanted = Vec::new();
    for reader in readers.iter().filter(|reader| reader.segment.cached().is_some()) {
        let Some(vertices) = reader.vertices(vertex_type)? else { continue };
        let table = vertices.table.as_ref().map(|table| &table.rows);
        let columns = vertices.added.iter().chain(&vertices.removed).chain(table);
        for column in columns {
            let pages = ids.iter().filter_map(|id| column.page_of(*id)).collect();
            wanted.push((&reader.segment, pages));
        }
    }
    announce(wanted)
}

/// Counts the steps of a merge, and checks now and then whether the merge is cancelled. A column of
/// consecutive numbers may have more of them than anybody waits for.
struct StepCounter {
    control: Control,
    steps: usize,
}

impl StepCounter {
    fn new(control: &Control) -> Self {
        Self { control: control.clone(), steps: 0 }
    }

    fn step(&mut self) -> Result<()> {
        self.steps = (self.steps + 1) % BATCH;
        if self.steps == 0 && self.control.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Merges the vertices of a type, ascending.
pub(crate) struct MergedVertices<'a> {
    steps: StepCounter,
    columns: Vec<ColumnIds<'a>>,
    memtable: Vec<(u64, bool)>,
    /// The next element of `memtable`.
    place: usize,
    /// The pages of the ids, where they have to be waited for.
    _ahead: Ahead<'a>,
}

impl<'a> MergedVertices<'a> {
    pub(crate) fn new(
        readers: &'a [Arc<SegmentReader>],
        memtable: Option<&'a Memtable>,
        vertex_type: usize,
        ids: RangeInclusive<u64>,
        control: &Control,
    ) -> Result<Self> {
        let mut columns = Vec::new();
        let ends = [*ids.start(), *ids.end()];
        let _ends = announce_vertices(readers, vertex_type, &ends)?;
        for (age, reader) in readers.iter().enumerate() {
            let Some(vertices) = reader.vertices(vertex_type)? else { continue };
            for (column, exists) in [(&vertices.added, true), (&vertices.removed, false)] {
                let Some(column) = column else { continue };
                let next =
                    column.find(&reader.segment, *ids.start())?.unwrap_or_else(|place| place);
                let end = match *ids.end() {
                    u64::MAX => column.len(),
                    end => column
                        .find(&reader.segment, end)?
                        .map_or_else(|place| place, |place| place + 1),
                };
                columns.push(ColumnIds {
                    reader,
                    column,
                    record: (age, exists),
                    next,
                    end,
                    held: Vec::new(),
                    place: 0,
                });
            }
        }
        let memtable = memtable
            .and_then(|memtable| memtable.vertices(vertex_type))
            .map_or_else(Vec::new, |changes| {
                changes.exists.range(ids).map(|(id, exists)| (*id, *exists)).collect()
            });
        let pages = |ids: &ColumnIds<'a>| {
            let spans = ids.column.spans(ids.next..ids.end);
            (&ids.reader.segment, spans.map(|span| span.pages).collect())
        };
        let far = columns.iter().filter(|ids| ids.reader.segment.cached().is_some());
        let _ahead = announce(far.map(pages))?;
        Ok(Self { steps: StepCounter::new(control), columns, memtable, place: 0, _ahead })
    }

    /// Merges the ids that are in any of some columns.
    pub(crate) fn of_columns(
        reader: &'a SegmentReader,
        columns: &[&'a ColumnReader],
        control: &Control,
    ) -> Self {
        let ids = |column: &&'a ColumnReader| ColumnIds {
            reader,
            column,
            record: (0, true),
            next: 0,
            end: column.len(),
            held: Vec::new(),
            place: 0,
        };
        Self {
            steps: StepCounter::new(control),
            columns: columns.iter().map(ids).collect(),
            memtable: Vec::new(),
            place: 0,
            _ahead: Ahead::default(),
        }
    }

    /// Replaces `batch` by the next ids. Returns false if there are no more.
    pub(crate) fn next(&mut self, batch: &mut Vec<u64>) -> Result<bool> {
        batch.clear();
        self.steps.control.check()?;
        if let ([only], true) = (self.columns.as_mut_slice(), self.place == self.memtable.len()) {
            if only.record.1 && only.peek()?.is_some() {
                batch.extend_from_slice(&only.held[only.place..]);
                only.place = only.held.len();
            }
            return Ok(!batch.is_empty());
        }
        while batch.len() < BATCH {
            let Some(verdict) = self.step()? else { break };
            batch.extend(verdict.exists.then_some(verdict.id));
        }
        Ok(!batch.is_empty())
    }

    /// The next vertex that has a record, and what its newest record says.
    pub(crate) fn step(&mut self) -> Result<Option<VertexPresence>> {
        self.steps.step()?;
        let mut least: Option<u64> = self.memtable.get(self.place).map(|(id, _)| *id);
        for column in &mut self.columns {
            let id = column.peek()?;
            least = least.into_iter().chain(id).min();
        }
        let Some(id) = least else { return Ok(None) };
        let (mut says, mut was_removed): (Option<(usize, bool)>, bool) = (None, false);
        for column in &mut self.columns {
            if column.peek()? == Some(id) {
                column.place += 1;
                was_removed |= !column.record.1;
                says = says.max(Some(column.record));
            }
        }
        let recently = self
            .memtable
            .get(self.place)
            .filter(|(known, _)| *known == id)
            .map(|(_, exists)| *exists);
        self.place += usize::from(recently.is_some());
        let exists = recently.or(says.map(|(_, exists)| exists)).unwrap_or(false);
        Ok(Some(VertexPresence {
            id,
            exists,
            is_readded: exists && (was_removed || recently.is_some()),
        }))
    }
}

/// The state of a vertex according to its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VertexPresence {
    pub(crate) id: u64,
    pub(crate) exists: bool,
    /// Whether an older segment may hold attributes of an earlier vertex with this id.
    pub(crate) is_readded: bool,
}

/// Reads the current attributes of a type's vertices, by id.
pub(crate) struct MergedAttributes<'a> {
    steps: StepCounter,
    readers: &'a [Arc<SegmentReader>],
    memtable: Option<&'a Memtable>,
    vertex_type: usize,
    columns: Vec<ColumnIds<'a>>,
    /// Ids with attributes in the log, descending.
    described: Vec<u64>,
    /// For each segment: the batch that was read last, with its number.
    held: Vec<Option<(usize, Arc<RecordBatch>)>>,
}

impl<'a> MergedAttributes<'a> {
    pub(crate) fn new(
        readers: &'a [Arc<SegmentReader>],
        memtable: Option<&'a Memtable>,
        vertex_type: usize,
        control: &Control,
    ) -> Result<Self> {
        let mut columns = Vec::new();
        for (age, reader) in readers.iter().enumerate() {
            let Some(table) =
                reader.vertices(vertex_type)?.and_then(|vertices| vertices.table.as_ref())
            else {
                continue;
            };
            let column = &table.rows;
            let end = table.rows.len();
            columns.push(ColumnIds {
                reader,
                column,
                record: (age, true),
                next: 0,
                end,
                held: Vec::new(),
                place: 0,
            });
        }
        let changes = memtable.and_then(|memtable| memtable.vertices(vertex_type));
        let described =
            changes.map_or_else(Vec::new, |changes| changes.rows.keys().rev().copied().collect());
        Ok(Self {
            steps: StepCounter::new(control),
            readers,
            memtable,
            vertex_type,
            columns,
            described,
            held: vec![None; readers.len()],
        })
    }

    /// The next vertex that has attributes, the batch that holds them, and the row in it.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Arc<RecordBatch>, usize)>> {
        loop {
            self.steps.step()?;
            let mut least = self.described.last().copied();
            for column in &mut self.columns {
                least = least.into_iter().chain(column.peek()?).min();
            }
            let Some(id) = least else { return Ok(None) };
            self.described.pop_if(|known| *known == id);
            for column in &mut self.columns {
                if column.peek()? == Some(id) {
                    column.place += 1;
                }
            }
            if let Some((batch, row)) = self.of(id)? {
                return Ok(Some((id, batch, row)));
            }
        }
    }

    /// The attributes of a vertex.
    pub(crate) fn of(&mut self, id: u64) -> Result<Option<(Arc<RecordBatch>, usize)>> {
        if let Some(changes) =
            self.memtable.and_then(|memtable| memtable.vertices(self.vertex_type))
        {
            if let Some(row) = changes.rows.get(&id) {
                return Ok(Some(row.clone()));
            }
            // The segments hold attributes of an earlier vertex, which was removed.
            if changes.exists.contains_key(&id) {
                return Ok(None);
            }
        }
        for (age, reader) in self.readers.iter().enumerate().rev() {
            let Some(vertices) = reader.vertices(self.vertex_type)? else { continue };
            if let Some(table) = &vertices.table
                && let Ok(row) = table.rows.find(&reader.segment, id)?
            {
                let (number, row) = table.place(row);
                if let Some((known, batch)) = &self.held[age]
                    && *known == number
                {
                    return Ok(Some((batch.clone(), row)));
                }
                let batch = Arc::new(table.batch(&reader.segment, number)?);
                self.held[age] = Some((number, batch.clone()));
                return Ok(Some((batch, row)));
            }
            if let Some(removed) = &vertices.removed
                && removed.find(&reader.segment, id)?.is_ok()
            {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// A cursor, and the vertex of its current list.
struct ListStream<'a> {
    reader: &'a SegmentReader,
    cursor: ListsCursor<'a>,
    is_added: bool,
    vertex: Option<u64>,
}

/// Merges the changes that segments, and the log if it is given, make to the lists of a population
/// on one side, vertex by vertex.
pub(crate) struct MergedLists<'a> {
    /// The oldest first.
    streams: Vec<ListStream<'a>>,
    memtable: Vec<(u64, &'a ListChange)>,
    place: usize,
    /// The change that the segments and the log together make to the list of the current vertex.
    pub(crate) change: ListChange,
}

impl<'a> MergedLists<'a> {
    pub(crate) fn new(
        readers: &'a [Arc<SegmentReader>],
        memtable: Option<&'a Memtable>,
        population: usize,
        side: Side,
    ) -> Result<Self> {
        let mut streams = Vec::new();
        for reader in readers {
            let Some(edges) = reader.edges(population, side)? else { continue };
            // A segment removes edges of older segments, then adds its own.
            for (lists, is_added) in [(&edges.removed, false), (&edges.added, true)] {
                let Some(lists) = lists else { continue };
                let mut cursor = lists.cursor();
                let vertex = cursor.next(&reader.segment)?;
                streams.push(ListStream { reader, cursor, is_added, vertex });
            }
        }
        let changes = memtable.and_then(|memtable| memtable.edges(population));
        let mut memtable: Vec<(u64, &ListChange)> = changes.map_or_else(Vec::new, |changes| {
            changes.side(side).iter().map(|(id, change)| (*id, change)).collect()
        });
        memtable.sort_unstable_by_key(|(id, _)| *id);
        Ok(Self { streams, memtable, place: 0, change: ListChange::default() })
    }

    /// Moves to the next vertex. The change of its list is then in [`MergedLists::change`].
    pub(crate) fn next(&mut self) -> Result<Option<u64>> {
        let memtable = self.memtable.get(self.place).map(|(id, _)| *id);
        let Some(vertex) =
            self.streams.iter().filter_map(|stream| stream.vertex).chain(memtable).min()
        else {
            return Ok(None);
        };
        self.change.added.clear();
        self.change.removed.clear();
        let mut ends = Vec::new();
        for stream in self.streams.iter_mut().filter(|stream| stream.vertex == Some(vertex)) {
            let ids = stream.cursor.ids();
            let numbers = stream.cursor.numbers();
            ends.clear();
            if numbers.is_empty() {
                ends.extend(ids.iter().map(|id| (*id, 0)));
            } else {
                ends.extend(ids.iter().copied().zip(numbers.iter().copied()));
            }
            if stream.is_added {
                self.change.add(&ends);
            } else {
                self.change.remove(&ends);
            }
            stream.vertex = stream.cursor.next(&stream.reader.segment)?;
        }
        if memtable == Some(vertex) {
            let change = self.memtable[self.place].1;
            self.change.remove(&change.removed);
            self.change.add(&change.added);
            self.place += 1;
        }
        Ok(Some(vertex))
    }
}
