//! Inputs of an import: vertices and edges of a file, batch by batch, in bounded memory.

mod columns;
mod hdf5;
mod lists;
pub mod ngv;
mod numbers;
mod sonata;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use thalweg_io::{Result, open};

pub use crate::storage::checkpoint::ImportOrigin;
pub use crate::storage::schema::Population;

pub use hdf5::open;

/// Options for importing a file.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Options for reading the file.
    pub read: open::Options,
    /// Only edges from vertices with ids in this range are imported.
    pub sources: Range<u64>,
}

impl Default for InputOptions {
    fn default() -> Self {
        Self { read: open::Options::default(), sources: 0..u64::MAX }
    }
}

impl InputOptions {
    /// Whether all edges are imported.
    pub fn is_all(&self) -> bool {
        self.sources == (0..u64::MAX)
    }
}

/// A batch of edges, as runs of edges from the same vertex.
#[derive(Debug, Clone, Default)]
pub struct EdgeBatch {
    /// Source vertices, and how many of [`EdgeBatch::targets`] belong to each. A vertex may be
    /// repeated, in any order.
    pub runs: Vec<(u64, usize)>,
    /// The targets of the edges, run after run.
    pub targets: Vec<u64>,
    /// The attributes of the edges, a row for each target; `None` if the population has none.
    pub attributes: Option<RecordBatch>,
}

impl EdgeBatch {
    /// Empties the batch, and keeps its memory.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.targets.clear();
        self.attributes = None;
    }
}

/// Reads the edges of a population, batch by batch.
pub trait EdgeSource: Send {
    /// The population of the edges.
    fn population(&self) -> &Population;

    /// The number of all edges, if it is known.
    fn total(&self) -> Option<u64>;

    /// Whether sources ascend, so that all edges from a vertex follow each other.
    fn is_grouped(&self) -> bool {
        false
    }

    /// Replaces `edges` by the next batch. Returns `false` if there are no more.
    ///
    /// # Errors
    /// The first defect of the file.
    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool>;
}

/// A batch of vertices of one type.
#[derive(Debug, Clone, Default)]
pub struct VertexBatch {
    /// The ids of the vertices.
    pub ids: Vec<u64>,
    /// The attributes, a row for each id; `None` if the type has none.
    pub attributes: Option<RecordBatch>,
}

/// Reads the vertices of a type, batch by batch. They are added even if they have no edge.
pub trait VertexSource: Send {
    /// The name of the type.
    fn vertex_type(&self) -> &str;

    /// The attributes of the type.
    fn attributes(&self) -> &SchemaRef;

    /// The number of all vertices, if it is known.
    fn total(&self) -> Option<u64>;

    /// Replaces `vertices` by the next batch. Returns `false` if there are no more.
    ///
    /// # Errors
    /// The first defect of the file.
    fn next(&mut self, vertices: &mut VertexBatch) -> Result<bool>;
}

/// The contents of a file to import.
#[derive(Default)]
pub struct Input {
    /// The file and the options. An interrupted import of an input with an origin continues when it
    /// is called again.
    pub origin: Option<ImportOrigin>,
    /// The vertices of some types. A type that only edges mention needs none.
    pub vertices: Vec<Box<dyn VertexSource>>,
    /// The edges of some populations.
    pub edges: Vec<Box<dyn EdgeSource>>,
    /// Descriptions of what is not imported, and why.
    pub left_out: Vec<String>,
    /// Values that the network does not hold as they are, by dataset. They are counted while the
    /// input is read.
    pub lost: Vec<Arc<LostValues>>,
}

/// Counts of the values of a dataset that the network does not hold as they are.
#[derive(Debug)]
pub struct LostValues {
    path: String,
    /// Codes for which the file has no name. They become null.
    unnamed: AtomicU64,
    /// Strings with bytes that are not UTF-8. U+FFFD replaces these bytes.
    not_utf8: AtomicU64,
}

impl LostValues {
    pub(crate) fn new(path: &str) -> Arc<Self> {
        let (unnamed, not_utf8) = Default::default();
        Arc::new(Self { path: path.to_owned(), unnamed, not_utf8 })
    }

    pub(crate) fn add_unnamed(&self, codes: u64) {
        self.unnamed.fetch_add(codes, Ordering::Relaxed);
    }

    /// The string of these bytes. It is counted if it is not UTF-8.
    pub(crate) fn text<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, Cow::Owned(_)) {
            self.not_utf8.fetch_add(1, Ordering::Relaxed);
        }
        text
    }

    /// Descriptions of what was lost so far.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let counts = [
            (&self.unnamed, "codes without a name in @library"),
            (&self.not_utf8, "strings that are not UTF-8; U+FFFD replaces the bytes at fault"),
        ];
        counts
            .map(|(count, what)| (count.load(Ordering::Relaxed), what))
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{}: {count} {what}", self.path))
    }
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
