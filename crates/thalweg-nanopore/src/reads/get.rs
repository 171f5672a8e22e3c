//! One read at a time, by id, on the caller's own thread.

use std::sync::Arc;

use thalweg_io::extent::Extent;
use thalweg_io::{Error, Result};

use super::collect::check_id;
use super::layout::{Layout, Unpacker};
use super::pod5::Pod5Getter;
use super::{Read, ReadFile};
use crate::record::Index;

/// Gets single reads. Keeps its codec contexts and buffers from one to the next; make one a thread.
pub struct Getter<'a> {
    file: &'a ReadFile,
    way: Way<'a>,
    samples: Vec<i16>,
}

/// How a read is found and decoded.
enum Way<'a> {
    /// By the index of its record.
    Record { index: Arc<Index>, unpacker: Box<Unpacker>, stored: Vec<u8> },
    /// By tables.
    Pod5(Box<Pod5Getter<'a>>),
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
        let way = if let Layout::Pod5(file) = &self.layout {
            Way::Pod5(Box::new(Pod5Getter::new(self, file)?))
        } else {
            let (index, _) = self.index()?;
            let unpacker = Box::new(self.coding().unpacker(self.options.budget.memory));
            Way::Record { index, unpacker, stored: Vec::new() }
        };
        Ok(Getter { file: self, way, samples: Vec::new() })
    }
}

impl Getter<'_> {
    /// Shows one read to `f`, and hands on what it makes of it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index has no such read; a defect of its record.
    pub fn get<T>(&mut self, read_id: &str, f: impl FnOnce(&Read<'_>) -> T) -> Result<T> {
        self.samples.clear();
        let file = self.file;
        let mut own = None;
        let (offset, record) = match &mut self.way {
            Way::Pod5(getter) => getter.get(read_id, &mut self.samples)?,
            Way::Record { index, unpacker, stored } => {
                let (offset, ordinal) = locate(file, index, stored, read_id)?;
                let extent = Extent { offset, ordinal, bytes: stored };
                let limit = file.options.budget.memory;
                let name = file.store.name();
                own = unpacker.header(&extent)?;
                let record =
                    unpacker.read(name, &file.header, &extent, limit, &mut self.samples, |_| ())?;
                check_id(name, offset, read_id, record.read_id)?;
                (offset, record)
            }
        };
        let sample_count = self.samples.len() as u64;
        let header = own.as_deref().unwrap_or(&file.header);
        Ok(f(&Read {
            ordinal: 0,
            offset,
            record: &record,
            samples: &self.samples,
            stored: &[],
            sample_count,
            header,
        }))
    }

    /// Stored bytes of the read that was fetched last.
    pub fn stored_bytes(&self) -> u64 {
        match &self.way {
            Way::Pod5(getter) => getter.stored_bytes(),
            Way::Record { stored, .. } => stored.len() as u64,
        }
    }

    /// Fetches one read's stored bytes, as [`Getter::get`] does first; tells where they lie.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the index has no such read.
    pub fn fetch(&mut self, read_id: &str) -> Result<u64> {
        match &mut self.way {
            Way::Pod5(getter) => getter.fetch(read_id),
            Way::Record { index, stored, .. } => {
                locate(self.file, index, stored, read_id).map(|(offset, _)| offset)
            }
        }
    }
}

/// Fetches one read's stored bytes; where they lie, and the ordinal that the read's extent has.
fn locate(
    file: &ReadFile,
    index: &Index,
    stored: &mut Vec<u8>,
    read_id: &str,
) -> Result<(u64, u64)> {
    let entry = index.get(read_id).ok_or_else(|| no_read(file, read_id))?;
    // The index was checked against the file's size, so no more is allocated than the file holds.
    let (range, ordinal) = file.place(entry);
    stored.resize((range.end - range.start) as usize, 0);
    file.store.read_at(range.start, stored)?;
    Ok((range.start, ordinal))
}

pub(super) fn no_read(file: &ReadFile, read_id: &str) -> Error {
    Error::NotFound {
        file: file.store.name().clone(),
        what: format!("read {read_id}").into(),
        advice: "check the id; if the file has changed, delete its .idx".into(),
    }
}
