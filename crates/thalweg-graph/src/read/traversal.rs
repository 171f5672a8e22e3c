//! Traversal: vertices within some steps, edges between two sets of vertices, and how many bytes a
//! query has to read.

use std::collections::BTreeSet;

use thalweg_io::{Error, Result};

use crate::read::neighbours::Neighbours;
use crate::read::network::{Adjacency, Network};
use crate::storage::segment::PAGE;

/// Vertices whose neighbours are in memory at a time.
const VERTICES_AT_ONCE: usize = 1024;

impl Network {
    /// The vertices within `steps` steps of some others, along adjacencies between vertices of one
    /// type: each once, ascending, without the vertices of `from`.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than one step along an adjacency to another type; else as
    /// [`Network::neighbours`].
    pub fn reachable(
        &self,
        adjacencies: &[Adjacency],
        from: &[u64],
        steps: usize,
    ) -> Result<Vec<u64>> {
        let leads_away = |adjacency: &&Adjacency| {
            let edges = &self.populations()[adjacency.population];
            edges.source != edges.target
        };
        if let Some(adjacency) = adjacencies.iter().find(leads_away).filter(|_| steps > 1) {
            let name = &self.populations()[adjacency.population].population.name;
            let what = format!(
                "{}: one step along {name:?} leads to another type, from which it goes no further",
                self.disk.name()
            );
            return Err(Error::Usage(what.into()));
        }
        let away = adjacencies.iter().any(|adjacency| leads_away(&adjacency));
        let mut reached: BTreeSet<u64> =
            if away { BTreeSet::new() } else { from.iter().copied().collect() };
        let mut front = from.to_vec();
        let mut list = Neighbours::default();
        for _ in 0..steps {
            let mut next = Vec::new();
            for part in front.chunks(VERTICES_AT_ONCE) {
                self.fetcher.control.check()?;
                self.neighbours(adjacencies, part, &mut list)?;
                next.extend(list.ids.iter().copied().filter(|id| reached.insert(*id)));
            }
            next.sort_unstable();
            front = next;
        }
        if !away {
            for id in from {
                reached.remove(id);
            }
        }
        Ok(reached.into_iter().collect())
    }

    /// The edges of an adjacency between two sets of vertices: for each vertex of `from`, its
    /// neighbours that are in `to`, with the numbers of the edges. `to` ascends.
    ///
    /// # Errors
    /// As [`Network::neighbours`].
    pub fn between(
        &self,
        adjacency: Adjacency,
        from: &[u64],
        to: &[u64],
        out: &mut Neighbours,
    ) -> Result<()> {
        let mut list = Neighbours::default();
        out.offsets.clear();
        out.ids.clear();
        out.numbers.clear();
        out.offsets.push(0);
        for part in from.chunks(VERTICES_AT_ONCE) {
            self.numbered_neighbours(&[adjacency], part, &mut list)?;
            for place in 0..part.len() {
                for at in list.offsets[place] as usize..list.offsets[place + 1] as usize {
                    if to.binary_search(&list.ids[at]).is_ok() {
                        out.ids.push(list.ids[at]);
                        out.numbers.push(list.numbers[at]);
                    }
                }
                out.offsets.push(out.ids.len() as u64);
            }
        }
        Ok(())
    }

    /// The bytes of the pages that hold the neighbours of vertices: the least that a query reads.
    ///
    /// # Errors
    /// As [`Network::neighbours`].
    pub fn needed(&self, adjacencies: &[Adjacency], vertices: &[u64]) -> Result<u64> {
        let mut bytes = 0;
        for (_, mut pages) in self.pages(adjacencies, vertices)? {
            pages.sort_unstable_by_key(|pages| pages.start);
            let mut end = 0;
            for range in pages {
                bytes += range.end.saturating_sub(range.start.max(end)) * PAGE as u64;
                end = end.max(range.end);
            }
        }
        Ok(bytes)
    }
}
