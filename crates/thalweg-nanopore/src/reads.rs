//! Files of reads, open for reading: select, map, get by id, scan, summarise, check.
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

mod check;
mod columns;
mod decoder;
mod explain;
mod fetch;
mod get;
mod index;
mod open;
mod picoampere;
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
use crate::format::AnyFile;
use crate::format::Format;
use crate::pod5::{Pod5File, RowCoding};
use crate::record::{Header, Record, StoredRow};
use decoder::{Collect, Mapper, ReadDecoder, Visitors};

pub use crate::file::{CheckReport, IndexOrigin, IndexState, LostReads, Selection};
pub use crate::pod5::Pod5Info;
pub use columns::{Batch, BatchOptions, Batches, Order, Strings};
pub use decoder::Visitor;
pub use explain::{Explained, Shares};
pub use get::Getter;
pub use picoampere::{PICOAMPERE_COLUMN, in_picoampere, picoampere_schema};
pub use read_set::{Located, ReadSet, find};
pub use scan::{FILE_COLUMN, Scan, ScanOptions};
pub use summary::{LengthStats, Lengths, RUN_ATTRIBUTES, RunPart, RunSummary};
pub use thalweg_io::cells::TYPE_KEY;
pub use thalweg_io::open::{Options, StoreKind};
pub use thalweg_io::sidecar::{index_path, index_places};

/// One decoded read, as a visitor sees it.
#[derive(Debug, Clone, Copy)]
pub struct Read<'a> {
    /// Its place in the file, or in the selection.
    pub ordinal: u64,
    /// Where its record starts in the file.
    pub offset: u64,
    /// The fields.
    pub record: &'a Record<'a>,
    /// The raw samples: picoampere = (sample + offset) · range / digitisation. Empty where nobody
    /// asked for them.
    pub samples: &'a [i16],
    /// The rows of a POD5 file's signal, where it was asked for in place of samples; else none.
    pub stored: &'a [StoredRow<'a>],
    /// How many samples the read has.
    pub sample_count: u64,
    /// The header that it goes with: the file's, or what was known of it by then.
    pub header: &'a Header,
}

/// What a finished read leaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    /// Reads decoded.
    pub reads: u64,
    /// Samples decoded.
    pub samples: u64,
    /// Requests that had to wait for another one's answer, the first included: the data's after the
    /// header's, one file after the other.
    pub dependent_requests: u64,
    /// Where the time went.
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
    /// What kind of file it is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The file's header; for formats other than SLOW5, what they say in its words. Of a FAST5 file
    /// it takes going through all reads' metadata, once; reads that were handed out before go with
    /// [`Read::header`], of which this is more.
    pub fn header(&self) -> &Header {
        self.whole_header()
    }

    fn whole_header(&self) -> &Arc<Header> {
        self.reads.whole_header(&self.file)
    }

    /// What the file has and the model of a read has no place for, in words. Empty for formats that
    /// fit it.
    pub fn left_out(&self) -> &[String] {
        self.reads.left_out()
    }

    /// How a POD5 file's signal is stored.
    pub fn signal_coding(&self) -> Option<RowCoding> {
        self.reads.pod5().map(Pod5File::signal_coding)
    }

    /// What a POD5 file says of itself.
    pub fn pod5_info(&self) -> Option<Pod5Info<'_>> {
        self.reads.pod5().map(Pod5File::info)
    }

    /// Requests, each after the other, that opening it took.
    pub fn header_requests(&self) -> u64 {
        self.file.header_requests
    }

    /// Where the bytes come from.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.file.store
    }

    /// What the store is believed to do, and how that came to be known.
    pub fn model(&self) -> (StoreModel, Origin) {
        (self.file.model, self.origin)
    }

    /// What is not as it should be, if anything: io_uring that is forbidden here, a POD5 file
    /// without its footer.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The sizes that a read will use.
    pub fn shape(&self, delivery: Delivery) -> Shape {
        self.file.shape(delivery)
    }

    /// Shows every selected read to a visitor on the worker that decoded it, in no particular
    /// order: the fastest way, because the samples are still in that core's cache. `visitor` makes
    /// one visitor a worker; they come back.
    ///
    /// # Errors
    /// The first defect, or the first error of a visitor; other reads may or may not have been seen
    /// by then.
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

    /// What `f` makes of each selected read, in the order of the selection. `f` runs on the decode
    /// workers.
    ///
    /// # Errors
    /// [`NotFound`](thalweg_io::Error::NotFound) about ids, [`Io`](thalweg_io::Error::Io) if no
    /// thread can be started. Defects come as an
    /// item in their place (at the latest at the end of their window of an id list), after which
    /// there are none.
    pub fn map<T: Send + 'static, F: Fn(&Read<'_>) -> T + Send + Sync + 'static>(
        &self,
        selection: &Selection,
        f: F,
    ) -> Result<impl Iterator<Item = Result<T>> + use<T, F>> {
        self.map_with(selection, || (), move |(), read| f(read))
    }

    /// Maps each selected read, as [`ReadFile::map`] does, with a value that each worker keeps from
    /// read to read: an encoder, a buffer.
    ///
    /// # Errors
    /// As [`ReadFile::map`].
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

    /// Maps each selected read. With `stored`, the signal comes as it is stored: [`Read::stored`]
    /// in the place of [`Read::samples`]. Nothing is decoded then, so that damage of the signal
    /// does not show.
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

    /// The summary of a run of which nothing but its clocks is known.
    fn summary(&self, clocks: Clocks) -> Summary {
        // A store answers the requests of one run side by side, so all of them are one link of the
        // chain.
        let dependent_requests = self.file.header_requests + u64::from(clocks.requests > 0);
        Summary { dependent_requests, clocks, ..Summary::default() }
    }

    fn run<C: Collect>(
        &self,
        selection: &Selection,
        collect: C,
        delivery: Delivery,
    ) -> Result<Run<ReadDecoder<C>>> {
        let shape = self.shape(delivery);
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

/// Puts items that come in any order into the order of their ordinals.
#[derive(Debug)]
struct InOrder<T> {
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
