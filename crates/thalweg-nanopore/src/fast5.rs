//! FAST5: HDF5 files with a group for each read.
//!
//! ```text
//! multi-read   /read_<id>/{Raw, channel_id, context_tags, tracking_id}
//! single-read  /Raw/Reads/Read_<n>, /UniqueGlobalKey/{channel_id, context_tags, tracking_id}
//! ```
//!
//! In a multi-read file, the reads of a run share `context_tags` and `tracking_id`.
//!
//! There is no specification; ONT's ont_fast5_api 4.1.3
//! (<https://github.com/nanoporetech/ont_fast5_api>) is the reference. A file is presented in the
//! model of SLOW5: [`Fast5Layout::header`], and a record for each read.

mod encode;
mod fields;
mod file;
mod layout;
mod layout_builder;
mod merge;
#[cfg(not(feature = "hdf5"))]
mod no_libhdf5;
mod read_groups;
mod target;
#[cfg(feature = "hdf5")]
mod write;
mod writer;

pub use encode::{Compression, EncodedRead, SignalCompressor};
pub(crate) use file::{Fast5Unpacker, open};
pub use layout::{Fast5Layout, Fast5Row, Fast5RowDecoder, RowUnpacker, WantedRows};
pub use layout_builder::{KnownReads, LayoutBuilder};
pub use merge::KnownFields;
#[cfg(not(feature = "hdf5"))]
pub use no_libhdf5::{FileWriter, holds, lost};
pub use read_groups::{FoundRead, ReadAddress, Root, has_reads};
#[cfg(feature = "hdf5")]
pub use write::{FileWriter, holds, lost};

pub(crate) use target::Fast5Target;
pub use writer::Fast5Writer;
