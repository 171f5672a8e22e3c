//! The neighbours of many vertices at once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{LargeListArray, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use thalweg_io::{Error, InFile, Result, pool};

use super::column::Column;
use super::level::{Level, Lists, Side};
use super::network::{Network, Way};
use super::recent::Change;

mod list;

use list::{End, List};

/// Numbers that are not worth another thread.
const FEW: usize = 1 << 16;

/// Neighbours that are read at a time, where lists are shorter: they stay in the first cache.
const TOGETHER: u64 = 2048;

/// Neighbours of vertices, in the order in which the vertices were asked for. Used again, it keeps
/// its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Where each vertex's neighbours begin, and where the last one's end.
    pub offsets: Vec<u64>,
    /// The neighbours, ascending for each vertex. One that several edges lead to comes as often.
    pub ids: Vec<u64>,
    /// The number of the edge to each of them, where they were asked for.
    pub numbers: Vec<u64>,
}

impl Neighbours {
    /// The neighbours of the vertex that was asked for in this place.
    pub fn of(&self, place: usize) -> &[u64] {
        let range = self.offsets.get(place).zip(self.offsets.get(place + 1));
        range
            .and_then(|(start, end)| self.ids.get(*start as usize..*end as usize))
            .unwrap_or_default()
    }

    /// The same as an Arrow column: a list of `u64` for each vertex that was asked for. The numbers
    /// of edges are left behind.
    ///
    /// # Errors
    /// [`Error::Usage`] for offsets that were changed to what they cannot be.
    pub fn into_arrow(self) -> Result<LargeListArray> {
        let offsets = self.offsets.into_iter().map(|offset| offset as i64).collect::<Vec<_>>();
        let offsets = if offsets.is_empty() { vec![0] } else { offsets };
        let field = Arc::new(Field::new_list_field(DataType::UInt64, false));
        let values = Arc::new(UInt64Array::from(self.ids));
        let ascend = offsets[0] == 0 && offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        if !ascend {
            return Err(Error::Usage("offsets of neighbours that do not ascend from 0".into()));
        }
        LargeListArray::try_new(field, OffsetBuffer::new(offsets.into()), values, None)
            .map_err(|e| Error::Usage(format!("neighbours: {e}").into()))
    }

    /// How many vertices were asked for.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A part of a vertex's list, in a level.
#[derive(Debug, Clone)]
struct Piece<'a> {
    vertex: usize,
    way: usize,
    level: &'a Arc<Level>,
    added: Option<(&'a Lists, Range<u64>)>,
    removed: Option<(&'a Lists, Range<u64>)>,
}

impl Piece<'_> {
    fn more(&self) -> u64 {
        self.added.as_ref().map_or(0, |(_, range)| range.end - range.start)
    }

    fn fewer(&self) -> u64 {
        self.removed.as_ref().map_or(0, |(_, range)| range.end - range.start)
    }
}

/// What is known of the lists of many vertices before any is read.
struct Found<'a> {
    ways: &'a [Way],
    vertices: &'a [u64],
    /// By vertex, then way, then age.
    pieces: Vec<Piece<'a>>,
    /// For each way, what the log says.
    recent: Vec<Option<&'a HashMap<u64, Change>>>,
    /// For each way, whether edges from a vertex to itself come the other way already.
    skips_loops: Vec<bool>,
}

