//! Writing a header, with the same bytes that slow5lib writes.

use std::collections::HashSet;

use thalweg_io::Fault;

use super::{MAGIC, MISSING, NAMES, READ_GROUPS_LINE, TEXT_AT, TEXT_LEN_AT, TYPES, VERSION_LINE};
use crate::record::{Encoding, Header, RecordPress, Scalar, SignalPress, Version, number, quoted};

impl Header {
    /// The version to write. Version 0.1.0 has neither signal compression, nor zstd, nor
    /// enumerations; a header that uses them gets at least version 0.2.0. The index of the file
    /// must have the same version.
    pub fn written_version(&self) -> Version {
        let (record, signal) = match self.encoding {
            Encoding::Ascii => (RecordPress::None, SignalPress::None),
            Encoding::Binary => (self.record_press, self.signal_press),
        };
        let newer = signal != SignalPress::None
            || !matches!(record, RecordPress::None | RecordPress::Zlib)
            || self.aux.iter().any(|field| field.kind.element() == Scalar::Enum);
        if newer { self.version.max(Version::V0_2_0) } else { self.version }
    }

    /// The bytes of the header. Attributes are sorted by name, and `.` is written for a missing
    /// value. [`Header::data_offset`] is ignored: the length of the result is the new offset.
    ///
    /// # Errors
    ///
    /// When the format cannot express the header: tabs or newlines in names or values, a number of
    /// values that differs from the number of read groups, duplicate names, text of 4 GiB or more.
    pub fn write(&self) -> Result<Vec<u8>, Fault> {
        let version = self.written_version();
        version.supported(0)?;
        if self.read_groups == 0 {
            return Err(Fault::new(0, "0 read groups", "at least one"));
        }
        let mut out = Vec::new();
        match self.encoding {
            Encoding::Ascii => {
                out.extend(format!("{VERSION_LINE}{version}\n{READ_GROUPS_LINE}").into_bytes());
                number::push_integer(&mut out, self.read_groups);
                out.push(b'\n');
            }
            Encoding::Binary => {
                out.extend(MAGIC);
                out.extend(version.to_bytes());
                out.push(self.record_press.code());
                out.extend(self.read_groups.to_le_bytes());
                out.push(self.signal_press.code());
                out.resize(TEXT_AT, 0);
            }
        }
        self.write_attributes(&mut out)?;
        self.write_columns(&mut out)?;
        if self.encoding == Encoding::Binary {
            let len = out.len() - TEXT_AT;
            let len = u32::try_from(len).map_err(|_| {
                Fault::new(TEXT_LEN_AT, format!("{len} bytes of header text"), "less than 4 GiB")
            })?;
            for (slot, byte) in out.iter_mut().skip(TEXT_LEN_AT).zip(len.to_le_bytes()) {
                *slot = byte;
            }
        }
        Ok(out)
    }

    fn write_attributes(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let mut sorted: Vec<_> = self.attributes.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let mut last = None;
        for attribute in sorted {
            if last.replace(&attribute.name) == Some(&attribute.name) {
                let found = format!("the attribute {} twice", quoted(attribute.name.as_bytes()));
                return Err(Fault::new(0, found, "distinct names"));
            }
            if attribute.values.len() as u64 != u64::from(self.read_groups) {
                let found = format!(
                    "{} values of the attribute {:?}",
                    attribute.values.len(),
                    attribute.name
                );
                return Err(Fault::new(
                    0,
                    found,
                    format!("{}, one for each read group", self.read_groups),
                ));
            }
            out.push(b'@');
            out.extend(cell(&attribute.name)?);
            for value in &attribute.values {
                let value = value.as_deref().filter(|value| !value.is_empty()).unwrap_or(MISSING);
                out.push(b'\t');
                out.extend(cell(value)?);
            }
            out.push(b'\n');
        }
        Ok(())
    }

    fn write_columns(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        out.extend(TYPES.as_bytes());
        for field in &self.aux {
            field.check()?;
            out.push(b'\t');
            out.extend(field.type_name().into_bytes());
        }
        out.push(b'\n');
        out.extend(NAMES.as_bytes());
        let mut seen = HashSet::new();
        for field in &self.aux {
            if field.name.is_empty() || !seen.insert(&field.name) {
                let found = format!("the auxiliary field {:?} (empty or twice)", field.name);
                return Err(Fault::new(0, found, "distinct names"));
            }
            out.push(b'\t');
            out.extend(cell(&field.name)?);
        }
        out.push(b'\n');
        Ok(())
    }
}

/// The bytes of a text that has no tabs or line ends.
fn cell(text: &str) -> Result<&[u8], Fault> {
    if text.contains(['\t', '\n']) || text.ends_with('\r') {
        return Err(Fault::new(0, quoted(text.as_bytes()), "text without tabs and line ends"));
    }
    Ok(text.as_bytes())
}
