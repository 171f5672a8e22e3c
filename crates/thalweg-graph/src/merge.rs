//! All of a network's vertices or lists in order, out of the levels and the log together.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::RecordBatch;
use thalweg_io::Result;

use super::column::Column;
use super::level::{Cursor, Level, Side};
use super::network::{Network, State};
use super::recent::{Change, Recent};

/// Ids that are shown at a time.
pub(super) const BATCH: usize = 8192;

/// Ids of a column, one after the other.
struct Ids<'a> {
    level: &'a Level,
    column: &'a Column,
    /// The age of what they say, and whether they say that vertices are there.
    says: (usize, bool),
    next: u64,
    end: u64,
    held: Vec<u64>,
    place: usize,
}

impl Ids<'_> {
    fn peek(&mut self) -> Result<Option<u64>> {
        if self.place == self.held.len() {
            if self.next >= self.end {
                return Ok(None);
            }
            let last = (self.next + BATCH as u64).min(self.end);
            self.held.resize((last - self.next) as usize, 0);
            self.column.read(&self.level.segment, self.next..last, &mut self.held)?;
            (self.next, self.place) = (last, 0);
        }
        Ok(Some(self.held[self.place]))
    }
}

/// Vertices of a type, ascending.
pub(super) struct Vertices<'a> {
    columns: Vec<Ids<'a>>,
    recent: Vec<(u64, bool)>,
    /// How far in those.
    place: usize,
}

/// Vertices of a type with ids in a range.
pub(super) fn vertices(
    network: &Network,
    vertex_type: usize,
    ids: RangeInclusive<u64>,
) -> Result<Vertices<'_>> {
    let State { levels, recent, .. } = &network.state;
    Vertices::new(levels, Some(recent), vertex_type, ids)
}

impl<'a> Vertices<'a> {
    pub(super) fn new(
        levels: &'a [Arc<Level>],
        recent: Option<&'a Recent>,
        vertex_type: usize,
        ids: RangeInclusive<u64>,
    ) -> Result<Self> {
        let mut columns = Vec::new();
        for (age, level) in levels.iter().enumerate() {
            let Some(vertices) = level.vertices(vertex_type)? else { continue };
            for (column, is_there) in [(&vertices.added, true), (&vertices.removed, false)] {
                let Some(column) = column else { continue };
                let next = column.find(&level.segment, *ids.start())?.unwrap_or_else(|place| place);
                let end = match *ids.end() {
                    u64::MAX => column.len(),
                    end => column
                        .find(&level.segment, end)?
                        .map_or_else(|place| place, |place| place + 1),
                };
                columns.push(Ids {
                    level,
                    column,
                    says: (age, is_there),
                    next,
                    end,
                    held: Vec::new(),
                    place: 0,
                });
            }
        }
        let recent = recent
            .and_then(|recent| recent.vertices(vertex_type))
            .map_or_else(Vec::new, |changes| {
                changes.is_there.range(ids).map(|(id, is_there)| (*id, *is_there)).collect()
            });
        Ok(Self { columns, recent, place: 0 })
    }

    /// Ids that are in any of some columns.
    pub(super) fn of(level: &'a Level, columns: &[&'a Column]) -> Self {
        let ids = |column: &&'a Column| Ids {
            level,
            column,
            says: (0, true),
            next: 0,
            end: column.len(),
            held: Vec::new(),
            place: 0,
        };
        Self { columns: columns.iter().map(ids).collect(), recent: Vec::new(), place: 0 }
    }

    /// Replaces `batch` by the next ids; false if there are no more.
    pub(super) fn next(&mut self, batch: &mut Vec<u64>) -> Result<bool> {
        batch.clear();
        if let ([only], true) = (self.columns.as_mut_slice(), self.place == self.recent.len()) {
            if only.says.1 && only.peek()?.is_some() {
                batch.extend_from_slice(&only.held[only.place..]);
                only.place = only.held.len();
            }
            return Ok(!batch.is_empty());
        }
        while batch.len() < BATCH {
            let Some(verdict) = self.step()? else { break };
            batch.extend(verdict.is_there.then_some(verdict.id));
        }
        Ok(!batch.is_empty())
    }

    /// The least id that anything is said of, and what was said last.
    pub(super) fn step(&mut self) -> Result<Option<Verdict>> {
        let mut least: Option<u64> = self.recent.get(self.place).map(|(id, _)| *id);
        for column in &mut self.columns {
            let id = column.peek()?;
            least = least.into_iter().chain(id).min();
        }
        let Some(id) = least else { return Ok(None) };
        let (mut says, mut was_removed): (Option<(usize, bool)>, bool) = (None, false);
        for column in &mut self.columns {
            if column.peek()? == Some(id) {
                column.place += 1;
                was_removed |= !column.says.1;
                says = says.max(Some(column.says));
            }
        }
        let recently = self
            .recent
            .get(self.place)
            .filter(|(known, _)| *known == id)
            .map(|(_, is_there)| *is_there);
        self.place += usize::from(recently.is_some());
        let is_there = recently.or(says.map(|(_, is_there)| is_there)).unwrap_or(false);
        Ok(Some(Verdict {
            id,
            is_there,
            is_reborn: is_there && (was_removed || recently.is_some()),
        }))
    }
}

