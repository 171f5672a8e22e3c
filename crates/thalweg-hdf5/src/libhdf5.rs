//! Bindings of libhdf5, which writes files. It opens no file that this crate did not make.
//!
//! libhdf5 is not thread-safe: every call holds one lock of the process.

mod driver;
mod filter_plugins;
mod handle;
mod rewrite;
mod write;

pub use handle::version;
pub use rewrite::LibraryVersion;
pub(crate) use rewrite::{Rewrite, RewrittenDataset};
pub use write::{
    Enumeration, Hdf5Writer, NewGroup, RowsSpec, RowsWriter, StoredNumber, StoredSignal, Vector,
    VectorSpec, is_name,
};
