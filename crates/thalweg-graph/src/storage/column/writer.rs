//! Writing a column.

use thalweg_io::Result;

use super::{ColumnMeta, NumberCoding, PAGE_HEAD, RUN};
use crate::storage::pack::{self, GROUP};
use crate::storage::segment::{PAGE, SegmentWriter};

/// A column being written.
pub(crate) struct ColumnWriter {
    coding: NumberCoding,
    /// The coding for numbers that are not consecutive.
    wanted: NumberCoding,
    is_keyed: bool,
    len: u64,
    runs: Vec<u64>,
    end: u64,
    places: Vec<u64>,
    keys: Vec<u64>,
    /// Whole pages that are not written yet.
    buffer: Vec<u8>,
    page: Vec<u8>,
    /// Groups and numbers of the page being filled.
    held: (u16, u16),
    group: [u64; GROUP],
    filled: usize,
}

impl ColumnWriter {
    /// Starts an empty column. `is_keyed`: the numbers will ascend and be searched.
    pub(crate) fn new(coding: NumberCoding, is_keyed: bool) -> Self {
        Self {
            coding: NumberCoding::Range { start: 0 },
            wanted: coding,
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

    /// Starts a column that never becomes a range: each number takes room in the file, so that a
    /// footer cannot claim more numbers than the file holds.
    pub(crate) fn solid(coding: NumberCoding) -> Self {
        Self { coding, ..Self::new(coding, false) }
    }

    /// How many numbers were pushed.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends a number.
    pub(crate) fn push(&mut self, segment: &mut SegmentWriter, value: u64) -> Result<()> {
        match self.coding {
            NumberCoding::Packed => {
                self.group[self.filled] = value;
                self.filled += 1;
                self.len += 1;
                if self.filled == GROUP {
                    self.flush_group(segment)?;
                }
                return Ok(());
            }
            NumberCoding::Raw => {
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
            NumberCoding::Range { start }
                if self.len == 0 || start.checked_add(self.len) == Some(value) =>
            {
                self.coding =
                    NumberCoding::Range { start: if self.len == 0 { value } else { start } };
                self.len += 1;
                return Ok(());
            }
            NumberCoding::Range { .. } => {}
        }
        self.end_range(segment)?;
        self.push(segment, value)
    }

    /// Appends numbers.
    pub(crate) fn extend(&mut self, segment: &mut SegmentWriter, mut values: &[u64]) -> Result<()> {
        while let Some((first, rest)) = values.split_first() {
            if let NumberCoding::Range { start } = self.coding
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
                self.end_range(segment)?;
                continue;
            }
            if self.coding == NumberCoding::Packed && self.filled == 0 && values.len() >= GROUP {
                let (whole, later) = values.split_at(values.len() / GROUP * GROUP);
                for group in whole.as_chunks().0 {
                    self.len += GROUP as u64;
                    self.write_group(segment, group, GROUP)?;
                }
                values = later;
                continue;
            }
            if self.coding == NumberCoding::Raw && !self.page.is_empty() {
                let (now, later) = values.split_at(values.len().min((PAGE - self.page.len()) / 8));
                self.page.extend(now.iter().flat_map(|value| value.to_le_bytes()));
                self.len += now.len() as u64;
                values = later;
                if self.page.len() == PAGE {
                    self.flush_page(segment)?;
                }
                continue;
            }
            if self.coding == NumberCoding::Packed && self.filled > 0 {
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

    /// Gives up the range: writes its numbers in the wanted coding.
    fn end_range(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        let NumberCoding::Range { start } = self.coding else { return Ok(()) };
        let len = std::mem::take(&mut self.len);
        self.coding = self.wanted;
        (0..len).try_for_each(|i| self.push(segment, start + i))
    }

    fn flush_group(&mut self, segment: &mut SegmentWriter) -> Result<()> {
        let filled = std::mem::take(&mut self.filled);
        let group = self.group;
        self.write_group(segment, &group, filled)
    }

    /// Writes a group. Its first `filled` numbers belong to the column, whose length includes them
    /// already.
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
        if self.coding == NumberCoding::Packed {
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

    /// Writes the numbers that are still in memory. Returns the description for the footer.
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
        let index =
            |values: &[u64], segment: &mut SegmentWriter| -> Result<Option<Box<ColumnMeta>>> {
                if values.is_empty() {
                    return Ok(None);
                }
                let mut column = Self::new(NumberCoding::Raw, false);
                column.extend(segment, values)?;
                Ok(Some(Box::new(column.finish(segment)?)))
            };
        let places = index(&self.places, segment)?;
        let keys = index(&self.keys, segment)?;
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
