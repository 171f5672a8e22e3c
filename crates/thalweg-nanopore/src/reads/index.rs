//! The index of a file by read id.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::Result;
use thalweg_io::index_fetch::{IndexBeside, index_beside};

use super::ReadFile;
use crate::file::IndexOrigin;
use crate::record::Index;

impl ReadFile {
    /// The index of the file. A current one is loaded; otherwise it is built and saved. It takes
    /// about 65 bytes of memory per read. POD5 files have an index of their own kind for finding
    /// reads, which takes less memory and is all that [`ReadFile::load_index`] loads.
    ///
    /// The index is saved beside the file under the name that slow5tools uses (`reads.blow5.idx`),
    /// or in the user's cache folder if the file's folder is not writable. An index that is older
    /// than the file is built again.
    ///
    /// # Errors
    /// A defect of the file, or a file at the index's place that is not an index. Such a file is
    /// not overwritten, because somebody may need it.
    pub fn index(&self) -> Result<(Arc<Index>, IndexOrigin)> {
        self.reads.index(&self.file)
    }

    /// The saved index of the file, if there is one. Only the index is read.
    ///
    /// # Errors
    /// A file at the index's place that is not an index, or that belongs to another file.
    pub fn saved_index(&self) -> Result<Option<Arc<Index>>> {
        self.reads.saved_index(&self.file)
    }

    /// What lies beside an object at a URL in the place of its index, from where
    /// [`ReadFile::fetch_index`] fetches it. It is looked for with one request.
    ///
    /// # Errors
    /// [`Error::Cancelled`](thalweg_io::Error::Cancelled).
    pub fn index_beside(&self) -> Result<Option<IndexBeside>> {
        let Some(path) = &self.file.path else { return Ok(None) };
        index_beside(path, self.file.store.size(), &self.file.options.control)
    }

    /// Fetches the index that lies beside an object at a URL, unless there is one here. Returns
    /// whether reads are found by id without reading the whole file.
    ///
    /// # Errors
    /// Those of [`ReadFile::saved_index`].
    pub fn fetch_index(&self) -> Result<bool> {
        self.reads.has_index(&self.file)
    }

    /// The number of reads, if it is known without reading the whole file: from the index, or from
    /// the heads of the batches of a POD5 file.
    ///
    /// # Errors
    /// Those of [`ReadFile::saved_index`], and a damaged table.
    pub fn known_reads(&self) -> Result<Option<u64>> {
        self.reads.known_reads(&self.file)
    }

    /// Loads or builds the index that reading by id needs: that of [`ReadFile::index`], or the
    /// format's own kind of index.
    ///
    /// # Errors
    /// Those of [`ReadFile::index`].
    pub fn load_index(&self) -> Result<IndexOrigin> {
        self.reads.load_index(&self.file)
    }

    /// The ids of all reads in the order of the file. They take about 70 bytes of memory each.
    ///
    /// # Errors
    /// Those of [`ReadFile::index`], except for a read id that occurs twice.
    pub fn read_ids(&self) -> Result<Vec<String>> {
        self.reads.read_ids(&self.file)
    }

    /// Builds the index by reading the file. Only the read id of each record is decoded.
    ///
    /// # Errors
    /// A defect of the file: a damaged record, a missing end, a read id that occurs twice.
    pub fn build_index(&self) -> Result<Index> {
        self.reads.build_index(&self.file)
    }

    /// Builds the index and writes it to `place`, as the kind of index of the file's format.
    ///
    /// # Errors
    /// Those of [`ReadFile::build_index`]; [`Error::Io`](thalweg_io::Error::Io) if the index cannot
    /// be written.
    pub fn write_index(&self, place: &Path) -> Result<()> {
        self.reads.write_index(&self.file, place)
    }

    /// For each of `ids`, whether the file has the read.
    pub(super) fn has(&self, ids: &[&str]) -> Result<Vec<bool>> {
        self.reads.has(&self.file, ids)
    }
}
