//! Searching a column for a number, and reading many numbers in order.

use std::ops::Range;

use thalweg_io::{Fault, InFile, Result};

use super::reader::ColumnReader;
use super::{NumberCoding, PAGE_HEAD};
use crate::storage::pack::{self, GROUP};
use crate::storage::segment::{PAGE, SegmentPages};

/// Reads single numbers of a column. For a packed column it keeps the group of the last number, so
/// that many numbers in order are found quickly.
pub(crate) struct ColumnFinder<'a> {
    column: &'a ColumnReader,
    segment: &'a SegmentPages,
    /// Where the group in `values` lies: the page in the column, and the byte in the page.
    page: u64,
    at: usize,
    /// The places of the group's numbers; empty before the first group is read.
    held: Range<u64>,
    values: [u64; GROUP],
}

impl ColumnFinder<'_> {
    /// Reads the last group of a page for which `is_before` is true, or the first group if it is
    /// true for none. `is_before` receives the place of a group's first number, and that number; it
    /// is false for all groups after the first for which it is false.
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
                let next = at + len;
                let later = place + GROUP as u64;
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

    /// The place of a number in an ascending column, as [`ColumnReader::find`] returns it.
    pub(crate) fn find(&mut self, value: u64) -> Result<Result<u64, u64>> {
        if self.column.meta.coding != NumberCoding::Packed || self.column.len() == 0 {
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

    /// Reads the number at one place.
    pub(crate) fn get(&mut self, number: u64) -> Result<u64> {
        if self.column.meta.coding != NumberCoding::Packed || number >= self.column.len() {
            return self.column.get(self.segment, number);
        }
        if !self.held.contains(&number) {
            self.hold(self.column.page_of_place(number), |place, _| place <= number)?;
        }
        Ok(self.values[(number - self.held.start) as usize])
    }
}

impl ColumnReader {
    /// The page in the file that can hold a number of an ascending column.
    pub(crate) fn page_of(&self, value: u64) -> Option<Range<u64>> {
        let page = self.keys.partition_point(|key| *key <= value).checked_sub(1)? as u64;
        let first = self.in_file(page);
        Some(first..first + 1)
    }

    /// The place of a number in an ascending column; `Err` with the place where it would be
    /// inserted.
    pub(crate) fn find(&self, segment: &SegmentPages, value: u64) -> Result<Result<u64, u64>> {
        if let NumberCoding::Range { start } = self.meta.coding {
            let place = value.saturating_sub(start).min(self.meta.len);
            return Ok(if value >= start && place < self.meta.len {
                Ok(place)
            } else {
                Err(place)
            });
        }
        if self.meta.coding == NumberCoding::Packed && self.meta.len > 0 {
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

    /// The page of an ascending column that can hold a number.
    fn page_with(&self, value: u64) -> u64 {
        self.keys.partition_point(|key| *key <= value).saturating_sub(1) as u64
    }

    /// The page of a packed column that holds the number at a place.
    fn page_of_place(&self, number: u64) -> u64 {
        self.places.partition_point(|place| *place <= number).saturating_sub(1) as u64
    }

    /// A finder for many numbers in order.
    pub(crate) fn finder<'a>(&'a self, segment: &'a SegmentPages) -> ColumnFinder<'a> {
        ColumnFinder { column: self, segment, page: 0, at: 0, held: 0..0, values: [0; GROUP] }
    }

    /// The places of a number among the places of `range`, whose numbers ascend. The range is empty
    /// if the number is not there.
    pub(crate) fn find_in(
        &self,
        segment: &SegmentPages,
        range: Range<u64>,
        value: u64,
    ) -> Result<Range<u64>> {
        let first = |from: Range<u64>, is_before: &dyn Fn(u64) -> bool| -> Result<u64> {
            let Range { mut start, mut end } = from;
            // First find the page: the first number of a page is quickest to read.
            if self.meta.coding == NumberCoding::Packed && start < end {
                let mut low = self.page_of_place(start);
                let mut high = self.page_of_place(end - 1);
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
            // Then the group, and the place within the group.
            while end - start > GROUP as u64 {
                let middle = start.midpoint(end);
                if is_before(self.get(segment, middle)?) {
                    start = middle + 1;
                } else {
                    end = middle;
                }
            }
            let mut values = [0; GROUP];
            let values = &mut values[..(end - start) as usize];
            self.read(segment, start..end, values)?;
            Ok(start + values.partition_point(|value| is_before(*value)) as u64)
        };
        let start = first(range.clone(), &|known| known < value)?;
        // Most numbers that are looked for are absent.
        if start == range.end || self.get(segment, start)? != value {
            return Ok(start..start);
        }
        Ok(start..first(start + 1..range.end, &|known| known <= value)?)
    }
}
