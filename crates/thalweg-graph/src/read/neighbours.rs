//! The neighbours of many vertices at once.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{LargeListArray, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use thalweg_io::prefer_huge_pages;
use thalweg_io::{Error, InFile, Result, pool};

use self::combine::MergeBuffers;
use self::locate::LocatedLists;
use crate::read::network::{Adjacency, Network};
use crate::storage::column::ColumnReader;
use crate::storage::lists::ListsReader;
use crate::storage::segment::Ahead;

mod combine;
mod list;
mod locate;

/// Fewer neighbours than this are read on one thread: starting another takes longer.
const FEW: usize = 1 << 16;

/// The most neighbours of several lists that are read together: 16 KiB, which stay in the L1 cache.
const MOST_NEIGHBOURS_AT_ONCE: u64 = 2048;

/// Neighbours of vertices, in the order of the query. A value that is used for several queries
/// reuses its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Where each vertex's neighbours begin in [`Neighbours::ids`]; the last element is where the
    /// last vertex's end.
    pub offsets: Vec<u64>,
    /// The neighbours, ascending for each vertex. A neighbour that several edges lead to is
    /// repeated.
    pub ids: Vec<u64>,
    /// The number of the edge to each neighbour, if the query asks for numbers; else empty.
    pub numbers: Vec<u64>,
}

impl Neighbours {
    /// The neighbours of the vertex at this place of the query.
    pub fn of(&self, place: usize) -> &[u64] {
        let range = self.offsets.get(place).zip(self.offsets.get(place + 1));
        range
            .and_then(|(start, end)| self.ids.get(*start as usize..*end as usize))
            .unwrap_or_default()
    }

    /// The neighbours as an Arrow column: a list of `u64` for each vertex of the query, without the
    /// numbers of edges.
    ///
    /// # Errors
    /// [`Error::Usage`] if the caller changed the offsets so that they do not ascend from 0.
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

    /// How many vertices the query had.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether the query had no vertices.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The columns of a query that wants the numbers of edges.
fn with_numbers(lists: &ListsReader) -> Vec<&ColumnReader> {
    [&lists.ids].into_iter().chain(&lists.edges).collect()
}

impl Network {
    /// Reads the neighbours of vertices along some adjacencies. A vertex that does not exist has no
    /// neighbours.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn neighbours(
        &self,
        adjacencies: &[Adjacency],
        vertices: &[u64],
        out: &mut Neighbours,
    ) -> Result<()> {
        let found = self.find(adjacencies, vertices)?;
        let _loops = self.make_room(&found, out)?;
        let ahead = self.fetch_lists(&found, |lists| vec![&lists.ids])?;
        out.numbers.clear();
        let total = out.ids.len();
        // Threads that wait for different pages would drive them out for each other.
        let is_little = total < FEW || !ahead.is_whole;
        let threads = if is_little { 1 } else { self.fetcher.budget.threads.max(1) };
        if threads == 1 {
            return self.fill(&found, 0..vertices.len(), &out.offsets, &mut out.ids);
        }
        let mut rest = out.ids.as_mut_slice();
        let mut first = 0;
        let mut done = 0;
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

    /// Passes each vertex and its neighbours to a visitor, while they are in the cache of the core
    /// that read them. Each thread has a visitor of its own, made by `visitor`, and visits
    /// consecutive vertices. Returns the visitors in the order of their vertices.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::Io`].
    pub fn visit<V: FnMut(u64, &[u64]) + Send>(
        &self,
        adjacencies: &[Adjacency],
        vertices: &[u64],
        visitor: impl Fn() -> V + Sync,
    ) -> Result<Vec<V>> {
        let found = self.find(adjacencies, vertices)?;
        let ahead = self.fetch_lists(&found, |lists| vec![&lists.ids])?;
        let mut ends = Vec::with_capacity(vertices.len());
        let mut total = 0;
        let mut rest = found.parts.as_slice();
        for vertex in 0..vertices.len() {
            let own = rest.iter().take_while(|part| part.vertex == vertex).count();
            let (parts, more) = rest.split_at(own);
            rest = more;
            total += found.degree(vertex, parts);
            ends.push(total);
        }
        let is_little = total < FEW as u64 || !ahead.is_whole;
        let threads = if is_little { 1 } else { self.fetcher.budget.threads.max(1) };
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

    /// Passes the neighbours of a range of the vertices to a visitor.
    fn show(
        &self,
        found: &LocatedLists<'_>,
        vertices: Range<usize>,
        visitor: &mut impl FnMut(u64, &[u64]),
    ) -> Result<()> {
        let mut list = Vec::new();
        let mut buffers = MergeBuffers::default();
        let first = found.parts.partition_point(|part| part.vertex < vertices.start);
        let mut rest = &found.parts[first..];
        let mut vertex = vertices.start;
        while vertex < vertices.end {
            self.fetcher.control.check()?;
            if let Some((count, reader, lists, range)) = found.run(vertex..vertices.end, rest) {
                // The buffer only grows; its old contents are overwritten.
                let len = (range.end - range.start) as usize;
                if list.len() < len {
                    list.resize(len, 0);
                }
                lists.ids.read(&reader.segment, range, &mut list[..len])?;
                let (here, more) = rest.split_at(count);
                let mut at = 0;
                for part in here {
                    let end = at + part.more() as usize;
                    visitor(found.vertices[part.vertex], &list[at..end]);
                    at = end;
                }
                rest = more;
                vertex += count;
                continue;
            }
            let own = rest.iter().take_while(|part| part.vertex == vertex).count();
            rest = &rest[own..];
            visitor(found.vertices[vertex], self.combine(found, vertex, &mut buffers)?);
            vertex += 1;
        }
        Ok(())
    }

    /// Reads the neighbours of vertices along some adjacencies, with the numbers of the edges: 0
    /// for an edge without a number.
    ///
    /// # Errors
    /// As [`Network::neighbours`].
    pub fn numbered_neighbours(
        &self,
        adjacencies: &[Adjacency],
        vertices: &[u64],
        out: &mut Neighbours,
    ) -> Result<()> {
        let found = self.find(adjacencies, vertices)?;
        let _ahead = self.fetch_lists(&found, with_numbers)?;
        out.offsets.clear();
        out.ids.clear();
        out.numbers.clear();
        out.offsets.push(0);
        let mut buffers = MergeBuffers::default();
        for vertex in 0..vertices.len() {
            self.fetcher.control.check()?;
            let list: &[(u64, u64)] = self.combine(&found, vertex, &mut buffers)?;
            out.ids.extend(list.iter().map(|end| end.0));
            out.numbers.extend(list.iter().map(|end| end.1));
            out.offsets.push(out.ids.len() as u64);
        }
        Ok(())
    }

    /// How many neighbours vertices have along some adjacencies. No list is read, but those in
    /// which edges from a vertex to itself are looked for.
    ///
    /// # Errors
    /// As [`Network::neighbours`].
    pub fn degrees(&self, adjacencies: &[Adjacency], vertices: &[u64]) -> Result<Vec<u64>> {
        let found = self.find(adjacencies, vertices)?;
        let _loops = self.fetch_loops(&found)?;
        (0..vertices.len()).map(|vertex| self.degree(&found, vertex)).collect()
    }

    /// Fetches the lists that tell which edges lead from a vertex to itself, if these are skipped,
    /// from segments where each page would have to be waited for.
    fn fetch_loops<'a>(&'a self, found: &'a LocatedLists<'_>) -> Result<Ahead<'a>> {
        if !found.skips_loops.contains(&true) || !self.is_far() {
            return Ok(Ahead::default());
        }
        self.fetch_lists(found, with_numbers)
    }

