//! Columns of numbers in a segment, of which any can be read.
//!
//! A column lies in the file as runs of 256 pages, so that what is near in the column is near in
//! the file though columns are written side by side. A page of a packed one holds groups
//! ([`crate::storage::pack`]):
//!
//! ```text
//! bytes 0-1   groups
//! bytes 2-3   numbers; the last group of a column is filled up with its last number
//! bytes 4-7   zero
//! then        the groups, and at least 8 more bytes
//! ```

mod salvage;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thalweg_io::{Fault, InFile, Result};

use crate::storage::pack::{self, GROUP};
use crate::storage::segment::{PAGE, SegmentPages, SegmentWriter};

/// Pages of a run.
const RUN: usize = 256;

/// Numbers of a page that is not packed.
const RAW: u64 = PAGE as u64 / 8;

/// Numbers of a packed page at most: groups take nine bytes at least.
const MOST_PACKED: u64 = (PAGE / pack::HEAD * GROUP) as u64;

/// Bytes before a packed page's groups.
const PAGE_HEAD: usize = 8;

/// How a column's numbers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// Eight bytes each.
    Raw,
    /// Packed: see the module `pack`.
    Packed,
    /// Not at all: each is one more than the one before.
    Range {
        /// The first.
        start: u64,
    },
}

/// What a footer says of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ColumnMeta {
    coding: Coding,
    len: u64,
    /// The first page of each run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<u64>,
    /// The last of the runs ends before this page.
    #[serde(default)]
    end: u64,
    /// Of a packed column: the place of each page's first number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    places: Option<Box<ColumnMeta>>,
    /// Of an ascending column: each page's first number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Box<ColumnMeta>>,
}

impl ColumnMeta {
    /// How many numbers.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn page_count(&self) -> u64 {
        match self.runs.last() {
            Some(last) => {
                (self.runs.len() as u64 - 1) * RUN as u64 + self.end.saturating_sub(*last)
            }
            None => 0,
        }
    }
}

/// A column being written.
pub(crate) struct ColumnWriter {
    coding: Coding,
    /// What it becomes once it is no range.
    later: Coding,
    is_keyed: bool,
    len: u64,
    runs: Vec<u64>,
    end: u64,
    places: Vec<u64>,
    keys: Vec<u64>,
    /// Whole pages that are not written.
    buffer: Vec<u8>,
    page: Vec<u8>,
    /// Groups and numbers of the page.
    held: (u16, u16),
    group: [u64; GROUP],
    filled: usize,
}

impl ColumnWriter {
    /// A column without numbers. One that `is_keyed` is searched: its numbers ascend.
    pub(crate) fn new(coding: Coding, is_keyed: bool) -> Self {
        Self {
            coding: Coding::Range { start: 0 },
            later: coding,
            is_keyed,
            len: 0,
            runs: Vec::new(),
            end: 0,
            places: Vec::new(),
            keys: Vec::new(),
            buffer: Vec::new(),
            page: Vec::new(),
            held: (0, 0),
            group: [0; GROUP],
            filled: 0,
        }
    }

    /// A column that takes room for each of its numbers, even where each is one more than the one
    /// before: what is read of it then cannot be more than the file holds.
    pub(crate) fn solid(coding: Coding) -> Self {
        Self { coding, ..Self::new(coding, false) }
    }

    /// How many numbers it has.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends a number.
    pub(crate) fn push(&mut self, segment: &mut SegmentWriter, value: u64) -> Result<()> {
        match self.coding {
            Coding::Packed => {
                self.group[self.filled] = value;
                self.filled += 1;
                self.len += 1;
                if self.filled == GROUP {
                    self.flush_group(segment)?;
                }
                return Ok(());
            }
            Coding::Raw => {
                if self.page.is_empty() && self.is_keyed {
                    self.keys.push(value);
                }
                self.page.extend_from_slice(&value.to_le_bytes());
                self.len += 1;
                if self.page.len() == PAGE {
                    self.flush_page(segment)?;
                }
                return Ok(());
            }
            Coding::Range { start }
                if self.len == 0 || start.checked_add(self.len) == Some(value) =>
            {
                self.coding = Coding::Range { start: if self.len == 0 { value } else { start } };
                self.len += 1;
                return Ok(());
            }
            Coding::Range { .. } => {}
        }
        self.settle(segment)?;
        self.push(segment, value)
    }

