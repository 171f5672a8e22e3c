//! Whether single vertices and edges exist.

use thalweg_io::Result;

use crate::read::merge::announce_vertices;
use crate::read::neighbours::Neighbours;
use crate::read::network::{Adjacency, Network};
use crate::storage::schema::Side;

/// A list with this many neighbours is read as quickly as one edge is searched in a longer list.
const NEIGHBOURS_PER_SEARCH: u64 = 1024;

impl Network {
    /// Whether a vertex exists.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed), [`Error::Io`](thalweg_io::Error::Io).
    pub fn has_vertex(&self, vertex_type: usize, id: u64) -> Result<bool> {
        // Changes look millions of vertices up, and as many edges.
        self.fetcher.control.check()?;
        let memtable = self.state.memtable.vertices(vertex_type);
        if let Some(is_there) = memtable.and_then(|changes| changes.exists.get(&id)) {
            return Ok(*is_there);
        }
        for reader in self.state.readers.iter().rev() {
            let Some(vertices) = reader.vertices(vertex_type)? else { continue };
            for (column, is_there) in [(&vertices.added, true), (&vertices.removed, false)] {
                if let Some(column) = column
                    && column.find(&reader.segment, id)?.is_ok()
                {
                    return Ok(is_there);
                }
            }
        }
        Ok(false)
    }

    /// The numbers of a population's edges between two vertices; 0 for an edge without a number.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed), [`Error::Io`](thalweg_io::Error::Io).
    pub fn edges_between(&self, population: usize, source: u64, target: u64) -> Result<Vec<u64>> {
        self.fetcher.control.check()?;
        let (source, target) = self.stored_ends(population, source, target);
        let mut found: Vec<u64> = Vec::new();
        for reader in &self.state.readers {
            let Some(edges) = reader.edges(population, Side::Out)? else { continue };
            if let Some(lists) = &edges.removed {
                let gone = lists.between(&reader.segment, source, target)?;
                found.retain(|number| !gone.contains(number));
            }
            if let Some(lists) = &edges.added {
                found.extend(lists.between(&reader.segment, source, target)?);
            }
        }
        if let Some(change) =
            self.state.memtable.edges(population).and_then(|c| c.side(Side::Out).get(&source))
        {
            found.retain(|number| change.removed.binary_search(&(target, *number)).is_err());
            let added = &change.added;
            let first = added.partition_point(|end| end.0 < target);
            found.extend(added[first..].iter().take_while(|end| end.0 == target).map(|end| end.1));
        }
        Ok(found)
    }

    /// Whether a population has an edge between two vertices.
    ///
    /// # Errors
    /// As [`Network::edges_between`].
    pub fn has_edge(&self, population: usize, source: u64, target: u64) -> Result<bool> {
        Ok(!self.edges_between(population, source, target)?.is_empty())
    }

    /// For each of `edges`, tells if it exists. The edges ascend, and their ends are in stored
    /// order.
    pub(crate) fn has_edges(&self, population: usize, edges: &[(u64, u64)]) -> Result<Vec<bool>> {
        let adjacencies = [Adjacency { population, side: Side::Out }];
        let groups: Vec<&[(u64, u64)]> = edges.chunk_by(|a, b| a.0 == b.0).collect();
        let sources: Vec<u64> = groups.iter().map(|group| group[0].0).collect();
        let degrees = self.degrees(&adjacencies, &sources)?;
        let mut out = Vec::with_capacity(edges.len());
        let mut list = Neighbours::default();
        for (group, degree) in groups.into_iter().zip(degrees) {
            let source = group[0].0;
            let is_long = degree > group.len() as u64 * NEIGHBOURS_PER_SEARCH;
            if !is_long {
                self.neighbours(&adjacencies, &[source], &mut list)?;
            }
            for (_, target) in group {
                out.push(if is_long {
                    self.has_edge(population, source, *target)?
                } else {
                    list.ids.binary_search(target).is_ok()
                });
            }
        }
        Ok(out)
    }

    /// For each of `ids`, tells if the vertex exists. The ids ascend.
    ///
    /// # Errors
    /// As [`Network::has_vertex`].
    pub fn has_vertices(&self, vertex_type: usize, ids: &[u64]) -> Result<Vec<bool>> {
        let mut there = vec![None; ids.len()];
        if let Some(changes) = self.state.memtable.vertices(vertex_type) {
            there
                .iter_mut()
                .zip(ids)
                .for_each(|(there, id)| *there = changes.exists.get(id).copied());
        }
        let _ahead = announce_vertices(&self.state.readers, vertex_type, ids)?;
        for reader in self.state.readers.iter().rev() {
            let Some(vertices) = reader.vertices(vertex_type)? else { continue };
            for (column, is_there) in [(&vertices.added, true), (&vertices.removed, false)] {
                let Some(column) = column else { continue };
                let mut finder = column.finder(&reader.segment);
                for (there, id) in there.iter_mut().zip(ids).filter(|(there, _)| there.is_none()) {
                    self.fetcher.control.check()?;
                    *there = finder.find(*id)?.ok().map(|_| is_there);
                }
            }
        }
        Ok(there.into_iter().map(|there| there == Some(true)).collect())
    }
}
