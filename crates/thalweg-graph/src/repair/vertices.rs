//! Rebuilding the vertices of a type and their attributes.

use std::collections::BTreeSet;
use std::iter::Peekable;

use thalweg_io::Result;

use super::attributes::{AttributeRow, CachedBatch, SalvagedRowWriter, table_row};
use super::damaged::DamagedNetwork;
use super::gaps::VertexGaps;
use super::report::{LostRecords, RepairSummary};
use super::salvage_columns::{SalvageIds, SalvagedSegment};
use crate::read::memtable::VertexChanges;
use crate::storage::column::{ColumnReader, ColumnWriter, NumberCoding};
use crate::storage::footer::VertexSection;
use crate::storage::segment::SegmentWriter;
use crate::storage::segment_reader::SegmentReader;
use crate::storage::table::TableReader;

/// The kind of record that a column holds of its vertices. Within a segment, later variants
/// override earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VertexRecord {
    Removed,
    Added,
    AttributesSet,
}

/// A column of a segment that holds records of vertices.
struct RecordColumn<'a> {
    segment: &'a SalvagedSegment,
    record: VertexRecord,
    column: Option<ColumnReader>,
    table: Option<TableReader>,
    /// How many vertices the column has.
    len: u64,
}

impl RecordColumn<'_> {
    fn ids(&self) -> Option<SalvageIds<'_>> {
        let column = self.column.as_ref().or(self.table.as_ref().map(|table| &table.rows));
        column.map(|column| SalvageIds::new(column, &self.segment.segment))
    }

    /// The vertices of the column that cannot be read, and how many they are.
    fn missing(&self) -> (VertexGaps, u64) {
        let Some(mut ids) = self.ids() else { return (VertexGaps::all(), self.len) };
        let mut count = self.len;
        while ids.next().is_some() {
            count -= 1;
        }
        (ids.gaps, count)
    }
}

/// A column being read, at its next vertex.
struct RecordStream<'a> {
    source: &'a RecordColumn<'a>,
    ids: Option<SalvageIds<'a>>,
    /// The next vertex, and its place in the column.
    next: Option<(u64, u64)>,
    cached: CachedBatch,
    /// For attributes: vertices whose rows may be missing here. Attributes in an older segment may
    /// be outdated for these.
    unsure: VertexGaps,
    /// How many vertices these are.
    missing: u64,
}

impl<'a> RecordStream<'a> {
    fn new(source: &'a RecordColumn<'a>) -> Self {
        let mut ids = source.ids();
        let next = ids.as_mut().and_then(SalvageIds::next);
        let (unsure, missing) = match source.record {
            VertexRecord::AttributesSet => source.missing(),
            _ => Default::default(),
        };
        Self { source, ids, next, cached: None, unsure, missing }
    }
}

/// The facts that are known about one vertex.
#[derive(Default)]
struct VertexFacts {
    exists: bool,
    row: Option<AttributeRow>,
    /// Whether it has attributes that cannot be read.
    is_row_lost: bool,
}

impl VertexFacts {
    /// Applies the record of a stream, if it has one of this vertex.
    fn apply(&mut self, id: u64, stream: &mut RecordStream<'_>) {
        let Some((_, place)) = stream.next.filter(|(next, _)| *next == id) else {
            if stream.unsure.contains(id) {
                self.row = None;
            }
            return;
        };
        stream.next = stream.ids.as_mut().and_then(SalvageIds::next);
        let source = stream.source;
        self.exists = source.record != VertexRecord::Removed;
        if source.record == VertexRecord::Removed {
            self.row = None;
            self.is_row_lost = false;
        } else if let Some(table) = &source.table {
            self.row = table_row(table, source.segment, &mut stream.cached, place);
            self.is_row_lost = self.row.is_none();
        }
    }

    /// Applies the records of the log.
    fn apply_log(&mut self, id: u64, logged: &VertexChanges) {
        if let Some(exists) = logged.exists.get(&id) {
            *self = Self { exists: *exists, row: None, is_row_lost: false };
        }
        if let Some(row) = logged.rows.get(&id) {
            *self = Self { exists: true, row: Some(row.clone()), is_row_lost: false };
        }
    }
}

/// All records of a type's vertices, merged vertex by vertex.
struct VertexMerge<'a> {
    streams: Vec<RecordStream<'a>>,
    /// Vertices at the ends of edges of the new network.
    ends: Vec<(Option<(u64, u64)>, SalvageIds<'a>)>,
    logged: Option<&'a VertexChanges>,
    logged_ids: Peekable<std::collections::btree_set::IntoIter<u64>>,
}

impl VertexMerge<'_> {
    /// The next vertex that has a record or an edge, the facts about it, and whether it has an
    /// edge.
    fn next(&mut self) -> Option<(u64, VertexFacts, bool)> {
        let streams = self.streams.iter().filter_map(|stream| stream.next);
        let stored = streams.chain(self.ends.iter().filter_map(|end| end.0)).map(|(id, _)| id);
        let id = stored.chain(self.logged_ids.peek().copied()).min()?;
        let mut facts = VertexFacts::default();
        for stream in &mut self.streams {
            facts.apply(id, stream);
        }
        if self.logged_ids.next_if_eq(&id).is_some()
            && let Some(logged) = self.logged
        {
            facts.apply_log(id, logged);
        }
        let mut is_end = false;
        for (next, ids) in &mut self.ends {
            if next.is_some_and(|(next, _)| next == id) {
                is_end = true;
                *next = ids.next();
            }
        }
        Some((id, facts, is_end))
    }
}

