//! The Signal table: rows of usually at most 102,400 samples, compressed (VBZ) or plain.
//!
//! VBZ is zstd over [`svb16`]. It does not contain the number of samples, which is in the row's
//! column `samples`.

use std::ops::Range;

use thalweg_codec::svb16;
use thalweg_codec::zstd::ZstdDecompressor;
use thalweg_io::Fault;
use thalweg_io::arrow_ipc::Head;

use super::ipc::IpcBlock;
use super::schema::{ColumnKind, Schema};
use super::uuid::UUID_BYTES;

/// How a row's samples are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCoding {
    /// zstd over svb16, in a column of large binary.
    Vbz,
    /// Plain 16-bit samples, in a column of large lists.
    Plain,
}

/// The nodes and buffers of the columns in a batch of the Signal table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalLayout {
    /// How samples are stored.
    pub coding: RowCoding,
    offset_width: usize,
    /// The buffer with the read ids of the rows, if the table has this column.
    ids: Option<usize>,
    signal_node: usize,
    samples_node: usize,
    offsets: usize,
    data: usize,
    samples: usize,
}

/// The places of a batch's columns, from the start of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalPlaces {
    /// The number of rows.
    pub rows: u64,
    /// The offsets of the rows within `data`: one more than there are rows.
    pub offsets: Range<u64>,
    /// The rows' bytes.
    pub data: Range<u64>,
    /// The rows' sample counts.
    pub samples: Range<u64>,
    /// The ids of the reads that the rows belong to; empty if the table does not have them.
    pub ids: Range<u64>,
}

/// The place of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRowExtent {
    /// The range of the row's bytes, from the start of the table.
    pub range: Range<u64>,
    /// The number of samples of the row.
    pub samples: u32,
}

/// Bytes of a sample count.
const SAMPLES_BYTES: usize = 4;

impl SignalLayout {
    /// The layout of a Signal table.
    ///
    /// # Errors
    /// When the schema is not that of a Signal table.
    pub fn of(schema: &Schema) -> Result<Self, Fault> {
        let missing = |what: &'static str| Fault::new(0, "a Signal table without it", what);
        let signal = schema.column("signal").ok_or_else(|| missing("a column `signal`"))?;
        let samples = schema.column("samples").ok_or_else(|| missing("a column `samples`"))?;
        if samples.kind != ColumnKind::Unsigned(SAMPLES_BYTES) || samples.dictionary.is_some() {
            return Err(Fault::new(
                0,
                format!("the column `samples` of type {:?}", samples.kind),
                "uint32",
            ));
        }
        let (coding, offset_width, data) = match (signal.kind, signal.children.first()) {
            (ColumnKind::Binary(width), _) => (RowCoding::Vbz, width, signal.buffer + 2),
            (ColumnKind::List(width), Some(item)) if item.is_plain(ColumnKind::Signed(2)) => {
                (RowCoding::Plain, width, item.buffer + 1)
            }
            (kind, _) => {
                let found = format!("the column `signal` of type {kind:?}");
                return Err(Fault::new(0, found, "large binary (VBZ) or a large list of int16"));
            }
        };
        if signal.dictionary.is_some() {
            return Err(Fault::new(0, "the column `signal` behind a dictionary", "a plain one"));
        }
        let ids = schema
            .column("read_id")
            .filter(|column| column.is_plain(ColumnKind::Fixed(UUID_BYTES)));
        Ok(Self {
            coding,
            offset_width,
            ids: ids.map(|column| column.buffer + 1),
            signal_node: signal.node,
            samples_node: samples.node,
            offsets: signal.buffer + 1,
            data,
            samples: samples.buffer + 1,
        })
    }

    /// The places of the columns of a batch.
    ///
    /// # Errors
    /// When buffers are too small for the rows, or values are missing.
    pub fn places(&self, block: &IpcBlock, head: &Head) -> Result<SignalPlaces, Fault> {
        let body = block.body_range().start;
        let buffer = |index: usize| {
            let range = head.buffers.get(index).map(|range| body + range.start..body + range.end);
            range.ok_or_else(|| {
                Fault::new(0, format!("{} buffers", head.buffers.len()), "those of a Signal table")
            })
        };
        let rows = head.rows;
        for node in [self.signal_node, self.samples_node] {
            let whole =
                head.nodes.get(node).is_some_and(|node| node.len == rows && node.nulls == 0);
            if !whole {
                return Err(Fault::new(
                    0,
                    format!("{:?}", head.nodes.get(node)),
                    format!("{rows} values, none missing"),
                ));
            }
        }
        let places = SignalPlaces {
            rows,
            offsets: buffer(self.offsets)?,
            data: buffer(self.data)?,
            samples: buffer(self.samples)?,
            ids: self.ids.map_or(Ok(0..0), buffer)?,
        };
        let holds = |range: &Range<u64>, values: u64, width: usize| {
            values.checked_mul(width as u64).is_some_and(|need| need <= range.end - range.start)
        };
        let offsets = rows
            .checked_add(1)
            .is_some_and(|values| holds(&places.offsets, values, self.offset_width));
        if rows > 0 && !(offsets && holds(&places.samples, rows, SAMPLES_BYTES)) {
            return Err(Fault::new(
                0,
                format!("a batch of {rows} rows in smaller buffers"),
                "buffers that hold them",
            ));
        }
        Ok(places)
    }

