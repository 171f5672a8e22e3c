//! One read at a time, by id, on the caller's own thread.

use std::sync::Arc;

use super::collect::{LIKELY_RATIO, check_id, unframe};
use super::{Read, ReadFile};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::format::slow5::{Decoder, Entry, Index};

/// Gets single reads. Keeps its codec contexts and buffers from one to the next; make one a thread.
#[derive(Debug)]
pub struct Getter<'a> {
    file: &'a ReadFile,
    index: Arc<Index>,
    contexts: Decoder,
    stored: Vec<u8>,
    samples: Vec<i16>,
}

impl ReadFile {
    /// Prepares to get single reads; loads or builds the index.
    ///
    /// # Errors
    /// As [`ReadFile::index`].
    pub fn getter(&self) -> Result<Getter<'_>> {
        let (index, _) = self.index()?;
        let contexts = Decoder::new(self.options.budget.memory);
        Ok(Getter { file: self, index, contexts, stored: Vec::new(), samples: Vec::new() })
    }
}

impl Getter<'_> {
    /// Shows one read to `f`, and hands on what it makes of it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index has no such read; a defect of its record.
    pub fn get<T>(&mut self, read_id: &str, f: impl FnOnce(&Read<'_>) -> T) -> Result<T> {
        let offset = self.fetch(read_id)?;
        let file = self.file;
        let extent = Extent { offset, ordinal: 0, bytes: &self.stored };
        let at = |fault: crate::Fault| fault.in_file(file.store.name(), offset, format!("read {read_id}"));
        let (start, stored) = unframe(&file.header, &extent).map_err(at)?;
        self.contexts.set_limit(file.options.budget.memory.max(self.stored.len().saturating_mul(LIKELY_RATIO)));
        self.samples.clear();
        let record =
            self.contexts.record(&file.header, stored, &mut self.samples).map_err(|fault| at(fault.shifted(start)))?;
        check_id(file.store.name(), offset, read_id, record.read_id)?;
        Ok(f(&Read { ordinal: 0, offset, record: &record, samples: &self.samples, header: &file.header }))
    }

    /// Fetches one read's stored bytes, as [`Getter::get`] does first; tells where they lie.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index has no such read.
    pub fn fetch(&mut self, read_id: &str) -> Result<u64> {
        let file = self.file;
        let Some(Entry { offset, size }) = self.index.get(read_id) else {
            return Err(Error::NotFound {
                file: file.store.name().clone(),
                what: format!("read {read_id}").into(),
                advice: "check the id; if the file has changed, delete its .idx".into(),
            });
        };
        // The index was checked against the file's size, so no more is allocated than the file holds.
        self.stored.resize(size as usize, 0);
        file.store.read_at(offset, &mut self.stored)?;
        Ok(offset)
    }
}
