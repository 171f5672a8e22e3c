//! The index of edges at each node: ranges of rows.

use std::ops::Range;

use thalweg_hdf5::libhdf5::{Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber};
use thalweg_io::Result;

/// The number of rows that one write holds.
const ROWS_AT_ONCE: usize = 1 << 16;
/// With more nodes for an edge than this, most rows repeat the row before: they are compressed.
const SPARSE: u64 = 4;
/// Rows of a compressed chunk. A reader of one node decompresses all of it.
const SPARSE_CHUNK: u64 = 1 << 12;

/// The bytes of a range: two numbers.
const RANGE_BYTES: u64 = 16;

fn is_sparse(ids: u64, edges: u64) -> bool {
    ids / SPARSE > edges
}

/// Writes an index. Nodes ascend.
pub(super) struct EdgeIndex {
    /// For each node, its rows in `ranges`.
    nodes: RangeDataset,
    /// Ranges of edges.
    ranges: RangeDataset,
    /// The number of nodes that the index has rows for.
    ids: u64,
}

/// A dataset of ranges, two numbers a row.
struct RangeDataset {
    rows: RowsWriter,
    waiting: Vec<u8>,
    len: u64,
}

impl RangeDataset {
    fn new(writer: &Hdf5Writer, group: &NewGroup, name: &str, rows: u64) -> Result<Self> {
        let chunk = rows.clamp(1, super::CHUNK / 2);
        Self::with(writer, group, name, RowsSpec { columns: Some(2), chunk, gzip: None })
    }

    fn with(writer: &Hdf5Writer, group: &NewGroup, name: &str, of: RowsSpec) -> Result<Self> {
        Ok(Self {
            rows: writer.rows(group, name, StoredNumber::U64, None, of)?,
            waiting: Vec::new(),
            len: 0,
        })
    }

    fn push(&mut self, writer: &Hdf5Writer, range: Range<u64>) -> Result<()> {
        self.waiting.extend_from_slice(&range.start.to_le_bytes());
        self.waiting.extend_from_slice(&range.end.to_le_bytes());
        self.len += 1;
        if self.waiting.len() == ROWS_AT_ONCE * RANGE_BYTES as usize {
            self.flush(writer)
        } else {
            Ok(())
        }
    }

    fn flush(&mut self, writer: &Hdf5Writer) -> Result<()> {
        writer.push(&mut self.rows, &self.waiting)?;
        self.waiting.clear();
        Ok(())
    }
}

impl EdgeIndex {
    /// The most nodes for an index of `edges` edges. An index of more would consist mostly of empty
    /// rows.
    pub(super) fn most(edges: u64) -> u64 {
        edges.saturating_mul(64).max(1 << 20)
    }

    /// About how many bytes the rows of an index of `ids` nodes and `edges` edges take.
    pub(super) fn bytes(ids: u64, edges: u64) -> u64 {
        match ids {
            ids if ids > Self::most(edges) => 0,
            ids if is_sparse(ids, edges) => edges.saturating_mul(RANGE_BYTES),
            ids => ids * RANGE_BYTES,
        }
    }

    /// Starts an index of `ids` nodes and at most `edges` edges.
    pub(super) fn new(
        writer: &Hdf5Writer,
        indices: &NewGroup,
        name: &str,
        ids: u64,
        edges: u64,
    ) -> Result<Self> {
        let group = writer.group(Some(indices), name)?;
        let name = "node_id_to_ranges";
        let nodes = if is_sparse(ids, edges) {
            let of = RowsSpec { columns: Some(2), chunk: SPARSE_CHUNK, gzip: Some(1) };
            RangeDataset::with(writer, &group, name, of)?
        } else {
            RangeDataset::new(writer, &group, name, ids)?
        };
        Ok(Self {
            nodes,
            ranges: RangeDataset::new(writer, &group, "range_to_edge_id", edges)?,
            ids,
        })
    }

    /// Adds the edges of a node. Each call takes a greater node than the call before.
    pub(super) fn push(
        &mut self,
        writer: &Hdf5Writer,
        node: u64,
        edges: &[Range<u64>],
    ) -> Result<()> {
        self.skip(writer, node)?;
        let first = self.ranges.len;
        edges.iter().try_for_each(|range| self.ranges.push(writer, range.clone()))?;
        self.nodes.push(writer, first..self.ranges.len)
    }

    /// Adds empty rows for the nodes before `node`.
    fn skip(&mut self, writer: &Hdf5Writer, node: u64) -> Result<()> {
        let here = self.ranges.len;
        while self.nodes.len < node {
            self.nodes.push(writer, here..here)?;
        }
        Ok(())
    }

    /// Writes the rows that are still in memory.
    pub(super) fn finish(mut self, writer: &Hdf5Writer) -> Result<()> {
        self.skip(writer, self.ids)?;
        self.nodes.flush(writer)?;
        self.ranges.flush(writer)
    }
}
