//! Refuses what only libhdf5 reads.

use std::sync::Arc;

use thalweg_io::control::Control;
use thalweg_io::store::JoinedStore;
use thalweg_io::{Error, Result};

use crate::array::Array;
use crate::metadata::Node;
use crate::other_files::OtherFiles;

/// A file that is not opened.
#[derive(Debug)]
pub(crate) struct Library(Arc<str>);

impl Library {
    #[expect(clippy::unnecessary_wraps, reason = "libhdf5 may fail")]
    pub(crate) fn open(
        joined: &Arc<JoinedStore>,
        _other_files: &OtherFiles,
        _control: &Control,
    ) -> Result<Self> {
        Ok(Self(joined.main().name().clone()))
    }

    fn refused<T>(&self, node: &Node) -> Result<T> {
        Err(Error::Unsupported {
            file: self.0.clone(),
            what: format!("{}, which only libhdf5 reads,", node.path()).into(),
            advice: "build thalweg with its feature hdf5".into(),
        })
    }

    pub(crate) fn rows(
        &self,
        node: &Node,
        _array: &Array,
        _rows: (u64, u64),
        _out: &mut Vec<u8>,
    ) -> Result<()> {
        self.refused(node)
    }
}
