//! What libhdf5 says of a file: what is in it and where it lies, for the engine to fetch and
//! decode.
//!
//! libhdf5 reads through a driver over [`Store`](thalweg_io::store::Store), so that it works on
//! every store, stays inside the file, and ends when the work is cancelled. It is not thread-safe:
//! every call holds one lock of the process.

mod around;
mod array;
mod dataset;
mod driver;
mod dtype;
mod elsewhere;
mod grid;
mod handle;
mod object;
mod plug;
mod rewrite;
mod scales;
mod texts;
mod variable;
mod write;

pub use around::{Around, Reach};
pub use array::{Array, Found, Place};
pub use dtype::Dtype;
pub use handle::version;
pub use object::{File, Link, Node};
pub use rewrite::{Form, Lie, Made, Recast, Rewrite, Version};
pub use variable::Variable;
pub use write::{
    Enumeration, Group, Number, Rows, RowsOf, Stored, Vector, VectorOf, Writer, is_name,
};
