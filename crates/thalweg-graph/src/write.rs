//! Changing a network: commits, imports, flushes and compactions.
//!
//! ```text
//! change, compaction ──> writer ──> definitions, change_records, flush, import, truncate
//! ```

pub(crate) mod change;
pub(crate) mod change_records;
pub(crate) mod compaction;
pub(crate) mod definitions;
pub(crate) mod flush;
pub(crate) mod import;
pub(crate) mod truncate;
pub(crate) mod writer;
