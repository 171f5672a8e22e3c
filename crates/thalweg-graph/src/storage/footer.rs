//! The footer of a segment: which lists, columns and tables it holds, and where they lie.

use serde::{Deserialize, Serialize};

use crate::storage::column::ColumnMeta;
use crate::storage::lists::ListsMeta;
use crate::storage::schema::Side;
use crate::storage::table::TableMeta;

/// The version of the layout.
pub(crate) const VERSION: u32 = 2;

/// The footer of a segment.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Footer {
    pub(crate) version: u32,
    pub(crate) edges: Vec<EdgeSection>,
    pub(crate) vertices: Vec<VertexSection>,
}

impl Footer {
    /// The section of a population's edges on a side, if there is one.
    pub(crate) fn edges(&self, population: usize, side: Side) -> Option<&EdgeSection> {
        self.edges.iter().find(|edges| edges.population == population && edges.side == side)
    }

    /// The section of a type's vertices, if there is one.
    pub(crate) fn vertices(&self, vertex_type: usize) -> Option<&VertexSection> {
        self.vertices.iter().find(|vertices| vertices.vertex_type == vertex_type)
    }
}

/// The edges of a population that a segment adds and removes, by their vertices on one side.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EdgeSection {
    pub(crate) population: usize,
    pub(crate) side: Side,
    pub(crate) added: Option<ListsMeta>,
    pub(crate) removed: Option<ListsMeta>,
    /// The attributes of added edges. Only the section of the outgoing side has them.
    pub(crate) table: Option<TableMeta>,
}

/// The vertices of a type that a segment adds and removes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct VertexSection {
    #[serde(rename = "type")]
    pub(crate) vertex_type: usize,
    pub(crate) added: Option<ColumnMeta>,
    pub(crate) removed: Option<ColumnMeta>,
    /// Attributes of vertices that the segment adds, or that existed before.
    pub(crate) table: Option<TableMeta>,
}

impl VertexSection {
    /// A section of vertices that were added, without attributes.
    pub(crate) fn of_added(vertex_type: usize, added: ColumnMeta) -> Self {
        Self { vertex_type, added: Some(added), removed: None, table: None }
    }
}
