//! The index of edges at each node: ranges of rows.

use std::ops::Range;

use thalweg_hdf5::libhdf5::{Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber};
use thalweg_io::Result;

/// The number of rows that one write holds.
const ROWS_AT_ONCE: usize = 1 << 16;
/// With more nodes for an edge than this, an index is left out: nearly all of its rows are empty.
/// It cannot be compressed, because libsonata reads no compressed datasets.
const MOST_NODES_AN_EDGE: u64 = 16;
/// Rows of a chunk of nodes. Chunks without edges are not stored.
const NODES: u64 = 1 << 12;

/// The bytes of a range: two numbers.
const RANGE_BYTES: u64 = 16;

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
    fn new(writer: &Hdf5Writer, group: &NewGroup, name: &str, chunk: u64) -> Result<Self> {
        let of = RowsSpec { columns: Some(2), chunk };
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

    /// Adds rows that are 0..0. A chunk with no other rows is not stored.
    fn skip(&mut self, writer: &Hdf5Writer, rows: u64) -> Result<()> {
        self.flush(writer)?;
        self.len += rows;
        writer.push_filled(&mut self.rows, rows)
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
        edges.saturating_mul(MOST_NODES_AN_EDGE).max(1 << 16)
    }

    /// How many bytes the nodes of an index of `ids` nodes and `edges` edges take at most.
    pub(super) fn bytes(ids: u64, edges: u64) -> u64 {
        if ids > Self::most(edges) { 0 } else { ids * RANGE_BYTES }
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
        let nodes = RangeDataset::new(writer, &group, "node_id_to_ranges", ids.clamp(1, NODES))?;
        Ok(Self {
            nodes,
            ranges: RangeDataset::new(
                writer,
                &group,
                "range_to_edge_id",
                edges.clamp(1, super::CHUNK / 2),
            )?,
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
        let gap = node.saturating_sub(self.nodes.len);
        if gap >= NODES {
            return self.nodes.skip(writer, gap);
        }
        let here = self.ranges.len;
        (0..gap).try_for_each(|_| self.nodes.push(writer, here..here))
    }

    /// Writes the rows that are still in memory.
    pub(super) fn finish(mut self, writer: &Hdf5Writer) -> Result<()> {
        self.skip(writer, self.ids)?;
        self.nodes.flush(writer)?;
        self.ranges.flush(writer)
    }
}
