//! The changes that a commit makes.

use arrow_array::RecordBatch;

/// A change to a network.
#[derive(Debug, Clone)]
pub enum Change {
    /// Adds vertices of a type. Vertices that exist keep their attributes.
    AddVertices {
        /// The number of the type.
        vertex_type: usize,
        /// The ids.
        ids: Vec<u64>,
        /// The attributes, a row for each element.
        attributes: Option<RecordBatch>,
    },
    /// Sets the attributes of vertices, and adds those that do not exist.
    SetVertices {
        /// The number of the type.
        vertex_type: usize,
        /// The ids.
        ids: Vec<u64>,
        /// The attributes, a row for each element.
        attributes: RecordBatch,
    },
    /// Removes vertices of a type, and all their edges.
    RemoveVertices {
        /// The number of the type.
        vertex_type: usize,
        /// The ids. Vertices that do not exist are ignored.
        ids: Vec<u64>,
    },
    /// Adds edges, and the vertices at their ends that do not exist. In a population with at most
    /// one edge between two vertices, edges that exist keep their attributes.
    AddEdges {
        /// The number of the population.
        population: usize,
        /// Pairs of source and target.
        edges: Vec<(u64, u64)>,
        /// The attributes, a row for each element.
        attributes: Option<RecordBatch>,
    },
    /// Removes all edges between pairs of vertices.
    RemoveEdges {
        /// The number of the population.
        population: usize,
        /// Pairs of source and target. Edges that do not exist are ignored.
        edges: Vec<(u64, u64)>,
    },
    /// Removes all edges of a population.
    ClearEdges {
        /// The number of the population.
        population: usize,
    },
    /// Removes all vertices of a type, and all their edges.
    ClearVertices {
        /// The number of the type.
        vertex_type: usize,
    },
}

/// How many vertices and edges a commit added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Committed {
    /// Vertices added.
    pub vertices_added: u64,
    /// Vertices removed.
    pub vertices_removed: u64,
    /// Edges added.
    pub edges_added: u64,
    /// Edges removed.
    pub edges_removed: u64,
}
