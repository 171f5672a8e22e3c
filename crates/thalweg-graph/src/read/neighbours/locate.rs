//! Finding where the neighbour lists of many vertices lie: in which segments, and at which places
//! of their columns.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use thalweg_io::Result;

use super::MOST_NEIGHBOURS_AT_ONCE;
use crate::read::memtable::ListChange;
use crate::read::network::{Adjacency, Network};
use crate::storage::column::ColumnReader;
use crate::storage::lists::ListsReader;
use crate::storage::schema::Side;
use crate::storage::segment::Ahead;
use crate::storage::segment_reader::{Section, SegmentReader, announce_indexes};

/// The part of a vertex's list that one segment holds: a range of neighbours that it adds, and one
/// of those that it removes.
#[derive(Debug, Clone)]
pub(super) struct ListPart<'a> {
    pub(super) vertex: usize,
    pub(super) adjacency: usize,
    pub(super) reader: &'a Arc<SegmentReader>,
    pub(super) added: Option<(&'a ListsReader, Range<u64>)>,
    pub(super) removed: Option<(&'a ListsReader, Range<u64>)>,
}

impl ListPart<'_> {
    /// How many neighbours it adds.
    pub(super) fn more(&self) -> u64 {
        self.added.as_ref().map_or(0, |(_, range)| range.end - range.start)
    }

    /// How many neighbours it removes.
    pub(super) fn fewer(&self) -> u64 {
        self.removed.as_ref().map_or(0, |(_, range)| range.end - range.start)
    }
}

/// Where the lists of many vertices lie. No list has been read yet.
pub(super) struct LocatedLists<'a> {
    pub(super) adjacencies: &'a [Adjacency],
    pub(super) vertices: &'a [u64],
    /// Ordered by vertex, then adjacency, then age.
    pub(super) parts: Vec<ListPart<'a>>,
    /// For each adjacency: the changes in the log, by vertex.
    pub(super) memtable: Vec<Option<&'a HashMap<u64, ListChange>>>,
    /// For each adjacency: whether to skip edges from a vertex to itself, because the opposite
    /// adjacency lists them too.
    pub(super) skips_loops: Vec<bool>,
}

impl LocatedLists<'_> {
    pub(super) fn changes(&self, vertex: usize) -> impl Iterator<Item = (usize, &ListChange)> {
        let id = self.vertices[vertex];
        self.memtable
            .iter()
            .enumerate()
            .filter_map(move |(adjacency, lists)| Some((adjacency, lists.as_ref()?.get(&id)?)))
    }

    pub(super) fn parts(&self, vertex: usize) -> &[ListPart<'_>] {
        let start = self.parts.partition_point(|part| part.vertex < vertex);
        let len = self.parts[start..].iter().take_while(|part| part.vertex == vertex).count();
        &self.parts[start..start + len]
    }

    /// Where the list of a vertex lies, if all of it lies in one place.
    pub(super) fn single_part<'p>(
        &self,
        vertex: usize,
        parts: &'p [ListPart<'_>],
    ) -> Option<(&'p SegmentReader, &'p ListsReader, Range<u64>)> {
        match parts {
            [ListPart { reader, added: Some((lists, range)), removed: None, adjacency, .. }]
                if !self.skips_loops[*adjacency] && self.changes(vertex).next().is_none() =>
            {
                Some((reader, lists, range.clone()))
            }
            _ => None,
        }
    }

    /// Finds vertices at the start of `vertices` whose lists are each in one piece and follow each
    /// other in one column. Returns how many vertices these are, and where their lists lie. `parts`
    /// are the parts of their lists.
    pub(super) fn run<'p>(
        &self,
        vertices: Range<usize>,
        parts: &'p [ListPart<'_>],
    ) -> Option<(usize, &'p SegmentReader, &'p ListsReader, Range<u64>)> {
        let one = |vertex: usize, parts: &'p [ListPart<'_>]| {
            let own = parts.iter().take(2).take_while(|part| part.vertex == vertex).count();
            self.single_part(vertex, &parts[..own])
        };
        let (reader, lists, mut range) = one(vertices.start, parts)?;
        let mut count = 1;
        while vertices.start + count < vertices.end {
            match one(vertices.start + count, &parts[count..]) {
                Some((_, next, more))
                    if std::ptr::eq(lists, next)
                        && more.start == range.end
                        && more.end - range.start <= MOST_NEIGHBOURS_AT_ONCE =>
                {
                    range.end = more.end;
                }
                _ => break,
            }
            count += 1;
        }
        Some((count, reader, lists, range))
    }

    /// The degree of a vertex. It includes edges from the vertex to itself, even where these are
    /// skipped.
    pub(super) fn degree(&self, vertex: usize, parts: &[ListPart<'_>]) -> u64 {
        let (more, fewer) =
            parts.iter().fold((0, 0), |(a, r), part| (a + part.more(), r + part.fewer()));
        self.changes(vertex).fold(more.saturating_sub(fewer), |sum, (_, change)| {
            (sum + change.added.len() as u64).saturating_sub(change.removed.len() as u64)
        })
    }
}

