//! What a format implements: an open file of reads, as the rest of the crate sees it.
//!
//! ```text
//! FormatFile  one open file: its extents, index, single reads, check and salvage
//!   └─ UnpackReads  one worker of a run: an extent becomes a read
//! OpenFile    what every open file has: store, header, options
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
pub(crate) use index::load_index_file;
pub use index::{IndexOrigin, save_index};
pub use report::{CheckReport, IndexState, LostReads};
pub use requests::RequestTotals;

/// What the caller wants of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Every read, in file order.
    All,
    /// These reads, in this order. A read may be asked for twice.
    Ids(Arc<Vec<String>>),
}

/// What every open file of reads has, whatever its format.
#[derive(Debug)]
pub struct OpenFile {
    /// Where the bytes are.
    pub store: Arc<dyn Store>,
    /// Its path, unless it was opened from a store.
    pub path: Option<PathBuf>,
    /// The header that it presents on opening.
    pub header: Arc<Header>,
    /// Requests, each after the other, that opening it took.
    pub header_requests: u64,
    /// The index by read id, once it is loaded or built.
    pub index: OnceLock<Arc<Index>>,
    /// How fast the store is.
    pub model: StoreModel,
    /// Memory, threads, cancellation.
    pub options: Options,
}

/// What opening a file in one format gives.
#[derive(Debug)]
pub struct OpenedFormat<F> {
    /// The file.
    pub file: F,
    /// The header that it presents.
    pub header: Arc<Header>,
    /// Requests, each after the other, that it took.
    pub requests: u64,
}