    /// Appends numbers.
    pub(crate) fn extend(&mut self, segment: &mut SegmentWriter, mut values: &[u64]) -> Result<()> {
        while let Some((first, rest)) = values.split_first() {
            if let Coding::Range { start } = self.coding
                && self.len > 0
            {
                let next = start.wrapping_add(self.len);
                let more = values
                    .iter()
                    .zip(0..)
                    .take_while(|(value, i)| **value == next.wrapping_add(*i))
                    .count();
                self.len += more as u64;
                values = &values[more..];
                if values.is_empty() {
                    return Ok(());
                }
                self.settle(segment)?;
                continue;
            }
            if self.coding == Coding::Packed && self.filled == 0 && values.len() >= GROUP {
                let (whole, later) = values.split_at(values.len() / GROUP * GROUP);
                for group in whole.as_chunks().0 {
                    self.len += GROUP as u64;
                    self.write_group(segment, group, GROUP)?;
                }
                values = later;
                continue;
            }
            if self.coding == Coding::Raw && !self.page.is_empty() {
                let (now, later) = values.split_at(values.len().min((PAGE - self.page.len()) / 8));
                self.page.extend(now.iter().flat_map(|value| value.to_le_bytes()));
                self.len += now.len() as u64;
                values = later;
                if self.page.len() == PAGE {
                    self.flush_page(segment)?;
                }
                continue;
            }
            if self.coding == Coding::Packed && self.filled > 0 {
                let (now, later) = values.split_at(values.len().min(GROUP - self.filled));
                self.group[self.filled..self.filled + now.len()].copy_from_slice(now);
                self.filled += now.len();
                self.len += now.len() as u64;
                values = later;
                if self.filled == GROUP {
                    self.flush_group(segment)?;
                }
                continue;
            }
            self.push(segment, *first)?;
            values = rest;
        }
        Ok(())
    }

    /// Writes the numbers that seemed to be a range.
    fn settle(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        let Coding::Range { start } = self.coding else { return Ok(()) };
        let len = std::mem::take(&mut self.len);
        self.coding = self.later;
        (0..len).try_for_each(|i| self.push(segment, start + i))
    }

    fn flush_group(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        let filled = std::mem::take(&mut self.filled);
        let group = self.group;
        self.write_group(segment, &group, filled)
    }

    /// Writes a group, of which so many numbers count; they do already in the column's length.
    fn write_group(
        &mut self,
        segment: &mut SegmentWriter,
        group: &[u64; GROUP],
        filled: usize,
    ) -> Result<()> {
        if self.page.is_empty() {
            self.begin_page(filled, group[0]);
        }
        let before = self.page.len();
        pack::pack(group, &mut self.page);
        if self.page.len() + pack::SLACK > PAGE {
            let packed = self.page.split_off(before);
            self.flush_page(segment)?;
            self.begin_page(filled, group[0]);
            self.page.extend_from_slice(&packed);
        }
        self.held = (self.held.0 + 1, self.held.1 + filled as u16);
        Ok(())
    }

    fn begin_page(&mut self, filled: usize, first: u64) {
        self.page.resize(PAGE_HEAD, 0);
        self.places.push(self.len - filled as u64);
        if self.is_keyed {
            self.keys.push(first);
        }
    }

    fn flush_page(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        let (groups, numbers) = std::mem::take(&mut self.held);
        if self.coding == Coding::Packed {
            self.page[..2].copy_from_slice(&groups.to_le_bytes());
            self.page[2..4].copy_from_slice(&numbers.to_le_bytes());
        }
        self.page.resize(PAGE, 0);
        self.buffer.extend_from_slice(&self.page);
        self.page.clear();
        if self.buffer.len() == RUN * PAGE { self.flush_run(segment) } else { Ok(()) }
    }

