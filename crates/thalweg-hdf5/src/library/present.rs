//! Reads through libhdf5.

use std::sync::Arc;

use thalweg_io::Result;
use thalweg_io::control::Control;
use thalweg_io::store::JoinedStore;

use crate::array::Array;
use crate::libhdf5::{File, Node as LibraryNode};
use crate::metadata::Node;
use crate::other_files::OtherFiles;

/// A file as libhdf5 has opened it.
#[derive(Debug)]
pub(crate) struct Library(pub(crate) File);

impl Library {
    /// Opens a file. It should be inspected first, because libhdf5 may crash on it.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses.
    pub(crate) fn open(
        joined: &Arc<JoinedStore>,
        other_files: &OtherFiles,
        control: &Control,
    ) -> Result<Self> {
        File::open_joined(joined, other_files.clone(), control).map(Self)
    }

    fn at(&self, node: &Node) -> Result<LibraryNode> {
        self.0.at(node.address(), node.path())
    }

    /// Reads `rows` rows of an array from the row `from` on, as [`LibraryNode::rows`] does.
    ///
    /// # Errors
    /// [`Error::Malformed`](thalweg_io::Error::Malformed) for what libhdf5 refuses.
    pub(crate) fn rows(
        &self,
        node: &Node,
        array: &Array,
        (from, rows): (u64, u64),
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.at(node)?.rows(array, from, rows, out)
    }
}
