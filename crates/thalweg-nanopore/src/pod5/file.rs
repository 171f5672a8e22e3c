//! POD5 files through the engine.
//!
//! The data of a read lies in three places: its row in a batch of the Reads table, the places of
//! its signal rows in the heads and tails of Signal batches, and the signal itself. The look-ahead
//! thread ([`look_ahead`]) fetches the first two in few small requests. It gives the engine the
//! extents of signal to fetch, and the workers a list of the reads in them ([`work_list`]). Neither
//! table is ever held in memory as a whole.

mod cache;
mod check;
mod get;
mod ids;
mod index;
mod look_ahead;
mod lookup;
mod open;
mod recover;
mod signal_ahead;
mod sort;
mod tables;
mod work_list;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use thalweg_io::Result;
use thalweg_io::engine::Shape;
use thalweg_io::extent::{Extent, Source};

use super::fields::RUN_INFO;
use super::{Container, RowCoding, RunInfo, RunValue};
use crate::file::{
    CheckReport, FormatFile, GetReads, IndexOrigin, NewUnpacker, OpenFile, RequestTotals,
    Selection, UnpackReads,
};
use crate::record::{Header, Index, Record, StoredRow};
use get::Pod5Getter;
use index::Pod5Index;
use look_ahead::ReadPurpose;
use tables::Tables;
use work_list::WorkQueue;

pub(crate) use open::open;
pub(crate) use work_list::Pod5Unpacker;

/// An open POD5 file.
#[derive(Debug)]
pub(crate) struct Pod5File {
    container: Container,
    /// Whether a footer is missing or damaged, so that tables were found by walking through the
    /// file.
    is_recovered: bool,
    tables: Arc<Tables>,
    /// Descriptions of the file's content that a read cannot hold.
    left_out: Vec<String>,
}

/// General properties of a POD5 file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pod5Info<'a> {
    /// A UUID as text, new for each written file.
    pub identifier: &'a str,
    /// The version of the library that wrote the file. POD5 has no other version number for the
    /// format as a whole.
    pub version: &'a str,
    /// The software that wrote the file.
    pub software: &'a str,
    /// How the signal is stored.
    pub signal: RowCoding,
    /// The number of batches of the Reads table.
    pub reads_batches: usize,
    /// The number of batches of the Signal table.
    pub signal_batches: usize,
    /// The number of rows of each Signal batch except the last.
    pub signal_rows: u64,
}

impl Pod5File {
    /// The column and the number of the first run without a value in a column that POD5 defines.
    /// The POD5 library finds no run without an id, and writes no missing values.
    pub(crate) fn run_gap(&self) -> Option<(&'static str, usize)> {
        let runs = &self.tables.reads.run_infos;
        RUN_INFO.iter().find_map(|&(name, _)| {
            let is_gap = |run: &RunInfo| matches!(run.get(name), None | Some(RunValue::Missing));
            Some((name, runs.iter().position(is_gap)?))
        })
    }

    /// General properties of the file.
    pub(crate) fn info(&self) -> Pod5Info<'_> {
        Pod5Info {
            identifier: &self.container.file_identifier,
            version: &self.container.version,
            software: &self.container.software,
            signal: self.tables.coding(),
            reads_batches: self.tables.reads_blocks.len(),
            signal_batches: self.tables.signal_blocks.len(),
            signal_rows: self.tables.rows_per_batch,
        }
    }

    /// How the signal is stored.
    pub(crate) fn signal_coding(&self) -> RowCoding {
        self.tables.coding()
    }

    /// The extents of the selected reads, and the queue that gives the workers of a run the reads
    /// of each extent.
    fn plan(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        purpose: ReadPurpose,
    ) -> Result<(Source, Arc<WorkQueue>)> {
        let wanted = self.wanted(file, selection)?;
        look_ahead::start(
            &self.tables,
            wanted,
            shape,
            file.window(),
            &file.options.control,
            purpose,
        )
    }

    /// A constructor of the unpackers that decode the reads of a run.
    fn unpacker(&self, queue: Arc<WorkQueue>) -> NewUnpacker<Pod5Unpacker> {
        let tables = self.tables.clone();
        Arc::new(move |_| Pod5Unpacker::new(tables.clone(), queue.clone()))
    }
}

