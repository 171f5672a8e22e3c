//! Reading single reads by id.

use thalweg_io::extent::Extent;
use thalweg_io::{Fault, InFile, Result};

use super::Pod5File;
use super::lookup::{Lookup, Needed};
use super::work_list::{RowDecoder, WorkList};
use crate::file::{GetReads, OpenFile, SingleRead, check_id, no_read};

/// Gets single reads of a POD5 file.
pub(crate) struct Pod5Getter<'a> {
    file: &'a OpenFile,
    pod5: &'a Pod5File,
    lookup: Lookup,
    list: WorkList,
    rows: RowDecoder,
    stored: Vec<u8>,
}

impl<'a> Pod5Getter<'a> {
    pub(crate) fn new(file: &'a OpenFile, pod5: &'a Pod5File) -> Result<Self> {
        pod5.row_index(file)?;
        let lookup = Lookup::new(pod5.tables.clone(), file.options.control.clone());
        Ok(Self {
            file,
            pod5,
            lookup,
            list: WorkList::default(),
            rows: RowDecoder::default(),
            stored: Vec::new(),
        })
    }
}

impl GetReads for Pod5Getter<'_> {
    /// Finds one read and fetches the contiguous first part of its signal. Returns the offset of
    /// that part in the file.
    fn fetch(&mut self, read_id: &str) -> Result<u64> {
        let row = self.pod5.row(self.file, read_id)?;
        let (index, row) = row.ok_or_else(|| no_read(self.file, read_id))?;
        let gone = || {
            Fault::new(0, "nothing", "a batch").in_file(self.file.store.name(), 0, "Reads table")
        };
        let batch = self
            .pod5
            .tables
            .reads_batches(&[index], &self.lookup.control)?
            .pop()
            .ok_or_else(gone)??;
        let mut needed = Needed::default();
        let listed = self.lookup.listed(&batch, row, &mut needed)?;
        let found = self.lookup.places(&mut needed)?;
        self.list.clear();
        self.lookup.entry(&batch, row, &listed, &needed, &found, &mut self.list)?;
        let near = self.list.last_near();
        let start = near.first().map_or(0, |piece| piece.offset);
        let end = near.last().map_or(0, |piece| piece.offset + piece.len);
        // The pieces lie within their batches, and the batches within the file: both were checked.
        self.stored.resize((end - start) as usize, 0);
        self.file.store.read_at(start, &mut self.stored)?;
        Ok(start)
    }

    /// The stored size of the signal of the last fetched read, in bytes.
    fn stored_bytes(&self) -> u64 {
        self.list.last_pieces().iter().map(|piece| piece.len).sum()
    }

    /// Decodes one read and appends its samples to `samples`.
    fn get(&mut self, read_id: &str, samples: &mut Vec<i16>) -> Result<SingleRead<'_>> {
        let offset = self.fetch(read_id)?;
        let extent = Extent { offset, ordinal: 0, bytes: &self.stored };
        let limit = self.file.options.budget.memory;
        let record =
            self.rows.read(&self.pod5.tables, &self.list, 0, &extent, limit, samples, |_| ())?;
        check_id(self.file.store.name(), offset, read_id, record.read_id)?;
        Ok(SingleRead { offset, record, header: None })
    }
}
