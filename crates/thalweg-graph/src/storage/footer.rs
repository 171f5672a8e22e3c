//! The footer of a segment: which lists, columns and tables it holds, and where they lie.

use serde::{Deserialize, Serialize};

use crate::storage::column::ColumnMeta;
use crate::storage::lists::ListsMeta;
use crate::storage::schema::Side;
use crate::storage::table::TableMeta;

/// The number of this layout.
pub(crate) const VERSION: u32 = 2;

/// What stands at the end of a segment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Footer {
    pub(crate) version: u32,
    pub(crate) edges: Vec<EdgeSection>,
    pub(crate) vertices: Vec<VertexSection>,
}

impl Footer {
    /// What it says of a population's edges on a side.
    pub(crate) fn edges(&self, population: usize, side: Side) -> Option<&EdgeSection> {
        self.edges.iter().find(|edges| edges.population == population && edges.side == side)
    }

    /// What it says of a type's vertices.
    pub(crate) fn vertices(&self, vertex_type: usize) -> Option<&VertexSection> {
        self.vertices.iter().find(|vertices| vertices.vertex_type == vertex_type)
    }
}

/// Edges of a population, by their vertices on one side.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EdgeSection {
    pub(crate) population: usize,
    pub(crate) side: Side,
    pub(crate) added: Option<ListsMeta>,
    pub(crate) removed: Option<ListsMeta>,
    /// Attributes of those added, with those that go out.
    pub(crate) table: Option<TableMeta>,
}

/// Vertices of a type.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VertexSection {
    #[serde(rename = "type")]
    pub(crate) vertex_type: usize,
    pub(crate) added: Option<ColumnMeta>,
    pub(crate) removed: Option<ColumnMeta>,
    /// Attributes of vertices, whether or not they were there before.
    pub(crate) table: Option<TableMeta>,
}

impl VertexSection {
    /// A section of vertices that were added, without attributes.
    pub(crate) fn of_added(vertex_type: usize, added: ColumnMeta) -> Self {
        Self { vertex_type, added: Some(added), removed: None, table: None }
    }
}
