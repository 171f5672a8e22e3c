//! Parsing a header from the first bytes of a file.

use std::collections::HashSet;

use thalweg_io::Fault;

use super::{
    MAGIC, MISSING, NAMES, Parsed, READ_GROUPS_LINE, TEXT_AT, TEXT_LEN_AT, TYPES, VERSION_LINE,
};
use crate::foreign::foreign;
use crate::record::{
    Attribute, AuxField, Encoding, Header, RecordPress, SignalPress, Version, number, quoted,
};

/// The files that thalweg reads.
const READ: &str = "SLOW5, BLOW5, POD5, FAST5, other HDF5 (NeXus, netCDF-4, SONATA), or FASTQ \
                    (plain, gzip or BGZF)";

/// Every header of either encoding has more bytes.
const LEAST_BYTES: u64 = TEXT_AT as u64;

/// First guess at the size of a text header, which is not stored.
const FIRST_TEXT_BYTES: u64 = 1 << 16;

/// Longest text header: the limit of a binary header. Without a limit, a file without newlines
/// would be read as a whole.
const MOST_TEXT_BYTES: u64 = u32::MAX as u64;

impl Header {
    /// Parses the header from the first bytes of a file. The caller may give any number of bytes.
    ///
    /// Memory is not allocated from a length in the header alone. The length is returned as
    /// [`Parsed::NeedMore`], and the caller compares it with the size of the file.
    ///
    /// Header text must be UTF-8; other encodings are a fault.
    ///
    /// # Errors
    ///
    /// When the bytes are not a SLOW5 or BLOW5 header, or the header has a newer version or an
    /// unknown compression.
    pub fn parse(bytes: &[u8]) -> Result<Parsed, Fault> {
        let binary = MAGIC.as_slice();
        let text = VERSION_LINE.as_bytes();
        if bytes.starts_with(binary) {
            parse_binary(bytes)
        } else if bytes.starts_with(text) {
            parse_text(bytes)
        } else if binary.starts_with(bytes) || text.starts_with(bytes) {
            Ok(Parsed::NeedMore(LEAST_BYTES))
        } else {
            let head = bytes.get(..text.len()).unwrap_or(bytes);
            Err(match foreign(bytes) {
                Some((name, advice)) => {
                    let found = format!("{} ({name})", quoted(head));
                    Fault::new(0, found, format!("{READ}: {advice}"))
                }
                None => Fault::new(
                    0,
                    quoted(head),
                    format!("\"BLOW5\" or \"#slow5_version\", or a file of {READ}"),
                ),
            })
        }
    }
}

/// Parses a binary header: the fixed bytes (section "BLOW5 header"), then the text.
fn parse_binary(bytes: &[u8]) -> Result<Parsed, Fault> {
    let Some(fixed) = bytes.first_chunk::<TEXT_AT>() else {
        return Ok(Parsed::NeedMore(LEAST_BYTES));
    };
    let [.., l0, l1, l2, l3] = *fixed;
    let [_, _, _, _, _, _, major, minor, patch, record_code, g0, g1, g2, g3, signal_code, ..] =
        *fixed;
    let version = Version::new(major, minor, patch).supported(MAGIC.len())?;
    let record_press = RecordPress::from_code(record_code).ok_or_else(|| {
        let expected =
            "0 (none), 1 (zlib), 2 (zstd) or 250 (svb-zd); this file may need a newer reader";
        Fault::new(9, format!("record compression {record_code}"), expected)
    })?;
    // Before 0.2.0, this byte was unused.
    let signal_code = if version < Version::V0_2_0 { 0 } else { signal_code };
    let signal_press = SignalPress::from_code(signal_code).ok_or_else(|| {
        let expected =
            "0 (none), 1 (svb-zd), 2 (ex-zd) or 250 to 253; this file may need a newer reader";
        Fault::new(14, format!("signal compression {signal_code}"), expected)
    })?;
    let read_groups = u32::from_le_bytes([g0, g1, g2, g3]);
    if read_groups == 0 {
        return Err(Fault::new(10, "0 read groups", "at least one"));
    }
    let text_len = u32::from_le_bytes([l0, l1, l2, l3]);
    if (text_len as usize) < TYPES.len() + NAMES.len() + 2 {
        let found = format!("a header text of {text_len} bytes");
        return Err(Fault::new(TEXT_LEN_AT, found, "room for the two column lines"));
    }
    let data_offset = TEXT_AT as u64 + u64::from(text_len);
    let text = usize::try_from(data_offset).ok().and_then(|end| bytes.get(TEXT_AT..end));
    let Some(text) = text else { return Ok(Parsed::NeedMore(data_offset)) };

    let mut lines = Lines { bytes: text, at: TEXT_AT };
    let Some((attributes, aux)) = columns(&mut lines, read_groups)? else {
        let found = format!("the end of the header text of {text_len} bytes");
        return Err(Fault::new(lines.at, found, "the column lines #char*... and #read_id..."));
    };
    if !lines.bytes.is_empty() {
        let expected = format!("the end of the header text of {text_len} bytes");
        return Err(Fault::new(lines.at, quoted(lines.bytes), expected));
    }
    let encoding = Encoding::Binary;
    let header = Header {
        version,
        encoding,
        record_press,
        signal_press,
        read_groups,
        attributes,
        aux,
        data_offset,
    };
    Ok(Parsed::Done(header))
}