impl Found<'_> {
    fn changes(&self, vertex: usize) -> impl Iterator<Item = (usize, &Change)> {
        let id = self.vertices[vertex];
        self.recent
            .iter()
            .enumerate()
            .filter_map(move |(way, lists)| Some((way, lists.as_ref()?.get(&id)?)))
    }

    fn pieces(&self, vertex: usize) -> &[Piece<'_>] {
        let start = self.pieces.partition_point(|piece| piece.vertex < vertex);
        let len = self.pieces[start..].iter().take_while(|piece| piece.vertex == vertex).count();
        &self.pieces[start..start + len]
    }

    /// Where the list of a vertex is, if nothing has to be put together.
    fn only<'p>(
        &self,
        vertex: usize,
        pieces: &'p [Piece<'_>],
    ) -> Option<(&'p Level, &'p Lists, Range<u64>)> {
        match pieces {
            [Piece { level, added: Some((lists, range)), removed: None, way, .. }]
                if !self.skips_loops[*way] && self.changes(vertex).next().is_none() =>
            {
                Some((level, lists, range.clone()))
            }
            _ => None,
        }
    }

    /// How many vertices from one on, of which `pieces` are, have lists that lie one after the
    /// other with nothing to put together, and where.
    fn run<'p>(
        &self,
        vertices: Range<usize>,
        pieces: &'p [Piece<'_>],
    ) -> Option<(usize, &'p Level, &'p Lists, Range<u64>)> {
        let one = |vertex: usize, pieces: &'p [Piece<'_>]| {
            let own = pieces.iter().take(2).take_while(|piece| piece.vertex == vertex).count();
            self.only(vertex, &pieces[..own])
        };
        let (level, lists, mut range) = one(vertices.start, pieces)?;
        let mut count = 1;
        while vertices.start + count < vertices.end {
            match one(vertices.start + count, &pieces[count..]) {
                Some((_, next, more))
                    if std::ptr::eq(lists, next)
                        && more.start == range.end
                        && more.end - range.start <= TOGETHER =>
                {
                    range.end = more.end;
                }
                _ => break,
            }
            count += 1;
        }
        Some((count, level, lists, range))
    }

    /// Edges of a vertex, if there were no loops to skip.
    fn degree(&self, vertex: usize, pieces: &[Piece<'_>]) -> u64 {
        let (more, fewer) =
            pieces.iter().fold((0, 0), |(a, r), piece| (a + piece.more(), r + piece.fewer()));
        self.changes(vertex).fold(more.saturating_sub(fewer), |sum, (_, change)| {
            (sum + change.added.len() as u64).saturating_sub(change.removed.len() as u64)
        })
    }
}