/// Whether a file that begins so is an index of a POD5 file.
pub(crate) fn is_index(head: &[u8]) -> bool {
    Pod5Index::is_start(head)
}

impl FormatFile for Pod5File {
    type Unpacker = Pod5Unpacker;

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn note(&self) -> Option<String> {
        let words = "a footer is missing or damaged (cut short, or never finished): tables were \
                     found by walking through the file, which `thalweg convert` makes whole";
        self.is_recovered.then(|| words.into())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<(Source, NewUnpacker<Pod5Unpacker>)> {
        let purpose = if signal { ReadPurpose::Samples } else { ReadPurpose::Fields };
        let (source, queue) = self.plan(file, selection, shape, purpose)?;
        Ok((source, self.unpacker(queue)))
    }

    fn single_unpacker(&self, _file: &OpenFile) -> Pod5Unpacker {
        Pod5Unpacker::new(self.tables.clone(), Arc::default())
    }

    fn getter<'a>(&'a self, file: &'a OpenFile) -> Result<Box<dyn GetReads + 'a>> {
        Ok(Box::new(Pod5Getter::new(file, self)?))
    }

    fn build_index(&self, file: &OpenFile) -> Result<Index> {
        self.entries(file)
    }

    /// The saved index of a POD5 file has rows but no sizes. It suffices for all operations except
    /// for this method, which looks up the sizes.
    fn load(&self, file: &OpenFile, _path: &Path) -> Result<Option<Index>> {
        Ok(if self.saved_rows(file)?.is_some() { Some(self.entries(file)?) } else { None })
    }

    fn load_or_build(&self, file: &OpenFile) -> Result<(Index, IndexOrigin)> {
        let (_, origin) = self.row_index(file)?;
        Ok((self.entries(file)?, origin))
    }

    fn has_index(&self, file: &OpenFile) -> Result<bool> {
        Ok(self.saved_rows(file)?.is_some() || self.fetch_rows(file)?.is_some())
    }

    fn load_index(&self, file: &OpenFile) -> Result<IndexOrigin> {
        self.row_index(file).map(|(_, origin)| origin)
    }

    fn write_index(&self, file: &OpenFile, place: &Path) -> Result<()> {
        self.write_row_index(file, place)
    }

    fn known_reads(&self, file: &OpenFile) -> Result<Option<u64>> {
        let rows = self.tables.rows(&file.options.control)?;
        rows.into_iter().sum::<Result<u64>>().map(Some)
    }

    fn read_ids(&self, file: &OpenFile) -> Result<Vec<String>> {
        self.all_ids(file)
    }

    fn has(&self, file: &OpenFile, ids: &[&str]) -> Result<Vec<bool>> {
        ids.iter().map(|id| Ok(self.row(file, id)?.is_some())).collect()
    }

    /// Counts the requests for signal. Those for parts of the tables are made, and not counted.
    fn requests(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<RequestTotals> {
        let purpose = if signal { ReadPurpose::Samples } else { ReadPurpose::Fields };
        let (source, queue) = self.plan(file, selection, shape, purpose)?;
        let mut totals = RequestTotals::default();
        let Source::Planned(mut plan) = source else { return Ok(totals) };
        loop {
            match plan.poll() {
                Poll::Pending => plan.wait(Duration::MAX),
                Poll::Ready(None) => return Ok(totals),
                Poll::Ready(Some(fetch)) => {
                    queue.pass()?;
                    totals.add(file, &fetch);
                }
            }
        }
    }

    fn check(&self, file: &OpenFile) -> Result<CheckReport> {
        self.check_all(file, None)
    }

    /// Writes a new file, because the tables refer to each other. The rows of the Reads table are
    /// encoded again; their signal is copied as stored. All reads with the same id are kept.
    fn salvage(&self, file: &OpenFile, out: &Path) -> Result<CheckReport> {
        self.salvage_to(file, out)
    }
}

impl UnpackReads for Pod5Unpacker {
    fn read<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>> {
        match rows {
            None => self.read_with(extent, limit, samples, |_| ()),
            Some(rows) => self.read_with(extent, limit, samples, rows),
        }
    }

    fn fields<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        _limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        self.record(extent)
    }

    fn stored<'a>(
        &'a mut self,
        _header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        self.record_and_rows(extent, limit, rows)
    }

    fn trim(&mut self, keep: usize) {
        self.trim_buffers(keep);
    }
}
