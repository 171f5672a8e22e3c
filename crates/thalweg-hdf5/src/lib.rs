//! HDF5 files: arrays read in parallel, NeXus events, diagnosis of slow layouts, and rewriting.
//!
//! [`metadata`], a reader in safe Rust, finds where the bytes of a dataset are in the file. It
//! fetches what all objects need next together. The engine of `thalweg-io` fetches the values in
//! file order, and all threads decode them. libhdf5 writes files, and copies what is no array from
//! a file that is repacked.
//!
//! # Read a selection of an array
//!
//! ```
//! use thalweg_hdf5::arrays::{ArrayFile, Selection, ArrayRequest};
//! use thalweg_hdf5::libhdf5::{StoredNumber, VectorSpec, Hdf5Writer};
//! use thalweg_io::open::Options;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("counts.h5");
//!
//! // Write /detector/counts: eight 32-bit integers in two chunks.
//! let writer = Hdf5Writer::create(&path, &"counts.h5".into())?;
//! let group = writer.group(None, "detector")?;
//! let shape = VectorSpec { kind: StoredNumber::U32, len: 8, chunk: Some(4), filters: &[] };
//! let counts = writer.vector(&group, "counts", shape)?;
//! for (first, values) in [(0, [0u32, 10, 20, 30]), (4, [40, 50, 60, 70])] {
//!     let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
//!     writer.chunk(&counts, first, &bytes, 0)?;
//! }
//! drop((counts, group));
//! writer.finish()?;
//!
//! // Read elements 3 to 5.
//! let file = ArrayFile::open(&path, Options::default())?;
//! let datasets = file.below("/detector/counts")?;
//! let dataset = datasets.first().ok_or("no dataset")?;
//! let mut out = [0; 3 * 4];
//! let selection = Selection::Elements(3..6);
//! file.read(&mut [ArrayRequest { dataset, selection, out: &mut out }])?;
//! let values: Vec<u8> = [30u32, 40, 50].iter().flat_map(|value| value.to_le_bytes()).collect();
//! assert_eq!(out, values[..]);
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! An arrow points from a module to a module that it uses. There is no cycle.
//!
//! ```text
//!   doctor    nexus    repack              synth
//!      |        |      |    |                |
//!      +--------+------+    +--------+-------+
//!               v                    v
//!            arrays               libhdf5
//!               |                    |
//!               |                    v
//!               |                  stored -----> encode
//!               v                    |
//!           metadata <---------------+
//!               |
//!               +------------+----------------+
//!               v            v                v
//!          other_files    extents           array -----> dtype, filter, types
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`mod@array`] | arrays: shape, type of the elements, and where these lie |
//! | [`dtype`] | types of elements in numpy's terms |
//! | [`convert`] | elements that numpy has no type for |
//! | [`other_files`] | the other files that hold values, and where they may lie |
//! | [`superblock`] | the signature of an HDF5 file, and its offset |
//! | [`filter`] | the filters of chunks: decoding |
//! | [`encode`] | the filters of chunks: encoding |
//! | [`types`] | attribute values, chunks and datasets of samples |
//! | [`metadata`] | a reader of HDF5 metadata in safe Rust |
//! | [`extents`] | the saved index of chunk offsets |
//! | [`mapping`] | virtual datasets: which elements of other datasets they show |
//! | `grid` | an array as a grid of tiles |
//! | `stored` | how a dataset is stored, and how its copy is to be stored |
//! | `libhdf5` | bindings, for writing only |
//! | [`arrays`] | datasets read through the engine: selections, slices, strings |
//! | [`nexus`] | banks, pulses, events and logs of NeXus files |
//! | [`doctor`] | layout problems of a file, and the predicted gain of repacking it |
//! | `repack` | a file rewritten with other chunks or filters |
//! | [`synth`] | synthetic NeXus files |
//!
//! The modules without a link need the feature `libhdf5` (on by default), which builds libhdf5 from
//! source.

pub mod array;
pub mod arrays;
pub mod convert;
pub mod doctor;
pub mod dtype;
pub mod encode;
pub mod extents;
pub mod filter;
#[cfg(feature = "libhdf5")]
mod grid;
#[cfg(feature = "libhdf5")]
pub mod libhdf5;
pub mod mapping;
pub mod metadata;
pub mod nexus;
pub mod other_files;
#[cfg(feature = "libhdf5")]
pub mod repack;
mod slab;
#[cfg(feature = "libhdf5")]
mod stored;
pub mod superblock;
pub mod synth;
pub mod types;

pub use superblock::{SIGNATURE, is_hdf5};

/// The example of the README.
#[cfg(all(doctest, feature = "libhdf5"))]
#[doc = include_str!("../README.md")]
struct Readme;
