//! Which edges there are at each node: the ranges of their rows.

use std::ops::Range;

use thalweg_hdf5::libhdf5::{Group, Number, Rows, RowsOf, Writer};
use thalweg_io::Result;

/// Rows that are written together.
const TOGETHER: usize = 1 << 16;

/// An index being written: nodes ascend.
pub(super) struct EdgeIndex {
    /// Of each node, which of the ranges are its own.
    nodes: RangeDataset,
    /// Ranges of edges.
    ranges: RangeDataset,
    /// Ids that it has rows for.
    ids: u64,
}

/// A dataset of ranges.
struct RangeDataset {
    rows: Rows,
    waiting: Vec<u8>,
    len: u64,
}

impl RangeDataset {
    fn new(writer: &Writer, group: &Group, name: &str, rows: u64) -> Result<Self> {
        let of = RowsOf { columns: Some(2), chunk: rows.clamp(1, super::CHUNK / 2) };
        Ok(Self {
            rows: writer.rows(group, name, Number::U64, None, of)?,
            waiting: Vec::new(),
            len: 0,
        })
    }

    fn push(&mut self, writer: &Writer, range: Range<u64>) -> Result<()> {
        self.waiting.extend_from_slice(&range.start.to_le_bytes());
        self.waiting.extend_from_slice(&range.end.to_le_bytes());
        self.len += 1;
        if self.waiting.len() == TOGETHER * 16 { self.flush(writer) } else { Ok(()) }
    }

    fn flush(&mut self, writer: &Writer) -> Result<()> {
        writer.push(&mut self.rows, &self.waiting)?;
        self.waiting.clear();
        Ok(())
    }
}

impl EdgeIndex {
    /// Ids of nodes that an index of so many edges has rows for, at most: one of more would be
    /// nothing but empty rows.
    pub(super) fn most(edges: u64) -> u64 {
        edges.saturating_mul(64).max(1 << 20)
    }

    /// An index of nodes with so many ids, of at most so many edges.
    pub(super) fn new(
        writer: &Writer,
        indices: &Group,
        name: &str,
        ids: u64,
        edges: u64,
    ) -> Result<Self> {
        let group = writer.group(Some(indices), name)?;
        let nodes = RangeDataset::new(writer, &group, "node_id_to_ranges", ids)?;
        Ok(Self {
            nodes,
            ranges: RangeDataset::new(writer, &group, "range_to_edge_id", edges)?,
            ids,
        })
    }

    /// The edges of the next node that has any.
    pub(super) fn push(&mut self, writer: &Writer, node: u64, edges: &[Range<u64>]) -> Result<()> {
        self.skip(writer, node)?;
        let first = self.ranges.len;
        edges.iter().try_for_each(|range| self.ranges.push(writer, range.clone()))?;
        self.nodes.push(writer, first..self.ranges.len)
    }

    /// Nodes up to one, without edges.
    fn skip(&mut self, writer: &Writer, node: u64) -> Result<()> {
        let here = self.ranges.len;
        while self.nodes.len < node {
            self.nodes.push(writer, here..here)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, writer: &Writer) -> Result<()> {
        self.skip(writer, self.ids)?;
        self.nodes.flush(writer)?;
        self.ranges.flush(writer)
    }
}
