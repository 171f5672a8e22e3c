//! Reading files of reads: select, map, get by id, scan, summarise, check.
//!
//! ```
//! use thalweg_io::open::Options;
//! use thalweg_nanopore::reads::{Read, ReadFile, Selection};
//! use thalweg_nanopore::synth::{Recipe, Synth};
//! use thalweg_nanopore::write::Coding;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("reads.slow5");
//! # let recipe = Recipe { reads: 3, mean_length: 2000.0, ..Recipe::default() };
//! # Synth::new(recipe)?.write(&path, Coding::Slow5)?;
//! let file = ReadFile::open(&path, Options::default())?;
//! // In file order, decoded on all cores:
//! let length = |read: &Read<'_>| (read.record.read_id.to_owned(), read.samples.len());
//! let rows = file.map(&Selection::All, length)?;
//! for row in rows {
//!     let (id, samples) = row?;
//!     println!("{id}: {samples} samples");
//! }
//! # Ok(())
//! # }
//! ```

mod ahead;
mod check;
mod choose;
mod columns;
mod decoder;
mod explain;
mod fetch;
mod find;
mod get;
mod index;
mod open;
mod picoampere;
mod processor;
mod read_set;
mod scan;
mod summary;

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_io::Result;
use thalweg_io::engine::{Clocks, Delivery, Run, Shape};
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::store::Store;

use crate::file::OpenFile;
use crate::format::{AnyFile, Format, StoredAs};
use crate::pod5::{Pod5File, RowCoding};
use crate::record::{Header, Record, StoredRow};
use decoder::{Collect, Mapper, ReadDecoder, Visitors};

pub use crate::file::PaidRequests;
pub use crate::file::{CheckReport, IndexOrigin, IndexState, LostReads, Selection};
pub use crate::pod5::Pod5Info;
pub use choose::Chosen;
pub use columns::{Batch, BatchOptions, Batches, Order, Strings};
pub use decoder::Visitor;
pub use explain::{Explained, Shares};
pub use find::{WantedNames, find, find_named, is_many, pattern};
pub use get::Getter;
pub use picoampere::{PICOAMPERE_COLUMN, picoampere_of};
pub use read_set::{Located, ReadSet};
pub use scan::{FILE_COLUMN, Scan, ScanOptions};
pub use summary::{LengthStats, Lengths, RUN_ATTRIBUTES, RunPart, RunSummary};
pub use thalweg_codec::picoampere::Calibration;
pub use thalweg_io::cells::TYPE_KEY;
pub use thalweg_io::open::{Options, StoreKind};
pub use thalweg_io::sidecar::{
    KeepIndex, index_path, index_place, index_places, old_indexes, places_to_keep,
};

/// One decoded read.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// The read's position in the file, or in the selection.
    pub ordinal: u64,
    /// The offset of the read's record in the file.
    pub offset: u64,
    /// The fields.
    pub record: &'a Record<'a>,
    /// The raw samples: picoampere = (sample + offset) · (range / digitisation). Empty if samples
    /// were not requested.
    pub samples: &'a [i16],
    /// The stored rows of a POD5 file's signal, if these were requested in place of samples;
    /// otherwise empty.
    pub stored: &'a [StoredRow<'a>],
    /// The number of samples of the read.
    pub sample_count: u64,
    /// The header that belongs to the record: that of the file, or the part of it that was known
    /// when the read was decoded.
    pub header: &'a Header,
}

impl Read<'_> {
    /// The sum of the samples.
    pub fn sum(&self) -> i64 {
        sum(self.samples)
    }
}

/// The loop is written so that compilers vectorise it, as they do with the loops of peers.
fn sum(samples: &[i16]) -> i64 {
    // A block's sum fits an i32: 65,536 samples of at most 2^15 each.
    samples
        .chunks(1 << 16)
        .map(|block| i64::from(block.iter().map(|&s| i32::from(s)).sum::<i32>()))
        .sum()
}

/// The totals of a finished run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    /// Reads decoded.
    pub reads: u64,
    /// Samples decoded.
    pub samples: u64,
    /// The length of the chain of requests that depend on each other's answers: those for the
    /// header, then those for the data, summed over all files.
    pub dependent_requests: u64,
    /// The time that each part of the run took.
    pub clocks: Clocks,
}

