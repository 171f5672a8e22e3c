//! The interface that a format implements: an open file of reads.
//!
//! ```text
//! FormatFile  one open file: its extents, index, single reads, check and salvage
//!   └─ UnpackReads  one worker of a run: decodes an extent to a read
//! OpenFile    the common parts of every open file: store, header, options
//! ```
//!
//! `docs/adding-a-format.md` walks through adding a format.

mod check;
mod decode;
mod get;
mod index;
mod report;
mod requests;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use thalweg_io::engine::{Decoder, Delivery, Run, Shape};
use thalweg_io::extent::Source;
use thalweg_io::model::StoreModel;
use thalweg_io::open::Options;
use thalweg_io::plan::GapRule;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result, plan};

use crate::losses::Losses;
use crate::record::{Entry, Header, Index};

pub use check::{CountIntact, KeepIntact, check_reads};
pub(crate) use decode::check_id;
pub use decode::{LIKELY_RATIO, NewUnpacker, UnpackReads};
pub(crate) use get::no_read;
pub use get::{GetReads, IndexedGetter, SingleRead};
pub use index::{IndexOrigin, save_index, save_sidecar};
pub(crate) use index::{load_index_file, missing_reads};
pub use report::{CheckReport, IndexState, LostReads};
pub use requests::{PaidRequests, RequestTotals};

/// The reads that a run reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All reads, in file order.
    All,
    /// The reads with these ids, in this order. An id may occur twice.
    Ids(Arc<Vec<String>>),
}

/// The parts of an open file of reads that do not depend on its format.
#[derive(Debug)]
pub struct OpenFile {
    /// The store that holds the bytes.
    pub store: Arc<dyn Store>,
    /// The file's path, unless it was opened from a store.
    pub path: Option<PathBuf>,
    /// The header on opening.
    pub header: Arc<Header>,
    /// The number of successive requests that opening the file took.
    pub header_requests: u64,
    /// The index by read id, once it is loaded or built.
    pub index: OnceLock<Arc<Index>>,
    /// The performance model of the store.
    pub model: StoreModel,
    /// Memory, threads, cancellation.
    pub options: Options,
}

/// The result of opening a file in one format.
#[derive(Debug)]
pub struct OpenedFormat<F> {
    /// The file.
    pub file: F,
    /// The file's header.
    pub header: Arc<Header>,
    /// The number of successive requests that opening took.
    pub requests: u64,
}