/// Parses a text header: two lines (section "SLOW5 header") in place of the fixed bytes of a binary
/// header, then the same text.
fn parse_text(bytes: &[u8]) -> Result<Parsed, Fault> {
    let mut lines = Lines { bytes, at: 0 };
    match text_lines(&mut lines)? {
        Some(header) => Ok(Parsed::Done(header)),
        None if bytes.len() as u64 >= MOST_TEXT_BYTES => Err(Fault::new(
            lines.at,
            "no end of the header in its first 4 GiB",
            "the line #read_id...",
        )),
        None => {
            Ok(Parsed::NeedMore((bytes.len() as u64 * 2).clamp(FIRST_TEXT_BYTES, MOST_TEXT_BYTES)))
        }
    }
}

fn text_lines(lines: &mut Lines<'_>) -> Result<Option<Header>, Fault> {
    let Some((at, version)) = lines.next(&[VERSION_LINE])? else { return Ok(None) };
    let version = Version::parse(version.as_bytes(), at)?;
    let Some((at, count)) = lines.next(&[READ_GROUPS_LINE])? else { return Ok(None) };
    let read_groups = number::parse_unsigned(count.as_bytes(), u64::from(u32::MAX))
        .and_then(|n| u32::try_from(n).ok())
        .filter(|&n| n > 0)
        .ok_or_else(|| {
            Fault::new(at, quoted(count.as_bytes()), "a number of read groups, at least one")
        })?;
    let Some((attributes, aux)) = columns(lines, read_groups)? else { return Ok(None) };
    Ok(Some(Header {
        version,
        encoding: Encoding::Ascii,
        record_press: RecordPress::None,
        signal_press: SignalPress::None,
        read_groups,
        attributes,
        aux,
        data_offset: lines.at as u64,
    }))
}