    fn degree(&self, found: &LocatedLists<'_>, vertex: usize) -> Result<u64> {
        let mut degree = found.degree(vertex, found.parts(vertex));
        let id = found.vertices[vertex];
        for (adjacency, skips) in found.adjacencies.iter().zip(&found.skips_loops) {
            if *skips {
                degree -= self.edges_between(adjacency.population, id, id)?.len() as u64;
            }
        }
        Ok(degree)
    }

    /// Computes the offsets of the lists, and makes room for their neighbours.
    fn make_room<'a>(
        &'a self,
        found: &'a LocatedLists<'_>,
        out: &mut Neighbours,
    ) -> Result<Ahead<'a>> {
        out.offsets.clear();
        out.offsets.push(0);
        let mut total = 0_u64;
        let mut rest = found.parts.as_slice();
        let loops = found.skips_loops.contains(&true);
        let ahead = self.fetch_loops(found)?;
        for vertex in 0..found.vertices.len() {
            let own = rest.iter().take_while(|part| part.vertex == vertex).count();
            let (parts, more) = rest.split_at(own);
            rest = more;
            total += if loops { self.degree(found, vertex)? } else { found.degree(vertex, parts) };
            out.offsets.push(total);
        }
        let len = usize::try_from(total)
            .map_err(|_| Error::Usage("more neighbours than memory".into()))?;
        if len <= out.ids.capacity() {
            out.ids.resize(len, 0);
            return Ok(ahead);
        }
        out.ids = Vec::new();
        // A vector of zeros that finds no memory would end the process.
        Vec::<u64>::new().try_reserve_exact(len).map_err(|_| {
            Error::Usage(
                format!("no memory for {len} neighbours: ask for fewer vertices at a time").into(),
            )
        })?;
        // New memory is zero already: the threads that fill it are the first to touch it.
        out.ids = vec![0; len];
        prefer_huge_pages(&mut out.ids);
        Ok(ahead)
    }

    /// Reads the lists of a range of the vertices into `out`.
    fn fill(
        &self,
        found: &LocatedLists<'_>,
        vertices: Range<usize>,
        offsets: &[u64],
        out: &mut [u64],
    ) -> Result<()> {
        let base = offsets[vertices.start];
        let mut buffers = MergeBuffers::default();
        let first = found.parts.partition_point(|part| part.vertex < vertices.start);
        let mut rest = &found.parts[first..];
        let mut vertex = vertices.start;
        while vertex < vertices.end {
            self.fetcher.control.check()?;
            if let Some((count, reader, lists, range)) = found.run(vertex..vertices.end, rest) {
                let out = &mut out
                    [(offsets[vertex] - base) as usize..(offsets[vertex + count] - base) as usize];
                lists.ids.read(&reader.segment, range, out)?;
                rest = &rest[count..];
                vertex += count;
                continue;
            }
            let own = rest.iter().take_while(|part| part.vertex == vertex).count();
            rest = &rest[own..];
            let out =
                &mut out[(offsets[vertex] - base) as usize..(offsets[vertex + 1] - base) as usize];
            let list = self.combine(found, vertex, &mut buffers)?;
            if list.len() != out.len() {
                let found =
                    format!("{} neighbours of vertex {}", list.len(), found.vertices[vertex]);
                let fault = thalweg_io::Fault::new(
                    0,
                    found,
                    format!("{}, the added ones less the removed ones", out.len()),
                );
                return Err(fault.in_file(self.disk.name(), 0, "lists of neighbours"));
            }
            out.copy_from_slice(list);
            vertex += 1;
        }
        Ok(())
    }
}
