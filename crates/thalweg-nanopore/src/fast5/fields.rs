//! Maps attributes to the model of SLOW5: read groups with attributes, typed auxiliary fields.
//!
//! Names and types are those of slow5tools; attributes that it does not know keep their names.
//! Fields are discovered read by read: a read's bytes hold the fields known at that time, and
//! [`Fields::complete`] appends the others as missing.

use std::collections::HashMap;

use thalweg_hdf5::types::Value;

use crate::record::{Attribute, AuxField, AuxType, Scalar};

/// SLOW5's names of the common fields, in the order in which the first read adds them.
const ORDER: [&str; 6] =
    ["channel_number", "median_before", "read_number", "start_mux", "start_time", "end_reason"];

/// The primary fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Calibration {
    pub(super) digitisation: f64,
    pub(super) offset: f64,
    pub(super) range: f64,
    pub(super) sampling_rate: f64,
}

impl Calibration {
    /// All values unknown (NaN).
    pub(super) const UNKNOWN: Self =
        Self { digitisation: f64::NAN, offset: f64::NAN, range: f64::NAN, sampling_rate: f64::NAN };

    /// Takes an attribute of `channel_id`. Returns whether it is one of the primary fields.
    pub(super) fn take(&mut self, name: &str, value: &Value) -> bool {
        let field = match name {
            "digitisation" => &mut self.digitisation,
            "offset" => &mut self.offset,
            "range" => &mut self.range,
            "sampling_rate" => &mut self.sampling_rate,
            _ => return false,
        };
        match value {
            Value::Float(value, _) => *field = *value,
            Value::Signed(value, _) => *field = *value as f64,
            Value::Unsigned(value, _) => *field = *value as f64,
            _ => return false,
        }
        true
    }
}

/// The auxiliary fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    fields: Vec<AuxField>,
    by_name: HashMap<String, usize>,
}

impl Fields {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    pub(super) fn fields(&self) -> &[AuxField] {
        &self.fields
    }

    /// The total number of labels of all enumerations.
    pub(super) fn labels(&self) -> usize {
        self.fields.iter().map(|field| field.labels.len()).sum()
    }

    /// Appends a read's values as a record stores them, for every field known so far, including
    /// those that are new in `values`.
    ///
    /// # Errors
    /// For a value that the field of its name cannot hold.
    pub(super) fn encode(
        &mut self,
        values: &mut [(String, Value)],
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let place =
            |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
        values.sort_by(|(a, _), (b, _)| (place(a), a).cmp(&(place(b), b)));
        for (name, value) in &*values {
            if !self.by_name.contains_key(name) {
                self.by_name.insert(name.clone(), self.fields.len());
                self.fields.push(field(name, value));
            }
        }
        for field in &mut self.fields {
            match values.iter().find(|(name, _)| *name == field.name) {
                Some((_, value)) => push(field, value, out)?,
                None => push_missing(field, out),
            }
        }
        Ok(())
    }

    /// Appends missing values to those that were encoded when `known` fields were known.
    pub(super) fn complete(fields: &[AuxField], known: usize, out: &mut Vec<u8>) {
        for field in fields.iter().skip(known) {
            push_missing(field, out);
        }
    }
}

/// The type that slow5tools gives the field of this name. It is not that of each writer: in files
/// of single reads, a `read_number` is also an `uint32` or `uint64`, and a `start_mux` an `int32`.
fn usual(name: &str) -> Option<Scalar> {
    match name {
        "median_before" => Some(Scalar::Double),
        "read_number" => Some(Scalar::Int32),
        "start_mux" => Some(Scalar::Uint8),
        "start_time" => Some(Scalar::Uint64),
        _ => None,
    }
}

/// Whether a field of a type of [`usual`] holds a value.
fn holds(scalar: Scalar, value: &Value) -> bool {
    match (scalar, value) {
        (Scalar::Double, Value::Float(..)) => true,
        (Scalar::Int32, &Value::Signed(value, _)) => i32::try_from(value).is_ok(),
        (Scalar::Int32, &Value::Unsigned(value, _)) => i32::try_from(value).is_ok(),
        (Scalar::Uint8, &Value::Signed(value, _)) => u8::try_from(value).is_ok(),
        (Scalar::Uint8, &Value::Unsigned(value, _)) => u8::try_from(value).is_ok(),
        (Scalar::Uint64, &Value::Signed(value, _)) => value >= 0,
        (Scalar::Uint64, Value::Unsigned(..)) => true,
        _ => false,
    }
}

/// The field for a value.
fn field(name: &str, value: &Value) -> AuxField {
    if let Some(scalar) = usual(name).filter(|scalar| holds(*scalar, value)) {
        return AuxField::new(name, AuxType::Scalar(scalar));
    }
    let kind = match value {
        Value::Signed(_, 1) => AuxType::Scalar(Scalar::Int8),
        Value::Signed(_, 2) => AuxType::Scalar(Scalar::Int16),
        Value::Signed(_, 3..=4) => AuxType::Scalar(Scalar::Int32),
        Value::Signed(..) => AuxType::Scalar(Scalar::Int64),
        Value::Unsigned(_, 1) => AuxType::Scalar(Scalar::Uint8),
        Value::Unsigned(_, 2) => AuxType::Scalar(Scalar::Uint16),
        Value::Unsigned(_, 3..=4) => AuxType::Scalar(Scalar::Uint32),
        Value::Unsigned(..) => AuxType::Scalar(Scalar::Uint64),
        Value::Float(_, ..=4) => AuxType::Scalar(Scalar::Float),
        Value::Float(..) => AuxType::Scalar(Scalar::Double),
        Value::Enum(_, labels) if labels.iter().all(|(_, label)| is_identifier(label)) => {
            AuxType::Scalar(Scalar::Enum)
        }
        Value::Text(_) | Value::Enum(..) | Value::Other(_) => AuxType::STRING,
    };
    AuxField::new(name, kind)
}

