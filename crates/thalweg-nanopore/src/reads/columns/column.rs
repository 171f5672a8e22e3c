//! One column under construction.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::UInt8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, ListArray, StringArray, UInt8Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType};
use thalweg_codec::picoampere::Calibration;
use thalweg_io::Fault;

use super::table::Spec;
use super::values::{Values, clear, reclaim};
use crate::reads::Read;
use crate::record::{AuxType, AuxValue, Scalar};

/// The rows that have a value. Takes no memory while all rows have one.
#[derive(Debug, Default)]
struct Validity {
    bits: Vec<u8>,
    len: usize,
    missing: usize,
}

impl Validity {
    fn push(&mut self, valid: bool) {
        if !valid && self.missing == 0 {
            self.bits.clear();
            self.bits.resize(self.len.div_ceil(8), u8::MAX);
        }
        self.missing += usize::from(!valid);
        if self.missing > 0 {
            if self.len.is_multiple_of(8) {
                self.bits.push(0);
            }
            if let Some(last) = self.bits.last_mut() {
                let bit = 1 << (self.len % 8);
                *last = if valid { *last | bit } else { *last & !bit };
            }
        }
        self.len += 1;
    }

    fn is_valid(&self, row: usize) -> bool {
        self.missing == 0 || self.bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }

    fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.missing -= usize::from(!self.is_valid(self.len - 1));
            self.len -= 1;
            self.bits.truncate(self.len.div_ceil(8));
        }
    }

    fn clear(&mut self) {
        self.bits.clear();
        (self.len, self.missing) = (0, 0);
    }

    fn export(&mut self) -> Option<NullBuffer> {
        let bits = (self.missing > 0).then(|| std::mem::take(&mut self.bits))?;
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, self.len)))
    }

    fn reclaim(&mut self, nulls: Option<Buffer>) {
        if let Some(buffer) = nulls {
            self.bits = reclaim(buffer);
        }
        self.clear();
    }
}

/// One column: the values, the offsets of rows with a varying number of values, and the validity.
#[derive(Debug)]
pub(super) struct Column {
    kind: AuxType,
    values: Values,
    /// One more offset than rows; empty for columns with one value per row.
    offsets: Vec<i32>,
    valid: Validity,
    /// The elements of enumeration arrays that have a value.
    items: Validity,
}

impl Column {
    pub(super) fn new(kind: AuxType) -> Self {
        let mut column = Self {
            kind,
            values: Values::new(kind.element()),
            offsets: Vec::new(),
            valid: Validity::default(),
            items: Validity::default(),
        };
        column.start();
        column
    }

    /// Whether rows have a varying number of values. Arrow has no type for a character, so that it
    /// is stored as a string of one.
    fn varies(&self) -> bool {
        self.kind.is_array() || self.kind.element() == Scalar::Char
    }

    fn is_enum_array(&self) -> bool {
        self.kind == AuxType::Array(Scalar::Enum)
    }

    fn start(&mut self) {
        self.offsets.clear();
        if self.varies() {
            self.offsets.push(0);
        }
    }

    /// Empties the column, and frees the memory of its buffers beyond `keep` bytes each.
    pub(super) fn clear(&mut self, keep: usize) {
        self.values.clear(keep);
        clear(&mut self.offsets, keep);
        self.valid.clear();
        self.items.clear();
        self.start();
    }

