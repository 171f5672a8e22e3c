//! Rows of a SLOW5 file (section "SLOW5 record"): tab-separated text, one read per line, `.` for a
//! missing value.
//!
//! A row becomes the same [`Record`] as a binary record. Its auxiliary fields are encoded as in
//! BLOW5, so that other code handles only one encoding. The samples are parsed immediately, because
//! they are text and not compressed bytes.

use thalweg_io::Fault;

use super::{Header, Record, auxiliary, number, quoted};
use crate::record::{AuxField, AuxType, AuxValue, Scalar};

/// The text of a missing value.
const MISSING: &[u8] = b".";

/// Parses a row without its newline. Appends the samples to `samples`. `aux` is scratch memory that
/// the record borrows from. [`Record::signal`] is empty. After a fault, `samples` is unchanged.
///
/// # Errors
///
/// When a column is missing, superfluous or of a wrong type, or when the number of samples differs
/// from the column `len_raw_signal`.
pub fn parse_row<'a>(
    row: &'a [u8],
    header: &Header,
    aux: &'a mut Vec<u8>,
    samples: &mut Vec<i16>,
) -> Result<Record<'a>, Fault> {
    let before = samples.len();
    let record = parse(row, header, aux, Some(samples));
    if record.is_err() {
        samples.truncate(before);
    }
    Ok(record?.0)
}

/// Parses a row without its samples, which are only counted.
///
/// # Errors
///
/// Those of [`parse_row`], except for samples that are not numbers.
pub(crate) fn parse_fields<'a>(
    row: &'a [u8],
    header: &Header,
    aux: &'a mut Vec<u8>,
) -> Result<(Record<'a>, u64), Fault> {
    parse(row, header, aux, None)
}

/// The read id from the first bytes of a row; `None` if there are too few bytes.
///
/// # Errors
///
/// When the id is not UTF-8, or the row ends with it.
pub fn read_id_of(prefix: &[u8]) -> Result<Option<&str>, Fault> {
    match prefix.iter().position(|b| matches!(b, b'\t' | b'\n')) {
        Some(end) if prefix.get(end) == Some(&b'\t') => {
            read_id(prefix.get(..end).unwrap_or_default()).map(Some)
        }
        Some(end) => Err(Fault::new(end, "the end of the row", "a tab after the read id")),
        None => Ok(None),
    }
}

fn read_id(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|e| {
        Fault::new(e.valid_up_to(), format!("the read id {}", quoted(bytes)), "UTF-8 text")
    })
}

/// Reads the columns of a row one after the other.
struct TextColumns<'a> {
    rest: Option<&'a [u8]>,
    at: usize,
}

impl<'a> TextColumns<'a> {
    /// The next column and its offset in the row.
    fn next(&mut self, name: &str) -> Result<(usize, &'a [u8]), Fault> {
        let at = self.at;
        let Some(rest) = self.rest else {
            return Err(Fault::new(
                at,
                "the end of the row",
                format!("the column {}", quoted(name.as_bytes())),
            ));
        };
        let end = rest.iter().position(|&b| b == b'\t');
        let column = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.rest = end.and_then(|end| rest.get(end + 1..));
        self.at += column.len() + 1;
        Ok((at, column))
    }

    /// The next column, parsed with `parse`.
    fn parsed<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Fault> {
        let (at, text) = self.next(name)?;
        parse(text).ok_or_else(|| Fault::new(at, format!("{name} {}", quoted(text)), expected))
    }

    fn double(&mut self, name: &str) -> Result<f64, Fault> {
        self.parsed(name, "a decimal number", number::parse_double)
    }
}

