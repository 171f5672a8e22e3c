//! Reading a network: a snapshot of its segments and its log, and the queries on it.
//!
//! ```text
//! memtable ──> snapshot ──> merge ──> network ──> neighbours, attributes, check
//!                           fetch ──────┘            └──> lookup, traversal, rows, node_sets
//! ```

pub(crate) mod attributes;
pub(crate) mod check;
pub(crate) mod fetch;
pub(crate) mod lookup;
pub(crate) mod memtable;
pub(crate) mod merge;
pub(crate) mod neighbours;
pub(crate) mod network;
pub(crate) mod node_sets;
pub(crate) mod rows;
pub(crate) mod snapshot;
pub(crate) mod traversal;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod far_tests;
