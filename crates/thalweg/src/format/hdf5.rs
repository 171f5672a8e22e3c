//! HDF5: libhdf5 says where things lie and what they are called; the engine fetches and decodes them.
//!
//! libhdf5 reads through a driver over [`Store`](crate::store::Store), so that it works on every store, stays inside the
//! file, and ends when the work is cancelled. It is not thread-safe: every call holds one lock of the process.

mod dataset;
mod driver;
mod filter;
mod library;
mod object;
mod write;

pub use dataset::{Chunk, Dataset, Storage};
pub use filter::{Contexts, Filter, Pipeline};
pub use library::version;
pub use object::{File, Link, Node, Value};
pub use write::{Enumeration, Group, Number, Stored, Writer, is_name};
