//! Arrays of HDF5 files, through the engine of `thalweg-io`.
//!
//! [`metadata`] parses what the files of interest are made of; libhdf5 reads the rest, and writes.
//! Values never go through libhdf5 where they can be fetched and decoded by all threads.

#[cfg(feature = "libhdf5")]
pub mod arrays;
#[cfg(feature = "libhdf5")]
pub mod doctor;
pub mod encode;
pub mod extents;
pub mod filter;
#[cfg(feature = "libhdf5")]
pub mod guard;
#[cfg(feature = "libhdf5")]
pub mod libhdf5;
pub mod metadata;
#[cfg(feature = "libhdf5")]
pub mod nexus;
#[cfg(feature = "libhdf5")]
pub mod repack;
pub mod synth;
pub mod types;

/// First bytes of an HDF5 file without a user block (HDF5 file format specification 3.0,
/// "Superblock").
pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
