//! FAST5: HDF5 files with a group for each read.
//!
//! ```text
//! multi-read   /read_<id>/{Raw, channel_id, context_tags, tracking_id}, the last two shared by a run's reads
//! single-read  /Raw/Reads/Read_<n>, /UniqueGlobalKey/{channel_id, context_tags, tracking_id}
//! ```
//!
//! There is no specification; ONT's ont_fast5_api 4.1.3 (<https://github.com/nanoporetech/ont_fast5_api>) is what writes
//! and reads it. A file presents itself in SLOW5's words: [`Layout::header`] and a record a read.

mod fields;
mod found;
mod layout;
mod merge;
#[cfg(feature = "hdf5")]
mod scan;
mod walk;
#[cfg(feature = "hdf5")]
mod write;

pub use found::{Found, Place, Root};
pub use layout::{Layout, Row, RowDecoder, Rows, Unpacker};
pub use merge::Known;
pub use walk::{State, Walk};
#[cfg(feature = "hdf5")]
pub use write::{Compression, Compressor, Encoded, FileWriter, holds, lost};