/// A file of reads, open for reading.
#[derive(Debug)]
pub struct ReadFile {
    pub(crate) file: OpenFile,
    pub(crate) reads: AnyFile,
    format: Format,
    origin: Origin,
    note: Option<String>,
}

impl ReadFile {
    /// The format of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The file's header. Headers of other formats are converted to SLOW5's model. For a FAST5
    /// file, the first call reads the metadata of all reads. Reads that were decoded before belong
    /// to [`Read::header`], which may have fewer fields.
    pub fn header(&self) -> &Header {
        self.whole_header()
    }

    fn whole_header(&self) -> &Arc<Header> {
        self.reads.whole_header(&self.file)
    }

    /// Descriptions of the file's content that the model of a read cannot hold. Empty for formats
    /// that fit the model.
    pub fn left_out(&self) -> &[String] {
        self.reads.left_out()
    }

    /// How a POD5 file's signal is stored.
    pub fn signal_coding(&self) -> Option<RowCoding> {
        self.reads.pod5().map(Pod5File::signal_coding)
    }

    /// How the file stores its reads, if another file can copy them.
    pub(crate) fn stored_as(&self) -> Option<StoredAs> {
        let header = &self.file.header;
        match self.format() {
            Format::Blow5 => Some(StoredAs::Blow5(header.record_press, header.signal_press)),
            _ => self.signal_coding().map(StoredAs::Pod5),
        }
    }

