//! Vertices of a type.

use std::collections::BTreeSet;

use thalweg_io::Result;

use super::rows::{SalvagedRowWriter, row_of};
use super::salvage::{SalvageIds, SalvagedSegment, VertexGaps};
use super::{LostRecords, Repair, RepairSummary};
use crate::storage::column::{Coding, ColumnReader, ColumnWriter};
use crate::storage::footer::VertexSection;
use crate::storage::schema::Side;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;
use crate::storage::table::TableReader;

/// What a column says of its vertices; in the order in which it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VertexClaim {
    Removed,
    Added,
    Described,
}

/// A column that says something of vertices.
struct ClaimSource<'a> {
    reader: &'a SalvagedSegment,
    says: VertexClaim,
    column: Option<ColumnReader>,
    table: Option<TableReader>,
    /// How many vertices it should have.
    len: u64,
}

/// Vertices that cannot be read of a column.
#[derive(Default)]
struct MissingVertices {
    holes: VertexGaps,
    count: u64,
}

/// Those missing of a column of so many.
fn missing(ids: Option<SalvageIds<'_>>, len: u64) -> MissingVertices {
    let Some(mut ids) = ids else {
        return MissingVertices { holes: VertexGaps::all(), count: len };
    };
    let mut count = len;
    while ids.next().is_some() {
        count -= 1;
    }
    MissingVertices { holes: ids.holes, count }
}

impl ClaimSource<'_> {
    fn column(&self) -> Option<&ColumnReader> {
        self.column.as_ref().or(self.table.as_ref().map(|table| &table.rows))
    }
}

impl Repair<'_> {
    fn sources(&self, vertex_type: usize) -> Vec<ClaimSource<'_>> {
        let mut sources = Vec::new();
        for (_, reader) in self.readers() {
            for part in reader.footer.vertices.iter().filter(|part| part.vertex_type == vertex_type)
            {
                for (says, meta) in
                    [(VertexClaim::Removed, &part.removed), (VertexClaim::Added, &part.added)]
                {
                    let Some(meta) = meta else { continue };
                    let column = ColumnReader::open_left(meta, &reader.segment);
                    sources.push(ClaimSource {
                        reader,
                        says,
                        column,
                        table: None,
                        len: meta.len(),
                    });
                }
                if let Some(meta) = &part.table {
                    let table = TableReader::open_left(meta, &reader.segment);
                    sources.push(ClaimSource {
                        reader,
                        says: VertexClaim::Described,
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
        written: &SegmentReader,
        vertex_type: usize,
    ) -> Result<(VertexSection, RepairSummary)> {
        let known = &self.old.types[vertex_type];
        let sources = self.sources(vertex_type);
        let mut streams: Vec<_> = sources
            .iter()
            .map(|source| {
                let open = || {
                    source.column().map(|column| SalvageIds::new(column, &source.reader.segment))
                };
                let mut ids = open();
                let next = ids.as_mut().and_then(SalvageIds::next);
                // Attributes that an older segment has may not be those that this one had in its
                // place.
                let unsure = if source.says == VertexClaim::Described {
                    missing(open(), source.len)
                } else {
                    MissingVertices::default()
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
                let mut ids = SalvageIds::new(&lists.rows, &written.segment);
                ends.push((ids.next(), ids));
            }
        }
        let logged = self.memtable.vertices(vertex_type);
        let of_log = |logged: &crate::read::memtable::VertexChanges| -> BTreeSet<u64> {
            logged.is_there.keys().chain(logged.rows.keys()).copied().collect()
        };
        let mut of_log = logged.map(of_log).unwrap_or_default().into_iter().peekable();
        let mut added = ColumnWriter::new(Coding::Packed, true);
        let mut rows = (!known.attributes.fields().is_empty())
            .then(|| SalvagedRowWriter::new(&known.attributes));
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
                *next = ids.as_mut().and_then(SalvageIds::next);
                is_there = source.says != VertexClaim::Removed;
                if source.says == VertexClaim::Removed {
                    (row, is_lost) = (None, false);
                } else if let Some(table) = &source.table {
                    row = row_of(table, source.reader, held, place);
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
        let (mut lost, mut is_in_doubt): (Vec<LostRecords>, bool) =
            (self.gone().collect(), !self.has_all());
        for (source, ids, ..) in streams {
            let ranges = ids.map_or_else(|| vec![0..=u64::MAX], |ids| ids.holes.ranges);
            if ranges.is_empty() {
                continue;
            }
            is_in_doubt |= source.says == VertexClaim::Removed;
            if source.says == VertexClaim::Added && expected.is_none_or(|expected| kept < expected)
            {
                let file = source.reader.file.clone();
                lost.push(LostRecords { file, count: None, sources: ranges, targets: Vec::new() });
            }
        }
        let kept = RepairSummary {
            name: known.name.clone(),
            kept,
            expected,
            restored,
            attributes_lost,
            lost,
            is_in_doubt,
        };
        Ok((VertexSection { vertex_type, added, removed: None, table }, kept))
    }
}
