//! Digests of reads that are equal in every format.

use std::hash::{DefaultHasher, Hasher};

use thalweg_io::Fault;

use crate::record::{AuxField, AuxValue, Header, Record};

/// A digest of a read, for comparisons within one run of the program. Another build may compute
/// other digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digest {
    /// The digest of id and samples.
    pub(super) signal: u64,
    /// Of everything else; `None` if it may differ.
    pub(super) fields: Option<u64>,
}

impl Digest {
    pub(super) fn without_fields(self) -> Self {
        Self { fields: None, ..self }
    }
}

/// The auxiliary fields to compare, by name.
#[derive(Debug, Clone)]
pub(super) struct ComparedFields {
    names: Vec<String>,
    /// Their places in a record's values; `None` for a field that the header lacks.
    places: Vec<Option<usize>>,
}

impl ComparedFields {
    /// The fields of a header for which `holds` returns true.
    pub(super) fn of(header: &Header, holds: impl Fn(&str) -> bool) -> Self {
        let names: Vec<String> =
            header.aux.iter().map(|f| f.name.clone()).filter(|name| holds(name)).collect();
        Self { places: places(&names, header), names }
    }

    /// The same fields, with their places in records of another header.
    pub(super) fn within(&self, header: &Header) -> Self {
        Self { names: self.names.clone(), places: places(&self.names, header) }
    }

    /// The digest of a read.
    ///
    /// # Errors
    /// For damaged auxiliary fields.
    pub(super) fn digest(
        &self,
        record: &Record<'_>,
        header: &Header,
        samples: &[i16],
    ) -> Result<Digest, Fault> {
        let mut signal = DefaultHasher::new();
        text(record.read_id.as_bytes(), &mut signal);
        signal.write_usize(samples.len());
        let mut bytes = [0; 4096];
        for chunk in samples.chunks(bytes.len() / size_of::<i16>()) {
            let (pairs, _) = bytes.as_chunks_mut::<2>();
            for (pair, sample) in pairs.iter_mut().zip(chunk) {
                *pair = sample.to_le_bytes();
            }
            signal.write(bytes.get(..size_of_val(chunk)).unwrap_or_default());
        }
        let mut fields = DefaultHasher::new();
        // By its run, because formats number read groups in different orders.
        let run = header.attribute("run_id", record.read_group).unwrap_or_default();
        text(run.as_bytes(), &mut fields);
        for number in [record.digitisation, record.offset, record.range, record.sampling_rate] {
            fields.write_u64(number.to_bits());
        }
        let values: Vec<_> = record.aux_values(header).collect::<Result<_, _>>()?;
        for place in &self.places {
            match place.and_then(|place| values.get(place)) {
                Some((field, value)) => hash(field, *value, &mut fields),
                None => hash_missing(&mut fields),
            }
        }
        Ok(Digest { signal: signal.finish(), fields: Some(fields.finish()) })
    }
}

fn places(names: &[String], header: &Header) -> Vec<Option<usize>> {
    names.iter().map(|name| header.aux_field(name).map(|(place, _)| place)).collect()
}

fn text(bytes: &[u8], hasher: &mut DefaultHasher) {
    hasher.write_usize(bytes.len());
    hasher.write(bytes);
}

fn hash_missing(hasher: &mut DefaultHasher) {
    hasher.write_u8(0);
}

fn hash_whole(value: i128, hasher: &mut DefaultHasher) {
    hasher.write_u8(1);
    hasher.write_i128(value);
}

fn hash_text(bytes: &[u8], hasher: &mut DefaultHasher) {
    hasher.write_u8(2);
    text(bytes, hasher);
}

/// Hashes the value rather than its bytes, because formats may differ in the width of a number and
/// in the codes of an enumeration.
fn hash(field: &AuxField, value: AuxValue<'_>, hasher: &mut DefaultHasher) {
    match value {
        AuxValue::Missing => hash_missing(hasher),
        AuxValue::Int8(n) => hash_whole(n.into(), hasher),
        AuxValue::Int16(n) => hash_whole(n.into(), hasher),
        AuxValue::Int32(n) => hash_whole(n.into(), hasher),
        AuxValue::Int64(n) => hash_whole(n.into(), hasher),
        AuxValue::Uint8(n) => hash_whole(n.into(), hasher),
        AuxValue::Uint16(n) => hash_whole(n.into(), hasher),
        AuxValue::Uint32(n) => hash_whole(n.into(), hasher),
        AuxValue::Uint64(n) => hash_whole(n.into(), hasher),
        AuxValue::Float(n) => hash_float(n.into(), hasher),
        AuxValue::Double(n) => hash_float(n, hasher),
        AuxValue::Char(byte) => hash_text(&[byte], hasher),
        AuxValue::Enum(code) => match field.label(code) {
            Some(label) => hash_text(label.as_bytes(), hasher),
            None => hash_whole(code.into(), hasher),
        },
        AuxValue::String(bytes) => hash_text(bytes, hasher),
        AuxValue::Array(array) => {
            hasher.write_u8(4);
            hasher.write_usize(array.len());
            array.iter().for_each(|value| hash(field, value, hasher));
        }
    }
}

fn hash_float(value: f64, hasher: &mut DefaultHasher) {
    hasher.write_u8(3);
    hasher.write_u64(value.to_bits());
}
