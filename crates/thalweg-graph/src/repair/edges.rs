//! Edges of a population.

use std::collections::btree_map;
use std::iter::Peekable;

use thalweg_io::Result;

use super::rows::edge_table;
use super::salvage::{SalvageCursor, VertexGaps};
use super::{LostRecords, Repair, RepairSummary};
use crate::external_sort::EdgeSorter;
use crate::storage::column::Coding;
use crate::storage::footer::EdgeSection;
use crate::storage::lists::{ListsMeta, ListsWriter};
use crate::storage::schema::{Edge, PopulationEntry, Side};
use crate::storage::segment::SegmentWriter;

/// Bits of a number in a sorter that say which segment knows an edge of that number, and whether as
/// one that came.
const STAMP: u32 = 16;

/// Segments whose ages fit there.
pub(super) const MOST_LEVELS: usize = 32_000;

/// Lists of a segment on one side.
struct SalvageStream<'a> {
    cursor: SalvageCursor<'a>,
    /// Twice the segment's age and, where edges came, one more: the greatest is what counts.
    stamp: usize,
    vertex: Option<u64>,
}

impl SalvageStream<'_> {
    fn advance(&mut self) {
        self.vertex = self.cursor.next();
    }
}

impl Repair<'_> {
    fn streams(&self, population: usize, side: Side) -> impl Iterator<Item = SalvageStream<'_>> {
        let parts = self.readers().flat_map(move |(age, reader)| {
            let parts = reader
                .footer
                .edges
                .iter()
                .filter(move |part| part.population == population && part.side == side);
            parts.map(move |part| (age, reader, part))
        });
        parts.flat_map(|(age, reader, part)| {
            [&part.removed, &part.added].into_iter().enumerate().filter_map(move |(came, lists)| {
                let cursor = SalvageCursor::new(lists.as_ref()?, &reader.segment);
                Some(SalvageStream { cursor, stamp: 2 * age + came, vertex: None })
            })
        })
    }

    /// Writes the lists of a population, and the table of its attributes.
    pub(super) fn edges(
        &self,
        segment: &mut SegmentWriter,
        population: usize,
        known: &mut PopulationEntry,
    ) -> Result<(Vec<EdgeSection>, RepairSummary)> {
        let logged = &self.logged[population];
        let mut holes: [Vec<VertexGaps>; 2] =
            std::array::from_fn(|_| vec![VertexGaps::default(); 2 * self.readers.len()]);
        let (mut missing, mut seen) = (VertexGaps::default(), 0_u64);
        for mut stream in self.streams(population, Side::Out) {
            while stream.cursor.next().is_some() {
                self.look_after(&mut seen)?;
            }
            missing.add(&stream.cursor.holes);
            holes[0][stream.stamp] = stream.cursor.holes;
        }
        // Of vertices whose lists are not whole, what those at the other ends know of them.
        let mut again = self.sorter(true);
        let (mut sources, mut numbers) = (Vec::new(), Vec::new());
        if !missing.ranges.is_empty() {
            for mut stream in self.streams(population, Side::In) {
                while let Some(target) = stream.cursor.next() {
                    self.look_after(&mut seen)?;
                    sources.clear();
                    numbers.clear();
                    for (source, number) in stream
                        .cursor
                        .list
                        .iter()
                        .filter(|end| missing.has(end.0) && end.1 >> (64 - STAMP) == 0)
                    {
                        sources.push(*source);
                        numbers.push(number << STAMP | stream.stamp as u64);
                    }
                    again.push(target, &sources, &numbers)?;
                }
                holes[1][stream.stamp] = stream.cursor.holes;
            }
        }
        let is_numbered = known.is_numbered();
        let mut merge = EdgeMerge {
            repair: self,
            streams: self.streams(population, Side::Out).collect(),
            logged: logged.is_there.iter().peekable(),
            is_multi: known.population.is_multi,
            found: vec![0; 2 * self.readers.len() + 2],
            restored: 0,
            next: known.next,
            out: ListsWriter::new(Coding::Packed, is_numbered),
            into: self.sorter(is_numbered),
            rows: (!known.population.attributes.fields().is_empty()).then(|| self.sorter(false)),
            events: Vec::new(),
            ids: Vec::new(),
            numbers: Vec::new(),
            is_numbered,
            seen: 0,
        };
        merge.streams.iter_mut().for_each(SalvageStream::advance);
        again.drain(&mut |lists| {
            for (vertex, ids, numbers) in lists.lists() {
                merge.until(segment, Some(vertex))?;
                merge.list(segment, vertex, ids, numbers)?;
            }
            Ok(())
        })?;
        merge.until(segment, None)?;
        let EdgeMerge { out, into, rows, found, restored, next, .. } = merge;
        known.count = out.len();
        known.next = next;
        let out = out.finish(segment)?;
        let mut writer = ListsWriter::new(Coding::Packed, is_numbered);
        into.drain(&mut |lists| writer.push_all(segment, lists))?;
        let into = writer.finish(segment)?;
        let mut attributes_lost = 0;
        let table = match rows {
            Some(alive) => {
                let schema = &mut known.population.attributes;
                let (table, lost) =
                    edge_table(&self.tables(population), &logged.rows, alive, schema, segment)?;
                attributes_lost = lost;
                table
            }
            None => None,
        };
        let sides = [(Side::Out, out, table), (Side::In, into, None)];
        let parts = sides.into_iter().filter(|(_, added, _)| added.is_some());
        let parts = parts
            .map(|(side, added, table)| EdgeSection {
                population,
                side,
                added,
                removed: None,
                table,
            })
            .collect();
        let (lost, is_in_doubt) = self.lost(population, &found, &holes);
        let kept = RepairSummary {
            name: known.population.name.clone(),
            kept: known.count,
            expected: self
                .is_complete
                .then(|| self.old.edges[population].count.saturating_add_signed(logged.more)),
            restored,
            attributes_lost,
            lost,
            is_in_doubt,
        };
        Ok((parts, kept))
    }

    /// Fails once it is to stop; looks now and then.
    fn look_after(&self, seen: &mut u64) -> Result<()> {
        *seen += 1;
        if seen.is_multiple_of(4096) { self.look() } else { Ok(()) }
    }

    /// What was not found in either side's lists; and whether anything is missing that took edges
    /// away.
    fn lost(
        &self,
        population: usize,
        found: &[u64],
        holes: &[Vec<VertexGaps>; 2],
    ) -> (Vec<LostRecords>, bool) {
        let mut lost: Vec<LostRecords> = self.gone().collect();
        let mut is_in_doubt = !self.has_all();
        for (age, reader) in self.readers() {
            let parts = reader.footer.edges.iter().filter(|part| part.population == population);
            let [mut removed, mut added] = [0; 2];
            for part in parts {
                let len =
                    |lists: &Option<ListsMeta>| lists.as_ref().map_or(0, |lists| lists.ids.len());
                removed = len(&part.removed).max(removed);
                added = len(&part.added).max(added);
            }
            is_in_doubt |= found[2 * age] < removed;
            let count = added.saturating_sub(found[2 * age + 1]);
            if count > 0 {
                let [sources, targets] =
                    [0, 1].map(|side: usize| holes[side][2 * age + 1].ranges.clone());
                lost.push(LostRecords {
                    file: reader.file.clone(),
                    count: Some(count),
                    sources,
                    targets,
                });
            }
        }
        (lost, is_in_doubt)
    }
}

