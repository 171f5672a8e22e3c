//! Getting single reads by id on the caller's thread.

use thalweg_io::Result;

use super::{Read, ReadFile};
use crate::file::GetReads;

/// Gets single reads. A getter reuses its codec contexts and buffers. Each thread needs its own.
pub struct Getter<'a> {
    file: &'a ReadFile,
    reads: Box<dyn GetReads + 'a>,
    samples: Vec<i16>,
}

impl std::fmt::Debug for Getter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Getter").field("file", self.file).finish_non_exhaustive()
    }
}

impl ReadFile {
    /// Prepares to get single reads. Loads or builds the index.
    ///
    /// # Errors
    /// Those of [`ReadFile::index`].
    pub fn getter(&self) -> Result<Getter<'_>> {
        let reads = self.reads.getter(&self.file)?;
        Ok(Getter { file: self, reads, samples: Vec::new() })
    }
}

impl Getter<'_> {
    /// Decodes one read, calls `f` with it, and returns what `f` returns.
    ///
    /// # Errors
    /// [`Error::NotFound`](thalweg_io::Error::NotFound) if the index does not have the read; a
    /// defect of the record.
    pub fn get<T>(&mut self, read_id: &str, f: impl FnOnce(&Read<'_>) -> T) -> Result<T> {
        self.samples.clear();
        let read = self.reads.get(read_id, &mut self.samples)?;
        let header = read.header.as_deref().unwrap_or(&self.file.file.header);
        Ok(f(&Read {
            ordinal: 0,
            offset: read.offset,
            record: &read.record,
            samples: &self.samples,
            stored: &[],
            sample_count: self.samples.len() as u64,
            header,
        }))
    }

    /// The number of stored bytes of the last fetched read.
    pub fn stored_bytes(&self) -> u64 {
        self.reads.stored_bytes()
    }

    /// Fetches the stored bytes of one read without decoding them. Returns their offset in the
    /// file.
    ///
    /// # Errors
    /// [`Error::NotFound`](thalweg_io::Error::NotFound) if the index does not have the read.
    pub fn fetch(&mut self, read_id: &str) -> Result<u64> {
        self.reads.fetch(read_id)
    }
}
