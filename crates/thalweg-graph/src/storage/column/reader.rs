//! Reading a column by place.

use std::ops::Range;

use thalweg_io::{Fault, InFile, Result};

use super::{ColumnMeta, MOST_PACKED, NumberCoding, PAGE_HEAD, RAW, RUN};
use crate::storage::pack::{self, GROUP};
use crate::storage::segment::{PAGE, SegmentPages};

/// Numbers of a column that lie in consecutive pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageSpan {
    /// The pages, in the file.
    pub(crate) pages: Range<u64>,
    /// The number of the first page within the column.
    pub(super) page: u64,
    /// The places of the wanted numbers in the column.
    pub(crate) numbers: Range<u64>,
}

/// A column, open for reading.
#[derive(Debug)]
pub(crate) struct ColumnReader {
    pub(super) meta: ColumnMeta,
    /// For a packed column: the place of each page's first number.
    pub(super) places: Vec<u64>,
    /// For an ascending column: each page's first number.
    pub(super) keys: Vec<u64>,
}

impl ColumnMeta {
    /// The pages that opening the column reads, in a file of `pages` pages.
    pub(crate) fn index_pages(&self, pages: u64) -> Vec<Range<u64>> {
        let lists = [&self.places, &self.keys].into_iter().flatten();
        let lists = lists.filter(|meta| meta.coding == NumberCoding::Raw && meta.len <= pages);
        let spans = |meta: &ColumnMeta| {
            let list = ColumnReader { meta: meta.clone(), places: Vec::new(), keys: Vec::new() };
            list.spans(0..meta.len).map(|span| span.pages).collect::<Vec<_>>()
        };
        lists.flat_map(|meta| spans(meta)).collect()
    }
}

impl ColumnReader {
    /// Opens a column: reads where its pages begin, and checks that its parts fit each other.
    pub(crate) fn open(meta: &ColumnMeta, segment: &SegmentPages) -> Result<Self> {
        let wrong = |found: String, expected: &'static str| {
            Fault::new(0, found, expected).in_file(segment.store().name(), 0, "footer: a column")
        };
        let index = |meta: &Option<Box<ColumnMeta>>| -> Result<Vec<u64>> {
            let Some(meta) = meta else { return Ok(Vec::new()) };
            if meta.coding == NumberCoding::Packed || meta.keys.is_some() {
                return Err(wrong("a packed list of pages".into(), "one that is not"));
            }
            if meta.coding == NumberCoding::Raw && meta.len > segment.pages() * RAW
                || meta.len > segment.pages()
            {
                return Err(wrong(format!("{} pages", meta.len), "not more than the file has"));
            }
            let column = Self { meta: (**meta).clone(), places: Vec::new(), keys: Vec::new() };
            let mut values = segment.index_room(meta.len as usize)?;
            column.read(segment, 0..meta.len, &mut values)?;
            Ok(values)
        };
        let places = index(&meta.places)?;
        let keys = index(&meta.keys)?;
        let pages = meta.page_count();
        let fits = match meta.coding {
            NumberCoding::Range { start } => {
                start.checked_add(meta.len.saturating_sub(1)).is_some()
            }
            NumberCoding::Raw => pages == meta.len.div_ceil(RAW),
            NumberCoding::Packed => {
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

    /// How many numbers the column has.
    pub(crate) fn len(&self) -> u64 {
        self.meta.len
    }

    /// Whether the column takes no room in the file.
    pub(crate) fn is_range(&self) -> bool {
        matches!(self.meta.coding, NumberCoding::Range { .. })
    }

    /// The pages that hold the numbers at these places.
    pub(crate) fn spans(&self, numbers: Range<u64>) -> impl Iterator<Item = PageSpan> {
        let (first, end) = match self.meta.coding {
            _ if numbers.is_empty() => (0, 0),
            NumberCoding::Range { .. } => (0, 0),
            NumberCoding::Raw => (numbers.start / RAW, (numbers.end - 1) / RAW + 1),
            NumberCoding::Packed => (
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
    pub(super) fn first(&self, page: u64) -> u64 {
        match self.meta.coding {
            NumberCoding::Packed => {
                self.places.get(page as usize).copied().unwrap_or(self.meta.len)
            }
            _ => (page * RAW).min(self.meta.len),
        }
    }

    /// Decodes the numbers of a span from the bytes of its pages.
    pub(crate) fn decode(
        &self,
        span: &PageSpan,
        bytes: &[u8],
        out: &mut [u64],
    ) -> Result<(), Fault> {
        let Range { start, end } = span.numbers;
        if self.meta.coding == NumberCoding::Raw {
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
            let mut at = PAGE_HEAD;
            let mut place = self.first(number);
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

    /// Reads the numbers at consecutive places. `out` has room for exactly these.
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
        if let NumberCoding::Range { start } = self.meta.coding {
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

    /// Reads the number at one place.
    pub(crate) fn get(&self, segment: &SegmentPages, number: u64) -> Result<u64> {
        let mut out = [0];
        self.read(segment, number..number + 1, &mut out)?;
        Ok(out[0])
    }

    /// The number in the file of a page of the column.
    pub(super) fn in_file(&self, page: u64) -> u64 {
        self.meta
            .runs
            .get(page as usize / RUN)
            .map_or(self.meta.end, |first| first + page % RUN as u64)
    }
}
