//! Getting single reads by id on the caller's thread.

use std::sync::Arc;

use thalweg_io::extent::Extent;
use thalweg_io::{Error, Result};

use super::{FormatFile, OpenFile, UnpackReads, check_id};
use crate::record::{Header, Index, Record};

/// A single read. Its samples are in the caller's buffer.
#[derive(Debug)]
pub struct SingleRead<'a> {
    /// The offset of the read's record in the file.
    pub offset: u64,
    /// The fields.
    pub record: Record<'a>,
    /// The header that belongs to the record, if it differs from the file's.
    pub header: Option<Arc<Header>>,
}

/// Gets single reads, and reuses codec contexts and buffers.
pub trait GetReads {
    /// Decodes one read, and appends its samples to `samples`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index does not have the read; a defect of the record.
    fn get(&mut self, read_id: &str, samples: &mut Vec<i16>) -> Result<SingleRead<'_>>;

    /// Fetches the stored bytes of one read. Returns their offset in the file.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index does not have the read.
    fn fetch(&mut self, read_id: &str) -> Result<u64>;

    /// The number of stored bytes of the last fetched read.
    fn stored_bytes(&self) -> u64;
}

/// Gets reads by an index of their records' offsets and sizes.
#[derive(Debug)]
pub struct IndexedGetter<'a, F: FormatFile + ?Sized> {
    format: &'a F,
    file: &'a OpenFile,
    index: Arc<Index>,
    unpacker: F::Unpacker,
    stored: Vec<u8>,
}

impl<'a, F: FormatFile + ?Sized> IndexedGetter<'a, F> {
    /// Prepares to get reads. Loads or builds the index.
    ///
    /// # Errors
    /// Those of [`FormatFile::index`].
    pub fn new(format: &'a F, file: &'a OpenFile) -> Result<Self> {
        let (index, _) = format.index(file)?;
        let unpacker = format.single_unpacker(file);
        Ok(Self { format, file, index, unpacker, stored: Vec::new() })
    }

    /// Fetches the stored bytes of one read. Returns their offset and the ordinal of the extent.
    fn locate(&mut self, read_id: &str) -> Result<(u64, u64)> {
        let entry = self.index.get(read_id).ok_or_else(|| no_read(self.file, read_id))?;
        // The index was checked against the file's size, so that at most the size of the file is
        // allocated.
        let (range, ordinal) = self.format.place(entry);
        self.stored.resize((range.end - range.start) as usize, 0);
        self.file.store.read_at(range.start, &mut self.stored)?;
        Ok((range.start, ordinal))
    }
}

impl<F: FormatFile + ?Sized> GetReads for IndexedGetter<'_, F> {
    fn get(&mut self, read_id: &str, samples: &mut Vec<i16>) -> Result<SingleRead<'_>> {
        let (offset, ordinal) = self.locate(read_id)?;
        let extent = Extent { offset, ordinal, bytes: &self.stored };
        let limit = self.file.options.budget.memory;
        let header = self.unpacker.header(&extent)?;
        let record = self.unpacker.read(&self.file.header, &extent, limit, samples, None)?;
        check_id(self.file.name(), offset, read_id, record.read_id)?;
        Ok(SingleRead { offset, record, header })
    }

    fn fetch(&mut self, read_id: &str) -> Result<u64> {
        self.locate(read_id).map(|(offset, _)| offset)
    }

    fn stored_bytes(&self) -> u64 {
        self.stored.len() as u64
    }
}

/// The error about a read that a file does not have.
pub(crate) fn no_read(file: &OpenFile, read_id: &str) -> Error {
    Error::NotFound {
        file: file.name().clone(),
        what: format!("read {read_id}").into(),
        advice: file.advice_on_ids().into(),
    }
}
