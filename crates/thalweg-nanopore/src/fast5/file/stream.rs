//! Reads that the workers parse, out of the bytes that were fetched for their signal.
//!
//! The metadata of a read and its signal are written one after the other. So the bytes of a read
//! lie between its group's header and that of a read soon after; some reads, examined when the file
//! is opened, show how soon. The engine then reads the file once. Bytes that lie elsewhere are
//! fetched separately.
//!
//! The header comes from the first reads. If a worker meets a read with another attribute or of
//! another run, it parses the metadata of all reads, once. From then on, reads go with the header
//! of all reads. Records that were delivered before stay valid, because new groups and fields are
//! appended.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;

use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::{ByteSource, Refused, Views};
use thalweg_io::control::Control;
use thalweg_io::extent::Extent;
use thalweg_io::model::StoreModel;
use thalweg_io::plan::GapRule;
use thalweg_io::store::Store;
use thalweg_io::{Error, InFile, Result};

use super::open::{OpenContext, all};
use super::pages::{Pages, WINDOW, lock};
use crate::fast5::{Fast5Row, Fast5RowDecoder, KnownFields, KnownReads, Root, WantedRows};
use crate::record::{Entry, Header, Index, Record, Version};

/// The number of first reads that the header comes from, and of other reads that are examined to
/// learn the layout.
const FIRST: usize = 8;
const OTHERS: usize = 8;

/// Metadata further before their group's header than this are fetched separately.
const BEFORE: u64 = 64 << 10;
/// The bytes of a read may extend beyond the headers of this many later reads.
const AFTER: usize = 4;
/// The most bytes that are fetched for a read at once; missing bytes are fetched separately.
const MOST: u64 = 32 << 20;

/// A file whose reads are parsed while they are decoded.
#[derive(Debug)]
pub(crate) struct Stream {
    store: Arc<dyn Store>,
    control: Control,
    model: StoreModel,
    memory: usize,
    root: Root,
    reach: Reach,
    first: Arc<KnownReads>,
    /// The fields of all reads, once they were needed.
    whole: OnceLock<Arc<KnownReads>>,
    walking: Mutex<()>,
    requests: u64,
}

/// The extent of a read: bytes before its group's header, and headers of other reads after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    before: u64,
    after: usize,
    /// Bytes from the header on that hold everything but the signal.
    fields: u64,
}

/// Records the ranges that are asked for.
struct RecordingSource<'a> {
    pages: &'a Pages,
    requested: Mutex<Vec<Range<u64>>>,
}

impl ByteSource for RecordingSource<'_> {
    fn size(&self) -> u64 {
        self.pages.size()
    }

    fn poll(&self, ranges: &[Range<u64>]) -> Poll<Result<Views<'_>>> {
        lock(&self.requested).extend_from_slice(ranges);
        self.pages.poll(ranges)
    }
}

impl Stream {
    /// Examines some reads; `None` if their layout does not allow parsing while decoding.
    pub(super) fn open(
        context: OpenContext<'_>,
        pages: &Pages,
        root: Root,
    ) -> meta::Result<Result<Self, Root>> {
        let count = root.places().len();
        if count <= FIRST {
            return Ok(Err(root));
        }
        let mut known = root.known(context.store.name());
        let mut reach = Reach { before: 0, after: 1, fields: 0 };
        let mut needed = Vec::new();
        let numbers =
            || (0..FIRST).chain((0..OTHERS).map(|i| FIRST + i * (count - FIRST) / OTHERS));
        let size = pages.size();
        let place =
            |number: usize| root.places().get(number).map_or(size, |place| place.at.min(size));
        pages.expect(
            numbers()
                .map(|number| place(number)..place(number).saturating_add(WINDOW).min(size))
                .collect(),
        )?;
        for number in numbers() {
            let recording = RecordingSource { pages, requested: Mutex::default() };
            let found = root.read(&recording, number)?;
            if !found.is_named_rightly() {
                return Ok(Err(root));
            }
            let requested = std::mem::take(&mut *lock(&recording.requested));
            needed.extend(reach.widen(&root, number, &requested, &found.signal()));
            if number < FIRST {
                known.take(pages, found)?;
            }
        }
        if needed.len() * 4 < (FIRST + OTHERS) * 3 {
            return Ok(Err(root));
        }
        // A single outlier does not justify fetching as much for each read.
        needed.sort_unstable();
        reach.after = needed.iter().rev().nth(1).copied().unwrap_or(1);
        let store = context.store.clone();
        let control = context.control.clone();
        Ok(Ok(Self {
            store,
            control,
            model: context.model,
            memory: context.memory,
            root,
            reach,
            first: Arc::new(KnownReads::new(known)),
            whole: OnceLock::new(),
            walking: Mutex::new(()),
            requests: pages.requests(),
        }))
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    fn context(&self) -> OpenContext<'_> {
        OpenContext {
            store: &self.store,
            control: &self.control,
            model: self.model,
            memory: self.memory,
        }
    }

