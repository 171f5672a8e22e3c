//! Vertices of a type.

use std::collections::BTreeSet;

use thalweg_io::Result;

use super::left::{Holes, Ids, Left};
use super::rows::{Picked, row_of};
use super::{Kept, Lost, Repair};
use crate::column::{Coding, Column, ColumnWriter};
use crate::level::{Level, Side, VertexPart};
use crate::segment::SegmentWriter;
use crate::table::Table;

/// What a column says of its vertices; in the order in which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Removed,
    Added,
    Described,
}

/// A column that says something of vertices.
struct Source<'a> {
    level: &'a Left,
    says: Says,
    column: Option<Column>,
    table: Option<Table>,
    /// How many vertices it should have.
    len: u64,
}

/// Vertices that cannot be read of a column.
#[derive(Default)]
struct Missing {
    holes: Holes,
    count: u64,
}

/// Those missing of a column of so many.
fn missing(ids: Option<Ids<'_>>, len: u64) -> Missing {
    let Some(mut ids) = ids else { return Missing { holes: Holes::all(), count: len } };
    let mut count = len;
    while ids.next().is_some() {
        count -= 1;
    }
    Missing { holes: ids.holes, count }
}

impl Source<'_> {
    fn column(&self) -> Option<&Column> {
        self.column.as_ref().or(self.table.as_ref().map(|table| &table.rows))
    }
}

impl Repair<'_> {
    fn sources(&self, vertex_type: usize) -> Vec<Source<'_>> {
        let mut sources = Vec::new();
        for (_, level) in self.levels() {
            for part in level.footer.vertices.iter().filter(|part| part.vertex_type == vertex_type)
            {
                for (says, meta) in [(Says::Removed, &part.removed), (Says::Added, &part.added)] {
                    let Some(meta) = meta else { continue };
                    let column = Column::open_left(meta, &level.segment);
                    sources.push(Source { level, says, column, table: None, len: meta.len() });
                }
                if let Some(meta) = &part.table {
                    let table = Table::open_left(meta, &level.segment);
                    sources.push(Source {
                        level,
                        says: Says::Described,
                        column: None,
                        table,
                        len: meta.len(),
                    });
                }
            }
        }
        sources
    }

    /// Writes the vertices of a type and their attributes; `written` are the edges of the new
    /// network.
    pub(super) fn vertices(
        &self,
        segment: &mut SegmentWriter,
        written: &Level,
        vertex_type: usize,
    ) -> Result<(VertexPart, Kept)> {
        let known = &self.old.types[vertex_type];
        let sources = self.sources(vertex_type);
        let mut streams: Vec<_> = sources
            .iter()
            .map(|source| {
                let open = || source.column().map(|column| Ids::new(column, &source.level.segment));
                let mut ids = open();
                let next = ids.as_mut().and_then(Ids::next);
                // Attributes that an older segment has may not be those that this one had in its
                // place.
                let unsure = if source.says == Says::Described {
                    missing(open(), source.len)
                } else {
                    Missing::default()
                };
                (source, ids, next, None, unsure)
            })
            .collect();
        let mut ends = Vec::new();
        for part in &written.footer.edges {
            let edges = &self.old.edges[part.population];
            let here = if part.side == Side::Out { edges.source } else { edges.target };
            let lists =
                written.edges(part.population, part.side)?.and_then(|edges| edges.added.as_ref());
            if let Some(lists) = lists.filter(|_| here == vertex_type) {
                let mut ids = Ids::new(&lists.rows, &written.segment);
                ends.push((ids.next(), ids));
            }
        }
        let logged = self.recent.vertices(vertex_type);
        let of_log = |logged: &super::super::recent::VertexChanges| -> BTreeSet<u64> {
            logged.is_there.keys().chain(logged.rows.keys()).copied().collect()
        };
        let mut of_log = logged.map(of_log).unwrap_or_default().into_iter().peekable();
        let mut added = ColumnWriter::new(Coding::Packed, true);
        let mut rows =
            (!known.attributes.fields().is_empty()).then(|| Picked::new(&known.attributes));
        let mut attributes_lost = streams.iter().map(|stream| stream.4.count).sum::<u64>();
        let (mut restored, mut seen) = (0, 0_u64);
        loop {
            let least = streams
                .iter()
                .filter_map(|stream| stream.2)
                .chain(ends.iter().filter_map(|end| end.0));
            let Some(id) = least.map(|(id, _)| id).chain(of_log.peek().copied()).min() else {
                break;
            };
            seen += 1;
            if seen.is_multiple_of(4096) {
                self.look()?;
            }
            // The row of its attributes, and whether it can be read.
            let (mut is_there, mut row, mut is_lost) = (false, None, false);
            for (source, ids, next, held, unsure) in &mut streams {
                let Some((_, place)) = next.filter(|(next, _)| *next == id) else {
                    row = row.filter(|_| !unsure.holes.has(id));
                    continue;
                };
                *next = ids.as_mut().and_then(Ids::next);
                is_there = source.says != Says::Removed;
                if source.says == Says::Removed {
                    (row, is_lost) = (None, false);
                } else if let Some(table) = &source.table {
                    row = row_of(table, source.level, held, place);
                    is_lost = row.is_none();
                }
            }
            if of_log.next_if_eq(&id).is_some()
                && let Some(logged) = logged
            {
                if let Some(now) = logged.is_there.get(&id) {
                    (is_there, row, is_lost) = (*now, None, false);
                }
                if let Some(described) = logged.rows.get(&id) {
                    (is_there, row, is_lost) = (true, Some(described.clone()), false);
                }
            }
            let mut is_end = false;
            for (next, ids) in
                ends.iter_mut().filter(|end| end.0.is_some_and(|(next, _)| next == id))
            {
                is_end = true;
                *next = ids.next();
            }
            restored += u64::from(is_end && !is_there);
            if !is_there && !is_end {
                continue;
            }
            added.push(segment, id)?;
            attributes_lost += u64::from(is_lost);
            if let (Some(rows), Some((batch, row))) = (&mut rows, row) {
                rows.push(segment, id, &batch, row)?;
            }
        }
        let kept = added.len();
        let added = if kept == 0 { None } else { Some(added.finish(segment)?) };
        let table = rows.map_or(Ok(None), |rows| rows.finish(segment))?;
        let expected = self
            .is_complete
            .then(|| known.count.saturating_add_signed(logged.map_or(0, |changes| changes.more)));
        let (mut lost, mut is_in_doubt): (Vec<Lost>, bool) =
            (self.gone().collect(), !self.has_all());
        for (source, ids, ..) in streams {
            let ranges = ids.map_or_else(|| vec![0..=u64::MAX], |ids| ids.holes.ranges);
            if ranges.is_empty() {
                continue;
            }
            is_in_doubt |= source.says == Says::Removed;
            if source.says == Says::Added && expected.is_none_or(|expected| kept < expected) {
                let file = source.level.file.clone();
                lost.push(Lost { file, count: None, sources: ranges, targets: Vec::new() });
            }
        }
        let kept = Kept {
            name: known.name.clone(),
            kept,
            expected,
            restored,
            attributes_lost,
            lost,
            is_in_doubt,
        };
        Ok((VertexPart { vertex_type, added, removed: None, table }, kept))
    }
}