impl Network {
    /// The neighbours of vertices along some ways; of a vertex that there is not, none.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn neighbours(&self, ways: &[Way], vertices: &[u64], out: &mut Neighbours) -> Result<()> {
        let found = self.find(ways, vertices)?;
        self.lay(&found, out)?;
        self.fetch(&found, |lists| vec![&lists.ids])?;
        out.numbers.clear();
        let total = out.ids.len();
        let threads = if total < FEW { 1 } else { self.fetcher.budget.threads.max(1) };
        if threads == 1 {
            return self.fill(&found, 0..vertices.len(), &out.offsets, &mut out.ids);
        }
        let (mut rest, mut first, mut done) = (out.ids.as_mut_slice(), 0, 0);
        let mut parts = Vec::with_capacity(threads);
        for thread in 1..=threads {
            let until = total as u64 * thread as u64 / threads as u64;
            let last = if thread == threads {
                vertices.len()
            } else {
                out.offsets.partition_point(|o| *o < until).clamp(first, vertices.len())
            };
            let end = out.offsets[last] as usize;
            let (here, more) = rest.split_at_mut(end - done);
            parts.push((first..last, here));
            (rest, first, done) = (more, last, end);
        }
        let offsets = &out.offsets;
        pool::try_map(threads, parts, |(range, ids)| self.fill(&found, range, offsets, ids))?;
        Ok(())
    }

    /// Shows the neighbours of each vertex to a visitor while they are in its core's cache: each
    /// thread has a visitor of its own, and vertices that follow each other. The visitors, in the
    /// order of their vertices.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn visit<V: FnMut(u64, &[u64]) + Send>(
        &self,
        ways: &[Way],
        vertices: &[u64],
        visitor: impl Fn() -> V + Sync,
    ) -> Result<Vec<V>> {
        let found = self.find(ways, vertices)?;
        self.fetch(&found, |lists| vec![&lists.ids])?;
        let mut ends = Vec::with_capacity(vertices.len());
        let (mut total, mut rest) = (0, found.pieces.as_slice());
        for vertex in 0..vertices.len() {
            let own = rest.iter().take_while(|piece| piece.vertex == vertex).count();
            let (pieces, more) = rest.split_at(own);
            rest = more;
            total += found.degree(vertex, pieces);
            ends.push(total);
        }
        let threads = if total < FEW as u64 { 1 } else { self.fetcher.budget.threads.max(1) };
        let show = |range: Range<usize>| {
            let mut visitor = visitor();
            self.show(&found, range, &mut visitor)?;
            Ok(visitor)
        };
        let mut first = 0;
        let mut parts = Vec::with_capacity(threads);
        for thread in 1..=threads {
            let until = total * thread as u64 / threads as u64;
            let last = if thread == threads {
                vertices.len()
            } else {
                ends.partition_point(|end| *end <= until).max(first)
            };
            parts.push(first..last);
            first = last;
        }
        pool::try_map(threads, parts, show)
    }

    fn show(
        &self,
        found: &Found<'_>,
        vertices: Range<usize>,
        visitor: &mut impl FnMut(u64, &[u64]),
    ) -> Result<()> {
        let (mut list, mut memory) = (Vec::new(), Memory::default());
        let first = found.pieces.partition_point(|piece| piece.vertex < vertices.start);
        let mut rest = &found.pieces[first..];
        let mut vertex = vertices.start;
        while vertex < vertices.end {
            if let Some((count, level, lists, range)) = found.run(vertex..vertices.end, rest) {
                // Longer than it was: what was there is overwritten.
                let len = (range.end - range.start) as usize;
                if list.len() < len {
                    list.resize(len, 0);
                }
                lists.ids.read(&level.segment, range, &mut list[..len])?;
                let (here, more) = rest.split_at(count);
                let mut at = 0;
                for piece in here {
                    let end = at + piece.more() as usize;
                    visitor(found.vertices[piece.vertex], &list[at..end]);
                    at = end;
                }
                rest = more;
                vertex += count;
                continue;
            }
            let own = rest.iter().take_while(|piece| piece.vertex == vertex).count();
            rest = &rest[own..];
            visitor(found.vertices[vertex], self.combine(found, vertex, &mut memory)?);
            vertex += 1;
        }
        Ok(())
    }

    /// The same with the numbers of the edges, 0 where they have none.
    ///
    /// # Errors
    /// As [`Network::neighbours`].
    pub fn numbered_neighbours(
        &self,
        ways: &[Way],
        vertices: &[u64],
        out: &mut Neighbours,
    ) -> Result<()> {
        let found = self.find(ways, vertices)?;
        self.fetch(&found, |lists| [&lists.ids].into_iter().chain(&lists.edges).collect())?;
        out.offsets.clear();
        out.ids.clear();
        out.numbers.clear();
        out.offsets.push(0);
        let mut memory = Memory::default();
        for vertex in 0..vertices.len() {
            let list: &[(u64, u64)] = self.combine(&found, vertex, &mut memory)?;
            out.ids.extend(list.iter().map(|end| end.0));
            out.numbers.extend(list.iter().map(|end| end.1));
            out.offsets.push(out.ids.len() as u64);
        }
        Ok(())
    }

    /// How many neighbours vertices have along some ways. No list is read.
    ///
    /// # Errors
    /// As [`Network::neighbours`].
    pub fn degrees(&self, ways: &[Way], vertices: &[u64]) -> Result<Vec<u64>> {
        let found = self.find(ways, vertices)?;
        (0..vertices.len()).map(|vertex| self.degree(&found, vertex)).collect()
    }

    fn degree(&self, found: &Found<'_>, vertex: usize) -> Result<u64> {
        let mut degree = found.degree(vertex, found.pieces(vertex));
        let id = found.vertices[vertex];
        for (way, skips) in found.ways.iter().zip(&found.skips_loops) {
            if *skips {
                degree -= self.edges_between(way.population, id, id)?.len() as u64;
            }
        }
        Ok(degree)
    }

    /// Where the lists of vertices lie.
    fn find<'a>(&'a self, ways: &'a [Way], vertices: &'a [u64]) -> Result<Found<'a>> {
        let mut pieces = Vec::new();
        for (number, way) in ways.iter().enumerate() {
            for level in &self.state.levels {
                let Some(edges) = level.edges(way.population, way.side)? else { continue };
                let added = edges
                    .added
                    .as_ref()
                    .map(|lists| self.places(level, lists, vertices))
                    .transpose()?;
                let removed = edges
                    .removed
                    .as_ref()
                    .map(|lists| self.places(level, lists, vertices))
                    .transpose()?;
                for vertex in 0..vertices.len() {
                    let of = |lists: &'a Option<Lists>, places: &Option<Vec<Range<u64>>>| {
                        let range = places.as_ref()?[vertex].clone();
                        lists.as_ref().filter(|_| !range.is_empty()).map(|lists| (lists, range))
                    };
                    let (added, removed) = (of(&edges.added, &added), of(&edges.removed, &removed));
                    if added.is_some() || removed.is_some() {
                        pieces.push(Piece { vertex, way: number, level, added, removed });
                    }
                }
            }
        }
        if !pieces.is_sorted_by_key(|piece: &Piece<'_>| piece.vertex) {
            pieces.sort_by_key(|piece| piece.vertex);
        }
        let recent = ways
            .iter()
            .map(|way| Some(self.state.recent.edges(way.population)?.side(way.side)))
            .collect();
        let twice = |way: &Way| {
            let other = Way { side: way.side.other(), ..*way };
            way.side == Side::In
                && self.populations()[way.population].source
                    == self.populations()[way.population].target
                && ways.contains(&other)
        };
        Ok(Found { ways, vertices, pieces, recent, skips_loops: ways.iter().map(twice).collect() })
    }

    /// Where the list of each vertex lies; an empty range where it has none.
    fn places(
        &self,
        level: &Arc<Level>,
        lists: &Lists,
        vertices: &[u64],
    ) -> Result<Vec<Range<u64>>> {
        let segment = &level.segment;
        let many = vertices.len() > 1;
        if many {
            self.fetcher
                .fetch(level, vertices.iter().filter_map(|id| lists.rows.page_of(*id)).collect())?;
        }
        let mut finder = lists.rows.finder(segment);
        let rows =
            vertices.iter().map(|id| Ok(finder.find(*id)?.ok())).collect::<Result<Vec<_>>>()?;
        if many {
            let spans = |row: &Option<u64>| {
                row.map(|row| lists.offsets.spans(row..row + 2).map(|span| span.pages))
            };
            self.fetcher.fetch(level, rows.iter().filter_map(spans).flatten().collect())?;
        }
        let mut offsets = lists.offsets.finder(segment);
        let mut range =
            |row: u64| lists.checked(segment, [offsets.get(row)?, offsets.get(row + 1)?]);
        rows.iter()
            .map(|row| {
                row.map_or(
                    Ok(0..0),
                    |row| if many { range(row) } else { lists.range(segment, row) },
                )
            })
            .collect()
    }

    /// Brings in the columns' pages that hold the lists.
    fn fetch<'a>(
        &'a self,
        found: &'a Found<'_>,
        columns: impl Fn(&'a Lists) -> Vec<&'a Column>,
    ) -> Result<()> {
        self.pages_of(found, columns)
            .into_iter()
            .try_for_each(|(level, pages)| self.fetcher.fetch(level, pages))
    }

    /// The pages of columns that hold the lists, by level.
    fn pages_of<'a>(
        &'a self,
        found: &'a Found<'_>,
        columns: impl Fn(&'a Lists) -> Vec<&'a Column>,
    ) -> Vec<(&'a Arc<Level>, Vec<Range<u64>>)> {
        let of = |level: &'a Arc<Level>| {
            let mut pages = Vec::new();
            for piece in found.pieces.iter().filter(|piece| Arc::ptr_eq(piece.level, level)) {
                for (lists, range) in piece.added.iter().chain(&piece.removed) {
                    pages.extend(
                        columns(lists)
                            .into_iter()
                            .flat_map(|c| c.spans(range.clone()).map(|span| span.pages)),
                    );
                }
            }
            (level, pages)
        };
        self.state.levels.iter().map(of).collect()
    }

    /// The pages that hold the neighbours of vertices, by segment.
    pub(super) fn pages(
        &self,
        ways: &[Way],
        vertices: &[u64],
    ) -> Result<Vec<(String, Vec<Range<u64>>)>> {
        let found = self.find(ways, vertices)?;
        let pages = self.pages_of(&found, |lists| vec![&lists.ids]);
        Ok(pages.into_iter().map(|(level, pages)| (level.file.clone(), pages)).collect())
    }

    /// Makes room for the lists.
    fn lay(&self, found: &Found<'_>, out: &mut Neighbours) -> Result<()> {
        out.offsets.clear();
        out.offsets.push(0);
        let (mut total, mut rest) = (0_u64, found.pieces.as_slice());
        let loops = found.skips_loops.contains(&true);
        for vertex in 0..found.vertices.len() {
            let own = rest.iter().take_while(|piece| piece.vertex == vertex).count();
            let (pieces, more) = rest.split_at(own);
            rest = more;
            total += if loops { self.degree(found, vertex)? } else { found.degree(vertex, pieces) };
            out.offsets.push(total);
        }
        let len = usize::try_from(total)
            .map_err(|_| Error::Usage("more neighbours than memory".into()))?;
        let missing = len.saturating_sub(out.ids.len());
        out.ids.try_reserve(missing).map_err(|_| {
            Error::Usage(
                format!("no memory for {len} neighbours: ask for fewer vertices at a time").into(),
            )
        })?;
        out.ids.resize(len, 0);
        Ok(())
    }

    fn fill(
        &self,
        found: &Found<'_>,
        vertices: Range<usize>,
        offsets: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        let base = offsets[vertices.start];
        let mut memory = Memory::default();
        let first = found.pieces.partition_point(|piece| piece.vertex < vertices.start);
        let mut rest = &found.pieces[first..];
        let mut vertex = vertices.start;
        while vertex < vertices.end {
            if let Some((count, level, lists, range)) = found.run(vertex..vertices.end, rest) {
                let out = &mut out
                    [(offsets[vertex] - base) as usize..(offsets[vertex + count] - base) as usize];
                lists.ids.read(&level.segment, range, out)?;
                rest = &rest[count..];
                vertex += count;
                continue;
            }
            let own = rest.iter().take_while(|piece| piece.vertex == vertex).count();
            rest = &rest[own..];
            let out =
                &mut out[(offsets[vertex] - base) as usize..(offsets[vertex + 1] - base) as usize];
            let list = self.combine(found, vertex, &mut memory)?;
            if list.len() != out.len() {
                let found =
                    format!("{} neighbours of vertex {}", list.len(), found.vertices[vertex]);
                let fault = thalweg_io::Fault::new(
                    0,
                    found,
                    format!("{}, as many as came less those that went", out.len()),
                );
                return Err(fault.in_file(self.disk.name(), 0, "lists of neighbours"));
            }
            out.copy_from_slice(list);
            vertex += 1;
        }
        Ok(())
    }

    /// The list of a vertex, from all levels and the log.
    fn combine<'m, T: End>(
        &self,
        found: &Found<'_>,
        vertex: usize,
        memory: &'m mut Memory<T>,
    ) -> Result<&'m [T]> {
        let pieces = found.pieces(vertex);
        let Memory { list, own, more } = memory;
        list.len = 0;
        for (number, skips) in found.skips_loops.iter().enumerate() {
            own.len = 0;
            for Piece { level, added, removed, .. } in
                pieces.iter().filter(|piece| piece.way == number)
            {
                if let Some((lists, range)) = removed {
                    T::read(lists, &level.segment, range.clone(), more)?;
                    own.subtract(more.all());
                }
                if let Some((lists, range)) = added {
                    if own.len == 0 {
                        T::read(lists, &level.segment, range.clone(), own)?;
                    } else {
                        T::read(lists, &level.segment, range.clone(), more)?;
                        own.merge(more.all());
                    }
                }
            }
            if let Some((_, change)) = found.changes(vertex).find(|(way, _)| *way == number) {
                own.subtract(more.set(&change.removed));
                own.merge(more.set(&change.added));
            }
            if *skips {
                own.retain(|end| end.id() != found.vertices[vertex]);
            }
            if list.len == 0 {
                std::mem::swap(list, own);
            } else {
                list.merge(own.all());
            }
        }
        Ok(list.all())
    }
}

/// Room to put a list together, kept from one list to the next.
#[derive(Default)]
struct Memory<T> {
    list: List<T>,
    /// What comes along one way.
    own: List<T>,
    /// What is put in there, or taken away.
    more: List<T>,
}