    /// The header of the first reads.
    pub(super) fn first_header(&self) -> &Arc<Header> {
        self.first.header()
    }

    /// The header of all reads, and what the model of a read cannot hold.
    pub(super) fn whole_header(&self) -> Result<(&Arc<Header>, &[String])> {
        let whole = self.whole()?;
        Ok((whole.header(), whole.left_out()))
    }

    /// Parses the metadata of all reads, unless this was done before.
    fn whole(&self) -> Result<&Arc<KnownReads>> {
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let _one = lock(&self.walking);
        if let Some(whole) = self.whole.get() {
            return Ok(whole);
        }
        let mut known = self.root.known(self.store.name());
        let rule = GapRule::new(&self.model).lean();
        let pages = Pages::new(&self.store, &self.control, rule, 1);
        all(&self.root, self.context(), &mut |found| {
            match found.and_then(|found| known.take(&pages, found)) {
                Err(Refused::Store(
                    error @ (Error::Io { .. } | Error::Cancelled | Error::Usage(_)),
                )) => Err(error),
                // A read that contradicts the others, or is unreadable, is reported when it is
                // read.
                _ => Ok(true),
            }
        })?;
        Ok(self.whole.get_or_init(|| Arc::new(KnownReads::new(known))))
    }

    /// How many reads there are.
    pub(super) fn len(&self) -> usize {
        self.root.places().len()
    }

    /// An index of the reads: an entry's offset is the read's number.
    pub(super) fn index(&self) -> Result<Index> {
        let mut index = Index::new(Version::V1_0_0);
        for (number, place) in self.root.places().iter().enumerate() {
            let entry = Entry { offset: number as u64, size: 0 };
            index
                .push(&place.id, entry)
                .map_err(|fault| fault.in_file(self.store.name(), 0, "read ids"))?;
        }
        Ok(index)
    }

    /// The bytes that hold a read, or everything of it but the signal.
    pub(super) fn extent(&self, number: usize, signal: bool) -> Range<u64> {
        let places = self.root.places();
        let Some(place) = places.get(number) else { return 0..0 };
        let size = self.store.size();
        let start = place.at.saturating_sub(self.reach.before);
        let end = places.get(number + self.reach.after).map_or(size, |next| next.at);
        let end = if signal { end } else { end.min(place.at.saturating_add(self.reach.fields)) };
        start..end.min(start.saturating_add(MOST)).min(size).max(start)
    }
}

impl Reach {
    /// Extends the range before the header to what a read needed. Returns how many headers after it
    /// the read needed; `None` if the signal lies elsewhere.
    fn widen(
        &mut self,
        root: &Root,
        number: usize,
        requested: &[Range<u64>],
        signal: &Range<u64>,
    ) -> Option<usize> {
        let places = root.places();
        let place = places.get(number)?;
        let headers =
            |end: u64| places.partition_point(|place| place.at < end).saturating_sub(number).max(1);
        let mut after = 1;
        for get in requested {
            if get.start < place.at {
                let before = place.at - get.start;
                self.before = if before <= BEFORE { self.before.max(before) } else { self.before };
            } else if headers(get.end) <= AFTER {
                after = after.max(headers(get.end));
                self.fields = self.fields.max(get.end - place.at);
            }
        }
        if signal.is_empty() {
            return Some(after);
        }
        let near =
            signal.start >= place.at.saturating_sub(self.before) && headers(signal.end) <= AFTER;
        near.then(|| after.max(headers(signal.end)))
    }
}

/// The bytes of an extent, with the rest of the file behind them.
struct ExtentSource<'a> {
    extent: &'a Extent<'a>,
    pages: &'a Pages,
}

