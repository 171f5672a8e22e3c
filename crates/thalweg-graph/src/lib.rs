//! Networks: typed vertices, edges between them in both directions, and a store for them that
//! changes and survives.
//!
//! A network is a folder of files: a *manifest*, *segments* that are written once, and a *log* of
//! what changed since. Who reads sees it as it was when it was opened; one at a time may write.
//! `docs/formats/graph.md` has the bytes.

mod attributes;
mod check;
mod clear;
mod column;
mod compact;
mod effects;
mod explore;
mod fetch;
#[doc(hidden)]
#[allow(
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "reports by panicking, as tests do"
)]
pub mod hostile;
mod import;
pub mod input;
mod level;
mod log;
mod manifest;
mod merge;
mod neighbours;
mod network;
mod pack;
mod recent;
mod repair;
mod resolve;
mod rows;
mod segment;
#[cfg(feature = "hdf5")]
mod sonata;
mod sort;
pub mod synth;
mod table;
#[cfg(not(feature = "hdf5"))]
mod without;
mod writer;

pub use check::{Checked, Defect};
pub use column::Coding;
pub use import::Imported;
pub use input::{EdgeSource, Edges, Input, Origin, Population, VertexSource, Vertices};
pub use level::Side;
pub use manifest::{Edges as EdgeKind, VertexType};
pub use neighbours::Neighbours;
pub use network::{Direction, Network, Options, Storage, Way};
pub use repair::{Kept, Lost, Repaired, repair, repair_on};
pub use rows::EdgeSelection;
#[cfg(feature = "hdf5")]
pub use sonata::SonataWriter;
#[cfg(not(feature = "hdf5"))]
pub use without::SonataWriter;
pub use writer::{Change, Committed, Writer};
