//! HDF5: what is in a file and where it lies, for the engine to fetch and decode.
//!
//! [`meta`] parses what the files of interest are made of; libhdf5 reads the rest, and writes. It reads through a driver over
//! [`Store`](crate::store::Store), so that it works on every store, stays inside the file, and ends when the work is cancelled.
//! It is not thread-safe: every call holds one lock of the process.

#[cfg(feature = "hdf5")]
mod around;
#[cfg(feature = "hdf5")]
mod array;
#[cfg(feature = "hdf5")]
mod dataset;
#[cfg(feature = "hdf5")]
mod driver;
#[cfg(feature = "hdf5")]
mod dtype;
#[cfg(feature = "hdf5")]
mod elsewhere;
mod encode;
pub mod extents;
mod filter;
#[cfg(feature = "hdf5")]
mod grid;
#[cfg(feature = "hdf5")]
mod library;
pub mod meta;
#[cfg(feature = "hdf5")]
mod object;
#[cfg(feature = "hdf5")]
mod plug;
#[cfg(feature = "hdf5")]
mod rewrite;
#[cfg(feature = "hdf5")]
mod scales;
#[cfg(feature = "hdf5")]
mod texts;
mod types;
#[cfg(feature = "hdf5")]
mod variable;
#[cfg(feature = "hdf5")]
mod write;

#[cfg(feature = "hdf5")]
pub use around::{Around, Reach};
#[cfg(feature = "hdf5")]
pub use array::{Array, Found, Place};
#[cfg(feature = "hdf5")]
pub use dtype::Dtype;
pub use encode::Coder;
pub(crate) use encode::Encoder;
pub use extents::Extents;
pub use filter::{Contexts, Filter, Pipeline};
#[cfg(feature = "hdf5")]
pub use library::version;
#[cfg(feature = "hdf5")]
pub use object::{File, Link, Node};
#[cfg(feature = "hdf5")]
pub use rewrite::{Form, Lie, Made, Recast, Rewrite, Version};
pub use types::{Chunk, Dataset, Storage, Value};
#[cfg(feature = "hdf5")]
pub use variable::Variable;
#[cfg(feature = "hdf5")]
pub use write::{Enumeration, Group, Number, Rows, RowsOf, Stored, Vector, VectorOf, Writer, is_name};
