//! The files of a network: what each byte means, how it is written, and how it is checked.
//!
//! ```text
//! pack ──> segment ──> column ──> lists, table ──> footer ──> manifest ──> segment_reader
//!                                   table ──> log_record     log
//! ```

pub(crate) mod checkpoint;
pub(crate) mod column;
pub(crate) mod footer;
pub(crate) mod grouped_lists;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod log_record;
pub(crate) mod manifest;
pub(crate) mod pack;
pub(crate) mod schema;
pub(crate) mod segment;
pub(crate) mod segment_reader;
pub(crate) mod table;
