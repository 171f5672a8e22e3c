//! Auxiliary fields: the typed columns after a record's primary ones (section "Auxiliary fields").
//!
//! The header has their names and types. Their values are at the end of each record, in header
//! order and unaligned. A scalar takes its size. An array has a `u64` element count before its
//! elements. A string is an array of `char`.

mod value;

use thalweg_io::Fault;

use super::quoted;

pub use value::{AuxArray, AuxValue, AuxValues};

/// Bytes of the element count before an array.
const COUNT_BYTES: usize = 8;

/// The type of one element of an auxiliary field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `int8_t`
    Int8,
    /// `int16_t`
    Int16,
    /// `int32_t`
    Int32,
    /// `int64_t`
    Int64,
    /// `uint8_t`
    Uint8,
    /// `uint16_t`
    Uint16,
    /// `uint32_t`
    Uint32,
    /// `uint64_t`
    Uint64,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `char`
    Char,
    /// `enum{...}`: a byte that is an index into the labels of the header; since 0.2.0.
    Enum,
}

impl Scalar {
    /// All scalar types.
    pub const ALL: [Self; 12] = [
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float,
        Self::Double,
        Self::Char,
        Self::Enum,
    ];

    /// The number of stored bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 | Self::Char | Self::Enum => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }

    /// The name in the header's type line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8_t",
            Self::Int16 => "int16_t",
            Self::Int32 => "int32_t",
            Self::Int64 => "int64_t",
            Self::Uint8 => "uint8_t",
            Self::Uint16 => "uint16_t",
            Self::Uint32 => "uint32_t",
            Self::Uint64 => "uint64_t",
            Self::Float => "float",
            Self::Double => "double",
            Self::Char => "char",
            Self::Enum => "enum",
        }
    }

    /// The value 0.
    pub(crate) fn zero(self) -> AuxValue<'static> {
        match self {
            Self::Int8 => AuxValue::Int8(0),
            Self::Int16 => AuxValue::Int16(0),
            Self::Int32 => AuxValue::Int32(0),
            Self::Int64 => AuxValue::Int64(0),
            Self::Uint8 => AuxValue::Uint8(0),
            Self::Uint16 => AuxValue::Uint16(0),
            Self::Uint32 => AuxValue::Uint32(0),
            Self::Uint64 => AuxValue::Uint64(0),
            Self::Float => AuxValue::Float(0.0),
            Self::Double => AuxValue::Double(0.0),
            Self::Char => AuxValue::Char(0),
            Self::Enum => AuxValue::Enum(0),
        }
    }

    /// Appends the bytes of a missing value: the type's maximum, NaN, or NUL.
    pub fn push_missing(self, out: &mut Vec<u8>) {
        match self {
            Self::Int8 => out.extend(i8::MAX.to_le_bytes()),
            Self::Int16 => out.extend(i16::MAX.to_le_bytes()),
            Self::Int32 => out.extend(i32::MAX.to_le_bytes()),
            Self::Int64 => out.extend(i64::MAX.to_le_bytes()),
            Self::Uint8 | Self::Enum => out.push(u8::MAX),
            Self::Uint16 => out.extend(u16::MAX.to_le_bytes()),
            Self::Uint32 => out.extend(u32::MAX.to_le_bytes()),
            Self::Uint64 => out.extend(u64::MAX.to_le_bytes()),
            Self::Float => out.extend(f32::NAN.to_le_bytes()),
            Self::Double => out.extend(f64::NAN.to_le_bytes()),
            Self::Char => out.push(0),
        }
    }

    /// The value at the start of `bytes`; missing if there are too few bytes.
    fn value(self, bytes: &[u8]) -> AuxValue<'static> {
        let some = match self {
            Self::Int8 => {
                fixed(bytes).map(i8::from_le_bytes).filter(|&v| v != i8::MAX).map(AuxValue::Int8)
            }
            Self::Int16 => {
                fixed(bytes).map(i16::from_le_bytes).filter(|&v| v != i16::MAX).map(AuxValue::Int16)
            }
            Self::Int32 => {
                fixed(bytes).map(i32::from_le_bytes).filter(|&v| v != i32::MAX).map(AuxValue::Int32)
            }
            Self::Int64 => {
                fixed(bytes).map(i64::from_le_bytes).filter(|&v| v != i64::MAX).map(AuxValue::Int64)
            }
            Self::Uint8 => {
                fixed(bytes).map(u8::from_le_bytes).filter(|&v| v != u8::MAX).map(AuxValue::Uint8)
            }
            Self::Uint16 => fixed(bytes)
                .map(u16::from_le_bytes)
                .filter(|&v| v != u16::MAX)
                .map(AuxValue::Uint16),
            Self::Uint32 => fixed(bytes)
                .map(u32::from_le_bytes)
                .filter(|&v| v != u32::MAX)
                .map(AuxValue::Uint32),
            Self::Uint64 => fixed(bytes)
                .map(u64::from_le_bytes)
                .filter(|&v| v != u64::MAX)
                .map(AuxValue::Uint64),
            Self::Float => {
                fixed(bytes).map(f32::from_le_bytes).filter(|v| !v.is_nan()).map(AuxValue::Float)
            }
            Self::Double => {
                fixed(bytes).map(f64::from_le_bytes).filter(|v| !v.is_nan()).map(AuxValue::Double)
            }
            Self::Char => {
                fixed(bytes).map(u8::from_le_bytes).filter(|&v| v != 0).map(AuxValue::Char)
            }
            Self::Enum => {
                fixed(bytes).map(u8::from_le_bytes).filter(|&v| v != u8::MAX).map(AuxValue::Enum)
            }
        };
        some.unwrap_or(AuxValue::Missing)
    }
}

