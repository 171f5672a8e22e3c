//! Open FASTQ files.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_codec::gzip::{self, GzipStream, Header};
use thalweg_io::engine::{Delivery, Run, Shape};
use thalweg_io::extent::Source;
use thalweg_io::model::StoreModel;
use thalweg_io::open::{OpenedStore, Options};
use thalweg_io::plan::{Budget, batch_bytes, shape};
use thalweg_io::pool::Background;
use thalweg_io::store::Store;
use thalweg_io::{Error, Result};

use crate::gathered::{FindRecords, Gathered};
use crate::map::{Each, Mapped};
use crate::piece::Gather;
use crate::pieces::Pieces;
use crate::record::Record;
use crate::serial::{DecompressParts, POLL, Serial, SerialText, Stored};
use crate::source::{Blocks, Cuts, LEAST_PIECE, OnStored, PIECE, PieceDecoder, Work, cut};
use crate::stitch::Stitch;

/// Bytes that tell what a file is: a header of gzip, and some of its data.
const HEAD: u64 = 4096;

/// Of a gzip file, stored bytes may take the memory of a read divided by this number.
const STORED_SHARE: usize = 4;
/// Parts that were decompressed, and wait for the text before them, may take half of the memory. A
/// stored part has this share of what one of them may take: its text is two to four times as long,
/// and takes two bytes each.
const PART_SHARE: usize = 10;
/// The longest part: of a longer one, the first and the last block would matter less.
const MOST_PART: usize = 1 << 20;
/// The shortest part: a block may be as long.
const LEAST_PART: usize = 1 << 17;
/// A record may take the memory of a read divided by this number.
const RECORD_SHARE: usize = 8;
/// In bytes, whatever the memory: offsets in columns have 31 bits.
const MOST_RECORD: usize = 1 << 30;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// It is not.
    Plain,
    /// gzip without blocks of a known length. Its text is put together by one thread.
    Gzip,
    /// gzip in blocks of up to 64 KiB (BGZF), which are decompressed in parallel.
    Bgzf,
}

impl Compression {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Bgzf => "BGZF",
        }
    }
}

/// An open FASTQ file, plain or compressed, or a stream of one.
#[derive(Debug)]
pub struct FastqFile {
    input: Input,
    name: Arc<str>,
    path: Option<PathBuf>,
    compression: Compression,
    options: Options,
    note: Option<String>,
    /// Bytes of text that a thread takes at a time.
    piece: usize,
    /// Bytes of the stream that were read.
    streamed: Arc<AtomicU64>,
}

enum Input {
    Store(Arc<dyn Store>),
    /// It can be read once.
    Stream(Mutex<Option<Box<dyn Read + Send>>>),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(store) => store.fmt(f),
            Self::Stream(_) => f.write_str("a stream"),
        }
    }
}

impl Compression {
    /// The compression that a name of a FASTQ file stands for: it ends in `.fastq` or `.fq`, maybe
    /// with `.gz`, `.bgz` or `.bgzf` after it, which stand for BGZF. `None` for other names.
    pub fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let packed = [".gz", ".bgz", ".bgzf"].iter().find_map(|end| name.strip_suffix(end));
        let is_fastq = |name: &str| [".fastq", ".fq"].iter().any(|end| name.ends_with(end));
        match packed {
            Some(packed) => is_fastq(packed).then_some(Self::Bgzf),
            None => is_fastq(&name).then_some(Self::Plain),
        }
    }
}

/// Whether a name is one of a FASTQ file: see [`Compression::of_name`].
pub fn is_fastq_name(path: &Path) -> bool {
    Compression::of_name(path).is_some()
}

/// Whether the first bytes of a file, decompressed if need be, are those of a FASTQ file: a line
/// that starts with `@`, and no header of SAM.
pub fn is_fastq(head: &[u8]) -> bool {
    let mut text = Vec::with_capacity(4);
    if gzip::is_gzip(head) {
        // What is no gzip has no text.
        let _ = GzipStream::default().push(&mut &*head, &mut text);
    } else {
        text.extend_from_slice(&head[..head.len().min(4)]);
    }
    let is_sam = text.get(1..4).is_some_and(|tag| {
        [b"HD\t", b"SQ\t", b"RG\t", b"PG\t", b"CO\t"].iter().any(|known| tag == *known)
    });
    text.starts_with(b"@") && !is_sam
}

/// The first bytes of a store: enough for [`is_fastq`].
///
/// # Errors
/// [`Error::Io`].
pub fn head(store: &dyn Store) -> Result<Vec<u8>> {
    let mut head = vec![0; HEAD.min(store.size()) as usize];
    store.read_at(0, &mut head)?;
    Ok(head)
}

