//! Merging all records of a population's edges: those of each segment, those of the log, and those
//! that the lists of the other side give.
//!
//! Each record has a *stamp*: twice the age of its segment, plus one if it adds the edge. The log
//! counts as the newest segment. Of all records of an edge, the one with the greatest stamp counts.

use std::collections::btree_map;
use std::iter::Peekable;

use thalweg_io::Result;

use super::damaged::DamagedNetwork;
use super::salvage_columns::SalvageCursor;
use crate::external_sort::EdgeSorter;
use crate::storage::column::NumberCoding;
use crate::storage::lists::ListsWriter;
use crate::storage::schema::{Edge, PopulationEntry, Side};
use crate::storage::segment::SegmentWriter;

/// Bits of a number in a sorter that hold the stamp of the record.
const STAMP_BITS: u32 = 16;

/// An edge's number and a record's stamp in one number; `None` if the number is too large; no
/// writer makes such a number.
pub(super) fn stamped(number: u64, stamp: usize) -> Option<u64> {
    (number >> (64 - STAMP_BITS) == 0).then_some(number << STAMP_BITS | stamp as u64)
}

/// The lists of a segment on one side: added edges or removed ones.
pub(super) struct SalvageStream<'a> {
    pub(super) cursor: SalvageCursor<'a>,
    pub(super) stamp: usize,
    vertex: Option<u64>,
}

impl SalvageStream<'_> {
    fn advance(&mut self) {
        self.vertex = self.cursor.next();
    }
}

impl DamagedNetwork<'_> {
    /// The lists of a population on one side, of all segments that could be opened.
    pub(super) fn streams(
        &self,
        population: usize,
        side: Side,
    ) -> impl Iterator<Item = SalvageStream<'_>> {
        let sections = self.segments().flat_map(move |(age, segment)| {
            let sections = segment.footer.edges.iter();
            let own = sections
                .filter(move |section| section.population == population && section.side == side);
            own.map(move |section| (age, segment, section))
        });
        sections.flat_map(|(age, segment, section)| {
            let lists = [&section.removed, &section.added].into_iter().enumerate();
            lists.filter_map(move |(is_added, lists)| {
                let cursor = SalvageCursor::new(lists.as_ref()?, &segment.segment);
                Some(SalvageStream { cursor, stamp: 2 * age + is_added, vertex: None })
            })
        })
    }
}

/// One record of an edge between the current vertex and another one. Records sort by the other
/// vertex, then the edge's number, then the stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EdgeRecord {
    other: u64,
    number: u64,
    stamp: usize,
    /// Whether it comes from the list of the other side.
    is_restored: bool,
}

impl EdgeRecord {
    fn is_added(&self) -> bool {
        self.stamp % 2 == 1
    }
}

/// Merges the records of a population's edges, vertex by vertex, and writes the edges that exist.
pub(super) struct EdgeMerge<'a> {
    network: &'a DamagedNetwork<'a>,
    streams: Vec<SalvageStream<'a>>,
    logged: Peekable<btree_map::Iter<'a, Edge, bool>>,
    is_multi: bool,
    is_numbered: bool,
    /// How many records were found, by stamp.
    pub(super) found: Vec<u64>,
    /// Edges that only the other side's lists have.
    pub(super) restored: u64,
    /// The number of the next edge.
    pub(super) next: u64,
    pub(super) out: ListsWriter,
    /// The edges that were written, by target.
    pub(super) into: EdgeSorter,
    /// The numbers of edges that have attributes, ascending.
    pub(super) with_attributes: Option<EdgeSorter>,
    records: Vec<EdgeRecord>,
    ids: Vec<u64>,
    numbers: Vec<u64>,
    seen: u64,
}

impl<'a> EdgeMerge<'a> {
    pub(super) fn new(
        network: &'a DamagedNetwork<'a>,
        population: usize,
        known: &PopulationEntry,
    ) -> Self {
        let is_numbered = known.is_numbered();
        let has_attributes = !known.population.attributes.fields().is_empty();
        let mut streams: Vec<_> = network.streams(population, Side::Out).collect();
        streams.iter_mut().for_each(SalvageStream::advance);
        Self {
            network,
            streams,
            logged: network.logged[population].exists.iter().peekable(),
            is_multi: known.population.is_multi,
            is_numbered,
            found: vec![0; 2 * network.segments.len() + 2],
            restored: 0,
            next: known.next,
            out: ListsWriter::new(NumberCoding::Packed, is_numbered),
            into: network.sorter(is_numbered),
            with_attributes: has_attributes.then(|| network.sorter(false)),
            records: Vec::new(),
            ids: Vec::new(),
            numbers: Vec::new(),
            seen: 0,
        }
    }

