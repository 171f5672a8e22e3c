//! The list of formats: for each its name, extension, first bytes, reader and writer.
//!
//! A new format gets a variant of [`Format`] with its [`FormatEntry`], and a variant of
//! `AnyUnpacker`. A format that is also written gets a variant of [`Coding`].
//! `docs/adding-a-format.md` walks through it.

pub use crate::losses::{Loss, Losses};

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use thalweg_io::engine::Shape;
use thalweg_io::extent::{Extent, Source};
use thalweg_io::open::Options;
use thalweg_io::store::Store;
use thalweg_io::{Fault, Result};

use crate::fast5::{Fast5Target, Fast5Unpacker};
use crate::file::{
    CheckReport, FormatFile, GetReads, IndexOrigin, NewUnpacker, OpenFile, OpenedFormat,
    RequestTotals, Selection, UnpackReads,
};
use crate::output::{ReadEncoder, Target};
use crate::pod5::write::{Identity, Pod5Layout};
use crate::pod5::{Pod5File, Pod5Target, Pod5Unpacker};
use crate::record::{Entry, Header, Index, Record, RecordPress, SignalPress, StoredRow};
use crate::slow5::{Slow5Target, Slow5Unpacker};
use crate::{fast5, pod5, slow5};

/// The formats that reads come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// SLOW5: tab-separated text.
    Slow5,
    /// BLOW5: binary records.
    Blow5,
    /// POD5: Arrow tables in a container.
    Pod5,
    /// FAST5: HDF5 with one group a read.
    Fast5,
    /// A format of another crate.
    #[doc(hidden)]
    Other(&'static FormatEntry),
}

/// What the list says of a format.
#[doc(hidden)]
#[derive(Debug)]
pub struct FormatEntry {
    /// Its name.
    pub name: &'static str,
    /// The end of the names of its files, without the dot.
    pub extension: &'static str,
    /// Whether a file that begins so is one of its files.
    pub is_start: fn(&[u8]) -> bool,
    /// Opens a file.
    pub open: fn(&Arc<dyn Store>, &Options) -> Result<OpenedFormat<AnyFile>>,
}

impl PartialEq for FormatEntry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for FormatEntry {}

impl Hash for FormatEntry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

static SLOW5: FormatEntry = FormatEntry {
    name: "SLOW5",
    extension: "slow5",
    // Text has no signature; see `Format::of`.
    is_start: |_| false,
    open: |store, options| slow5::open(store, options).map(AnyFile::listed),
};

static BLOW5: FormatEntry = FormatEntry {
    name: "BLOW5",
    extension: "blow5",
    is_start: |head| head.starts_with(slow5::MAGIC),
    open: |store, options| slow5::open(store, options).map(AnyFile::listed),
};

static POD5: FormatEntry = FormatEntry {
    name: "POD5",
    extension: "pod5",
    is_start: |head| head.starts_with(&pod5::SIGNATURE),
    open: |store, options| pod5::open(store, options).map(AnyFile::listed),
};

static FAST5: FormatEntry = FormatEntry {
    name: "FAST5",
    extension: "fast5",
    is_start: |head| head.starts_with(&thalweg_hdf5::SIGNATURE),
    open: |store, options| fast5::open(store, options).map(AnyFile::listed),
};

/// How a file stores what another file can copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredAs {
    /// The rows of each signal.
    Pod5(pod5::RowCoding),
    /// Whole records.
    Blow5(RecordPress, SignalPress),
}

/// A format to write, with what can be chosen about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coding {
    /// SLOW5.
    Slow5,
    /// BLOW5, with compression of records and of signals.
    Blow5(RecordPress, SignalPress),
    /// POD5.
    Pod5(Pod5Layout),
    /// Multi-read FAST5.
    Fast5(fast5::Compression),
}

impl Coding {
    /// The format.
    pub fn format(&self) -> Format {
        match self {
            Self::Slow5 => Format::Slow5,
            Self::Blow5(..) => Format::Blow5,
            Self::Pod5(_) => Format::Pod5,
            Self::Fast5(_) => Format::Fast5,
        }
    }