impl FastqFile {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Unsupported`] about the path. What is no FASTQ is found when it
    /// is read.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        Self::from_opened(path, OpenedStore::new(path, &options)?, options)
    }

    /// Opens a file whose store is already open. `opened` is the store of `path`.
    ///
    /// # Errors
    /// Those of [`FastqFile::open`].
    pub fn from_opened(path: &Path, opened: OpenedStore, options: Options) -> Result<Self> {
        let OpenedStore { store, model: (model, _), note, .. } = opened;
        if store.size() == 0 && Compression::of_name(path) == Some(Compression::Bgzf) {
            // Empty text makes a file of some bytes.
            return Err(cut(store.name(), 0, 0));
        }
        let mut file = Self::from_store(store, options.on(model))?;
        file.path = Some(path.to_owned());
        let notes = note.into_iter().chain(file.note.take());
        file.note = notes.reduce(|all, note| format!("{all}; {note}"));
        Ok(file)
    }

    /// Opens a file in any store.
    ///
    /// # Errors
    /// Those of [`FastqFile::open`].
    pub fn from_store(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let head = head(&*store)?;
        let name = store.name().clone();
        let compression = match gzip::is_gzip(&head) {
            false => Compression::Plain,
            true => match Header::parse(&head) {
                Ok(Some(Header { block: Some(_), .. })) => Compression::Bgzf,
                _ => Compression::Gzip,
            },
        };
        let mut note = None;
        if compression == Compression::Bgzf {
            let mut end = vec![0; HEAD.min(store.size()) as usize];
            store.read_at(store.size() - end.len() as u64, &mut end)?;
            // Zeros may follow the last block, which ends with some, too.
            let last = |bytes: &[u8]| bytes.iter().rposition(|&byte| byte != 0).unwrap_or(0);
            let start = last(&end).checked_sub(last(&gzip::END));
            let is_padding = last(&end) == 0;
            let is_ended = start.is_some_and(|start| end[start..].starts_with(&gzip::END));
            if !is_ended && !is_padding {
                let words =
                    "the empty block that ends BGZF files is not there: it may be cut short";
                note = Some(format!("{name}: {words}"));
            }
        }
        Ok(Self { note, ..Self::new(Input::Store(store), name, compression, options) })
    }

    fn new(input: Input, name: Arc<str>, compression: Compression, options: Options) -> Self {
        let (path, note, piece, streamed) = (None, None, PIECE, Arc::default());
        Self { input, name, path, compression, options, note, piece, streamed }
    }

    /// A stream, such as the standard input. It can be read once; one thread reads and
    /// decompresses it.
    ///
    /// # Errors
    /// [`Error::Io`] about its first bytes.
    pub fn from_stream(
        name: &str,
        mut stream: impl Read + Send + 'static,
        options: Options,
    ) -> Result<Self> {
        let name: Arc<str> = name.into();
        // The stream may have nothing for long: this thread looks whether the work is cancelled.
        let (give, got) = sync_channel(1);
        Background::start("thalweg-stream", &name, move || {
            let mut head = Vec::new();
            let read = stream.by_ref().take(HEAD).read_to_end(&mut head);
            let _ = give.send(read.map(|_| (head, stream)));
        })?;
        let read = loop {
            match got.recv_timeout(POLL) {
                Ok(read) => break read,
                Err(RecvTimeoutError::Timeout) => options.control.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Cancelled),
            }
        };
        let (head, stream) = read.map_err(|error| Error::io(&name, "reading", error))?;
        let compression = if gzip::is_gzip(&head) { Compression::Gzip } else { Compression::Plain };
        let stream: Box<dyn Read + Send> = Box::new(std::io::Cursor::new(head).chain(stream));
        let input = Input::Stream(Mutex::new(Some(stream)));
        Ok(Self::new(input, name, compression, options))
    }

    /// Sets how many bytes of text a thread takes at a time: for tests of what lies across pieces.
    #[doc(hidden)]
    #[must_use]
    pub fn with_pieces_of(self, piece: usize) -> Self {
        Self { piece, ..self }
    }

    /// How it is compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Its name in messages.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its path or URL, if it was opened by one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Its stored bytes; `None` for a stream.
    pub fn size(&self) -> Option<u64> {
        match &self.input {
            Input::Store(store) => Some(store.size()),
            Input::Stream(_) => None,
        }
    }

    /// The stored bytes that were read so far, in all reads with these options.
    pub fn stored_bytes(&self) -> u64 {
        match &self.input {
            Input::Store(_) => self.options.control.fetched(),
            Input::Stream(_) => self.streamed.load(Ordering::Relaxed),
        }
    }

    /// The options that it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A warning about the file, such as that it seems to be cut short.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// A value for each record, in the order of the file. `f` runs on the threads that find the
    /// records.
    ///
    /// # Errors
    /// [`Error::Usage`] for a stream that was read already; [`Error::Io`] about threads. The items
    /// have those of the text: [`Error::Malformed`] with the number of the record and the offset in
    /// the text, [`Error::Truncated`], [`Error::Io`], [`Error::Cancelled`].
    pub fn map<T, F>(&self, f: F) -> Result<Mapped<T, F>>
    where
        T: Send + 'static,
        F: Fn(&Record<'_>) -> T + Send + Sync + 'static,
    {
        Ok(Mapped::new(self.taken(Each(f), None)?))
    }

    /// The rows that `gather` takes, some at a time, in the order of the file.
    pub(crate) fn taken<G: Gather>(
        &self,
        gather: G,
        on_stored: Option<OnStored>,
    ) -> Result<Gathered<G>> {
        let gather = Arc::new(gather);
        let pieces = self.pieces(FindRecords(gather.clone()), on_stored)?;
        Ok(Gathered::new(pieces, self.stitch(gather)))
    }

    pub(crate) fn stitch<G: Gather>(&self, gather: Arc<G>) -> Stitch<G> {
        let most = (self.options.budget.memory / RECORD_SHARE).clamp(1 << 20, MOST_RECORD);
        Stitch::new(self.name.clone(), gather, most)
    }

    /// What work makes of the pieces of the text.
    pub(crate) fn pieces<W: Work>(
        &self,
        work: W,
        on_stored: Option<OnStored>,
    ) -> Result<Pieces<W>> {
        let work = Arc::new(work);
        let control = self.options.control.clone();
        let is_gzip = self.compression == Compression::Gzip;
        let old = Arc::<Mutex<_>>::default();
        let stored = match &self.input {
            Input::Stream(stream) => {
                let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                let stream = stream.ok_or_else(|| {
                    Error::Usage(format!("{}: it can be read only once", self.name).into())
                })?;
                Stored::Reader(stream, self.streamed.clone())
            }
            Input::Store(store) if is_gzip => {
                let Budget { threads, memory } = self.options.budget;
                let budget = Budget { threads, memory: memory / STORED_SHARE };
                let (model, _) = self.options.model_or(StoreModel::MEMORY);
                let shape = shape(&model, budget, Delivery::Ordered);
                let most = memory / 2 / shape.batches;
                let part = (most / PART_SHARE).clamp(LEAST_PART, MOST_PART);
                let most = (threads > 1).then_some(most.saturating_sub(part) / 2);
                let part = (part * self.piece / PIECE).max(1);
                let work = Arc::new(DecompressParts { most, old: old.clone() });
                Stored::Run(self.run(store, &work, shape, part, false)?)
            }
            Input::Store(store) => {
                let budget = self.options.budget;
                let (model, _) = self.options.model_or(StoreModel::MEMORY);
                let shape = shape(&model, budget, Delivery::Ordered);
                let piece = self.piece.min(batch_bytes(&shape, budget).max(LEAST_PIECE));
                let run = self.run(store, &work, shape, piece, on_stored.is_some())?;
                return Ok(Pieces::Run(run, on_stored));
            }
        };
        let workers = self.options.budget.threads.saturating_sub(1);
        let (piece, file) = (self.piece, self.name.clone());
        let text = SerialText { stored, is_gzip, piece, file, on_stored, old };
        Ok(Pieces::Serial(Serial::start(text, &work, workers, control)?))
    }

    /// A run over all stored bytes, in pieces of about `piece` bytes.
    fn run<W: Work>(
        &self,
        store: &Arc<dyn Store>,
        work: &Arc<W>,
        shape: Shape,
        piece: usize,
        keeps_stored: bool,
    ) -> Result<Run<PieceDecoder<W>>> {
        let (file, size) = (self.name.clone(), store.size());
        let is_bgzf = self.compression == Compression::Bgzf;
        let range = 0..size;
        let source = match is_bgzf {
            true => Source::Framed {
                range,
                framer: Box::new(Blocks { file: file.clone(), size, is_padded: false }),
            },
            false => Source::Framed { range, framer: Box::new(Cuts(piece)) },
        };
        let decoder = PieceDecoder { work: work.clone(), file, is_bgzf, piece, keeps_stored };
        Run::start(store.clone(), source, decoder, shape, self.options.control.clone())
    }
}