    fn flush_run(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        if !self.buffer.is_empty() {
            self.runs.push(segment.append(&self.buffer)?);
            self.end = segment.pages();
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes what is left; what the footer is to say.
    pub(crate) fn finish(mut self, segment: &mut SegmentWriter) -> Result<ColumnMeta> {
        if self.filled > 0 {
            let last = self.group[self.filled - 1];
            self.group[self.filled..].fill(last);
            self.flush_group(segment)?;
        }
        if !self.page.is_empty() {
            self.flush_page(segment)?;
        }
        self.flush_run(segment)?;
        let below =
            |values: &[u64], segment: &mut SegmentWriter| -> Result<Option<Box<ColumnMeta>>> {
                if values.is_empty() {
                    return Ok(None);
                }
                let mut column = Self::new(Coding::Raw, false);
                column.extend(segment, values)?;
                Ok(Some(Box::new(column.finish(segment)?)))
            };
        let (places, keys) = (below(&self.places, segment)?, below(&self.keys, segment)?);
        Ok(ColumnMeta {
            coding: self.coding,
            len: self.len,
            runs: self.runs,
            end: self.end,
            places,
            keys,
        })
    }
}

/// Numbers of a column that lie in pages one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageSpan {
    /// The pages, in the file.
    pub(crate) pages: Range<u64>,
    /// The first of them, in the column.
    page: u64,
    /// The numbers wanted.
    pub(crate) numbers: Range<u64>,
}

/// A column, open for reading.
#[derive(Debug)]
pub(crate) struct ColumnReader {
    meta: ColumnMeta,
    places: Vec<u64>,
    keys: Vec<u64>,
}

impl ColumnReader {
    /// Opens a column: reads where its pages begin.
    pub(crate) fn open(meta: &ColumnMeta, segment: &SegmentPages) -> Result<Self> {
        let wrong = |found: String, expected: &'static str| {
            Fault::new(0, found, expected).in_file(segment.store().name(), 0, "footer: a column")
        };
        let below = |meta: &Option<Box<ColumnMeta>>| -> Result<Vec<u64>> {
            let Some(meta) = meta else { return Ok(Vec::new()) };
            if meta.coding == Coding::Packed || meta.keys.is_some() {
                return Err(wrong("a packed list of pages".into(), "one that is not"));
            }
            if meta.coding == Coding::Raw && meta.len > segment.pages() * RAW
                || meta.len > segment.pages()
            {
                return Err(wrong(format!("{} pages", meta.len), "not more than the file has"));
            }
            let column = Self { meta: (**meta).clone(), places: Vec::new(), keys: Vec::new() };
            let mut values = vec![0; meta.len as usize];
            column.read(segment, 0..meta.len, &mut values)?;
            Ok(values)
        };
        let (places, keys) = (below(&meta.places)?, below(&meta.keys)?);
        let pages = meta.page_count();
        let fits = match meta.coding {
            Coding::Range { start } => start.checked_add(meta.len.saturating_sub(1)).is_some(),
            Coding::Raw => pages == meta.len.div_ceil(RAW),
            Coding::Packed => {
                places.len() as u64 == pages
                    && places.first().is_none_or(|first| *first == 0)
                    && places
                        .windows(2)
                        .all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= MOST_PACKED)
                    && places
                        .last()
                        .is_none_or(|last| *last < meta.len && meta.len - last <= MOST_PACKED)
                    && (meta.len == 0) == places.is_empty()
            }
        };
        let last_run = meta.runs.last().map(|first| meta.end.saturating_sub(*first));
        let fits = fits && last_run.is_none_or(|pages| (1..=RUN as u64).contains(&pages));
        if !fits || !keys.is_empty() && keys.len() as u64 != pages {
            return Err(wrong(
                format!("{} numbers in {pages} pages", meta.len),
                "as many as there is room for",
            ));
        }
        Ok(Self { meta: meta.clone(), places, keys })
    }

    /// How many numbers.
    pub(crate) fn len(&self) -> u64 {
        self.meta.len
    }

    /// Whether it takes no room in the file.
    pub(crate) fn is_range(&self) -> bool {
        matches!(self.meta.coding, Coding::Range { .. })
    }

    /// Where these numbers lie.
    pub(crate) fn spans(&self, numbers: Range<u64>) -> impl Iterator<Item = PageSpan> {
        let (first, end) = match self.meta.coding {
            _ if numbers.is_empty() => (0, 0),
            Coding::Range { .. } => (0, 0),
            Coding::Raw => (numbers.start / RAW, (numbers.end - 1) / RAW + 1),
            Coding::Packed => (
                self.places.partition_point(|place| *place <= numbers.start).saturating_sub(1)
                    as u64,
                self.places.partition_point(|place| *place < numbers.end) as u64,
            ),
        };
        let mut page = first;
        std::iter::from_fn(move || {
            if page >= end {
                return None;
            }
            let run = page / RUN as u64;
            let stop = ((run + 1) * RUN as u64).min(end);
            let in_file = self.in_file(page);
            let span = PageSpan {
                pages: in_file..in_file + (stop - page),
                page,
                numbers: numbers.start.max(self.first(page))..numbers.end.min(self.first(stop)),
            };
            page = stop;
            Some(span)
        })
    }

    /// The place of a page's first number.
    fn first(&self, page: u64) -> u64 {
        match self.meta.coding {
            Coding::Packed => self.places.get(page as usize).copied().unwrap_or(self.meta.len),
            _ => (page * RAW).min(self.meta.len),
        }
    }

    /// A span's numbers, out of its pages' bytes.
    pub(crate) fn decode(
        &self,
        span: &PageSpan,
        bytes: &[u8],
        out: &mut [u64],
    ) -> Result<(), Fault> {
        let Range { start, end } = span.numbers;
        if self.meta.coding == Coding::Raw {
            let at = (start - self.first(span.page)) as usize * 8;
            let bytes = &bytes[at..at + (end - start) as usize * 8];
            for (value, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
                *value = u64::from_le_bytes(*bytes);
            }
            return Ok(());
        }
        let mut group = [0; GROUP];
        for (number, page) in (span.page..).zip(bytes.chunks_exact(PAGE)) {
            let damaged = |fault: Fault| fault.shifted((number - span.page) as usize * PAGE);
            let groups = u16::from_le_bytes([page[0], page[1]]);
            let (mut at, mut place) = (PAGE_HEAD, self.first(number));
            let last = self.first(number + 1);
            for _ in 0..groups {
                let here = place..(place + GROUP as u64).min(last);
                place = here.end;
                let rest = page.get(at..).unwrap_or_default();
                if here.end <= start {
                    at += pack::packed_len(rest).map_err(damaged)?;
                    continue;
                }
                if here.start >= end {
                    break;
                }
                if here.start >= start && here.start + GROUP as u64 <= end {
                    let out = &mut out[(here.start - start) as usize..];
                    if let Some(out) = out.first_chunk_mut() {
                        at += pack::unpack(rest, out).map_err(damaged)?;
                        continue;
                    }
                }
                at += pack::unpack(rest, &mut group).map_err(damaged)?;
                let wanted = here.start.max(start)..here.end.min(end);
                out[(wanted.start - start) as usize..(wanted.end - start) as usize]
                    .copy_from_slice(
                        &group[(wanted.start - here.start) as usize
                            ..(wanted.end - here.start) as usize],
                    );
            }
            if place < last.min(end) {
                return Err(damaged(Fault::new(
                    0,
                    format!("{groups} groups"),
                    format!("numbers up to {last}"),
                )));
            }
        }
        Ok(())
    }

    /// Reads numbers, one after the other in the column, into as much room.
    pub(crate) fn read(
        &self,
        segment: &SegmentPages,
        numbers: Range<u64>,
        out: &mut [u64],
    ) -> Result<()> {
        if numbers.end > self.meta.len || numbers.start > numbers.end {
            let fault =
                Fault::new(0, format!("numbers {numbers:?}"), format!("some of {}", self.meta.len));
            return Err(fault.in_file(segment.store().name(), 0, "a column"));
        }
        if let Coding::Range { start } = self.meta.coding {
            out.iter_mut().zip(numbers).for_each(|(value, number)| *value = start + number);
            return Ok(());
        }
        let mut done = 0;
        for span in self.spans(numbers) {
            let count = (span.numbers.end - span.numbers.start) as usize;
            let out = &mut out[done..done + count];
            done += count;
            segment.with(span.pages.clone(), |bytes| {
                let at = span.pages.start * PAGE as u64;
                self.decode(&span, bytes, out)
                    .map_err(|fault| fault.in_file(segment.store().name(), at, "a column"))
            })?;
        }
        Ok(())
    }

    /// One number.
    pub(crate) fn get(&self, segment: &SegmentPages, number: u64) -> Result<u64> {
        let mut out = [0];
        self.read(segment, number..number + 1, &mut out)?;
        Ok(out[0])
    }

    /// The pages in the file that a number can be in, in a column whose numbers ascend.
    pub(crate) fn page_of(&self, value: u64) -> Option<Range<u64>> {
        let page = self.keys.partition_point(|key| *key <= value).checked_sub(1)? as u64;
        let first = self.in_file(page);
        Some(first..first + 1)
    }

    /// The place of a number in a column whose numbers ascend; `Err` with the place that it would
    /// have.
    pub(crate) fn find(&self, segment: &SegmentPages, value: u64) -> Result<Result<u64, u64>> {
        if let Coding::Range { start } = self.meta.coding {
            let place = value.saturating_sub(start).min(self.meta.len);
            return Ok(if value >= start && place < self.meta.len {
                Ok(place)
            } else {
                Err(place)
            });
        }
        if self.meta.coding == Coding::Packed && self.meta.len > 0 {
            return self.finder(segment).find(value);
        }
        let page = self.page_with(value);
        let numbers = self.first(page)..self.first(page + 1);
        let mut values = vec![0; (numbers.end - numbers.start) as usize];
        self.read(segment, numbers.clone(), &mut values)?;
        Ok(match values.binary_search(&value) {
            Ok(place) => Ok(numbers.start + place as u64),
            Err(place) => Err(numbers.start + place as u64),
        })
    }
}

