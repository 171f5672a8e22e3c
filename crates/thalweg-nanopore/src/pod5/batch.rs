//! The values of a batch, borrowed from its body. Every access is checked: an inconsistent batch
//! gives a fault.

use std::ops::Range;

use thalweg_io::Fault;
use thalweg_io::arrow_ipc::Head;

use super::schema::{ColumnKind, ColumnSchema};

/// A batch in memory.
#[derive(Debug, Clone, Copy)]
pub struct TableBatch<'a> {
    /// The parsed head of the batch.
    pub head: &'a Head,
    /// The whole body of the batch.
    pub body: &'a [u8],
}

/// The values of one column.
#[derive(Debug, Clone, Copy)]
pub struct BatchArray<'a> {
    kind: ColumnKind,
    len: usize,
    /// One bit per value; empty if no value is missing.
    validity: &'a [u8],
    /// Values of fixed width, bits, or offsets.
    first: &'a [u8],
    /// The bytes that the offsets of text and binary point into.
    second: &'a [u8],
}

impl<'a> TableBatch<'a> {
    fn buffer(&self, index: usize) -> Result<&'a [u8], Fault> {
        let range = self
            .head
            .buffers
            .get(index)
            .ok_or_else(|| too_few(self.head.buffers.len(), "buffers"))?;
        self.body
            .get(range.start as usize..range.end as usize)
            .ok_or_else(|| cut_short(self.body, range))
    }

    /// A column's values. For a dictionary-encoded column these are the indices.
    ///
    /// # Errors
    /// When the batch has no such column, or its buffers are too small for its values.
    pub fn array(&self, column: &ColumnSchema) -> Result<BatchArray<'a>, Fault> {
        let node = self
            .head
            .nodes
            .get(column.node)
            .ok_or_else(|| too_few(self.head.nodes.len(), "columns"))?;
        let kind = column.dictionary.map_or(column.kind, |(_, index)| index);
        let len = usize::try_from(node.len).map_err(|_| too_small(column, node.len, 0))?;
        let mut array = BatchArray { kind, len, validity: &[], first: &[], second: &[] };
        if kind == ColumnKind::Null {
            return Ok(array);
        }
        if node.nulls > 0 {
            array.validity = self.buffer(column.buffer)?;
            if array.validity.len() < len.div_ceil(8) {
                return Err(too_small(column, node.len, array.validity.len()));
            }
        }
        let need = match kind {
            ColumnKind::Bool => len.div_ceil(8),
            ColumnKind::Struct | ColumnKind::FixedList => return Ok(array),
            // There is one more offset than values. A column without values may have no offsets.
            _ => match (kind.width(), kind.offset_width()) {
                (Some(width), _) => len.saturating_mul(width),
                (_, Some(width)) if len > 0 => len.saturating_add(1).saturating_mul(width),
                _ => 0,
            },
        };
        array.first = self.buffer(column.buffer + 1)?;
        if array.first.len() < need {
            return Err(too_small(column, node.len, array.first.len()));
        }
        if matches!(kind, ColumnKind::Text(_) | ColumnKind::Binary(_)) {
            array.second = self.buffer(column.buffer + 2)?;
        }
        Ok(array)
    }

    /// The values of a top-level column: one per row of the batch.
    ///
    /// # Errors
    /// Those of [`TableBatch::array`], and a column with more or fewer values than rows.
    pub fn column(&self, column: &ColumnSchema) -> Result<BatchArray<'a>, Fault> {
        let array = self.array(column)?;
        if array.len as u64 == self.head.rows {
            return Ok(array);
        }
        let found = format!("{} values of the column {:?}", array.len, column.name);
        Err(Fault::new(0, found, format!("{}, the rows of the batch", self.head.rows)))
    }
}

impl<'a> BatchArray<'a> {
    /// The number of values.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether value `i` exists and is not missing.
    #[inline]
    pub fn is_valid(&self, i: usize) -> bool {
        i < self.len && (self.validity.is_empty() || bit(self.validity, i))
    }

    /// The stored bytes of value `i`.
    #[inline]
    pub fn fixed<const N: usize>(&self, i: usize) -> Result<[u8; N], Fault> {
        let value = self.first.get(i.saturating_mul(N)..).and_then(|rest| rest.first_chunk());
        value
            .filter(|_| i < self.len && self.kind.width() == Some(N))
            .copied()
            .ok_or_else(|| no_value(i, self.len))
    }