/// Whether SLOW5 accepts a text as a label.
fn is_identifier(label: &str) -> bool {
    label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !label.starts_with(|c: char| c.is_ascii_digit())
}

fn push_missing(field: &AuxField, out: &mut Vec<u8>) {
    match field.kind {
        AuxType::Scalar(scalar) => scalar.push_missing(out),
        AuxType::Array(_) => out.extend(0u64.to_le_bytes()),
    }
}

/// Appends a value, converted to the field's type if the conversion is exact.
fn push(field: &mut AuxField, value: &Value, out: &mut Vec<u8>) -> Result<(), String> {
    let name = field.name.clone();
    let kind = field.type_name();
    let lost = || format!("{name}: {} does not fit the type of earlier reads, {kind}", word(value));
    let AuxType::Scalar(scalar) = field.kind else {
        let text = match value {
            Value::Text(text) => text.as_str(),
            Value::Enum(code, labels) => label(labels, *code).ok_or_else(lost)?,
            _ => return Err(lost()),
        };
        out.extend((text.len() as u64).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    };
    if scalar == Scalar::Enum {
        let Value::Enum(code, labels) = value else { return Err(lost()) };
        let own =
            label(labels, *code).ok_or_else(|| format!("{name}: the code {code} has no name"))?;
        let at = match field.labels.iter().position(|known| known == own) {
            Some(at) => at,
            None => {
                // All names at once and in the order of their codes, so that the codes stay
                // they were.
                for (_, label) in labels.iter() {
                    if !is_identifier(label) {
                        return Err(lost());
                    }
                    if !field.labels.contains(label) {
                        field.labels.push(label.clone());
                    }
                }
                field.labels.iter().position(|known| known == own).ok_or_else(lost)?
            }
        };
        let at = u8::try_from(at).ok().filter(|at| *at < u8::MAX).ok_or_else(lost)?;
        out.push(at);
        return Ok(());
    }
    let whole = match value {
        Value::Signed(value, _) => i128::from(*value),
        Value::Unsigned(value, _) => i128::from(*value),
        Value::Float(value, _) if scalar == Scalar::Double => {
            out.extend(value.to_le_bytes());
            return Ok(());
        }
        Value::Float(value, size) if scalar == Scalar::Float && *size <= 4 => {
            out.extend((*value as f32).to_le_bytes());
            return Ok(());
        }
        _ => return Err(lost()),
    };
    macro_rules! integer {
        ($type:ty) => {
            out.extend(<$type>::try_from(whole).map_err(|_| lost())?.to_le_bytes())
        };
    }
    match scalar {
        Scalar::Int8 => integer!(i8),
        Scalar::Int16 => integer!(i16),
        Scalar::Int32 => integer!(i32),
        Scalar::Int64 => integer!(i64),
        Scalar::Uint8 => integer!(u8),
        Scalar::Uint16 => integer!(u16),
        Scalar::Uint32 => integer!(u32),
        Scalar::Uint64 => integer!(u64),
        _ => return Err(lost()),
    }
    Ok(())
}

fn label(labels: &[(i64, String)], code: i64) -> Option<&str> {
    labels.iter().find(|(known, _)| *known == code).map(|(_, label)| label.as_str())
}

fn word(value: &Value) -> String {
    match value {
        Value::Other(what) => (*what).into(),
        _ => text(value).unwrap_or_default(),
    }
}

/// A value as the text of a header attribute.
pub(super) fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Signed(value, _) => value.to_string(),
        Value::Unsigned(value, _) => value.to_string(),
        // Versions are stored as numbers, too, and 2.0 must not become 2.
        Value::Float(value, _) => format!("{value:?}"),
        Value::Text(text) => text.clone(),
        Value::Enum(code, labels) => {
            label(labels, *code).map_or_else(|| code.to_string(), String::from)
        }
        Value::Other(_) => return None,
    })
}

/// Attributes of one read group, by name.
pub(super) type GroupAttributes = std::collections::BTreeMap<String, String>;

/// The header's attributes of all read groups, by name.
pub(super) fn attributes(groups: &[GroupAttributes]) -> Vec<Attribute> {
    let names: std::collections::BTreeSet<&String> =
        groups.iter().flat_map(|group| group.keys()).collect();
    // SLOW5 does not distinguish an empty value, a dot and a missing value.
    let value = |group: &GroupAttributes, name: &String| {
        group.get(name).filter(|v| !v.is_empty() && *v != ".").cloned()
    };
    let attribute = |name: &String| Attribute {
        name: name.clone(),
        values: groups.iter().map(|group| value(group, name)).collect(),
    };
    names.into_iter().map(attribute).collect()
}
