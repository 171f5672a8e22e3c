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
mod signature;
pub mod synth;
pub mod types;

pub use signature::{SIGNATURE, is_hdf5};