    /// General properties of a POD5 file.
    pub fn pod5_info(&self) -> Option<Pod5Info<'_>> {
        self.reads.pod5().map(Pod5File::info)
    }

    /// A column without a value of a run, if it is a POD5 file that has one.
    pub(crate) fn run_gap(&self) -> Option<(&'static str, usize)> {
        self.reads.pod5()?.run_gap()
    }

    /// The number of successive requests that opening the file took.
    pub fn header_requests(&self) -> u64 {
        self.file.header_requests
    }

    /// The store that holds the file's bytes.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.file.store
    }

    /// The performance model of the store, and where the model comes from.
    pub fn model(&self) -> (StoreModel, Origin) {
        (self.file.model, self.origin)
    }

    /// A warning about the file, if there is one: for example that io_uring is forbidden here, or
    /// that a POD5 file has no footer.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The sizes of buffers and batches that a run will use.
    pub fn shape(&self, delivery: Delivery) -> Shape {
        self.file.shape(delivery)
    }

    /// Calls a visitor with every selected read on the worker that decoded it, in no particular
    /// order. This is the fastest way, because the samples are still in that core's cache.
    /// `visitor` makes one visitor per worker. Returns the visitors.
    ///
    /// # Errors
    /// The first defect, or the first error of a visitor. Any number of other reads may have been
    /// visited before.
    pub fn visit<V: Visitor>(
        &self,
        selection: &Selection,
        visitor: impl Fn() -> V + Send + Sync + 'static,
    ) -> Result<(Vec<V>, Summary)> {
        let run = self.run(selection, Visitors(visitor), Delivery::Worker)?;
        let finished = run.finish()?;
        let mut summary = self.summary(finished.clocks);
        let mut visitors = Vec::with_capacity(finished.workers.len());
        for worker in finished.workers {
            summary.reads += worker.reads;
            summary.samples += worker.samples;
            visitors.push(worker.state);
        }
        Ok((visitors, summary))
    }

    /// Calls `f` with each selected read, and yields the results in the order of the selection. `f`
    /// runs on the decode workers.
    ///
    /// # Errors
    /// [`NotFound`](thalweg_io::Error::NotFound) for unknown ids, [`Io`](thalweg_io::Error::Io) if
    /// no thread can be started. A defect is an item at the place of its read (for an id list, at
    /// the latest at the end of its window). It is the last item.
    pub fn map<T: Send + 'static, F: Fn(&Read<'_>) -> T + Send + Sync + 'static>(
        &self,
        selection: &Selection,
        f: F,
    ) -> Result<impl Iterator<Item = Result<T>> + use<T, F>> {
        self.map_with(selection, || (), move |(), read| f(read))
    }

    /// Maps each selected read like [`ReadFile::map`], with a value that each worker keeps from
    /// read to read, for example an encoder or a buffer.
    ///
    /// # Errors
    /// Those of [`ReadFile::map`].
    pub fn map_with<S, T, I, F>(
        &self,
        selection: &Selection,
        init: I,
        f: F,
    ) -> Result<impl Iterator<Item = Result<T>> + use<S, T, I, F>>
    where
        S: Send + 'static,
        T: Send + 'static,
        I: Fn() -> S + Send + Sync + 'static,
        F: Fn(&mut S, &Read<'_>) -> T + Send + Sync + 'static,
    {
        self.map_as(false, selection, init, f)
    }

    /// Maps each selected read. If `stored` is set, reads have [`Read::stored`] in place of
    /// [`Read::samples`]. The signal is not decoded then, so that damage of the signal is not
    /// detected.
    pub(crate) fn map_as<S, T, I, F>(
        &self,
        stored: bool,
        selection: &Selection,
        init: I,
        f: F,
    ) -> Result<impl Iterator<Item = Result<T>> + use<S, T, I, F>>
    where
        S: Send + 'static,
        T: Send + 'static,
        I: Fn() -> S + Send + Sync + 'static,
        F: Fn(&mut S, &Read<'_>) -> T + Send + Sync + 'static,
    {
        let mut run = self.run(selection, Mapper { stored, init, f }, Delivery::Ordered)?;
        let mut waiting = InOrder::default();
        Ok(std::iter::from_fn(move || {
            loop {
                if let Some(item) = waiting.pop() {
                    return Some(Ok(item));
                }
                match run.next()? {
                    Ok(mut batch) => {
                        waiting.extend(batch.drain(..));
                        run.recycle(batch);
                    }
                    Err(error) => return Some(Err(error)),
                }
            }
        }))
    }

    /// A summary with the clocks of a run, and without counts.
    fn summary(&self, clocks: Clocks) -> Summary {
        // The requests of one run are independent of each other, so that all of them count as one
        // link of the chain.
        let dependent_requests = self.file.header_requests + u64::from(clocks.requests > 0);
        Summary { dependent_requests, clocks, ..Summary::default() }
    }

    fn run<C: Collect>(
        &self,
        selection: &Selection,
        collect: C,
        delivery: Delivery,
    ) -> Result<Run<ReadDecoder<C>>> {
        let shape = self.file.shape_of(selection, delivery);
        let (source, unpacker) =
            self.reads.source(&self.file, selection, &shape, collect.wants_signal())?;
        let wanted = match selection {
            Selection::All => None,
            Selection::Ids(ids) => Some(ids.clone()),
        };
        let name = self.file.name().clone();
        let decoder = ReadDecoder::new(
            name,
            self.file.header.clone(),
            unpacker,
            wanted,
            self.file.options.budget,
            collect,
        );
        self.file.start(source, decoder, shape)
    }
}

/// Sorts items that arrive in any order by their ordinals.
#[derive(Debug)]
struct InOrder<T> {
    /// The ordinal of the item that is next. None waits for it if `waiting` is empty.
    next: u64,
    waiting: VecDeque<Option<T>>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self { next: 0, waiting: VecDeque::new() }
    }
}

impl<T> InOrder<T> {
    fn extend(&mut self, items: impl Iterator<Item = (u64, T)>) {
        for (ordinal, item) in items {
            let index = (ordinal - self.next) as usize;
            if index >= self.waiting.len() {
                self.waiting.resize_with(index + 1, || None);
            }
            self.waiting[index] = Some(item);
        }
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.next += 1;
        Some(item)
    }
}

/// Whether a file that begins so is an index of reads, as [`ReadFile::write_index`] writes it.
pub fn is_index(head: &[u8]) -> bool {
    crate::record::Index::is_start(head) || crate::pod5::is_index(head)
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(sum(&[i16::MIN; 200_000]), -32_768 * 200_000);
        assert_eq!(sum(&[i16::MAX; 70_000]), 32_767 * 70_000);
        assert_eq!(sum(&[]), 0);
    }
}
