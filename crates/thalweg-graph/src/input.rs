//! What is brought into a store: edges and vertices, a piece at a time, in bounded memory.

#[cfg(feature = "hdf5")]
mod columns;
#[cfg(feature = "hdf5")]
mod hdf5;
#[cfg(feature = "hdf5")]
mod lists;
#[cfg(feature = "hdf5")]
pub mod ngv;
#[cfg(feature = "hdf5")]
mod numbers;
#[cfg(feature = "hdf5")]
mod sonata;

use std::ops::Range;
use std::path::Path;
use std::time::UNIX_EPOCH;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};
use thalweg_io::{Result, open};

#[cfg(not(feature = "hdf5"))]
pub use crate::without::open;
#[cfg(feature = "hdf5")]
pub use hdf5::open;

/// How a file is brought in.
#[derive(Debug, Clone)]
pub struct Options {
    /// How it is read.
    pub read: open::Options,
    /// Only edges that leave from vertices with such ids: the first ones to try things out, or
    /// those from where an import ended.
    pub sources: Range<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { read: open::Options::default(), sources: 0..u64::MAX }
    }
}

impl Options {
    /// Whether every edge is wanted.
    pub fn is_all(&self) -> bool {
        self.sources == (0..u64::MAX)
    }
}

/// Edges of one kind: between vertices of two types.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Population {
    /// Its name; unique within a store.
    pub name: String,
    /// The type of the vertices that its edges leave from.
    #[serde(rename = "from")]
    pub source: String,
    /// The type of the vertices that they lead to.
    #[serde(rename = "to")]
    pub target: String,
    /// Whether an edge can be followed in its direction only, unless it is asked for otherwise.
    pub is_directed: bool,
    /// Whether two vertices may have several edges; else an edge that is there already is not added
    /// again.
    pub is_multi: bool,
    /// Attributes of an edge.
    pub attributes: SchemaRef,
}

/// Edges, as runs of those that leave from the same vertex.
#[derive(Debug, Clone, Default)]
pub struct Edges {
    /// Vertices, and how many of [`Edges::targets`] are each one's. A vertex may come again, in any
    /// order.
    pub runs: Vec<(u64, usize)>,
    /// Where the edges lead to, run after run.
    pub targets: Vec<u64>,
    /// Their attributes, a row for each of [`Edges::targets`]; `None` where the population has
    /// none.
    pub attributes: Option<RecordBatch>,
}

impl Edges {
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
    fn next(&mut self, edges: &mut Edges) -> Result<bool>;
}

/// Vertices of a type.
#[derive(Debug, Clone, Default)]
pub struct Vertices {
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
    fn next(&mut self, vertices: &mut Vertices) -> Result<bool>;
}

/// Which file an input is of, and how it is read: an import that was stopped goes on only with the
/// same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub modified: u64,
    /// How it is read, in any words.
    pub options: String,
}

impl Origin {
    /// That of a file.
    ///
    /// # Errors
    /// [`Error::Io`](thalweg_io::Error::Io).
    pub fn of(path: &Path, options: String) -> Result<Self> {
        let of_file = || {
            let (path, meta) = (std::fs::canonicalize(path)?, std::fs::metadata(path)?);
            let modified =
                meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
            Ok((path, meta.len(), modified))
        };
        let (path, bytes, modified) = of_file().map_err(|e: std::io::Error| {
            thalweg_io::Error::io(&path.to_string_lossy().into(), "opening", e)
        })?;
        Ok(Self { path: path.to_string_lossy().into_owned(), bytes, modified, options })
    }
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
