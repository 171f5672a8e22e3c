//! Both indices of a population's edges: by source, and by target.

use thalweg_hdf5::libhdf5::{Hdf5Writer, NewGroup};
use thalweg_io::Result;

use super::index::EdgeIndex;
use crate::external_sort::EdgeSorter;
use crate::read::network::Network;

/// Collects the edges of a population for its two indices. Sources ascend, so that the index by
/// source is written along with the edges; edges are sorted for the index by target.
pub(super) struct EdgeIndices {
    by_source: Option<EdgeIndex>,
    by_target: Option<EdgeIndex>,
    /// Edges by target.
    sorter: EdgeSorter,
    /// The source whose edges are arriving, and the row of its first edge.
    current: Option<(u64, u64)>,
    rows: u64,
}

impl EdgeIndices {
    /// Starts both indices. Leaves out an index that would consist mostly of empty rows, and also
    /// returns descriptions of the indices that are left out.
    pub(super) fn create(
        writer: &Hdf5Writer,
        group: &NewGroup,
        network: &Network,
        population: usize,
        sorter: EdgeSorter,
    ) -> Result<(Self, Vec<String>)> {
        let edges = &network.populations()[population].population;
        let count = network.edge_count(population);
        let indices = writer.group(Some(group), "indices")?;
        let mut left_out = Vec::new();
        let mut index = |name: &str, kind: &str| -> Result<Option<EdgeIndex>> {
            let last = greatest_id(network, network.type_of(kind)?)?;
            let ids = last.map_or(Some(0), |id| id.checked_add(1));
            if let Some(ids) = ids.filter(|ids| *ids <= EdgeIndex::most(count)) {
                return EdgeIndex::new(writer, &indices, name, ids, count).map(Some);
            }
            left_out.push(format!(
                "/edges/{}/indices/{name}: it has a row for each id of {kind:?} up to the \
                 greatest, and few have edges",
                edges.name
            ));
            Ok(None)
        };
        let by_source = index("source_to_target", &edges.source)?;
        let by_target = index("target_to_source", &edges.target)?;
        Ok((Self { by_source, by_target, sorter, current: None, rows: 0 }, left_out))
    }

    /// Adds the next edges.
    pub(super) fn push(
        &mut self,
        writer: &Hdf5Writer,
        sources: &[u64],
        targets: &[u64],
    ) -> Result<()> {
        let mut at = 0;
        for run in sources.chunk_by(|one, two| one == two) {
            let source = run[0];
            let first = self.rows + at as u64;
            if self.current.is_some_and(|(last, _)| last != source) {
                self.end_source(writer, first)?;
            }
            self.current.get_or_insert((source, first));
            if self.by_target.is_some() {
                let numbers: Vec<u64> = (first..first + run.len() as u64).collect();
                self.sorter.push(source, &targets[at..at + run.len()], &numbers)?;
            }
            at += run.len();
        }
        self.rows += at as u64;
        Ok(())
    }

    /// Writes the rows of the current source, which end before row `end`.
    fn end_source(&mut self, writer: &Hdf5Writer, end: u64) -> Result<()> {
        if let Some((source, start)) = self.current.take()
            && let Some(index) = &mut self.by_source
        {
            index.push(writer, source, std::slice::from_ref(&(start..end)))?;
        }
        Ok(())
    }

    /// Ends both indices. Returns how many edges there were.
    pub(super) fn finish(
        mut self,
        writer: &Hdf5Writer,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.end_source(writer, self.rows)?;
        if let Some(index) = self.by_source {
            index.finish(writer)?;
        }
        let Some(mut index) = self.by_target else {
            progress(self.rows);
            return Ok(self.rows);
        };
        let mut ranges = Vec::new();
        self.sorter.drain(&mut |lists| {
            for (target, _, edges) in lists.lists() {
                ranges.clear();
                let runs = edges.chunk_by(|one, two| one + 1 == *two);
                ranges.extend(runs.map(|run| run[0]..run[0] + run.len() as u64));
                index.push(writer, target, &ranges)?;
                progress(edges.len() as u64);
            }
            Ok(())
        })?;
        index.finish(writer)?;
        Ok(self.rows)
    }
}

/// The greatest id of a type.
pub(super) fn greatest_id(network: &Network, vertex_type: usize) -> Result<Option<u64>> {
    let mut greatest = None;
    network.vertices(vertex_type, 0..=u64::MAX, &mut |ids| {
        greatest = ids.last().copied();
        Ok(())
    })?;
    Ok(greatest)
}