impl ByteSource for ExtentSource<'_> {
    fn size(&self) -> u64 {
        self.pages.size()
    }

    fn poll(&self, ranges: &[Range<u64>]) -> Poll<Result<Views<'_>>> {
        let get = |range: &Range<u64>| {
            let at = range.start;
            let len = (range.end - range.start) as usize;
            let inside = at.checked_sub(self.extent.offset).and_then(|from| {
                let from = usize::try_from(from).ok()?;
                self.extent.bytes.get(from..from.checked_add(len)?)
            });
            inside.map_or_else(|| self.pages.get(at, len), |bytes| Ok(Cow::Borrowed(bytes)))
        };
        Poll::Ready(ranges.iter().map(get).collect())
    }

    fn hint(&self, ranges: &[Range<u64>]) {
        self.pages.hint(ranges);
    }
}

/// Turns extents into reads on one worker.
pub(crate) struct StreamUnpacker {
    stream: Arc<Stream>,
    rows: WantedRows,
    decoder: Fast5RowDecoder,
    pages: Pages,
    known: KnownFields,
    header: Arc<Header>,
    /// The read that was parsed last, with its ordinal.
    ready: Option<(u64, Fast5Row)>,
}

impl StreamUnpacker {
    pub(super) fn new(stream: Arc<Stream>, rows: WantedRows) -> Self {
        let rule = GapRule::new(&stream.model).lean();
        let pages = Pages::new(&stream.store, &stream.control, rule, 1);
        let state = stream.whole.get().unwrap_or(&stream.first).clone();
        let known = state.known().clone();
        let header = state.header().clone();
        Self {
            decoder: Fast5RowDecoder::new(stream.store.clone()),
            stream,
            rows,
            pages,
            known,
            header,
            ready: None,
        }
    }

    /// Parses the read of an extent. Returns the header that it goes with.
    pub(super) fn header(&mut self, extent: &Extent<'_>) -> Result<Arc<Header>> {
        self.ready = None;
        let name = self.stream.store.name().clone();
        let number = self.rows.number(extent.ordinal).filter(|&number| number < self.stream.len());
        let number = number.ok_or_else(|| {
            Error::Usage(format!("{name}: no read number {}", extent.ordinal).into())
        })?;
        let parsed = self.parse(extent, number).and_then(|(row, is_new)| {
            if !is_new {
                return Ok(row);
            }
            let whole = self.stream.whole()?.clone();
            (self.known, self.header) = (whole.known().clone(), whole.header().clone());
            self.parse(extent, number).map(|(row, _)| row)
        });
        let row = parsed.map_err(|refused| self.refused(refused, number))?;
        self.ready = Some((extent.ordinal, row));
        Ok(self.header.clone())
    }

    fn parse(&mut self, extent: &Extent<'_>, number: usize) -> meta::Result<(Fast5Row, bool)> {
        let near = ExtentSource { extent, pages: &self.pages };
        let found = self.stream.root.read(&near, number)?;
        self.known.take(&near, found)
    }

    fn refused(&self, refused: Refused, number: usize) -> Error {
        let Stream { store, root, .. } = &*self.stream;
        let id = root.places().get(number).map(|place| &*place.id).unwrap_or_default();
        let advice = "`thalweg check` lists the reads that are whole";
        refused.in_file(store.name(), root.base(), format!("read {id}"), advice)
    }

    /// Decodes the read that was parsed last, and appends its samples to `samples`; without samples
    /// for `None`.
    pub(super) fn read(
        &mut self,
        extent: &Extent<'_>,
        samples: Option<(usize, &mut Vec<i16>)>,
    ) -> Result<(Record<'_>, u64)> {
        if self.ready.as_ref().is_none_or(|(ordinal, _)| *ordinal != extent.ordinal) {
            self.header(extent)?;
        }
        let Some((_, row)) = &self.ready else {
            return Err(Error::Usage(
                format!("{}: no read number {}", self.stream.store.name(), extent.ordinal).into(),
            ));
        };
        if let Some((limit, out)) = samples {
            self.decoder.samples(row, extent, limit, out)?;
        }
        Ok(self.decoder.fields(row, &self.header))
    }

    pub(super) fn trim(&mut self, keep: usize) {
        self.decoder.trim(keep);
    }
}