/// An open file in one format. One value serves all runs over the file.
///
/// A format with successive records, which an index of offsets and sizes can locate, implements
/// only the methods without a default.
pub trait FormatFile: fmt::Debug + Send + Sync + 'static {
    /// The state of one worker that decodes reads.
    type Unpacker: UnpackReads;

    /// The extents of the selected reads, and a constructor of the unpackers that decode them.
    /// Without `signal`, the extents that hold the fields.
    ///
    /// # Errors
    /// [`Error::NotFound`] for unknown ids; a defect of the file.
    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<(Source, NewUnpacker<Self::Unpacker>)>;

    /// An unpacker for single reads, whose stored bytes lie at [`FormatFile::place`].
    fn single_unpacker(&self, file: &OpenFile) -> Self::Unpacker;

    /// Builds the index by reading the file. Only the id of each read is decoded.
    ///
    /// # Errors
    /// A defect of the file: a damaged record, a missing end, a read id that occurs twice.
    fn build_index(&self, file: &OpenFile) -> Result<Index>;

    /// The file as its own type, for callers that need properties that only this format has.
    fn as_any(&self) -> &dyn Any;

    /// The header of all reads, which may have more fields than the header on opening.
    fn whole_header<'a>(&'a self, file: &'a OpenFile) -> &'a Arc<Header> {
        &file.header
    }

    /// Descriptions of the file's content that the model of a read cannot hold.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// A warning about the file, if there is one.
    fn note(&self) -> Option<String> {
        None
    }

    /// The range of a read's stored bytes, and the ordinal of its extent, from its index entry.
    fn place(&self, entry: Entry) -> (Range<u64>, u64) {
        (entry.offset..entry.offset + entry.size, 0)
    }

    /// Prepares to get single reads.
    ///
    /// # Errors
    /// Those of [`FormatFile::index`].
    fn getter<'a>(&'a self, file: &'a OpenFile) -> Result<Box<dyn GetReads + 'a>> {
        Ok(Box::new(IndexedGetter::new(self, file)?))
    }

    /// The saved index of a file at `path`, if there is one. Only the index is read.
    ///
    /// # Errors
    /// An index that is damaged, or that belongs to another file.
    fn load(&self, file: &OpenFile, path: &Path) -> Result<Option<Index>> {
        index::load_beside(file, path)
    }

    /// The saved index, or a new one, which is saved if possible.
    ///
    /// # Errors
    /// Those of [`FormatFile::load`] and [`FormatFile::build_index`].
    fn load_or_build(&self, file: &OpenFile) -> Result<(Index, IndexOrigin)> {
        index::load_or_build(self, file)
    }

    /// The index. It stays in memory after the first call.
    ///
    /// # Errors
    /// Those of [`FormatFile::load_or_build`].
    fn index(&self, file: &OpenFile) -> Result<(Arc<Index>, IndexOrigin)> {
        if let Some(index) = file.index.get() {
            return Ok((index.clone(), IndexOrigin::Loaded));
        }
        let (index, origin) = self.load_or_build(file)?;
        let index = file.index.get_or_init(|| Arc::new(index)).clone();
        Ok((index, origin))
    }

    /// The index, if it is in memory or saved.
    ///
    /// # Errors
    /// Those of [`FormatFile::load`].
    fn saved_index(&self, file: &OpenFile) -> Result<Option<Arc<Index>>> {
        if let Some(index) = file.index.get() {
            return Ok(Some(index.clone()));
        }
        let Some(path) = &file.path else { return Ok(None) };
        let index = self.load(file, path)?;
        Ok(index.map(|index| file.index.get_or_init(|| Arc::new(index)).clone()))
    }

    /// Whether reads can be found by id without reading the whole file. An index that lies beside
    /// an object at a URL is fetched.
    ///
    /// # Errors
    /// Those of [`FormatFile::saved_index`].
    fn has_index(&self, file: &OpenFile) -> Result<bool> {
        if self.saved_index(file)?.is_some() {
            return Ok(true);
        }
        let Some(path) = &file.path else { return Ok(false) };
        let beside = index::fetch_beside(file, path)?;
        Ok(beside.map(|index| file.index.get_or_init(|| Arc::new(index))).is_some())
    }

    /// Loads or builds the index that reading by id needs.
    ///
    /// # Errors
    /// Those of [`FormatFile::index`].
    fn load_index(&self, file: &OpenFile) -> Result<IndexOrigin> {
        self.index(file).map(|(_, origin)| origin)
    }

    /// Builds the index and writes it to `place`.
    ///
    /// # Errors
    /// Those of [`FormatFile::build_index`]; [`Error::Io`] if the index cannot be written.
    fn write_index(&self, file: &OpenFile, place: &Path) -> Result<()> {
        save_index(&self.build_index(file)?, place)
    }

    /// The number of reads, if it is known without reading the whole file.
    ///
    /// # Errors
    /// Those of [`FormatFile::saved_index`].
    fn known_reads(&self, file: &OpenFile) -> Result<Option<u64>> {
        Ok(self.saved_index(file)?.map(|index| index.len() as u64))
    }

    /// The ids of all reads in the order of the file.
    ///
    /// # Errors
    /// Those of [`FormatFile::index`].
    fn read_ids(&self, file: &OpenFile) -> Result<Vec<String>> {
        Ok(self.index(file)?.0.iter().map(|(id, _)| id.to_owned()).collect())
    }

    /// For each of `ids`, whether the file has the read.
    ///
    /// # Errors
    /// Those of [`FormatFile::index`].
    fn has(&self, file: &OpenFile, ids: &[&str]) -> Result<Vec<bool>> {
        let (index, _) = self.index(file)?;
        Ok(ids.iter().map(|id| index.get(id).is_some()).collect())
    }

    /// The ranges of the selected reads in the file, in the order of the selection. `None` for
    /// [`Selection::All`].
    ///
    /// # Errors
    /// Those of [`FormatFile::index`]; [`Error::NotFound`] for unknown ids.
    fn places(&self, file: &OpenFile, selection: &Selection) -> Result<Option<Vec<Range<u64>>>> {
        let Selection::Ids(ids) = selection else { return Ok(None) };
        let (index, _) = self.index(file)?;
        index::places(file, &index, ids).map(Some)
    }

    /// The number of requests of a run over the selected reads, and their bytes. Without `signal`,
    /// a run over their fields.
    ///
    /// # Errors
    /// Those of [`FormatFile::places`].
    fn requests(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        _signal: bool,
    ) -> Result<RequestTotals> {
        Ok(match self.places(file, selection)? {
            None => RequestTotals::of_whole_file(file, shape),
            Some(places) => RequestTotals::of(file, file.gather(places, shape)),
        })
    }

    /// Decodes the whole file, and reports every defect of the file and of its index.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Truncated`] if bytes cannot be read. Defects of the file are in
    /// the report.
    fn check(&self, file: &OpenFile) -> Result<CheckReport> {
        let source = self.source(file, &Selection::All, &file.shape(Delivery::Ordered), true)?;
        let mut report = CheckReport::default();
        check_reads(file, source, CountIntact, |()| Ok(Losses::default()), &mut report)?;
        Ok(report)
    }

    /// Checks the file, and writes every intact read to a new file at `out`.
    ///
    /// # Errors
    /// Those of [`FormatFile::check`]; [`Error::Unsupported`] for a format without salvaging;
    /// [`Error::Io`] if `out` cannot be written.
    fn salvage(&self, file: &OpenFile, _out: &Path) -> Result<CheckReport> {
        Err(Error::Unsupported {
            file: file.name().clone(),
            what: "salvaging a file of this format".into(),
            advice: "`thalweg check` says which reads are whole, and `thalweg convert` with their \
                     ids writes them"
                .into(),
        })
    }
}

