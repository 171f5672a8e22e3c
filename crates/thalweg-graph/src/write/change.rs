//! The changes that a commit makes.

use arrow_array::RecordBatch;

/// Something to be done to a network.
#[derive(Debug, Clone)]
pub enum Change {
    /// Adds vertices of a type that are not there. Those that are keep their attributes.
    AddVertices {
        /// The number of the type.
        vertex_type: usize,
        /// Their ids.
        ids: Vec<u64>,
        /// Their attributes, a row for each.
        attributes: Option<RecordBatch>,
    },
    /// Gives vertices other attributes, and adds those that are not there.
    SetVertices {
        /// The number of the type.
        vertex_type: usize,
        /// Their ids.
        ids: Vec<u64>,
        /// Their attributes, a row for each.
        attributes: RecordBatch,
    },
    /// Removes vertices of a type, and all edges from and to them.
    RemoveVertices {
        /// The number of the type.
        vertex_type: usize,
        /// Their ids. Those that are not there are left out.
        ids: Vec<u64>,
    },
    /// Adds edges, and the vertices at their ends that are not there. Where the population knows
    /// one edge between two vertices only, those that are there stay as they are.
    AddEdges {
        /// The number of the population.
        population: usize,
        /// Pairs of where an edge leaves and where it leads.
        edges: Vec<(u64, u64)>,
        /// Their attributes, a row for each.
        attributes: Option<RecordBatch>,
    },
    /// Removes all edges between pairs of vertices.
    RemoveEdges {
        /// The number of the population.
        population: usize,
        /// Pairs of where an edge leaves and where it leads. Those that are not there are left out.
        edges: Vec<(u64, u64)>,
    },
    /// Removes all edges of a population.
    ClearEdges {
        /// The number of the population.
        population: usize,
    },
    /// Removes all vertices of a type, and all edges from and to them.
    ClearVertices {
        /// The number of the type.
        vertex_type: usize,
    },
}

/// What a commit did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Committed {
    /// Vertices that are new.
    pub vertices_added: u64,
    /// Vertices that are gone.
    pub vertices_removed: u64,
    /// Edges that are new.
    pub edges_added: u64,
    /// Edges that are gone.
    pub edges_removed: u64,
}