    /// An encoder for one worker, which encodes reads for any target of this coding.
    ///
    /// # Errors
    /// When there is no memory for its contexts, or for a compression level that does not exist.
    pub fn encoder(&self) -> Result<ReadEncoder, Fault> {
        Ok(match self {
            Self::Slow5 | Self::Blow5(..) => {
                ReadEncoder::new::<Slow5Target>(slow5::RecordEncoder::new()?)
            }
            Self::Pod5(layout) => ReadEncoder::new::<Pod5Target>(Pod5Target::encoder(layout)?),
            Self::Fast5(compression) => {
                ReadEncoder::new::<Fast5Target>(fast5::SignalCompressor::new(*compression)?)
            }
        })
    }

    /// How the reads that `header` describes are written.
    ///
    /// # Errors
    /// When the format cannot hold them at all.
    pub fn target(&self, header: &Header) -> Result<Target, Fault> {
        Ok(match self {
            Self::Slow5 => Target::new(Slow5Target::text(header)),
            Self::Blow5(record, signal) => {
                Target::new(Slow5Target::binary(header, *record, *signal))
            }
            Self::Pod5(layout) => Target::new(Pod5Target::new(header, layout.clone())?),
            Self::Fast5(compression) => Target::new(Fast5Target::new(header, *compression)),
        })
    }

    /// How another file must store its reads for [`Target::copy`]. `None` for a format that copies
    /// nothing.
    pub(crate) fn copies(&self) -> Option<StoredAs> {
        match self {
            Self::Pod5(layout) => Some(StoredAs::Pod5(Pod5Target::stored_coding(layout))),
            Self::Blow5(record, signal) => Some(StoredAs::Blow5(*record, *signal)),
            Self::Slow5 | Self::Fast5(_) => None,
        }
    }

    /// With an identity drawn from `seed` where the file would get a random one.
    pub(crate) fn seeded(mut self, seed: u64) -> Self {
        if let Self::Pod5(layout) = &mut self {
            layout.identity.get_or_insert_with(|| Identity::from_seed(seed));
        }
        self
    }
}

/// Formats of other crates.
static OTHERS: RwLock<Vec<&'static FormatEntry>> = RwLock::new(Vec::new());

/// Adds a format of another crate to the list, for the life of the process. Tests read a format of
/// their own through it.
#[doc(hidden)]
pub fn register(entry: &'static FormatEntry) -> Format {
    let mut others = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
    if !others.contains(&entry) {
        others.push(entry);
    }
    Format::Other(entry)
}

fn others() -> Vec<&'static FormatEntry> {
    OTHERS.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What one worker keeps to decode reads of any format.
#[doc(hidden)]
pub struct Unpacker(AnyUnpacker);

/// One variant a format, so that no call for a read of a listed format is a virtual one.
enum AnyUnpacker {
    /// SLOW5 and BLOW5.
    Slow5(Slow5Unpacker),
    /// POD5.
    Pod5(Pod5Unpacker),
    /// FAST5.
    Fast5(Fast5Unpacker),
    /// A format of another crate.
    Other(Box<dyn UnpackReads>),
}

impl From<Slow5Unpacker> for Unpacker {
    fn from(unpacker: Slow5Unpacker) -> Self {
        Self(AnyUnpacker::Slow5(unpacker))
    }
}

impl From<Pod5Unpacker> for Unpacker {
    fn from(unpacker: Pod5Unpacker) -> Self {
        Self(AnyUnpacker::Pod5(unpacker))
    }
}

impl From<Fast5Unpacker> for Unpacker {
    fn from(unpacker: Fast5Unpacker) -> Self {
        Self(AnyUnpacker::Fast5(unpacker))
    }
}

impl From<Box<dyn UnpackReads>> for Unpacker {
    fn from(unpacker: Box<dyn UnpackReads>) -> Self {
        Self(AnyUnpacker::Other(unpacker))
    }
}