fn fixed<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}

/// The type of an auxiliary field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuxType {
    /// One value.
    Scalar(Scalar),
    /// Any number of values. An array of [`Scalar::Char`] is a string.
    Array(Scalar),
}

impl AuxType {
    /// The type of a string.
    pub const STRING: Self = Self::Array(Scalar::Char);

    /// The type of one element.
    pub const fn element(self) -> Scalar {
        match self {
            Self::Scalar(element) | Self::Array(element) => element,
        }
    }

    /// Whether an element count precedes the value.
    pub const fn is_array(self) -> bool {
        matches!(self, Self::Array(_))
    }

    /// The bytes of the value that starts at index `at` of `bytes`, without the count, and the
    /// index of the next value.
    fn split(self, bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
        let size = self.element().size();
        let (start, len) = match self {
            Self::Scalar(_) => (at, size),
            Self::Array(_) => {
                let count = u64::from_le_bytes(fixed(bytes.get(at..)?)?);
                (at.checked_add(COUNT_BYTES)?, usize::try_from(count).ok()?.checked_mul(size)?)
            }
        };
        let end = start.checked_add(len)?;
        Some((bytes.get(start..end)?, end))
    }

    /// The value with these bytes, which do not include the count.
    fn value(self, bytes: &[u8]) -> AuxValue<'_> {
        match self {
            Self::Scalar(element) => element.value(bytes),
            Self::Array(_) if bytes.is_empty() => AuxValue::Missing,
            Self::Array(Scalar::Char) => AuxValue::String(bytes),
            Self::Array(element) => AuxValue::Array(AuxArray { element, bytes }),
        }
    }
}

/// An auxiliary column of the header. Every record has a value for it after its signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuxField {
    /// The column's name.
    pub name: String,
    /// The column's type.
    pub kind: AuxType,
    /// The labels of an enumeration, in the order of their codes; empty for every other type.
    pub labels: Vec<String>,
}

impl AuxField {
    /// A field that is not an enumeration.
    pub fn new(name: impl Into<String>, kind: AuxType) -> Self {
        Self { name: name.into(), kind, labels: Vec::new() }
    }

    /// The label of an enumeration's code.
    pub fn label(&self, code: u8) -> Option<&str> {
        self.labels.get(usize::from(code)).map(String::as_str)
    }

    /// The code of an enumeration's label.
    pub(crate) fn code(&self, label: &str) -> Option<u8> {
        self.labels.iter().position(|known| known == label).and_then(|at| u8::try_from(at).ok())
    }

    /// For each code of this enumeration, that of its label in `merged`, which has all of its
    /// labels. `None` if both have the same labels.
    pub(crate) fn codes_in(&self, merged: &Self) -> Option<Box<[u8]>> {
        let codes: Option<Box<[u8]>> = self.labels.iter().map(|own| merged.code(own)).collect();
        codes.filter(|_| merged.labels != self.labels)
    }

