//! Networks: typed vertices, edges between them in both directions, and a store for them that
//! changes and survives.
//!
//! A network is a folder of files: a *manifest*, *segments* that are written once, and a *log* of
//! what changed since. Who reads sees it as it was when it was opened; one at a time may write.
//! `docs/formats/graph.md` has the bytes.

mod export;
mod external_sort;
#[doc(hidden)]
#[allow(
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "reports by panicking, as tests do"
)]
pub mod fuzz_targets;
pub mod input;
#[cfg(not(feature = "hdf5"))]
mod no_hdf5;
mod read;
mod repair;
mod storage;
pub mod synth;
mod write;

pub use export::SonataWriter;
pub use input::{EdgeBatch, EdgeSource, Input, InputOptions, VertexBatch, VertexSource};
pub use read::check::{Checked, Defect};
pub use read::neighbours::Neighbours;
pub use read::network::{Adjacency, Direction, Network, NetworkOptions, StorageUse};
pub use read::rows::EdgeSelection;
pub use repair::{LostRecords, RepairReport, RepairSummary, repair, repair_on};
pub use storage::checkpoint::{Imported, Origin};
pub use storage::column::Coding;
pub use storage::schema::{Population, PopulationEntry, Side, VertexType};
pub use write::change::{Change, Committed};
pub use write::writer::Writer;