    /// Value `i` of an integer column of any width.
    #[inline]
    pub fn integer(&self, i: usize) -> Result<i64, Fault> {
        Ok(match self.kind {
            ColumnKind::Unsigned(1) => i64::from(self.fixed::<1>(i)?[0]),
            ColumnKind::Signed(1) => i64::from(i8::from_le_bytes(self.fixed(i)?)),
            ColumnKind::Unsigned(2) => i64::from(u16::from_le_bytes(self.fixed(i)?)),
            ColumnKind::Signed(2) => i64::from(i16::from_le_bytes(self.fixed(i)?)),
            ColumnKind::Unsigned(4) => i64::from(u32::from_le_bytes(self.fixed(i)?)),
            ColumnKind::Signed(4) => i64::from(i32::from_le_bytes(self.fixed(i)?)),
            _ => i64::from_le_bytes(self.fixed(i)?),
        })
    }

    /// Value `i` of a column of bits.
    #[inline]
    pub fn bool(&self, i: usize) -> Result<bool, Fault> {
        if i < self.len && self.kind == ColumnKind::Bool {
            Ok(bit(self.first, i))
        } else {
            Err(no_value(i, self.len))
        }
    }

    /// The elements of value `i`: a range of bytes for text and binary, a range of the child's
    /// values for lists and maps.
    #[inline]
    pub fn span(&self, i: usize) -> Result<Range<usize>, Fault> {
        if i >= self.len {
            return Err(no_value(i, self.len));
        }
        let offset = |i: usize| match self.kind.offset_width() {
            Some(4) => {
                let value = self.first.get(i * 4..).and_then(|rest| rest.first_chunk())?;
                usize::try_from(i32::from_le_bytes(*value)).ok()
            }
            Some(8) => {
                let value = self.first.get(i * 8..).and_then(|rest| rest.first_chunk())?;
                usize::try_from(i64::from_le_bytes(*value)).ok()
            }
            _ => None,
        };
        let start = offset(i);
        let end = offset(i + 1);
        start
            .zip(end)
            .filter(|(start, end)| start <= end)
            .map(|(start, end)| start..end)
            .ok_or_else(|| {
                Fault::new(0, format!("offsets of value {i} that run backwards"), "ascending ones")
            })
    }

    /// The bytes of value `i` of text or binary.
    #[inline]
    pub fn bytes(&self, i: usize) -> Result<&'a [u8], Fault> {
        let span = self.span(i)?;
        self.second.get(span.clone()).ok_or_else(|| {
            let found = format!("value {i} at bytes {} to {}", span.start, span.end);
            Fault::new(0, found, format!("one within the column's {} bytes", self.second.len()))
        })
    }

    /// The bytes of value `i` of fixed width, text or binary.
    pub fn raw(&self, i: usize) -> Result<&'a [u8], Fault> {
        let Some(width) = self.kind.width() else { return self.bytes(i) };
        let at = i.saturating_mul(width);
        let value = self.first.get(at..at.saturating_add(width));
        value.filter(|_| i < self.len).ok_or_else(|| no_value(i, self.len))
    }

    /// Value `i` of text.
    pub fn text(&self, i: usize) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.bytes(i)?)
            .map_err(|_| Fault::new(0, format!("value {i}, not UTF-8"), "UTF-8 text"))
    }
}

#[inline]
fn bit(bits: &[u8], i: usize) -> bool {
    bits.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1)
}

#[cold]
fn no_value(i: usize, len: usize) -> Fault {
    Fault::new(0, format!("a reference to value {i}"), format!("one of {len} values"))
}

#[cold]
fn too_few(there: usize, what: &str) -> Fault {
    Fault::new(0, format!("a batch of {there} {what}"), "as many as the schema has")
}

#[cold]
fn too_small(column: &ColumnSchema, len: u64, bytes: usize) -> Fault {
    let found = format!("{bytes} bytes for {len} values of the column {:?}", column.name);
    Fault::new(0, found, "enough bytes")
}

#[cold]
fn cut_short(body: &[u8], range: &Range<u64>) -> Fault {
    Fault::new(
        0,
        format!("{} bytes of a body", body.len()),
        format!("{}, where a buffer ends", range.end),
    )
}