/// All that is known of a population's edges, list after list.
struct EdgeMerge<'a> {
    repair: &'a Repair<'a>,
    streams: Vec<SalvageStream<'a>>,
    logged: Peekable<btree_map::Iter<'a, Edge, bool>>,
    is_multi: bool,
    /// How many edges each stamp was found on.
    found: Vec<u64>,
    restored: u64,
    /// The number of the next edge.
    next: u64,
    out: ListsWriter,
    into: EdgeSorter,
    /// Numbers of edges that have attributes.
    rows: Option<EdgeSorter>,
    /// Of the list at hand: the other vertex, the edge's number, the stamp, and whether another
    /// side's list said so.
    events: Vec<(u64, u64, usize, bool)>,
    ids: Vec<u64>,
    numbers: Vec<u64>,
    is_numbered: bool,
    seen: u64,
}

impl EdgeMerge<'_> {
    /// Writes the lists before a vertex's, of which nothing else is known.
    fn until(&mut self, segment: &mut SegmentWriter, before: Option<u64>) -> Result<()> {
        loop {
            let logged = self.logged.peek().map(|(edge, _)| edge.0);
            let least = self.streams.iter().filter_map(|stream| stream.vertex).chain(logged).min();
            match least.filter(|vertex| before.is_none_or(|before| *vertex < before)) {
                Some(vertex) => self.list(segment, vertex, &[], &[])?,
                None => return Ok(()),
            }
        }
    }

    /// Writes a list, of which the other side knows these, with their stamps.
    fn list(
        &mut self,
        segment: &mut SegmentWriter,
        vertex: u64,
        ids: &[u64],
        numbers: &[u64],
    ) -> Result<()> {
        self.repair.look_after(&mut self.seen)?;
        let Self { events, .. } = self;
        events.clear();
        for stream in self.streams.iter_mut().filter(|stream| stream.vertex == Some(vertex)) {
            events.extend(
                stream.cursor.list.iter().map(|(id, number)| (*id, *number, stream.stamp, false)),
            );
            stream.advance();
        }
        let stamp = |number: u64| (number & ((1 << STAMP) - 1)) as usize;
        events.extend(
            ids.iter()
                .zip(numbers)
                .map(|(id, number)| (*id, number >> STAMP, stamp(*number), true)),
        );
        let logged = self.found.len() - 2;
        while let Some(((_, id, number), is_there)) =
            self.logged.next_if(|(edge, _)| edge.0 == vertex)
        {
            events.push((*id, *number, logged + usize::from(*is_there), false));
        }
        if !events.is_sorted() {
            events.sort_unstable();
        }
        events.dedup_by_key(|event| (event.0, event.1, event.2));
        events.iter().for_each(|event| self.found[event.2] += 1);
        let is_multi = self.is_multi;
        self.ids.clear();
        self.numbers.clear();
        // Of one edge, the last word; where there is one at most between two vertices, on the one
        // that came last.
        for same in events.chunk_by(|a, b| a.0 == b.0 && (!is_multi || a.1 == b.1)) {
            let Some((id, number, _, is_restored)) =
                same.last().copied().filter(|last| last.2 % 2 == 1)
            else {
                continue;
            };
            self.ids.push(id);
            self.restored += u64::from(is_restored);
            if self.is_numbered {
                self.numbers.push(number);
                self.next = self.next.max(number + 1);
            }
        }
        if self.ids.is_empty() {
            return Ok(());
        }
        self.out.push(segment, vertex, &self.ids, &self.numbers)?;
        self.into.push(vertex, &self.ids, &self.numbers)?;
        if let Some(rows) = &mut self.rows {
            rows.push(vertex, &self.numbers, &[])?;
        }
        Ok(())
    }
}