    /// Writes the lists of the vertices before `end`, or of all vertices that are left if `end` is
    /// `None`.
    pub(super) fn write_until(
        &mut self,
        segment: &mut SegmentWriter,
        end: Option<u64>,
    ) -> Result<()> {
        loop {
            let logged = self.logged.peek().map(|(edge, _)| edge.0);
            let vertices = self.streams.iter().filter_map(|stream| stream.vertex);
            let least = vertices.chain(logged).min();
            match least.filter(|vertex| end.is_none_or(|end| *vertex < end)) {
                Some(vertex) => self.write_list(segment, vertex, &[], &[])?,
                None => return Ok(()),
            }
        }
    }

    /// Writes the list of a vertex. `ids` and `stamped` are what the lists of the other side say:
    /// the other vertices, and the edges' numbers with the records' stamps.
    pub(super) fn write_list(
        &mut self,
        segment: &mut SegmentWriter,
        vertex: u64,
        ids: &[u64],
        stamped: &[u64],
    ) -> Result<()> {
        self.network.check_cancelled(&mut self.seen)?;
        self.collect_records(vertex, ids, stamped);
        self.records.iter().for_each(|record| self.found[record.stamp] += 1);
        self.keep_existing();
        if self.ids.is_empty() {
            return Ok(());
        }
        self.out.push(segment, vertex, &self.ids, &self.numbers)?;
        self.into.push(vertex, &self.ids, &self.numbers)?;
        if let Some(sorter) = &mut self.with_attributes {
            sorter.push(vertex, &self.numbers, &[])?;
        }
        Ok(())
    }

    /// Collects all records of a vertex's edges, in order, each once.
    fn collect_records(&mut self, vertex: u64, ids: &[u64], stamped: &[u64]) {
        let records = &mut self.records;
        records.clear();
        for stream in self.streams.iter_mut().filter(|stream| stream.vertex == Some(vertex)) {
            let stamp = stream.stamp;
            records.extend(stream.cursor.list.iter().map(|(other, number)| EdgeRecord {
                other: *other,
                number: *number,
                stamp,
                is_restored: false,
            }));
            stream.advance();
        }
        records.extend(ids.iter().zip(stamped).map(|(other, stamped)| EdgeRecord {
            other: *other,
            number: stamped >> STAMP_BITS,
            stamp: (stamped & ((1 << STAMP_BITS) - 1)) as usize,
            is_restored: true,
        }));
        let log_stamp = self.found.len() - 2;
        while let Some(((_, other, number), exists)) =
            self.logged.next_if(|(edge, _)| edge.0 == vertex)
        {
            let stamp = log_stamp + usize::from(*exists);
            let other = *other;
            let number = *number;
            records.push(EdgeRecord { other, number, stamp, is_restored: false });
        }
        if !records.is_sorted() {
            records.sort_unstable();
        }
        records.dedup_by_key(|record| (record.other, record.number, record.stamp));
    }

    /// Replaces `ids` and `numbers` by those of the edges that exist. The last record of an edge
    /// counts. If two vertices can have only one edge, the last record of any edge between them
    /// counts.
    fn keep_existing(&mut self) {
        let is_multi = self.is_multi;
        self.ids.clear();
        self.numbers.clear();
        let is_same_edge = |a: &EdgeRecord, b: &EdgeRecord| {
            a.other == b.other && (!is_multi || a.number == b.number)
        };
        for same in self.records.chunk_by(is_same_edge) {
            let Some(last) = same.last().filter(|last| last.is_added()) else { continue };
            self.ids.push(last.other);
            self.restored += u64::from(last.is_restored);
            if self.is_numbered {
                self.numbers.push(last.number);
                self.next = self.next.max(last.number + 1);
            }
        }
    }
}