/// The call of a method on whichever unpacker it is.
macro_rules! each {
    ($self:ident, $unpacker:ident => $call:expr) => {
        match &mut $self.0 {
            AnyUnpacker::Slow5($unpacker) => $call,
            AnyUnpacker::Pod5($unpacker) => $call,
            AnyUnpacker::Fast5($unpacker) => $call,
            AnyUnpacker::Other($unpacker) => $call,
        }
    };
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Slow5, Self::Blow5, Self::Pod5, Self::Fast5];

    /// What the list says of it.
    fn entry(self) -> &'static FormatEntry {
        match self {
            Self::Slow5 => &SLOW5,
            Self::Blow5 => &BLOW5,
            Self::Pod5 => &POD5,
            Self::Fast5 => &FAST5,
            Self::Other(entry) => entry,
        }
    }

    /// The listed formats, then those of other crates.
    fn every() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain(others().into_iter().map(Self::Other))
    }

    /// The extensions of all formats in words, with `before` before each.
    pub fn extensions(before: &str) -> String {
        let all: Vec<String> =
            Self::every().map(|format| format!("{before}{}", format.extension())).collect();
        match all.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }

    /// The format of a file that begins with `head`. A file that begins as none of the others do is
    /// taken for text: SLOW5 has no signature, and its parser says best what is wrong.
    pub fn of(head: &[u8]) -> Self {
        Self::every().find(|format| (format.entry().is_start)(head)).unwrap_or(Self::Slow5)
    }

    /// The format that a path's extension stands for, if `head` is all of the file, and less than
    /// the signature of the format.
    pub(crate) fn cut_short(head: &[u8], path: &Path) -> Option<Self> {
        let format = Self::of_path(path)?;
        let signature: &[u8] = match format {
            Self::Blow5 => slow5::MAGIC,
            Self::Pod5 => &pod5::SIGNATURE,
            Self::Fast5 => &thalweg_hdf5::SIGNATURE,
            Self::Slow5 | Self::Other(_) => return None,
        };
        (head.len() < signature.len() && signature.starts_with(head)).then_some(format)
    }

    /// The format that a path's extension stands for.
    pub fn of_path(path: &Path) -> Option<Self> {
        path.extension()?.to_str()?.parse().ok()
    }

    /// The end of the names of its files, without the dot.
    pub fn extension(self) -> &'static str {
        self.entry().extension
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Opens a file of the format.
    pub(crate) fn open(
        self,
        store: &Arc<dyn Store>,
        options: &Options,
    ) -> Result<OpenedFormat<AnyFile>> {
        (self.entry().open)(store, options)
    }
}

/// Parses an extension, such as `blow5`.
impl FromStr for Format {
    type Err = Fault;

    fn from_str(name: &str) -> Result<Self, Fault> {
        let known = Self::every().find(|format| format.extension() == name);
        known.ok_or_else(|| {
            let expected = format!("a format: {}", Self::extensions(""));
            Fault::new(0, format!("{name:?}"), expected)
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl UnpackReads for Unpacker {
    fn header(&mut self, extent: &Extent<'_>) -> Result<Option<Arc<Header>>> {
        each!(self, unpacker => unpacker.header(extent))
    }

    fn read<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        samples: &mut Vec<i16>,
        rows: Option<&mut dyn FnMut(StoredRow<'_>)>,
    ) -> Result<Record<'a>> {
        each!(self, unpacker => unpacker.read(header, extent, limit, samples, rows))
    }

    fn fields<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
    ) -> Result<(Record<'a>, u64)> {
        each!(self, unpacker => unpacker.fields(header, extent, limit))
    }

    fn stored<'a>(
        &'a mut self,
        header: &Header,
        extent: &Extent<'a>,
        limit: usize,
        rows: &mut Vec<StoredRow<'a>>,
    ) -> Result<(Record<'a>, u64)> {
        each!(self, unpacker => unpacker.stored(header, extent, limit, rows))
    }

    fn trim(&mut self, keep: usize) {
        each!(self, unpacker => unpacker.trim(keep));
    }
}

/// An open file of any format.
#[doc(hidden)]
#[derive(Debug)]
pub struct AnyFile(Box<dyn FormatFile<Unpacker = Unpacker>>);

impl AnyFile {
    /// Wraps what opening a file in one format gave.
    pub fn listed<F: FormatFile>(opened: OpenedFormat<F>) -> OpenedFormat<Self>
    where
        Unpacker: From<F::Unpacker>,
    {
        let OpenedFormat { file, header, requests } = opened;
        OpenedFormat { file: Self(Box::new(Listed(file))), header, requests }
    }

