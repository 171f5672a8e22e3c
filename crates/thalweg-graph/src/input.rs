//! What is brought into a store: edges and vertices, a piece at a time, in bounded memory.

#[cfg(feature = "hdf5")]
mod columns;
#[cfg(feature = "hdf5")]
mod hdf5;
#[cfg(feature = "hdf5")]
mod lists;
#[cfg(feature = "hdf5")]
pub mod ngv;
#[cfg(not(feature = "hdf5"))]
mod no_hdf5;
#[cfg(feature = "hdf5")]
mod numbers;
#[cfg(feature = "hdf5")]
mod sonata;

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use thalweg_io::{Result, open};

pub use crate::storage::checkpoint::Origin;
pub use crate::storage::schema::Population;

#[cfg(feature = "hdf5")]
pub use hdf5::open;
#[cfg(not(feature = "hdf5"))]
pub use no_hdf5::open;

/// How a file is brought in.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// How it is read.
    pub read: open::Options,
    /// Only edges that leave from vertices with such ids: the first ones to try things out, or
    /// those from where an import ended.
    pub sources: Range<u64>,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self { read: open::Options::default(), sources: 0..u64::MAX }
    }
}

impl InputOptions {
    /// Whether every edge is wanted.
    pub fn is_all(&self) -> bool {
        self.sources == (0..u64::MAX)
    }
}

/// Edges, as runs of those that leave from the same vertex.
#[derive(Debug, Clone, Default)]
pub struct EdgeBatch {
    /// Vertices, and how many of [`EdgeBatch::targets`] are each one's. A vertex may come again, in any
    /// order.
    pub runs: Vec<(u64, usize)>,
    /// Where the edges lead to, run after run.
    pub targets: Vec<u64>,
    /// Their attributes, a row for each of [`EdgeBatch::targets`]; `None` where the population has
    /// none.
    pub attributes: Option<RecordBatch>,
}

impl EdgeBatch {
    /// Forgets all of them, and keeps the memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.targets.clear();
        self.attributes = None;
    }
}

/// Edges of a population, a piece at a time.
pub trait EdgeSource: Send {
    /// What they are.
    fn population(&self) -> &Population;

    /// How many edges there are in all, where that is known.
    fn total(&self) -> Option<u64>;

    /// Whether sources ascend, so that all edges of one come together.
    fn is_grouped(&self) -> bool {
        false
    }

    /// Replaces `edges` by the next ones; `false` if there are no more.
    ///
    /// # Errors
    /// What is wrong with where they come from.
    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool>;
}

/// Vertices of a type.
#[derive(Debug, Clone, Default)]
pub struct VertexBatch {
    /// Their ids.
    pub ids: Vec<u64>,
    /// Their attributes, a row for each; `None` where they have none.
    pub attributes: Option<RecordBatch>,
}

/// Vertices of a type, a piece at a time. They exist even without an edge.
pub trait VertexSource: Send {
    /// Their type.
    fn vertex_type(&self) -> &str;

    /// Their attributes.
    fn attributes(&self) -> &SchemaRef;

    /// How many there are in all, where that is known.
    fn total(&self) -> Option<u64>;

    /// Replaces `vertices` by the next ones; `false` if there are no more.
    ///
    /// # Errors
    /// What is wrong with where they come from.
    fn next(&mut self, vertices: &mut VertexBatch) -> Result<bool>;
}

/// What a file brings.
#[derive(Default)]
pub struct Input {
    /// Where it comes from. An import of an input with an origin can be stopped, and goes on when
    /// it is called again.
    pub origin: Option<Origin>,
    /// Vertices of some types. Types that only edges mention need none.
    pub vertices: Vec<Box<dyn VertexSource>>,
    /// Edges of some populations.
    pub edges: Vec<Box<dyn EdgeSource>>,
    /// What of the file is not brought in, and why, in words.
    pub left_out: Vec<String>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types: Vec<_> = self.vertices.iter().map(|v| v.vertex_type()).collect();
        let populations: Vec<_> = self.edges.iter().map(|e| &e.population().name).collect();
        f.debug_struct("Input")
            .field("vertices", &types)
            .field("edges", &populations)
            .finish_non_exhaustive()
    }
}
