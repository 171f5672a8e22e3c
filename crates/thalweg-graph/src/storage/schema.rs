//! What a network consists of: types of vertices and populations of edges.

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

/// Which end of its edges a vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one that they leave.
    Out,
    /// The one that they lead to.
    In,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// An edge: where it leaves, where it leads, and its number; 0 where edges have none.
pub(crate) type Edge = (u64, u64, u64);

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

/// A type of vertices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexType {
    /// Its name; unique within a network.
    pub name: String,
    /// Attributes of a vertex.
    pub attributes: SchemaRef,
    /// How many there are in the segments.
    pub(crate) count: u64,
    /// What segments before this number say of them is gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) since: u64,
}

/// A population of edges, and what there is of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PopulationEntry {
    /// What they are.
    #[serde(flatten)]
    pub population: Population,
    /// The number of the type that they leave from.
    pub(crate) source: usize,
    /// And of the one that they lead to.
    pub(crate) target: usize,
    /// How many there are in the segments.
    pub(crate) count: u64,
    /// The number of the next edge, where edges have numbers.
    pub(crate) next: u64,
    /// What segments before this number say of them is gone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) since: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl PopulationEntry {
    /// Whether edges have numbers: where there may be several between two vertices, and where they
    /// have attributes.
    pub fn is_numbered(&self) -> bool {
        self.population.is_multi || !self.population.attributes.fields().is_empty()
    }

    /// The number of the type of the vertices at one end of the edges.
    pub(crate) fn type_at(&self, side: Side) -> usize {
        match side {
            Side::Out => self.source,
            Side::In => self.target,
        }
    }

    /// Whether edges have no direction and both ends are of one type: such an edge is kept once,
    /// with its lesser end first.
    pub(crate) fn is_symmetric(&self) -> bool {
        !self.population.is_directed && self.source == self.target
    }
}
