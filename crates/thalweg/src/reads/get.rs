//! One read at a time, by id, on the caller's own thread.

use std::sync::Arc;

use super::collect::check_id;
use super::layout::Unpacker;
use super::{Read, ReadFile};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::format::slow5::Index;

/// Gets single reads. Keeps its codec contexts and buffers from one to the next; make one a thread.
pub struct Getter<'a> {
    file: &'a ReadFile,
    index: Arc<Index>,
    unpacker: Unpacker,
    stored: Vec<u8>,
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
        let (index, _) = self.index()?;
        let unpacker = self.coding().unpacker(self.options.budget.memory);
        Ok(Getter { file: self, index, unpacker, stored: Vec::new(), samples: Vec::new() })
    }
}

impl Getter<'_> {
    /// Shows one read to `f`, and hands on what it makes of it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index has no such read; a defect of its record.
    pub fn get<T>(&mut self, read_id: &str, f: impl FnOnce(&Read<'_>) -> T) -> Result<T> {
        let (offset, ordinal) = self.locate(read_id)?;
        let file = self.file;
        let extent = Extent { offset, ordinal, bytes: &self.stored };
        self.samples.clear();
        let limit = file.options.budget.memory;
        let record = self.unpacker.read(&file.store.name().clone(), &file.header, &extent, limit, &mut self.samples)?;
        check_id(file.store.name(), offset, read_id, record.read_id)?;
        let sample_count = self.samples.len() as u64;
        Ok(f(&Read { ordinal: 0, offset, record: &record, samples: &self.samples, sample_count, header: &file.header }))
    }

    /// Fetches one read's stored bytes, as [`Getter::get`] does first; tells where they lie.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index has no such read.
    pub fn fetch(&mut self, read_id: &str) -> Result<u64> {
        self.locate(read_id).map(|(offset, _)| offset)
    }

    /// The same, and the ordinal that the read's extent has.
    fn locate(&mut self, read_id: &str) -> Result<(u64, u64)> {
        let file = self.file;
        let Some(entry) = self.index.get(read_id) else {
            return Err(Error::NotFound {
                file: file.store.name().clone(),
                what: format!("read {read_id}").into(),
                advice: "check the id; if the file has changed, delete its .idx".into(),
            });
        };
        // The index was checked against the file's size, so no more is allocated than the file holds.
        let (range, ordinal) = file.place(entry);
        self.stored.resize((range.end - range.start) as usize, 0);
        file.store.read_at(range.start, &mut self.stored)?;
        Ok((range.start, ordinal))
    }
}
