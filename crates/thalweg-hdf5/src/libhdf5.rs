//! Bindings of libhdf5, which writes files, and copies the groups and attributes of a file that is
//! rewritten.
//!
//! libhdf5 reads through a driver over [`Store`](thalweg_io::store::Store), so that it works on
//! every store, stays inside the file, and ends when the work is cancelled. It is not thread-safe:
//! every call holds one lock of the process.

pub(crate) mod allowance;
mod driver;
mod file;
mod filter_plugins;
mod handle;
mod rewrite;
mod write;

pub(crate) use file::File;
pub use handle::version;
pub use rewrite::LibraryVersion;
pub(crate) use rewrite::{Rewrite, RewrittenDataset};
pub use write::{
    Enumeration, Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber, StoredSignal, Vector,
    VectorSpec, is_name,
};