/// Parses a row, and returns the record and its number of samples. The samples are parsed only if
/// `samples` is given.
fn parse<'a>(
    row: &'a [u8],
    header: &Header,
    aux: &'a mut Vec<u8>,
    samples: Option<&mut Vec<i16>>,
) -> Result<(Record<'a>, u64), Fault> {
    if row.last() == Some(&b'\r') {
        let expected = "rows that end with a newline alone; \
                        carriage returns came from a Windows editor or transfer";
        return Err(Fault::new(row.len() - 1, "a carriage return", expected));
    }
    let mut columns = TextColumns { rest: Some(row), at: 0 };
    let read_id = read_id(columns.next("read_id")?.1)?;
    let group_at = columns.at;
    let read_group = columns.parsed("read_group", "a decimal number", |text| {
        number::parse_unsigned(text, u64::from(u32::MAX)).and_then(|n| u32::try_from(n).ok())
    })?;
    if read_group >= header.read_groups {
        let expected = format!("less than {}, the number of read groups", header.read_groups);
        return Err(Fault::new(group_at, format!("read group {read_group}"), expected));
    }
    let digitisation = columns.double("digitisation")?;
    let offset = columns.double("offset")?;
    let range = columns.double("range")?;
    let sampling_rate = columns.double("sampling_rate")?;
    let promised = columns.parsed("len_raw_signal", "a number of samples", |text| {
        number::parse_unsigned(text, u64::MAX)
    })?;
    let (at, text) = columns.next("raw_signal")?;
    count_samples(text, promised)
        .and_then(|count| samples.map_or(Ok(()), |samples| parse_samples(text, count, samples)))
        .map_err(|fault| fault.shifted(at))?;
    aux.clear();
    for field in &header.aux {
        let (at, text) = columns.next(&field.name)?;
        push_stored(field, text, aux).map_err(|fault| fault.shifted(at))?;
    }
    if let Some(rest) = columns.rest {
        return Err(Fault::new(
            columns.at,
            quoted(rest),
            "the end of the row: the header has no more columns",
        ));
    }
    Ok((
        Record {
            read_id,
            read_group,
            digitisation,
            offset,
            range,
            sampling_rate,
            signal: &[],
            aux,
        },
        promised,
    ))
}

fn count_samples(text: &[u8], promised: u64) -> Result<usize, Fault> {
    let found = if text.is_empty() || (promised == 0 && text == MISSING) {
        0
    } else {
        text.iter().filter(|&&b| b == b',').count() + 1
    };
    if found as u64 != promised {
        let found = format!("{found} samples");
        return Err(Fault::new(0, found, format!("{promised}, as the column len_raw_signal says")));
    }
    Ok(found)
}

/// Appends the samples of `text`, which has `count` of them.
fn parse_samples(text: &[u8], count: usize, samples: &mut Vec<i16>) -> Result<(), Fault> {
    if count == 0 {
        return Ok(());
    }
    samples.reserve(count);
    let mut at = 0;
    for text in text.split(|&b| b == b',') {
        let sample = number::parse_signed(text, i64::from(i16::MIN), i64::from(i16::MAX));
        let Some(sample) = sample.and_then(|sample| i16::try_from(sample).ok()) else {
            return Err(Fault::new(
                at,
                format!("the sample {}", quoted(text)),
                "an integer from -32768 to 32767",
            ));
        };
        samples.push(sample);
        at += text.len() + 1;
    }
    Ok(())
}

/// Appends the value of a column in the encoding of BLOW5.
fn push_stored(field: &AuxField, text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let fault = |at, text| {
        let found =
            format!("the auxiliary field {} is {}", quoted(field.name.as_bytes()), quoted(text));
        Fault::new(at, found, format!("a value of type {}", field.type_name()))
    };
    match field.kind {
        AuxType::Scalar(element) => push_scalar(element, text, out).ok_or_else(|| fault(0, text)),
        AuxType::Array(_) if text == MISSING => {
            out.extend(0u64.to_le_bytes());
            Ok(())
        }
        // No writer can put a NUL there, and this one would drop those at the end.
        AuxType::Array(Scalar::Char) if text.contains(&0) => Err(fault(0, text)),
        AuxType::Array(Scalar::Char) => {
            out.extend((text.len() as u64).to_le_bytes());
            out.extend(text);
            Ok(())
        }
        AuxType::Array(element) => {
            let count = text.iter().filter(|&&b| b == b',').count() as u64 + 1;
            out.extend(count.to_le_bytes());
            let mut at = 0;
            for text in text.split(|&b| b == b',') {
                push_scalar(element, text, out).ok_or_else(|| fault(at, text))?;
                at += text.len() + 1;
            }
            Ok(())
        }
    }
}

