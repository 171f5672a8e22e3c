//! The values of a row: their columns, and their conversion to the bytes of an auxiliary field.

use thalweg_io::Fault;

use crate::pod5::batch::{BatchArray, TableBatch};
use crate::pod5::fields::END_REASONS;
use crate::pod5::schema::ColumnSchema;
use crate::record::{AuxType, Scalar};

/// The source of a row's value.
#[derive(Debug)]
pub(super) enum ColumnSource<T> {
    /// A column with the values.
    Plain(ColumnSchema),
    /// A column with dictionary indices, and the converted entries of the dictionary.
    Indexed(ColumnSchema, T),
}

/// The source of an auxiliary field.
#[derive(Debug)]
pub(super) struct AuxSource {
    pub(super) how: How,
    pub(super) kind: AuxType,
    pub(super) source: ColumnSource<DictionaryBytes>,
    pub(super) is_channel: bool,
}

/// How a stored value is converted to the bytes of an auxiliary field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// A value of this many bytes, copied.
    Copy(usize),
    /// An integer, written in decimal.
    Decimal,
    /// A `float`, widened to `double`.
    Widen,
    /// A bit, as one byte.
    Bit,
    /// Text, copied.
    Text,
    /// The bytes of a value, as a list of `uint8_t`.
    Bytes,
    /// The items of a list.
    Items(Scalar),
    /// Text, as the code of its label.
    Label,
    /// The text of an end reason that POD5 does not define; empty for POD5's own reasons.
    Unlabelled,
}

/// The auxiliary bytes of each entry of a dictionary.
#[derive(Debug, Default)]
pub(super) struct DictionaryBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
}

impl DictionaryBytes {
    fn get(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(start..*self.ends.get(index)?)
    }
}

impl AuxSource {
    pub(super) fn push(
        &self,
        batch: &TableBatch<'_>,
        row: usize,
        labels: &[String],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match (&self.source, self.how) {
            (ColumnSource::Plain(column), How::Items(items)) => {
                push_items(batch, column, row, items, out)
            }
            (ColumnSource::Plain(column), how) => {
                encode(how, labels, self.kind, &batch.column(column)?, row, out)
            }
            (ColumnSource::Indexed(column, encoded), _) => match index(batch, column, row)? {
                None => {
                    push_missing(self.kind, out);
                    Ok(())
                }
                Some(index) => {
                    let bytes = encoded
                        .get(index)
                        .ok_or_else(|| no_entry(column, index, encoded.ends.len()))?;
                    out.extend_from_slice(bytes);
                    Ok(())
                }
            },
        }
    }
}

/// The dictionary index of a row; `None` if the value is missing.
pub(super) fn index(
    batch: &TableBatch<'_>,
    column: &ColumnSchema,
    row: usize,
) -> Result<Option<usize>, Fault> {
    let indices = batch.column(column)?;
    if !indices.is_valid(row) {
        return Ok(None);
    }
    let index = indices.integer(row)?;
    usize::try_from(index).map(Some).map_err(|_| no_entry(column, usize::MAX, 0))
}

#[cold]
fn no_entry(column: &ColumnSchema, index: usize, entries: usize) -> Fault {
    let found = format!("entry {index} of the dictionary of {:?}", column.name);
    Fault::new(0, found, format!("one of {entries}"))
}

/// The value of a row in a column of `float`. A missing dictionary index is NaN.
pub(super) fn pick(
    source: &ColumnSource<Vec<f32>>,
    batch: &TableBatch<'_>,
    row: usize,
) -> Result<f32, Fault> {
    match source {
        ColumnSource::Plain(column) => batch.column(column)?.fixed(row).map(f32::from_le_bytes),
        ColumnSource::Indexed(column, values) => match index(batch, column, row)? {
            None => Ok(f32::NAN),
            Some(index) => {
                values.get(index).copied().ok_or_else(|| no_entry(column, index, values.len()))
            }
        },
    }
}

/// Appends value `i` of `array`, encoded as an auxiliary field of `kind`.
pub(super) fn encode(
    how: How,
    labels: &[String],
    kind: AuxType,
    array: &BatchArray<'_>,
    i: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if !array.is_valid(i) {
        push_missing(kind, out);
        return Ok(());
    }
    match how {
        How::Copy(1) => out.extend(array.fixed::<1>(i)?),
        How::Copy(2) => out.extend(array.fixed::<2>(i)?),
        How::Copy(4) => out.extend(array.fixed::<4>(i)?),
        How::Copy(_) => out.extend(array.fixed::<8>(i)?),
        How::Decimal => push_decimal(array.integer(i)?, out),
        How::Widen => out.extend(f64::from(f32::from_le_bytes(array.fixed(i)?)).to_le_bytes()),
        How::Bit => out.push(u8::from(array.bool(i)?)),
        How::Text => push_text(array.text(i)?, out),
        How::Bytes => {
            let bytes = array.raw(i)?;
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
        // A list's items are not in this array.
        How::Items(_) => push_missing(kind, out),
        How::Label => {
            let text = array.text(i)?;
            out.push(labels.iter().position(|label| label == text).unwrap_or(0) as u8);
        }
        How::Unlabelled => {
            let text = array.text(i)?;
            push_text(if END_REASONS.contains(&text) { "" } else { text }, out);
        }
    }
    Ok(())
}

/// Appends a list. A missing item becomes the missing value of its type.
fn push_items(
    batch: &TableBatch<'_>,
    column: &ColumnSchema,
    row: usize,
    kind: Scalar,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let lists = batch.column(column)?;
    let span = if lists.is_valid(row) { lists.span(row)? } else { 0..0 };
    let items = column
        .children
        .first()
        .ok_or_else(|| Fault::new(0, "a list without items", "items of a type"))?;
    let items = batch.array(items)?;
    out.extend((span.len() as u64).to_le_bytes());
    for i in span {
        let bytes = items.raw(i)?;
        if items.is_valid(i) { out.extend(bytes) } else { kind.push_missing(out) }
    }
    Ok(())
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

pub(super) fn push_decimal(mut value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let negative = value < 0;
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10).unsigned_abs() as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    let len = digits.len() - at + usize::from(negative);
    out.extend((len as u64).to_le_bytes());
    if negative {
        out.push(b'-');
    }
    out.extend(&digits[at..]);
}

fn push_missing(kind: AuxType, out: &mut Vec<u8>) {
    match kind {
        AuxType::Scalar(scalar) => scalar.push_missing(out),
        AuxType::Array(_) => out.extend(0_u64.to_le_bytes()),
    }
}
