//! Networks: typed vertices, edges between them in both directions, and a store for them that changes and survives.

pub mod input;

pub use input::{EdgeSource, Edges, Input, Population, VertexSource, Vertices};