fn push_scalar(element: Scalar, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if text == MISSING {
        element.push_missing(out);
        return Some(());
    }
    let signed = |min: i64, max: i64| number::parse_signed(text, min, max);
    let unsigned = |max: u64| number::parse_unsigned(text, max);
    match element {
        Scalar::Int8 => {
            out.extend(i8::try_from(signed(i8::MIN.into(), i8::MAX.into())?).ok()?.to_le_bytes());
        }
        Scalar::Int16 => {
            out.extend(
                i16::try_from(signed(i16::MIN.into(), i16::MAX.into())?).ok()?.to_le_bytes(),
            );
        }
        Scalar::Int32 => {
            out.extend(
                i32::try_from(signed(i32::MIN.into(), i32::MAX.into())?).ok()?.to_le_bytes(),
            );
        }
        Scalar::Int64 => out.extend(signed(i64::MIN, i64::MAX)?.to_le_bytes()),
        Scalar::Uint8 | Scalar::Enum => out.push(u8::try_from(unsigned(u8::MAX.into())?).ok()?),
        Scalar::Uint16 => out.extend(u16::try_from(unsigned(u16::MAX.into())?).ok()?.to_le_bytes()),
        Scalar::Uint32 => out.extend(u32::try_from(unsigned(u32::MAX.into())?).ok()?.to_le_bytes()),
        Scalar::Uint64 => out.extend(unsigned(u64::MAX)?.to_le_bytes()),
        Scalar::Float => out.extend(number::parse_float(text)?.to_le_bytes()),
        Scalar::Double => out.extend(number::parse_double(text)?.to_le_bytes()),
        Scalar::Char => match text {
            [char] if *char != 0 => out.push(*char),
            _ => return None,
        },
    }
    Some(())
}

/// Appends a row with its newline. [`Record::signal`] is ignored.
///
/// The bytes are those that slow5lib writes, except for numbers that six fractional digits do not
/// hold: slow5lib rounds them, and this function writes as many digits as they need.
///
/// # Errors
///
/// When the auxiliary bytes do not fit the header's fields, or text contains tabs or line ends.
/// `out` is then unchanged.
pub fn write_row(
    record: &Record<'_>,
    samples: &[i16],
    header: &Header,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let before = out.len();
    let written = write(record, samples, header, out);
    if written.is_err() {
        out.truncate(before);
    }
    written
}

fn write(
    record: &Record<'_>,
    samples: &[i16],
    header: &Header,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    push_text(record.read_id.as_bytes(), out)?;
    out.push(b'\t');
    number::push_integer(out, record.read_group);
    for value in [record.digitisation, record.offset, record.range, record.sampling_rate] {
        out.push(b'\t');
        number::push_double(out, value);
    }
    out.push(b'\t');
    number::push_integer(out, samples.len() as u64);
    for (i, &sample) in samples.iter().enumerate() {
        out.push(if i == 0 { b'\t' } else { b',' });
        number::push_integer(out, sample);
    }
    if samples.is_empty() {
        out.push(b'\t');
    }
    auxiliary::verify(&header.aux, record.aux)?;
    for value in record.aux_values(header) {
        out.push(b'\t');
        push_value(value?.1, out)?;
    }
    if out.last() == Some(&b'\r') {
        return Err(Fault::new(
            0,
            "a row that ends with a carriage return",
            "text without line ends",
        ));
    }
    out.push(b'\n');
    Ok(())
}

/// Appends text without tabs and newlines. NULs at its end are removed, because they come from C
/// strings.
fn push_text(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let end = text.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    let text = text.get(..end).unwrap_or(text);
    if text.iter().any(|b| matches!(b, b'\t' | b'\n' | 0)) {
        return Err(Fault::new(
            0,
            quoted(text),
            "text without tabs, newlines and NULs, which rows cannot hold",
        ));
    }
    out.extend(text);
    Ok(())
}

fn push_value(value: AuxValue<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    match value {
        AuxValue::Missing => out.extend(MISSING),
        AuxValue::Int8(v) => number::push_integer(out, v),
        AuxValue::Int16(v) => number::push_integer(out, v),
        AuxValue::Int32(v) => number::push_integer(out, v),
        AuxValue::Int64(v) => number::push_integer(out, v),
        AuxValue::Uint8(v) | AuxValue::Enum(v) => number::push_integer(out, v),
        AuxValue::Uint16(v) => number::push_integer(out, v),
        AuxValue::Uint32(v) => number::push_integer(out, v),
        AuxValue::Uint64(v) => number::push_integer(out, v),
        AuxValue::Float(v) => number::push_float(out, v),
        AuxValue::Double(v) => number::push_double(out, v),
        AuxValue::Char(v) => push_text(&[v], out)?,
        AuxValue::String(text) => push_text(text, out)?,
        AuxValue::Array(array) => {
            for (i, value) in array.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                push_value(value, out)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