/// What is said of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) id: u64,
    pub(super) is_there: bool,
    /// Whether it may have been there before, with attributes that are not its own.
    pub(super) is_reborn: bool,
}

/// Attributes of a type's vertices, by id: those that count.
pub(super) struct Rows<'a> {
    levels: &'a [Arc<Level>],
    recent: Option<&'a Recent>,
    vertex_type: usize,
    columns: Vec<Ids<'a>>,
    /// Ids that the log describes, the last first.
    described: Vec<u64>,
    /// A batch of each level.
    held: Vec<Option<(usize, Arc<RecordBatch>)>>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        levels: &'a [Arc<Level>],
        recent: Option<&'a Recent>,
        vertex_type: usize,
    ) -> Result<Self> {
        let mut columns = Vec::new();
        for (age, level) in levels.iter().enumerate() {
            let Some(table) =
                level.vertices(vertex_type)?.and_then(|vertices| vertices.table.as_ref())
            else {
                continue;
            };
            let (column, end) = (&table.rows, table.rows.len());
            columns.push(Ids {
                level,
                column,
                says: (age, true),
                next: 0,
                end,
                held: Vec::new(),
                place: 0,
            });
        }
        let changes = recent.and_then(|recent| recent.vertices(vertex_type));
        let described =
            changes.map_or_else(Vec::new, |changes| changes.rows.keys().rev().copied().collect());
        Ok(Self { levels, recent, vertex_type, columns, described, held: vec![None; levels.len()] })
    }

    /// The next vertex that has attributes, and where.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Arc<RecordBatch>, usize)>> {
        loop {
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
    pub(super) fn of(&mut self, id: u64) -> Result<Option<(Arc<RecordBatch>, usize)>> {
        if let Some(changes) = self.recent.and_then(|recent| recent.vertices(self.vertex_type)) {
            if let Some(row) = changes.rows.get(&id) {
                return Ok(Some(row.clone()));
            }
            // What segments say is of another vertex, that went.
            if changes.is_there.contains_key(&id) {
                return Ok(None);
            }
        }
        for (age, level) in self.levels.iter().enumerate().rev() {
            let Some(vertices) = level.vertices(self.vertex_type)? else { continue };
            if let Some(table) = &vertices.table
                && let Ok(row) = table.rows.find(&level.segment, id)?
            {
                let (number, row) = table.place(row);
                if let Some((known, batch)) = &self.held[age]
                    && *known == number
                {
                    return Ok(Some((batch.clone(), row)));
                }
                let batch = Arc::new(table.batch(&level.segment, number)?);
                self.held[age] = Some((number, batch.clone()));
                return Ok(Some((batch, row)));
            }
            if let Some(removed) = &vertices.removed
                && removed.find(&level.segment, id)?.is_ok()
            {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// A cursor, and the vertex that it stands at.
struct Stream<'a> {
    level: &'a Level,
    cursor: Cursor<'a>,
    is_added: bool,
    vertex: Option<u64>,
}

/// What levels, and the log if it is given, say of the lists of a population on one side, vertex
/// after vertex.
pub(super) struct Lists<'a> {
    /// By age.
    streams: Vec<Stream<'a>>,
    recent: Vec<(u64, &'a Change)>,
    place: usize,
    /// The vertex's change, from what was before the first of the levels.
    pub(super) change: Change,
}

impl<'a> Lists<'a> {
    pub(super) fn new(
        levels: &'a [Arc<Level>],
        recent: Option<&'a Recent>,
        population: usize,
        side: Side,
    ) -> Result<Self> {
        let mut streams = Vec::new();
        for level in levels {
            let Some(edges) = level.edges(population, side)? else { continue };
            // What goes in a level is what was there before it.
            for (lists, is_added) in [(&edges.removed, false), (&edges.added, true)] {
                let Some(lists) = lists else { continue };
                let mut cursor = lists.cursor();
                let vertex = cursor.next(&level.segment)?;
                streams.push(Stream { level, cursor, is_added, vertex });
            }
        }
        let changes = recent.and_then(|recent| recent.edges(population));
        let mut recent: Vec<(u64, &Change)> = changes.map_or_else(Vec::new, |changes| {
            changes.side(side).iter().map(|(id, change)| (*id, change)).collect()
        });
        recent.sort_unstable_by_key(|(id, _)| *id);
        Ok(Self { streams, recent, place: 0, change: Change::default() })
    }

    /// The next vertex; its list's change is in [`Lists::change`].
    pub(super) fn next(&mut self) -> Result<Option<u64>> {
        let recent = self.recent.get(self.place).map(|(id, _)| *id);
        let Some(vertex) =
            self.streams.iter().filter_map(|stream| stream.vertex).chain(recent).min()
        else {
            return Ok(None);
        };
        self.change.added.clear();
        self.change.removed.clear();
        let mut ends = Vec::new();
        for stream in self.streams.iter_mut().filter(|stream| stream.vertex == Some(vertex)) {
            let (ids, numbers) = (stream.cursor.ids(), stream.cursor.numbers());
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
            stream.vertex = stream.cursor.next(&stream.level.segment)?;
        }
        if recent == Some(vertex) {
            let change = self.recent[self.place].1;
            self.change.remove(&change.removed);
            self.change.add(&change.added);
            self.place += 1;
        }
        Ok(Some(vertex))
    }
}