impl Network {
    /// Finds where the lists of vertices lie.
    pub(super) fn find<'a>(
        &'a self,
        adjacencies: &'a [Adjacency],
        vertices: &'a [u64],
    ) -> Result<LocatedLists<'a>> {
        let asked = |section| {
            adjacencies
                .iter()
                .any(|adjacency| section == Section::Edges(adjacency.population, adjacency.side))
        };
        let _indexes = announce_indexes(&self.state.readers, asked)?;
        let mut segments = Vec::new();
        for (number, adjacency) in adjacencies.iter().enumerate() {
            for reader in &self.state.readers {
                self.fetcher.control.check()?;
                if let Some(edges) = reader.edges(adjacency.population, adjacency.side)? {
                    segments.push((number, reader, edges));
                }
            }
        }
        let lists = segments.iter().flat_map(|(_, reader, edges)| {
            edges.added.iter().chain(&edges.removed).map(|lists| (*reader, lists))
        });
        let mut places = self.places(lists.collect(), vertices)?.into_iter();
        let mut parts = Vec::new();
        for (adjacency, reader, edges) in segments {
            let mut of = |lists: &'a Option<ListsReader>| {
                lists.as_ref().and_then(|lists| Some((lists, places.next()?)))
            };
            let (added, removed) = (of(&edges.added), of(&edges.removed));
            let part = |places: &Option<(&'a ListsReader, Vec<Range<u64>>)>, vertex: usize| {
                let (lists, places) = places.as_ref()?;
                places
                    .get(vertex)
                    .filter(|range| !range.is_empty())
                    .map(|range| (*lists, range.clone()))
            };
            for vertex in 0..vertices.len() {
                let (added, removed) = (part(&added, vertex), part(&removed, vertex));
                if added.is_some() || removed.is_some() {
                    parts.push(ListPart { vertex, adjacency, reader, added, removed });
                }
            }
        }
        if !parts.is_sorted_by_key(|part: &ListPart<'_>| part.vertex) {
            parts.sort_by_key(|part| part.vertex);
        }
        let memtable = adjacencies
            .iter()
            .map(|adjacency| {
                Some(self.state.memtable.edges(adjacency.population)?.side(adjacency.side))
            })
            .collect();
        let skips_loops = |adjacency: &Adjacency| {
            let other = Adjacency { side: adjacency.side.other(), ..*adjacency };
            let edges = &self.populations()[adjacency.population];
            adjacency.side == Side::In
                && edges.source == edges.target
                && adjacencies.contains(&other)
        };
        let skips_loops = adjacencies.iter().map(skips_loops).collect();
        Ok(LocatedLists { adjacencies, vertices, parts, memtable, skips_loops })
    }

    /// Where the list of each vertex lies, for each of `lists`; an empty range for one without a
    /// list.
    fn places(
        &self,
        lists: Vec<(&Arc<SegmentReader>, &ListsReader)>,
        vertices: &[u64],
    ) -> Result<Vec<Vec<Range<u64>>>> {
        // A single vertex uses few pages. Where each has to be waited for, those of all segments
        // are asked for together.
        let many = vertices.len() > 1;
        let fetched = |(reader, _): &&(&Arc<SegmentReader>, &ListsReader)| {
            many || reader.segment.cached().is_some()
        };
        let rows_pages = lists.iter().filter(fetched).map(|(reader, lists)| {
            (*reader, vertices.iter().filter_map(|id| lists.rows.page_of(*id)).collect())
        });
        let _rows = self.fetcher.fetch(rows_pages.collect())?;
        let mut rows = Vec::with_capacity(lists.len());
        for (reader, lists) in &lists {
            let mut finder = lists.rows.finder(&reader.segment);
            let found = vertices.iter().map(|id| Ok(finder.find(*id)?.ok()));
            rows.push(found.collect::<Result<Vec<Option<u64>>>>()?);
        }
        let offset_pages = lists.iter().zip(&rows).filter(|(lists, _)| fetched(lists));
        let offset_pages = offset_pages.map(|((reader, lists), rows)| {
            let spans = rows.iter().flatten().flat_map(|row| lists.offsets.spans(*row..*row + 2));
            (*reader, spans.map(|span| span.pages).collect())
        });
        let _offsets = self.fetcher.fetch(offset_pages.collect())?;
        let places = lists.iter().zip(rows).map(|((reader, lists), rows)| {
            let segment = &reader.segment;
            let mut offsets = lists.offsets.finder(segment);
            let mut range = |row: u64| {
                if many {
                    lists.checked(segment, [offsets.get(row)?, offsets.get(row + 1)?])
                } else {
                    lists.range(segment, row)
                }
            };
            rows.into_iter().map(|row| row.map_or(Ok(0..0), &mut range)).collect()
        });
        places.collect()
    }

    /// Fetches the pages of some columns that hold the lists.
    pub(super) fn fetch_lists<'a>(
        &'a self,
        found: &'a LocatedLists<'_>,
        columns: impl Fn(&'a ListsReader) -> Vec<&'a ColumnReader>,
    ) -> Result<Ahead<'a>> {
        self.fetcher.fetch(self.pages_of(found, columns))
    }

    /// The pages of some columns that hold the lists, by segment.
    fn pages_of<'a>(
        &'a self,
        found: &'a LocatedLists<'_>,
        columns: impl Fn(&'a ListsReader) -> Vec<&'a ColumnReader>,
    ) -> Vec<(&'a Arc<SegmentReader>, Vec<Range<u64>>)> {
        let of = |reader: &'a Arc<SegmentReader>| {
            let mut pages = Vec::new();
            for part in found.parts.iter().filter(|part| Arc::ptr_eq(part.reader, reader)) {
                for (lists, range) in part.added.iter().chain(&part.removed) {
                    pages.extend(
                        columns(lists)
                            .into_iter()
                            .flat_map(|c| c.spans(range.clone()).map(|span| span.pages)),
                    );
                }
            }
            (reader, pages)
        };
        self.state.readers.iter().map(of).collect()
    }

    /// The pages that hold the neighbours of vertices, by segment.
    pub(crate) fn pages(
        &self,
        adjacencies: &[Adjacency],
        vertices: &[u64],
    ) -> Result<Vec<(String, Vec<Range<u64>>)>> {
        let found = self.find(adjacencies, vertices)?;
        let pages = self.pages_of(&found, |lists| vec![&lists.ids]);
        Ok(pages.into_iter().map(|(reader, pages)| (reader.file.clone(), pages)).collect())
    }
}
