//! Reads by id: the index of a file.

use std::path::Path;
use std::sync::Arc;

use thalweg_io::Result;

use super::ReadFile;
use crate::file::IndexOrigin;
use crate::record::Index;

impl ReadFile {
    /// The index of the file: loaded where there is one that fits, else built and saved. It is held
    /// in memory, about 65 bytes a read; POD5's own, by which reads are found, is not, and
    /// [`ReadFile::load_index`] asks for no more.
    ///
    /// It lies beside the file as slow5tools names it (`reads.blow5.idx`), or in the user's cache
    /// folder where the file's own folder cannot be written. An index older than the file is built
    /// anew.
    ///
    /// # Errors
    /// A defect of the file, or an index beside it that is not one: that is somebody's file, and is
    /// not overwritten.
    pub fn index(&self) -> Result<(Arc<Index>, IndexOrigin)> {
        self.reads.index(&self.file)
    }

    /// The index of the file if there is one already: nothing is read but that.
    ///
    /// # Errors
    /// An index beside the file that is not one, or another file's.
    pub fn saved_index(&self) -> Result<Option<Arc<Index>>> {
        self.reads.saved_index(&self.file)
    }

    /// How many reads the file has, if that is known without reading all of it: from the index, or
    /// from the heads of POD5's tables.
    ///
    /// # Errors
    /// As [`ReadFile::saved_index`]; a damaged table.
    pub fn known_reads(&self) -> Result<Option<u64>> {
        self.reads.known_reads(&self.file)
    }

    /// Makes ready what reads by id need: as [`ReadFile::index`], but for a format with an index of
    /// its own kind that is all that is loaded or built.
    ///
    /// # Errors
    /// As [`ReadFile::index`].
    pub fn load_index(&self) -> Result<IndexOrigin> {
        self.reads.load_index(&self.file)
    }

    /// The ids of all reads in the order of the file. Memory: what the ids take, about 70 bytes
    /// each.
    ///
    /// # Errors
    /// As [`ReadFile::index`], but for a read id that occurs twice.
    pub fn read_ids(&self) -> Result<Vec<String>> {
        self.reads.read_ids(&self.file)
    }

    /// Builds the index by reading the file, decoding no more of each record than its read id
    /// takes.
    ///
    /// # Errors
    /// A defect of the file: a damaged record, a missing end, a read id that occurs twice.
    pub fn build_index(&self) -> Result<Index> {
        self.reads.build_index(&self.file)
    }

    /// Builds the index and writes it to `place`, in the form that belongs to the file's format.
    ///
    /// # Errors
    /// As [`ReadFile::build_index`]; [`Error::Io`](thalweg_io::Error::Io) when it cannot be
    /// written.
    pub fn write_index(&self, place: &Path) -> Result<()> {
        self.reads.write_index(&self.file, place)
    }

    /// Which of `ids` the file has.
    pub(super) fn has(&self, ids: &[&str]) -> Result<Vec<bool>> {
        self.reads.has(&self.file, ids)
    }
}
