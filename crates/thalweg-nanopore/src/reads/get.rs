//! One read at a time, by id, on the caller's own thread.

use thalweg_io::Result;

use super::{Read, ReadFile};
use crate::file::GetReads;

/// Gets single reads. Keeps its codec contexts and buffers from one to the next; make one a thread.
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
    /// Prepares to get single reads; loads or builds the index.
    ///
    /// # Errors
    /// As [`ReadFile::index`].
    pub fn getter(&self) -> Result<Getter<'_>> {
        let reads = self.reads.getter(&self.file)?;
        Ok(Getter { file: self, reads, samples: Vec::new() })
    }
}

impl Getter<'_> {
    /// Decodes one read, calls `f` with it, and returns what `f` returns.
    ///
    /// # Errors
    /// [`Error::NotFound`](thalweg_io::Error::NotFound) if the index has no such read; a defect of
    /// its record.
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

    /// Stored bytes of the read that was fetched last.
    pub fn stored_bytes(&self) -> u64 {
        self.reads.stored_bytes()
    }

    /// Fetches one read's stored bytes, as [`Getter::get`] does first; tells where they lie.
    ///
    /// # Errors
    /// [`Error::NotFound`](thalweg_io::Error::NotFound) if the index has no such read.
    pub fn fetch(&mut self, read_id: &str) -> Result<u64> {
        self.reads.fetch(read_id)
    }
}