    /// The file as a POD5 file, if it is one.
    pub(crate) fn pod5(&self) -> Option<&Pod5File> {
        self.0.as_any().downcast_ref()
    }
}

impl std::ops::Deref for AnyFile {
    type Target = dyn FormatFile<Unpacker = Unpacker>;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// A file whose unpackers become those of the list.
#[derive(Debug)]
struct Listed<F>(F);

/// Methods that go to the format as they are.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $out:ty;)*) => {
        $(fn $name(&self $(, $arg: $type)*) -> $out {
            self.0.$name($($arg),*)
        })*
    };
}

impl<F: FormatFile> FormatFile for Listed<F>
where
    Unpacker: From<F::Unpacker>,
{
    type Unpacker = Unpacker;

    fn source(
        &self,
        file: &OpenFile,
        selection: &Selection,
        shape: &Shape,
        signal: bool,
    ) -> Result<(Source, NewUnpacker<Unpacker>)> {
        let (source, unpacker) = self.0.source(file, selection, shape, signal)?;
        Ok((source, Arc::new(move |limit| unpacker(limit).into())))
    }

    fn single_unpacker(&self, file: &OpenFile) -> Unpacker {
        self.0.single_unpacker(file).into()
    }

    fn whole_header<'a>(&'a self, file: &'a OpenFile) -> &'a Arc<Header> {
        self.0.whole_header(file)
    }

    fn getter<'a>(&'a self, file: &'a OpenFile) -> Result<Box<dyn GetReads + 'a>> {
        self.0.getter(file)
    }

    forward! {
        fn as_any(&self) -> &dyn Any;
        fn left_out(&self) -> &[String];
        fn note(&self) -> Option<String>;
        fn place(&self, entry: Entry) -> (Range<u64>, u64);
        fn build_index(&self, file: &OpenFile) -> Result<Index>;
        fn load(&self, file: &OpenFile, path: &Path) -> Result<Option<Index>>;
        fn load_or_build(&self, file: &OpenFile) -> Result<(Index, IndexOrigin)>;
        fn index(&self, file: &OpenFile) -> Result<(Arc<Index>, IndexOrigin)>;
        fn saved_index(&self, file: &OpenFile) -> Result<Option<Arc<Index>>>;
        fn has_index(&self, file: &OpenFile) -> Result<bool>;
        fn load_index(&self, file: &OpenFile) -> Result<IndexOrigin>;
        fn write_index(&self, file: &OpenFile, place: &Path) -> Result<()>;
        fn known_reads(&self, file: &OpenFile) -> Result<Option<u64>>;
        fn read_ids(&self, file: &OpenFile) -> Result<Vec<String>>;
        fn has(&self, file: &OpenFile, ids: &[&str]) -> Result<Vec<bool>>;
        fn places(
            &self,
            file: &OpenFile,
            selection: &Selection
        ) -> Result<Option<Vec<Range<u64>>>>;
        fn requests(
            &self,
            file: &OpenFile,
            selection: &Selection,
            shape: &Shape,
            signal: bool
        ) -> Result<RequestTotals>;
        fn check(&self, file: &OpenFile) -> Result<CheckReport>;
        fn salvage(&self, file: &OpenFile, out: &Path) -> Result<CheckReport>;
    }
}