/// Parses the attribute lines, the type line and the name line. Returns `None` if the text ends
/// before the end of these lines.
#[allow(clippy::type_complexity, reason = "two parts of a header, named where they are used")]
fn columns(
    lines: &mut Lines<'_>,
    read_groups: u32,
) -> Result<Option<(Vec<Attribute>, Vec<AuxField>)>, Fault> {
    let mut attributes = Vec::new();
    let mut seen = HashSet::new();
    let (types_at, types) = loop {
        let start = lines.at;
        let Some((at, line)) = lines.next(&["@", TYPES])? else { return Ok(None) };
        if at - start == TYPES.len() {
            break (at, line);
        }
        let (name, values) = line.split_once('\t').unwrap_or((line, ""));
        if !seen.insert(name) {
            return Err(Fault::new(
                at,
                format!("the attribute {} again", quoted(name.as_bytes())),
                "distinct names",
            ));
        }
        let columns = if name.len() == line.len() {
            0
        } else {
            values.bytes().filter(|&b| b == b'\t').count() + 1
        };
        if columns as u64 != u64::from(read_groups) {
            let found = format!("{columns} values of the attribute {}", quoted(name.as_bytes()));
            return Err(Fault::new(at, found, format!("{read_groups}, one for each read group")));
        }
        let values = values
            .split('\t')
            .map(|v| (!v.is_empty() && v != MISSING).then(|| String::from(v)))
            .collect();
        attributes.push(Attribute { name: String::from(name), values });
    };
    let Some((names_at, names)) = lines.next(&[NAMES])? else { return Ok(None) };

    let mut aux: Vec<AuxField> = Vec::new();
    let mut seen = HashSet::new();
    let mut types = fields(types, types_at)?;
    for name in fields(names, names_at)? {
        let (at, name) = name;
        let Some((type_at, kind)) = types.next() else {
            let found = format!("no type for the auxiliary field {}", quoted(name.as_bytes()));
            return Err(Fault::new(at, found, "as many types as names"));
        };
        let (kind, labels) = AuxField::parse_type(kind, type_at)?;
        if name.is_empty() || !seen.insert(name) {
            let found = format!("the auxiliary field {} (empty or again)", quoted(name.as_bytes()));
            return Err(Fault::new(at, found, "distinct names"));
        }
        aux.push(AuxField { name: String::from(name), kind, labels });
    }
    if let Some((at, kind)) = types.next() {
        let found = format!("no name for the auxiliary type {}", quoted(kind.as_bytes()));
        return Err(Fault::new(at, found, "as many names as types"));
    }
    Ok(Some((attributes, aux)))
}

/// The auxiliary columns of a line without its primary columns, and their offsets. A tab precedes
/// each column.
fn fields(line: &str, at: usize) -> Result<impl Iterator<Item = (usize, &str)>, Fault> {
    let rest = match line.strip_prefix('\t') {
        Some(rest) => Some(rest),
        None if line.is_empty() => None,
        None => {
            return Err(Fault::new(at, quoted(line.as_bytes()), "a tab or the end of the line"));
        }
    };
    let mut next_at = at + 1;
    Ok(rest.into_iter().flat_map(|rest| rest.split('\t')).map(move |field| {
        let at = next_at;
        next_at += field.len() + 1;
        (at, field)
    }))
}

/// Reads the lines of the text one after the other.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line without its prefix, which must be one of `prefixes`, and the offset of the
    /// rest of the line. `None` if the line is incomplete and may still start with such a prefix.
    fn next(&mut self, prefixes: &[&str]) -> Result<Option<(usize, &'a str)>, Fault> {
        let end = self.bytes.iter().position(|&b| b == b'\n');
        let line = self.bytes.get(..end.unwrap_or(self.bytes.len())).unwrap_or_default();
        let prefix = prefixes.iter().find(|prefix| line.starts_with(prefix.as_bytes()));
        let Some(prefix) = prefix else {
            if end.is_none() && prefixes.iter().any(|prefix| prefix.as_bytes().starts_with(line)) {
                return Ok(None);
            }
            let expected: Vec<String> =
                prefixes.iter().map(|prefix| quoted(prefix.as_bytes())).collect();
            return Err(Fault::new(
                self.at,
                quoted(line),
                format!("a line that starts with {}", expected.join(" or ")),
            ));
        };
        let Some(end) = end else { return Ok(None) };
        if line.last() == Some(&b'\r') {
            let expected = "lines that end with a newline alone; \
                            carriage returns came from a Windows editor or transfer";
            return Err(Fault::new(self.at + end - 1, "a carriage return", expected));
        }
        let start = self.at + prefix.len();
        let rest =
            std::str::from_utf8(line.get(prefix.len()..).unwrap_or_default()).map_err(|e| {
                Fault::new(start + e.valid_up_to(), "bytes that are not UTF-8", "UTF-8 text")
            })?;
        self.bytes = self.bytes.get(end + 1..).unwrap_or_default();
        self.at += end + 1;
        Ok(Some((start, rest)))
    }
}
