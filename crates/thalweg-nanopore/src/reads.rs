//! Reads of a nanopore file as arrays: where the format meets the engine.
//!
//! ```no_run
//! use thalweg_io::open::Options;
//! use thalweg_nanopore::reads::ReadFile;
//! use thalweg_nanopore::reads::Selection;
//!
//! let file = ReadFile::open("reads.blow5", Options::default())?;
//! // In file order, decoded on all cores:
//! for row in file.map(&Selection::All, |read| (read.record.read_id.to_owned(), read.samples.len()))? {
//!     let (id, samples) = row?;
//!     println!("{id}: {samples} samples");
//! }
//! # Ok::<(), thalweg_io::Error>(())
//! ```

mod check;
mod collect;
mod columns;
mod examine;
mod explain;
mod fast5;
mod fetch;
mod framer;
mod get;
mod layout;
mod lookup;
mod open;
mod picoampere;
mod pod5;
mod salvage;
mod scan;
mod set;
mod summary;
mod verify;
mod walk;

use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use thalweg_io::Result;
use thalweg_io::engine::{Clocks, Decoder, Delivery, Run, Shape};
use thalweg_io::extent::Source;
use thalweg_io::model::{Origin, StoreModel};
use thalweg_io::plan::{self, GapRule};
use thalweg_io::store::Store;

use crate::format::Format;
use crate::pod5::{SignalCoding, StoredRow};
use crate::slow5::{Entry, Header, Index, Record};
use collect::{Collect, IdDecoder, Mapper, ReadDecoder, Visitors};
use layout::Layout;

pub use check::{IndexState, LostReads, Report};
pub use collect::Visitor;
pub use columns::{Batch, BatchOptions, Batches, Order, Strings};
pub use explain::{Explained, Shares};
pub use get::Getter;
pub use lookup::IndexOrigin;
pub use picoampere::{PICOAMPERE_COLUMN, in_picoampere, picoampere_schema};
pub use pod5::Pod5Info;
pub use scan::{FILE_COLUMN, Scan, ScanOptions};
pub use set::{Located, ReadSet, find};
pub use summary::{LengthStats, Lengths, RUN_ATTRIBUTES, RunPart, RunSummary};
pub use thalweg_io::cells::TYPE_KEY;
pub use thalweg_io::open::{Options, StoreKind};
pub use thalweg_io::sidecar::{index_path, index_places};

/// What the caller wants of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Every read, in file order.
    All,
    /// These reads, in this order. A read may be asked for twice.
    Ids(Arc<Vec<String>>),
}

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
    store: Arc<dyn Store>,
    path: Option<PathBuf>,
    format: Format,
    header: Arc<Header>,
    layout: Layout,
    /// Requests, each after the other, that the header took.
    header_requests: u64,
    index: OnceLock<Arc<Index>>,
    model: StoreModel,
    origin: Origin,
    note: Option<String>,
    options: Options,
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
        match &self.layout {
            // What cannot be read now is told when it is.
            Layout::Fast5(file) => file.whole().map_or(&self.header, |(header, _)| header),
            _ => &self.header,
        }
    }

    /// What the file has and the model of a read has no place for, in words. Empty for formats that
    /// fit it.
    pub fn left_out(&self) -> &[String] {
        match &self.layout {
            Layout::Slow5 => &[],
            Layout::Fast5(file) => file.whole().map(|(_, left_out)| left_out).unwrap_or_default(),
            Layout::Pod5(file) => &file.left_out,
        }
    }

    /// How a POD5 file's signal is stored.
    pub fn signal_coding(&self) -> Option<SignalCoding> {
        match &self.layout {
            Layout::Pod5(file) => Some(file.tables.coding()),
            _ => None,
        }
    }

    /// What a POD5 file says of itself.
    pub fn pod5_info(&self) -> Option<Pod5Info<'_>> {
        match &self.layout {
            Layout::Pod5(file) => Some(file.info()),
            _ => None,
        }
    }

    /// Requests, each after the other, that opening it took.
    pub fn header_requests(&self) -> u64 {
        self.header_requests
    }

    /// Where the bytes come from.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What the store is believed to do, and how that came to be known.
    pub fn model(&self) -> (StoreModel, Origin) {
        (self.model, self.origin)
    }

    /// What is not as it should be, if anything: io_uring that is forbidden here, a POD5 file
    /// without its footer.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The sizes that a read will use.
    pub fn shape(&self, delivery: Delivery) -> Shape {
        plan::shape(&self.model, self.options.budget, delivery)
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
    /// [`Error::NotFound`] about ids, [`Error::Io`] if no thread can be started. Defects come as an
    /// item in their place (at the latest at the end of their window of an id list), after which
    /// there are none.
    pub fn map<T: Send + 'static, F: Fn(&Read<'_>) -> T + Send + Sync + 'static>(
        &self,
        selection: &Selection,
        f: F,
    ) -> Result<impl Iterator<Item = Result<T>> + use<T, F>> {
        self.map_with(selection, || (), move |(), read| f(read))
    }

    /// The same with something that each worker keeps from read to read: an encoder, a buffer.
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

    /// The same, with `stored` for signal as it is stored: [`Read::stored`] in the place of
    /// [`Read::samples`]. Nothing is decoded then, so that damage of the signal does not show.
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
        let dependent_requests = self.header_requests + u64::from(clocks.requests > 0);
        Summary { dependent_requests, clocks, ..Summary::default() }
    }

    /// Read ids and places of all records, batch by batch in file order.
    fn ids(&self) -> Result<impl Iterator<Item = Result<Vec<(String, Entry)>>> + use<>> {
        let decoder = IdDecoder { name: self.store.name().clone(), header: self.header.clone() };
        self.start(self.stream()?, decoder, self.shape(Delivery::Ordered))
    }

    fn run<C: Collect>(
        &self,
        selection: &Selection,
        collect: C,
        delivery: Delivery,
    ) -> Result<Run<ReadDecoder<C>>> {
        let shape = self.shape(delivery);
        let (source, coding) = self.source(selection, &shape, collect.wants_signal())?;
        let wanted = match selection {
            Selection::All => None,
            Selection::Ids(ids) => Some(ids.clone()),
        };
        let name = self.store.name().clone();
        let decoder = ReadDecoder::new(
            name,
            self.header.clone(),
            coding,
            wanted,
            self.options.budget,
            collect,
        );
        self.start(source, decoder, shape)
    }

    fn start<D: Decoder>(&self, source: Source, decoder: D, shape: Shape) -> Result<Run<D>> {
        Run::start(self.store.clone(), source, decoder, shape, self.options.control.clone())
    }

    /// The requests for `places`.
    fn gather<I: IntoIterator<Item = Range<u64>>>(
        &self,
        places: I,
        shape: &Shape,
    ) -> plan::Gather<I::IntoIter> {
        let block = shape.block - self.store.alignment();
        plan::gather(places, GapRule::new(&self.model), block, self.window())
    }

    /// Stored bytes of an id list that are put into offset order at a time.
    fn window(&self) -> u64 {
        (self.options.budget.memory / WINDOW_SHARE) as u64
    }
}

/// A window of an id list is this part of the memory budget, in stored bytes: decoded, they are
/// about three times as many, and all of a window's reads may have to wait for its first.
const WINDOW_SHARE: usize = 8;

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