/// Reads numbers of a column one by one. Of a packed one it keeps the group that the last was in,
/// and goes on from there: for those who ask for many in order.
pub(crate) struct ColumnFinder<'a> {
    column: &'a ColumnReader,
    segment: &'a SegmentPages,
    /// Where the group below lies: the page in the column, the byte in that.
    page: u64,
    at: usize,
    /// Places of its numbers; none before the first is read.
    held: Range<u64>,
    values: [u64; GROUP],
}

impl ColumnFinder<'_> {
    /// Holds the last group of a page of which `is_before` holds, given the place of its first
    /// number and that number; the first group if it holds of none. It holds of no group behind one
    /// of which it does not.
    fn hold(&mut self, page: u64, is_before: impl Fn(u64, u64) -> bool) -> Result<()> {
        let (first, end) = (self.column.first(page), self.column.first(page + 1));
        let goes_on = self.page == page
            && !self.held.is_empty()
            && is_before(self.held.start, self.values[0]);
        let from = if goes_on { (self.at, self.held.start) } else { (PAGE_HEAD, first) };
        let in_file = self.column.in_file(page);
        let Self { segment, values, held, .. } = self;
        let (at, place) = segment.with(in_file..in_file + 1, |bytes| {
            let damaged = |fault: Fault| {
                fault.in_file(segment.store().name(), in_file * PAGE as u64, "a column")
            };
            let (mut at, mut place) = from;
            loop {
                let len = pack::packed_len(bytes.get(at..).unwrap_or_default()).map_err(damaged)?;
                let (next, later) = (at + len, place + GROUP as u64);
                if later >= end
                    || !is_before(later, pack::base(bytes.get(next..).unwrap_or_default()))
                {
                    break;
                }
                (at, place) = (next, later);
            }
            if !goes_on || place != held.start {
                *held = 0..0;
                pack::unpack(bytes.get(at..).unwrap_or_default(), values).map_err(damaged)?;
            }
            Ok((at, place))
        })?;
        (self.page, self.at, self.held) = (page, at, place..(place + GROUP as u64).min(end));
        Ok(())
    }

    fn values(&self) -> &[u64] {
        &self.values[..(self.held.end - self.held.start) as usize]
    }

    /// As [`ColumnReader::find`].
    pub(crate) fn find(&mut self, value: u64) -> Result<Result<u64, u64>> {
        if self.column.meta.coding != Coding::Packed || self.column.len() == 0 {
            return self.column.find(self.segment, value);
        }
        if !matches!(self.values(), [first, .., last] if (*first..=*last).contains(&value)) {
            self.hold(self.column.page_with(value), |_, first| first <= value)?;
        }
        let start = self.held.start;
        Ok(self
            .values()
            .binary_search(&value)
            .map(|i| start + i as u64)
            .map_err(|i| start + i as u64))
    }

    /// As [`ColumnReader::get`].
    pub(crate) fn get(&mut self, number: u64) -> Result<u64> {
        if self.column.meta.coding != Coding::Packed || number >= self.column.len() {
            return self.column.get(self.segment, number);
        }
        if !self.held.contains(&number) {
            self.hold(self.column.page_around(number), |place, _| place <= number)?;
        }
        Ok(self.values[(number - self.held.start) as usize])
    }
}