    /// Appends `value` in the encoding of a binary record.
    ///
    /// # Errors
    ///
    /// When the value is of another type.
    pub fn push(&self, value: AuxValue<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let element = self.kind.element();
        let array = match (self.kind, value) {
            (AuxType::Scalar(_), AuxValue::Missing) => {
                element.push_missing(out);
                return Ok(());
            }
            (AuxType::Array(_), AuxValue::Missing) => &[],
            (AuxType::Array(Scalar::Char), AuxValue::String(bytes)) => bytes,
            (AuxType::Array(_), AuxValue::Array(array)) if array.element == element => array.bytes,
            (AuxType::Scalar(_), value) if value.scalar() == Some(element) => {
                value.push_scalar(out);
                return Ok(());
            }
            _ => {
                let found = format!("{value:?} for the auxiliary field {:?}", self.name);
                return Err(Fault::new(0, found, format!("a value of type {}", self.type_name())));
            }
        };
        out.extend((array.len() as u64 / element.size() as u64).to_le_bytes());
        out.extend(array);
        Ok(())
    }

    /// The type in the notation of the header's type line, with an enumeration's labels.
    pub fn type_name(&self) -> String {
        let mut name = String::from(self.kind.element().name());
        if self.kind.is_array() {
            name.push('*');
        }
        if self.kind.element() == Scalar::Enum {
            name.push('{');
            name.push_str(&self.labels.join(","));
            name.push('}');
        }
        name
    }

    /// Parses a column of the type line. `at` is its offset, for faults.
    pub(crate) fn parse_type(text: &str, at: usize) -> Result<(AuxType, Vec<String>), Fault> {
        let (name, labels) = match text.strip_suffix('}').and_then(|t| t.split_once('{')) {
            Some((name, labels)) => (name, Some(labels)),
            None => (text, None),
        };
        let (element_name, is_array) =
            name.strip_suffix('*').map_or((name, false), |element| (element, true));
        let element = Scalar::ALL.into_iter().find(|scalar| scalar.name() == element_name);
        let element = element
            .filter(|&element| labels.is_some() == (element == Scalar::Enum))
            .ok_or_else(|| {
                let expected =
                    "the type of an auxiliary field, such as int32_t, float*, char* or enum{a,b}";
                Fault::new(at, quoted(text.as_bytes()), expected)
            })?;
        let kind = if is_array { AuxType::Array(element) } else { AuxType::Scalar(element) };
        let labels: Vec<String> =
            labels.map_or_else(Vec::new, |l| l.split(',').map(String::from).collect());
        check_labels(&labels).map_err(|fault| fault.shifted(at))?;
        Ok((kind, labels))
    }

    /// Refuses fields that [`Self::parse_type`] would refuse, so that they are not written.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if (self.kind.element() == Scalar::Enum) == self.labels.is_empty() {
            let found = format!(
                "{} labels of the {} field {:?}",
                self.labels.len(),
                self.type_name(),
                self.name
            );
            return Err(Fault::new(0, found, "labels for enumerations, and for nothing else"));
        }
        check_labels(&self.labels)
    }
}

/// Checks that labels are distinct C identifiers, and at most 255, because code 255 is the missing
/// value.
fn check_labels(labels: &[String]) -> Result<(), Fault> {
    if labels.len() > usize::from(u8::MAX) {
        return Err(Fault::new(
            0,
            format!("{} labels of an enumeration", labels.len()),
            "at most 255",
        ));
    }
    for (i, label) in labels.iter().enumerate() {
        let identifier = label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && label.bytes().next().is_some_and(|b| !b.is_ascii_digit());
        if !identifier {
            let found = format!("the enumeration label {}", quoted(label.as_bytes()));
            return Err(Fault::new(
                0,
                found,
                "letters, digits and underscores, not starting with a digit",
            ));
        }
        if labels.iter().take(i).any(|earlier| earlier == label) {
            let found = format!("the enumeration label {} twice", quoted(label.as_bytes()));
            return Err(Fault::new(0, found, "distinct labels"));
        }
    }
    Ok(())
}

/// Checks that the fields fill `bytes` exactly. Offsets of faults count from the start of `bytes`.
pub(crate) fn verify(fields: &[AuxField], bytes: &[u8]) -> Result<(), Fault> {
    let mut at = 0;
    for field in fields {
        match field.kind.split(bytes, at) {
            Some((_, next)) => at = next,
            None => return Err(cut_short(field, bytes, at)),
        }
    }
    if at == bytes.len() {
        return Ok(());
    }
    let found = format!("{} bytes after the last auxiliary field", bytes.len() - at);
    Err(Fault::new(at, found, "the end of the record"))
}

#[cold]
fn cut_short(field: &AuxField, bytes: &[u8], at: usize) -> Fault {
    let found = format!("{} bytes left in the record", bytes.len().saturating_sub(at));
    let expected = format!(
        "the auxiliary field {} of type {}",
        quoted(field.name.as_bytes()),
        field.type_name()
    );
    Fault::new(at, found, expected)
}

#[cfg(test)]
mod tests;