impl DamagedNetwork<'_> {
    /// Writes the vertices of a type and their attributes. `edges` is the segment with the edges of
    /// the new network, whose ends become vertices.
    pub(super) fn vertices(
        &self,
        segment: &mut SegmentWriter,
        edges: &SegmentReader,
        vertex_type: usize,
    ) -> Result<(VertexSection, RepairSummary)> {
        let known = &self.manifest.types[vertex_type];
        let sources = self.record_columns(vertex_type);
        let mut merge = self.vertex_merge(&sources, edges, vertex_type)?;
        let mut added = ColumnWriter::new(NumberCoding::Packed, true);
        let has_attributes = !known.attributes.fields().is_empty();
        let mut rows = has_attributes.then(|| SalvagedRowWriter::new(&known.attributes));
        let mut attributes_lost = merge.streams.iter().map(|stream| stream.missing).sum::<u64>();
        let mut restored = 0;
        let mut seen = 0;
        while let Some((id, facts, is_end)) = merge.next() {
            self.check_cancelled(&mut seen)?;
            restored += u64::from(is_end && !facts.exists);
            if !facts.exists && !is_end {
                continue;
            }
            added.push(segment, id)?;
            attributes_lost += u64::from(facts.is_row_lost);
            if let (Some(rows), Some((batch, row))) = (&mut rows, facts.row) {
                rows.push(segment, id, &batch, row)?;
            }
        }
        let kept = added.len();
        let added = if kept == 0 { None } else { Some(added.finish(segment)?) };
        let table = rows.map_or(Ok(None), |rows| rows.finish(segment))?;
        let more = merge.logged.map_or(0, |changes| changes.more);
        let expected = self.is_complete.then(|| known.count.saturating_add_signed(more));
        let is_short = expected.is_none_or(|expected| kept < expected);
        let (lost, is_in_doubt) = self.lost_vertices(merge.streams, is_short);
        let name = known.name.clone();
        let summary =
            RepairSummary { name, kept, expected, restored, attributes_lost, lost, is_in_doubt };
        Ok((VertexSection { vertex_type, added, removed: None, table }, summary))
    }

    /// The columns with records of a type's vertices, in the order in which the records apply.
    fn record_columns(&self, vertex_type: usize) -> Vec<RecordColumn<'_>> {
        let mut columns = Vec::new();
        for (_, segment) in self.segments() {
            let sections = segment.footer.vertices.iter();
            for section in sections.filter(|section| section.vertex_type == vertex_type) {
                let records = [
                    (VertexRecord::Removed, &section.removed),
                    (VertexRecord::Added, &section.added),
                ];
                for (record, meta) in records {
                    let Some(meta) = meta else { continue };
                    let column = ColumnReader::open_damaged(meta, &segment.segment);
                    let len = meta.len();
                    columns.push(RecordColumn { segment, record, column, table: None, len });
                }
                if let Some(meta) = &section.table {
                    let table = TableReader::open_damaged(meta, &segment.segment);
                    let record = VertexRecord::AttributesSet;
                    let len = meta.len();
                    columns.push(RecordColumn { segment, record, column: None, table, len });
                }
            }
        }
        columns
    }

    fn vertex_merge<'a>(
        &'a self,
        sources: &'a [RecordColumn<'a>],
        edges: &'a SegmentReader,
        vertex_type: usize,
    ) -> Result<VertexMerge<'a>> {
        let mut ends = Vec::new();
        for section in &edges.footer.edges {
            let known = &self.manifest.edges[section.population];
            let lists = edges.edges(section.population, section.side)?;
            let lists = lists.and_then(|edges| edges.added.as_ref());
            if let Some(lists) = lists.filter(|_| known.type_at(section.side) == vertex_type) {
                let mut ids = SalvageIds::new(&lists.rows, &edges.segment);
                ends.push((ids.next(), ids));
            }
        }
        let logged = self.memtable.vertices(vertex_type);
        let logged_ids: BTreeSet<u64> = logged
            .map(|logged| logged.exists.keys().chain(logged.rows.keys()).copied().collect())
            .unwrap_or_default();
        Ok(VertexMerge {
            streams: sources.iter().map(RecordStream::new).collect(),
            ends,
            logged,
            logged_ids: logged_ids.into_iter().peekable(),
        })
    }

    /// Ranges of vertices that cannot be read, reported if fewer were kept than expected; and
    /// whether records of removed vertices are missing.
    fn lost_vertices(
        &self,
        streams: Vec<RecordStream<'_>>,
        is_short: bool,
    ) -> (Vec<LostRecords>, bool) {
        let mut lost: Vec<LostRecords> = self.lost_segments().collect();
        let mut is_in_doubt = !self.has_all_segments();
        for stream in streams {
            let sources = stream.ids.map_or_else(|| vec![0..=u64::MAX], |ids| ids.gaps.ranges);
            if sources.is_empty() {
                continue;
            }
            is_in_doubt |= stream.source.record == VertexRecord::Removed;
            if stream.source.record == VertexRecord::Added && is_short {
                let file = stream.source.segment.file.clone();
                lost.push(LostRecords { file, count: None, sources, targets: Vec::new() });
            }
        }
        (lost, is_in_doubt)
    }
}