impl ColumnReader {
    /// A way to read many numbers in order.
    pub(crate) fn finder<'a>(&'a self, segment: &'a SegmentPages) -> ColumnFinder<'a> {
        ColumnFinder { column: self, segment, page: 0, at: 0, held: 0..0, values: [0; GROUP] }
    }

    /// The page that a number of an ascending column can be in.
    fn page_with(&self, value: u64) -> u64 {
        self.keys.partition_point(|key| *key <= value).saturating_sub(1) as u64
    }

    /// The page of a packed column that has the number at a place.
    fn page_around(&self, number: u64) -> u64 {
        self.places.partition_point(|place| *place <= number).saturating_sub(1) as u64
    }

    /// Where a page lies in the file.
    fn in_file(&self, page: u64) -> u64 {
        self.meta
            .runs
            .get(page as usize / RUN)
            .map_or(self.meta.end, |first| first + page % RUN as u64)
    }

    /// Where a number stands among those in `range`, which ascend.
    pub(crate) fn find_in(
        &self,
        segment: &SegmentPages,
        range: Range<u64>,
        value: u64,
    ) -> Result<Range<u64>> {
        let first = |from: Range<u64>, is_before: &dyn Fn(u64) -> bool| -> Result<u64> {
            let Range { mut start, mut end } = from;
            // To the page in which it changes: the first numbers of pages are found soonest.
            if self.meta.coding == Coding::Packed && start < end {
                let (mut low, mut high) = (self.page_around(start), self.page_around(end - 1));
                while low < high {
                    let middle = (low + high).div_ceil(2);
                    let place = self.first(middle);
                    if is_before(self.get(segment, place)?) {
                        (low, start) = (middle, place + 1);
                    } else {
                        (high, end) = (middle - 1, place);
                    }
                }
            }
            // Then to the group, and in that.
            while end - start > GROUP as u64 {
                let middle = start.midpoint(end);
                if is_before(self.get(segment, middle)?) {
                    start = middle + 1
                } else {
                    end = middle
                }
            }
            let mut values = [0; GROUP];
            let values = &mut values[..(end - start) as usize];
            self.read(segment, start..end, values)?;
            Ok(start + values.partition_point(|value| is_before(*value)) as u64)
        };
        let start = first(range.clone(), &|known| known < value)?;
        // Mostly it is not there.
        if start == range.end || self.get(segment, start)? != value {
            return Ok(start..start);
        }
        Ok(start..first(start + 1..range.end, &|known| known <= value)?)
    }
}

#[cfg(test)]
mod tests;