/// The stored bytes of a window of an id list are the memory budget divided by this number. Decoded
/// reads are about three times as large, and all reads of a window may have to wait for the first.
const WINDOW_SHARE: usize = 8;

/// The part of a window that is taken where bytes are at hand.
const AT_HAND: u64 = 6;

/// Places where it is asked whether bytes are at hand.
const SAMPLES: u64 = 8;

impl OpenFile {
    /// The name of the file in messages.
    pub fn name(&self) -> &Arc<str> {
        self.store.name()
    }

    /// The sizes that a run uses.
    pub fn shape(&self, delivery: Delivery) -> Shape {
        plan::shape(&self.model, self.options.budget, delivery)
    }

    /// The sizes that a run over a selection uses.
    pub fn shape_of(&self, selection: &Selection, delivery: Delivery) -> Shape {
        match selection {
            Selection::All => self.shape(delivery),
            Selection::Ids(_) => plan::shape_of_list(&self.model, self.options.budget, delivery),
        }
    }

    /// Starts a run of the engine.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can be started.
    pub fn start<D: Decoder>(&self, source: Source, decoder: D, shape: Shape) -> Result<Run<D>> {
        Run::start(self.store.clone(), source, decoder, shape, self.options.control.clone())
    }

    /// The requests for `places`.
    pub fn gather<I: IntoIterator<Item = Range<u64>>>(
        &self,
        places: I,
        shape: &Shape,
    ) -> plan::Gather<I::IntoIter> {
        let block = shape.block - self.store.alignment();
        plan::gather(places, GapRule::new(&self.model), block, self.window())
    }

    /// Stored bytes of an id list that are sorted by offset at a time. Where bytes are at hand,
    /// their order does not matter: fewer are read ahead then, so that rows that wait for their
    /// turn stay in the processor's cache.
    pub fn window(&self) -> u64 {
        let most = (self.options.budget.memory / WINDOW_SHARE) as u64;
        let is_at_hand =
            (0..SAMPLES).all(|place| self.store.is_at_hand(self.store.size() / SAMPLES * place));
        if is_at_hand { most / AT_HAND } else { most }
    }
}