    /// The bytes of `places.offsets` that a range of rows needs, from the start of the table.
    pub(crate) fn offsets_of(&self, places: &SignalPlaces, rows: &Range<u64>) -> Range<u64> {
        let width = self.offset_width as u64;
        places.offsets.start + rows.start * width..places.offsets.start + (rows.end + 1) * width
    }

    /// The bytes of `places.samples` that a range of rows needs, from the start of the table.
    pub(crate) fn samples_of(&self, places: &SignalPlaces, rows: &Range<u64>) -> Range<u64> {
        let width = SAMPLES_BYTES as u64;
        places.samples.start + rows.start * width..places.samples.start + rows.end * width
    }

    /// The bytes of `places.ids` for all rows, from the start of the table. Empty if the buffer is
    /// too small for all rows.
    pub fn ids_of(&self, places: &SignalPlaces) -> Range<u64> {
        let end = places.rows.saturating_mul(UUID_BYTES as u64).saturating_add(places.ids.start);
        if end <= places.ids.end { places.ids.start..end } else { 0..0 }
    }

    /// The place of row `row`. `offsets` and `samples` are the bytes of the offsets and of the
    /// sample counts, from row 0 on.
    ///
    /// # Errors
    /// When the row's bytes are not within the data, or the number of plain samples differs from
    /// the row's sample count.
    pub fn piece(
        &self,
        places: &SignalPlaces,
        offsets: &[u8],
        samples: &[u8],
        row: usize,
    ) -> Result<SignalRowExtent, Fault> {
        let offset = |i: usize| -> Option<u64> {
            let bytes = offsets.get(i * self.offset_width..)?;
            match self.offset_width {
                4 => u64::try_from(i32::from_le_bytes(*bytes.first_chunk()?)).ok(),
                _ => u64::try_from(i64::from_le_bytes(*bytes.first_chunk()?)).ok(),
            }
        };
        let unit = if self.coding == RowCoding::Plain { size_of::<i16>() as u64 } else { 1 };
        let len = places.data.end - places.data.start;
        let start = offset(row);
        let end = offset(row + 1);
        let range = start.zip(end).filter(|(start, end)| start <= end);
        let range =
            range.and_then(|(start, end)| Some((start.checked_mul(unit)?, end.checked_mul(unit)?)));
        let Some((start, end)) = range.filter(|&(_, end)| end <= len) else {
            let found =
                format!("signal row {row} of a batch between offsets {start:?} and {end:?}");
            return Err(Fault::new(0, found, format!("ascending offsets within {len} bytes")));
        };
        let count = samples.get(row * SAMPLES_BYTES..).and_then(|rest| rest.first_chunk());
        let Some(samples) = count.map(|count| u32::from_le_bytes(*count)) else {
            return Err(Fault::new(0, format!("no sample count of row {row}"), "one for each row"));
        };
        if self.coding == RowCoding::Plain && end - start != u64::from(samples) * unit {
            return Err(Fault::new(
                0,
                format!("{} bytes of samples", end - start),
                format!("those of {samples} samples"),
            ));
        }
        Ok(SignalRowExtent { range: places.data.start + start..places.data.start + end, samples })
    }
}

/// Decodes signal rows, and reuses its memory from row to row.
#[derive(Debug, Default)]
pub struct SignalDecoder {
    zstd: ZstdDecompressor,
    coded: Vec<u8>,
}

impl SignalDecoder {
    /// Appends the `samples` samples of a row to `out`.
    ///
    /// # Errors
    /// When the bytes are damaged, or hold another number of samples.
    pub fn decode(
        &mut self,
        coding: RowCoding,
        bytes: &[u8],
        samples: u32,
        out: &mut Vec<i16>,
    ) -> Result<(), Fault> {
        let samples = samples as usize;
        match coding {
            RowCoding::Plain => {
                if bytes.len() != samples * size_of::<i16>() {
                    return Err(Fault::new(
                        0,
                        format!("{} bytes", bytes.len()),
                        format!("those of {samples} samples"),
                    ));
                }
                out.extend(
                    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])),
                );
                Ok(())
            }
            // A row without samples may be stored as no bytes, or as an empty zstd frame.
            RowCoding::Vbz if bytes.is_empty() && samples == 0 => Ok(()),
            RowCoding::Vbz => {
                let least = samples.div_ceil(8) + samples;
                self.zstd.decompress(bytes, &mut self.coded, least + samples)?;
                if self.coded.len() < least {
                    let found = format!("{} bytes once decompressed", self.coded.len());
                    return Err(Fault::new(
                        0,
                        found,
                        format!("at least {least}, for {samples} samples"),
                    ));
                }
                svb16::decode(&self.coded, samples, out)
            }
        }
    }

    /// Frees scratch memory beyond `keep` bytes.
    pub fn trim(&mut self, keep: usize) {
        self.coded.clear();
        self.coded.shrink_to(keep);
    }
}