    /// Makes room for values of so many bytes in all.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.values.reserve(bytes);
    }

    /// Removes all rows but the first ones, and the elements of a row that has not ended.
    pub(super) fn truncate(&mut self, rows: usize) {
        let elements = if self.varies() {
            self.offsets.truncate(rows + 1);
            self.offsets.last().map_or(0, |&end| end as usize)
        } else {
            rows
        };
        self.values.truncate(elements);
        self.items.truncate(if self.is_enum_array() { elements } else { 0 });
        self.valid.truncate(rows);
    }

    fn end_row(&mut self, valid: bool) -> Result<(), Fault> {
        if self.varies() {
            let end = i32::try_from(self.values.len()).map_err(|_| too_many(self.values.len()))?;
            self.offsets.push(end);
        }
        self.valid.push(valid);
        Ok(())
    }

    /// Appends a row. `codes` maps the file's codes of an enumeration to those of the table, if
    /// they differ.
    pub(super) fn push(
        &mut self,
        value: AuxValue<'_>,
        spec: &Spec,
        codes: Option<&[u8]>,
    ) -> Result<(), Fault> {
        match value {
            AuxValue::Missing if self.varies() => {}
            AuxValue::Missing => self.values.push_nothing(),
            AuxValue::String(bytes) => {
                check_text(bytes, spec)?;
                self.values.extend_stored(bytes);
            }
            AuxValue::Char(byte) => {
                check_text(&[byte], spec)?;
                self.values.extend_stored(&[byte]);
            }
            AuxValue::Enum(code) => {
                let code = label(code, spec, codes)?;
                self.values.push(AuxValue::Enum(code));
            }
            AuxValue::Array(array) if self.is_enum_array() => {
                for value in array.iter() {
                    let code = match value {
                        AuxValue::Enum(code) => Some(label(code, spec, codes)?),
                        _ => None,
                    };
                    self.values.push(AuxValue::Enum(code.unwrap_or_default()));
                    self.items.push(code.is_some());
                }
            }
            AuxValue::Array(array) => self.values.extend_stored(array.bytes()),
            value => {
                if !self.values.push(value) {
                    return Err(Fault::new(
                        0,
                        format!("{value:?} in the field {:?}", spec.name),
                        spec.type_name.clone(),
                    ));
                }
            }
        }
        self.end_row(value != AuxValue::Missing)
    }

    /// Takes the vector of samples, to decode into it. The caller must call [`Column::restore`].
    pub(super) fn lend(&mut self) -> Vec<i16> {
        match &mut self.values {
            Values::I16(samples) => std::mem::take(samples),
            _ => Vec::new(),
        }
    }

    pub(super) fn restore(&mut self, lent: Vec<i16>) {
        if let Values::I16(samples) = &mut self.values {
            *samples = lent;
        }
    }

    /// Appends a read's samples in picoampere.
    pub(super) fn push_picoampere(&mut self, read: &Read<'_>) -> Result<(), Fault> {
        if let Values::F32(values) = &mut self.values {
            read.calibration().convert(read.samples, values);
        }
        self.end_row(true)
    }

    /// Ends a row of `samples` samples while the vector is lent.
    pub(super) fn end_samples(&mut self, samples: usize) -> Result<(), Fault> {
        let before = self.offsets.last().copied().unwrap_or_default();
        let end = i32::try_from(samples).ok().and_then(|samples| before.checked_add(samples));
        self.offsets.push(end.ok_or_else(|| too_many(samples))?);
        self.valid.push(true);
        Ok(())
    }

    /// The elements of a row.
    fn elements(&self, row: usize) -> Range<usize> {
        match self.offsets.get(row..row + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => row..row + 1,
        }
    }

    /// Appends a row of another column. Returns whether it is of the same type.
    pub(super) fn copy_row(&mut self, from: &Self, row: usize) -> Result<bool, Fault> {
        let range = from.elements(row);
        if !self.values.extend_from(&from.values, range.clone()) {
            return Ok(false);
        }
        if self.is_enum_array() {
            range.for_each(|item| self.items.push(from.items.is_valid(item)));
        }
        self.end_row(from.valid.is_valid(row))?;
        Ok(true)
    }

    /// Appends a row of samples in picoampere.
    pub(super) fn convert_row(
        &mut self,
        from: &Self,
        row: usize,
        calibration: Calibration,
    ) -> Result<(), Fault> {
        if let (Values::F32(values), Values::I16(samples)) = (&mut self.values, &from.values) {
            calibration.convert(&samples[from.elements(row)], values);
        }
        self.end_row(true)
    }

    /// A row of a column of doubles.
    pub(super) fn double(&self, row: usize) -> f64 {
        match &self.values {
            Values::F64(values) => values.get(row).copied().unwrap_or_default(),
            _ => 0.0,
        }
    }

    /// Turns the column into an Arrow array without copying values.
    pub(super) fn export(&mut self, spec: &Spec) -> Result<ArrayRef, ArrowError> {
        let nulls = self.valid.export();
        if !self.varies() {
            return match &spec.labels {
                Some(labels) => self.dictionary(labels, nulls),
                None => Ok(self.values.export(nulls)),
            };
        }
        let offsets = OffsetBuffer::new(std::mem::take(&mut self.offsets).into());
        Ok(match (&spec.data_type, &mut self.values) {
            (DataType::Utf8, Values::U8(bytes)) => Arc::new(StringArray::try_new(
                offsets,
                Buffer::from_vec(std::mem::take(bytes)),
                nulls,
            )?),
            (DataType::List(item), values) => {
                let items = match &spec.labels {
                    Some(labels) => {
                        let nulls = self.items.export();
                        self.dictionary(labels, nulls)?
                    }
                    None => values.export(None),
                };
                Arc::new(ListArray::try_new(item.clone(), offsets, items, nulls)?)
            }
            (_, Values::U8(bytes)) => Arc::new(BinaryArray::try_new(
                offsets,
                Buffer::from_vec(std::mem::take(bytes)),
                nulls,
            )?),
            (other, _) => return Err(ArrowError::SchemaError(format!("{}: {other}", spec.name))),
        })
    }

    fn dictionary(
        &mut self,
        labels: &ArrayRef,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, ArrowError> {
        let Values::U8(codes) = &mut self.values else {
            return Err(ArrowError::SchemaError("an enumeration without codes".into()));
        };
        let keys = UInt8Array::new(std::mem::take(codes).into(), nulls);
        Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(keys, labels.clone())?))
    }

    /// Takes back the memory of an array from [`Column::export`], except for buffers that are still
    /// in use.
    pub(super) fn reclaim(&mut self, array: ArrayRef) {
        let data = array.to_data();
        drop(array);
        let child =
            data.child_data().first().filter(|_| matches!(data.data_type(), DataType::List(_)));
        let nulls = data.nulls().map(|nulls| nulls.buffer().clone());
        let items = child.and_then(|child| child.nulls()).map(|nulls| nulls.buffer().clone());
        let first = data.buffers().first().cloned();
        let second = data.buffers().get(1).or_else(|| child?.buffers().first()).cloned();
        drop(data);
        let (offsets, values) = if self.varies() { (first, second) } else { (None, first) };
        if let Some(buffer) = values {
            self.values.reclaim(buffer);
        }
        if let Some(buffer) = offsets {
            self.offsets = reclaim(buffer);
        }
        self.valid.reclaim(nulls);
        self.items.reclaim(items);
        self.start();
    }
}

#[cold]
fn too_many(len: usize) -> Fault {
    let expected =
        format!("at most {}, as 32-bit list offsets count; visit the reads instead", i32::MAX);
    Fault::new(0, format!("a batch of {len} elements in one column"), expected)
}

fn check_text(bytes: &[u8], spec: &Spec) -> Result<(), Fault> {
    if spec.data_type != DataType::Utf8 || std::str::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    let start = bytes.get(..40).unwrap_or(bytes);
    let found = format!("\"{}\" in the field {:?}", start.escape_ascii(), spec.name);
    Err(Fault::new(0, found, "UTF-8 text; ask for strings as bytes"))
}

fn label(code: u8, spec: &Spec, codes: Option<&[u8]>) -> Result<u8, Fault> {
    let known = match codes {
        Some(codes) => codes.get(usize::from(code)).copied(),
        None => Some(code),
    };
    let labels = spec.labels.as_ref().map_or(0, |labels| labels.len());
    known.filter(|&code| usize::from(code) < labels).ok_or_else(|| {
        Fault::new(
            0,
            format!("code {code} in the field {:?}", spec.name),
            format!("one of {}", spec.type_name),
        )
    })
}