/// An open file in one format. One value serves all runs over the file.
///
/// A format whose records lie one after the other, each found by an index of offsets and sizes,
/// implements the methods without a default and inherits the rest.
pub trait FormatFile: fmt::Debug + Send + Sync + 'static {
    /// What one worker keeps to decode reads.
    type Unpacker: UnpackReads;

    /// The extents of the selected reads, and what decodes them. Without `signal`, the extents
    /// that hold their fields.
    ///
    /// # Errors
    /// [`Error::NotFound`] about ids; a defect of the file.
    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<(Source, NewUnpacker<Self::Unpacker>)>;

    /// What decodes any single read, whose stored bytes lie where [`FormatFile::place`] says.
    fn single_unpacker(&self, file: &OpenFile) -> Self::Unpacker;

    /// Builds the index by reading the file, decoding no more of each read than its id takes.
    ///
    /// # Errors
    /// A defect of the file: a damaged record, a missing end, a read id that occurs twice.
    fn build_index(&self, file: &OpenFile) -> Result<Index>;

    /// For callers that need what only this format has.
    fn as_any(&self) -> &dyn Any;

    /// The header of all reads, which may have more fields than the header on opening.
    fn whole_header<'a>(&'a self, file: &'a OpenFile) -> &'a Arc<Header> {
        &file.header
    }

    /// What the file has and the model of a read has no place for, in words.
    fn left_out(&self) -> &[String] {
        &[]
    }

    /// A warning about the file, if there is one.
    fn note(&self) -> Option<String> {
        None
    }

    /// Where the stored bytes of a read lie that the index has, and the ordinal of its extent.
    fn place(&self, entry: Entry) -> (Range<u64>, u64) {
        (entry.offset..entry.offset + entry.size, 0)
    }

    /// Prepares to get single reads.
    ///
    /// # Errors
    /// As [`FormatFile::index`].
    fn getter<'a>(&'a self, file: &'a OpenFile) -> Result<Box<dyn GetReads + 'a>> {
        Ok(Box::new(IndexedGetter::new(self, file)?))
    }

    /// The index that is there already, for a file at `path`; nothing else is read.
    ///
    /// # Errors
    /// An index beside the file that is damaged, or another file's.
    fn load(&self, file: &OpenFile, path: &Path) -> Result<Option<Index>> {
        index::load_beside(file, path)
    }

    /// The index that is there already, or a new one, saved where that is possible.
    ///
    /// # Errors
    /// As [`FormatFile::load`] and [`FormatFile::build_index`].
    fn load_or_build(&self, file: &OpenFile) -> Result<(Index, IndexOrigin)> {
        index::load_or_build(self, file)
    }

    /// The index, kept in memory from the first call on.
    ///
    /// # Errors
    /// As [`FormatFile::load_or_build`].
    fn index(&self, file: &OpenFile) -> Result<(Arc<Index>, IndexOrigin)> {
        if let Some(index) = file.index.get() {
            return Ok((index.clone(), IndexOrigin::Loaded));
        }
        let (index, origin) = self.load_or_build(file)?;
        let index = file.index.get_or_init(|| Arc::new(index)).clone();
        Ok((index, origin))
    }

    /// The index if there is one already.
    ///
    /// # Errors
    /// As [`FormatFile::load`].
    fn saved_index(&self, file: &OpenFile) -> Result<Option<Arc<Index>>> {
        if let Some(index) = file.index.get() {
            return Ok(Some(index.clone()));
        }
        let Some(path) = &file.path else { return Ok(None) };
        let index = self.load(file, path)?;
        Ok(index.map(|index| file.index.get_or_init(|| Arc::new(index)).clone()))
    }

    /// Whether reads can be found by id without reading the whole file.
    ///
    /// # Errors
    /// As [`FormatFile::saved_index`].
    fn has_index(&self, file: &OpenFile) -> Result<bool> {
        self.saved_index(file).map(|index| index.is_some())
    }

    /// Makes ready what reads by id need.
    ///
    /// # Errors
    /// As [`FormatFile::index`].
    fn load_index(&self, file: &OpenFile) -> Result<IndexOrigin> {
        self.index(file).map(|(_, origin)| origin)
    }

    /// Builds the index and writes it to `place`.
    ///
    /// # Errors
    /// As [`FormatFile::build_index`]; [`Error::Io`] when it cannot be written.
    fn write_index(&self, file: &OpenFile, place: &Path) -> Result<()> {
        save_index(&self.build_index(file)?, place)
    }

    /// How many reads the file has, if that is known without reading all of it.
    ///
    /// # Errors
    /// As [`FormatFile::saved_index`].
    fn known_reads(&self, file: &OpenFile) -> Result<Option<u64>> {
        Ok(self.saved_index(file)?.map(|index| index.len() as u64))
    }

    /// The ids of all reads in the order of the file.
    ///
    /// # Errors
    /// As [`FormatFile::index`].
    fn read_ids(&self, file: &OpenFile) -> Result<Vec<String>> {
        Ok(self.index(file)?.0.iter().map(|(id, _)| id.to_owned()).collect())
    }

    /// Which of `ids` the file has.
    ///
    /// # Errors
    /// As [`FormatFile::index`].
    fn has(&self, file: &OpenFile, ids: &[&str]) -> Result<Vec<bool>> {
        let (index, _) = self.index(file)?;
        Ok(ids.iter().map(|id| index.get(id).is_some()).collect())
    }

    /// Where the selected reads lie, in the order of the selection. `None` for all of them.
    ///
    /// # Errors
    /// As [`FormatFile::index`]; [`Error::NotFound`] about ids.
    fn places(&self, file: &OpenFile, selection: &Selection) -> Result<Option<Vec<Range<u64>>>> {
        let Selection::Ids(ids) = selection else { return Ok(None) };
        let (index, _) = self.index(file)?;
        index::places(file, &index, ids).map(Some)
    }

    /// How many requests a run over the selected reads makes, and how many bytes.
    ///
    /// # Errors
    /// As [`FormatFile::places`].
    fn requests(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
    ) -> Result<RequestTotals> {
        Ok(match self.places(file, selection)? {
            None => RequestTotals::of_whole_file(file, shape),
            Some(places) => RequestTotals::of(file, file.gather(places, shape)),
        })
    }

    /// Decodes the whole file; says everything that is wrong with it, and with its index.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Truncated`] where the bytes cannot be had. Defects of the file
    /// are in the report.
    fn check(&self, file: &OpenFile) -> Result<CheckReport> {
        let source = self.source(file, &Selection::All, &file.shape(Delivery::Ordered), true)?;
        let mut report = CheckReport::default();
        check_reads(file, source, CountIntact, |()| Ok(Losses::default()), &mut report)?;
        Ok(report)
    }

    /// Checks the file, and writes every intact read to a new one at `out`.
    ///
    /// # Errors
    /// As [`FormatFile::check`]; [`Error::Unsupported`] for a format that cannot do that;
    /// [`Error::Io`] when `out` cannot be written.
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

/// A window of an id list is this part of the memory budget, in stored bytes: decoded, they are
/// about three times as many, and all of a window's reads may have to wait for its first.
const WINDOW_SHARE: usize = 8;

impl OpenFile {
    /// The name that messages give the file.
    pub fn name(&self) -> &Arc<str> {
        self.store.name()
    }

    /// The sizes that a run uses.
    pub fn shape(&self, delivery: Delivery) -> Shape {
        plan::shape(&self.model, self.options.budget, delivery)
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

    /// Stored bytes of an id list that are put into offset order at a time.
    pub fn window(&self) -> u64 {
        (self.options.budget.memory / WINDOW_SHARE) as u64
    }
}
