//! The parts of a network: types of vertices and populations of edges.

use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

/// The end of an edge at which a vertex is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The source: edges leave from it.
    Out,
    /// The target: edges lead to it.
    In,
}

impl Side {
    /// The other end.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// An edge: its source, its target, and its number, which is 0 if edges have no numbers.
pub(crate) type Edge = (u64, u64, u64);

/// A population: edges of one kind between two types of vertices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Population {
    /// The name; unique within a network.
    pub name: String,
    /// The name of the type that edges leave from.
    #[serde(rename = "from")]
    pub source: String,
    /// The name of the type that edges lead to.
    #[serde(rename = "to")]
    pub target: String,
    /// Whether edges have a direction. Queries follow them in this direction by default.
    pub is_directed: bool,
    /// Whether two vertices may have several edges. If not, adding an edge that exists has no
    /// effect.
    pub is_multi: bool,
    /// The attributes of an edge.
    pub attributes: SchemaRef,
}

/// `name (source -> target)`, or `--` for edges without a direction.
impl std::fmt::Display for Population {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, source, target, is_directed, is_multi, .. } = self;
        let arrow = if *is_directed { "->" } else { "--" };
        let multi = if *is_multi { ", several edges between two vertices" } else { "" };
        write!(f, "{name} ({source} {arrow} {target}{multi})")
    }
}

impl Population {
    /// The error text where a population of the same name is there already, and differs.
    #[must_use]
    pub fn differs_from(&self, known: &Self) -> String {
        format!("there is a population {known}, which is not {self}: choose another name")
    }
}

/// A type of vertices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexType {
    /// The name; unique within a network.
    pub name: String,
    /// The attributes of a vertex.
    pub attributes: SchemaRef,
    /// How many vertices the segments hold.
    pub(crate) count: u64,
    /// Segments with a number below this one no longer count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) since: u64,
}

/// A population of a network, with its counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PopulationEntry {
    /// The definition of the population.
    #[serde(flatten)]
    pub population: Population,
    /// The number of the type that edges leave from.
    pub(crate) source: usize,
    /// The number of the type that edges lead to.
    pub(crate) target: usize,
    /// How many edges the segments hold.
    pub(crate) count: u64,
    /// The number of the next edge, if edges have numbers.
    pub(crate) next: u64,
    /// Segments with a number below this one no longer count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) since: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl PopulationEntry {
    /// Whether edges have numbers: they do if two vertices may have several edges, or if edges have
    /// attributes.
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
