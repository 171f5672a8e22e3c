//! Bindings of libhdf5: the objects of a file and the offsets of their bytes, for the engine to
//! fetch and decode.
//!
//! libhdf5 reads through a driver over [`Store`](thalweg_io::store::Store), so that it works on
//! every store, stays inside the file, and ends when the work is cancelled. It is not thread-safe:
//! every call holds one lock of the process.

pub(crate) mod allowance;
mod array;
mod chunk_index;
mod dataset;
mod dimension_scales;
mod driver;
mod external;
mod filter_plugins;
mod handle;
pub(crate) mod look;
mod object;
mod rewrite;
mod sources;
mod string_attribute;
mod variable;
mod write;

pub use handle::version;
pub use object::{File, Link, Node};
pub use rewrite::{
    DatasetForm, LibraryVersion, Rewrite, RewrittenDataset, TargetStorage, ValueStorage,
};
pub use write::{
    Enumeration, Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber, StoredSignal, Vector,
    VectorSpec, is_name,
};
