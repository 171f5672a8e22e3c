//! Reading a column some of whose pages are damaged.

use std::ops::Range;

use thalweg_io::{InFile, Result};

use super::{ColumnMeta, ColumnReader, NumberCoding, PageSpan, RAW, RUN};
use crate::storage::segment::SegmentPages;

impl ColumnReader {
    /// Opens a column whose pages may be damaged. If the index of its pages cannot be read, the
    /// numbers of each page are counted. `None` if the column's parts do not fit each other.
    pub(crate) fn open_damaged(meta: &ColumnMeta, segment: &SegmentPages) -> Option<Self> {
        if let Ok(whole) = Self::open(meta, segment) {
            return Some(whole);
        }
        let pages = meta.page_count();
        let fits = match meta.coding {
            NumberCoding::Range { start } => {
                start.checked_add(meta.len.saturating_sub(1)).is_some()
            }
            NumberCoding::Raw => pages == meta.len.div_ceil(RAW),
            NumberCoding::Packed => meta.places.as_ref().is_some_and(|places| places.len == pages),
        };
        if !fits || pages > segment.pages() {
            return None;
        }
        let is_packed = meta.coding == NumberCoding::Packed;
        let mut column = Self { meta: meta.clone(), places: Vec::new(), keys: Vec::new() };
        if is_packed {
            column.places = column.salvage_places(segment, pages)?;
        }
        Some(column)
    }

    /// The place of each page's first number: from the index, or from the count of numbers in the
    /// page before. A page for which neither is known counts as empty, and the page before it as
    /// damaged.
    fn salvage_places(&self, segment: &SegmentPages, pages: u64) -> Option<Vec<u64>> {
        let index = Self {
            meta: (**self.meta.places.as_ref()?).clone(),
            places: Vec::new(),
            keys: Vec::new(),
        };
        let mut places = vec![0; pages as usize];
        let mut are_known = vec![false; pages as usize];
        index.read_salvageable(segment, 0..pages, &mut places, &mut are_known);
        for page in 0..pages as usize {
            if are_known[page] {
                continue;
            }
            let counted = match page.checked_sub(1) {
                None => Some(0),
                Some(last) if are_known[last] => {
                    let in_file = self.meta.runs.get(last / RUN)? + (last % RUN) as u64;
                    let numbers = segment.with(in_file..in_file + 1, |page| {
                        Ok(u16::from_le_bytes([page[2], page[3]]))
                    });
                    numbers.ok().map(|numbers| places[last] + u64::from(numbers))
                }
                Some(_) => None,
            };
            if let Some(place) = counted {
                (places[page], are_known[page]) = (place, true);
            }
        }
        let mut next = self.meta.len;
        for (place, is_known) in places.iter_mut().zip(are_known).rev() {
            if !is_known {
                *place = next;
            }
            next = *place;
        }
        (places.is_sorted() && places.last().is_none_or(|last| *last <= self.meta.len))
            .then_some(places)
    }

    /// Reads those numbers at consecutive places that can be read, and marks them in `are_read`.
    /// `out` and `are_read` have room for exactly these places.
    pub(crate) fn read_salvageable(
        &self,
        segment: &SegmentPages,
        numbers: Range<u64>,
        out: &mut [u64],
        are_read: &mut [bool],
    ) {
        if self.read(segment, numbers.clone(), out).is_ok() {
            are_read.fill(true);
            return;
        }
        are_read.fill(false);
        let first = numbers.start;
        for span in self.spans(numbers) {
            for (page, in_file) in (span.page..).zip(span.pages) {
                let numbers = span.numbers.start.max(self.first(page))
                    ..span.numbers.end.min(self.first(page + 1));
                if numbers.is_empty() {
                    continue;
                }
                let range = (numbers.start - first) as usize..(numbers.end - first) as usize;
                let one = PageSpan { pages: in_file..in_file + 1, page, numbers };
                let read: Result<()> = segment.with(one.pages.clone(), |bytes| {
                    self.decode(&one, bytes, &mut out[range.clone()])
                        .map_err(|fault| fault.in_file(segment.store().name(), 0, "a column"))
                });
                are_read[range].fill(read.is_ok());
            }
        }
    }
}
