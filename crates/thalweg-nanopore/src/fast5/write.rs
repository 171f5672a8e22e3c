//! Writes reads to a multi-read file with the layout of ont_fast5_api.

use std::path::Path;
use std::sync::Arc;

use thalweg_codec::vbz;
use thalweg_hdf5::libhdf5::{Enumeration, Hdf5Writer, NewGroup, StoredNumber, StoredSignal};
use thalweg_io::{Error, InFile, Result};

use super::encode::{Compression, EncodedRead};
use crate::pod5::fields::{CONTEXT_TAGS, END_REASONS};
use crate::record::{AuxField, AuxType, AuxValue, Header, Record, Scalar};

/// An attribute of the read's own group, where ONT's readers expect it. A field of this name is
/// stored there, too.
const PORE_TYPE: &str = "pore_type";

/// Attributes of the file.
const OF_FILE: [&str; 2] = ["file_type", "file_version"];

/// The type and version attributes of a multi-read file, unless the source has its own.
const FILE_TYPE: &str = "multi-read";
const FILE_VERSION: &str = "2.3";

/// The end reasons by their codes in FAST5. ONT's readers use only the code. POD5 has all but one
/// of them. Those after the seventh are newer than FAST5 and have the codes that pod5's converter
/// uses.
fn end_reasons() -> Vec<String> {
    let (unknown, others) = END_REASONS.split_at(1);
    [unknown, &["partial"], others].concat().into_iter().map(String::from).collect()
}

/// The number of HDF5's deflate filter.
const DEFLATE: i32 = 1;

/// The place of an auxiliary field.
#[derive(Debug)]
struct AuxPlace {
    of_channel: bool,
    name: String,
    kind: AuxKind,
}

#[derive(Debug)]
enum AuxKind {
    Number(StoredNumber),
    Text,
    /// An enumeration, with the new code of each code of the header.
    Enum(Enumeration, Vec<u8>),
    Lost,
}

/// The labels of an enumeration by their codes in FAST5, and the new codes of the field's codes.
fn labels(field: &AuxField) -> (Vec<String>, Vec<u8>) {
    let own = &field.labels;
    let mut labels = own.clone();
    let known = end_reasons();
    if field.name == "end_reason" && !known.starts_with(own) {
        let others = own.iter().filter(|label| !known.contains(label)).cloned();
        labels = known.iter().cloned().chain(others).collect();
        labels.truncate(usize::from(u8::MAX));
    }
    let code = |label| {
        labels.iter().position(|known| known == label).and_then(|code| u8::try_from(code).ok())
    };
    let codes = own.iter().map(|label| code(label).unwrap_or(u8::MAX)).collect();
    (labels, codes)
}

/// Descriptions of what FAST5 cannot hold of a header.
pub fn lost(header: &Header) -> Vec<String> {
    let arrays = header.aux.iter().filter(|field| kind_of(field).is_none());
    let arrays = arrays
        .map(|field| format!("the auxiliary field {} of type {}", field.name, field.type_name()));
    let replaced =
        OF_FILE.into_iter().zip([FILE_TYPE, FILE_VERSION]).flat_map(|(name, otherwise)| {
            let written = of_file(header, name).unwrap_or(otherwise);
            (0..header.read_groups).filter_map(move |group| {
                let own = header.attribute(name, group).filter(|own| *own != written)?;
                Some(format!(
                    "the attribute {name} of read group {group} ({own}): the new file has its own, \
                 {written}"
                ))
            })
        });
    arrays.chain(replaced).collect()
}

/// The header's attribute of the file, if the header is that of a multi-read file. A single-read
/// file has another version and no type, so its version is not copied.
fn of_file<'a>(header: &'a Header, name: &str) -> Option<&'a str> {
    (header.attribute(OF_FILE[0], 0) == Some(FILE_TYPE))
        .then(|| header.attribute(name, 0))
        .flatten()
}

/// Whether FAST5 can hold a field.
pub fn holds(field: &AuxField) -> bool {
    kind_of(field).is_some()
}

/// The kind of a field in FAST5; `None` if FAST5 cannot hold it. Enumerations are refined later.
fn kind_of(field: &AuxField) -> Option<AuxKind> {
    Some(match field.kind {
        AuxType::Array(Scalar::Char) | AuxType::Scalar(Scalar::Char) => AuxKind::Text,
        AuxType::Array(_) => return None,
        AuxType::Scalar(scalar) => AuxKind::Number(match scalar {
            Scalar::Int8 => StoredNumber::I8,
            Scalar::Int16 => StoredNumber::I16,
            Scalar::Int32 => StoredNumber::I32,
            Scalar::Int64 => StoredNumber::I64,
            Scalar::Uint8 | Scalar::Enum | Scalar::Char => StoredNumber::U8,
            Scalar::Uint16 => StoredNumber::U16,
            Scalar::Uint32 => StoredNumber::U32,
            Scalar::Uint64 => StoredNumber::U64,
            Scalar::Float => StoredNumber::F32,
            Scalar::Double => StoredNumber::F64,
        }),
    })
}

/// A multi-read file that is written under a temporary path.
#[derive(Debug)]
pub struct FileWriter {
    file: Hdf5Writer,
    name: Arc<str>,
    header: Header,
    places: Vec<AuxPlace>,
    compression: Compression,
    /// `context_tags` and `tracking_id` of each read group, once it has a read.
    shared: Vec<Option<[NewGroup; 2]>>,
}

impl FileWriter {
    /// Starts a file of reads that `header` describes; errors are about `name`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(
        path: &Path,
        name: &Arc<str>,
        header: &Header,
        compression: Compression,
    ) -> Result<Self> {
        let file = Hdf5Writer::create(path, name)?;
        for (attribute, otherwise) in OF_FILE.into_iter().zip([FILE_TYPE, FILE_VERSION]) {
            file.text(None, attribute, of_file(header, attribute).unwrap_or(otherwise))?;
        }
        let place = |field: &AuxField| -> Result<AuxPlace> {
            let kind = match kind_of(field) {
                Some(_) if field.kind == AuxType::Scalar(Scalar::Enum) => {
                    let (labels, codes) = labels(field);
                    AuxKind::Enum(file.enumeration(&labels)?, codes)
                }
                kind => kind.unwrap_or(AuxKind::Lost),
            };
            Ok(match field.name.strip_prefix("channel_id/") {
                Some(name) => AuxPlace { of_channel: true, name: name.into(), kind },
                None => AuxPlace {
                    of_channel: field.name == "channel_number",
                    name: field.name.clone(),
                    kind,
                },
            })
        };
        let places = header.aux.iter().map(place).collect::<Result<_>>()?;
        let shared = (0..header.read_groups).map(|_| None).collect();
        Ok(Self { file, name: name.clone(), header: header.clone(), places, compression, shared })
    }

    /// Appends a read.
    ///
    /// # Errors
    /// [`Error::Io`], for example on a full disk, and for an id that was written before.
    pub fn push(&mut self, read: &EncodedRead) -> Result<()> {
        let Self { file, header, .. } = self;
        let group = read.read_group;
        let node = file.group(None, &format!("read_{}", read.read_id))?;
        if let Some(run) = header.attribute("run_id", group) {
            file.text(Some(&node), "run_id", run)?;
        }
        let raw = file.group(Some(&node), "Raw")?;
        let channel = file.group(Some(&node), "channel_id")?;
        for (name, value) in
            ["digitisation", "offset", "range", "sampling_rate"].into_iter().zip(read.channel)
        {
            if !value.is_nan() {
                file.number(Some(&channel), name, StoredNumber::F64, &value.to_le_bytes())?;
            }
        }
        file.text(Some(&raw), "read_id", &read.read_id)?;
        let pore_type = self.auxiliary(read, &raw, &channel)?;
        let Self { file, header, .. } = self;
        if let Some(pore_type) = pore_type.as_deref().or(header.attribute(PORE_TYPE, group)) {
            file.text(Some(&node), PORE_TYPE, pore_type)?;
        }
        let vbz;
        let gzip;
        let filter: Option<(i32, &[u32])> = match self.compression {
            Compression::None => None,
            Compression::Gzip(level) => {
                gzip = [level.unsigned_abs()];
                Some((DEFLATE, &gzip))
            }
            Compression::Vbz(level) => {
                vbz = vbz::VbzParams { level: level.unsigned_abs(), ..vbz::VbzParams::SIGNAL }
                    .values();
                Some((vbz::FILTER, &vbz))
            }
        };
        file.signal(&raw, "Signal", StoredSignal { len: read.len, filter, chunk: &read.chunk })?;
        self.share(group, &node)
    }

    /// Writes a read's own fields. Returns the type of its pore, which is stored elsewhere.
    fn auxiliary(
        &self,
        read: &EncodedRead,
        raw: &NewGroup,
        channel: &NewGroup,
    ) -> Result<Option<String>> {
        let file = &self.file;
        let record = Record {
            read_id: &read.read_id,
            read_group: read.read_group,
            digitisation: 0.0,
            offset: 0.0,
            range: 0.0,
            sampling_rate: 0.0,
            signal: &[],
            aux: &read.aux,
        };
        let mut has_duration = false;
        let mut pore_type = None;
        for (place, value) in self.places.iter().zip(record.aux_values(&self.header)) {
            let (_, value) =
                value.map_err(|fault| fault.in_file(&self.name, 0, "auxiliary fields"))?;
            let at = if place.of_channel { channel } else { raw };
            // ONT's readers require numbers such as median_before, and NaN marks a missing one
            // that one is missing.
            let value = match (&place.kind, value) {
                (AuxKind::Number(StoredNumber::F32), AuxValue::Missing) => {
                    AuxValue::Float(f32::NAN)
                }
                (AuxKind::Number(StoredNumber::F64), AuxValue::Missing) => {
                    AuxValue::Double(f64::NAN)
                }
                (_, AuxValue::Missing) => continue,
                (_, value) => value,
            };
            has_duration |= place.name == "duration" && !place.of_channel;
            match (&place.kind, value) {
                (AuxKind::Text, AuxValue::String(bytes)) => {
                    // What is not text is a loss, and left out.
                    let Ok(text) = std::str::from_utf8(bytes) else { continue };
                    file.text(Some(at), &place.name, text)?;
                    if place.name == PORE_TYPE {
                        pore_type = Some(text.to_owned());
                    }
                }
                (AuxKind::Text, AuxValue::Char(byte)) => {
                    file.text(Some(at), &place.name, &char::from(byte).to_string())?;
                }
                (AuxKind::Enum(kind, codes), AuxValue::Enum(code)) => {
                    // So is a code without a label.
                    let Some(&code) = codes.get(usize::from(code)) else { continue };
                    file.code(at, &place.name, kind, code)?;
                }
                (AuxKind::Number(kind), value) => {
                    file.number(Some(at), &place.name, *kind, &bytes_of(value))?;
                }
                _ => {}
            }
        }
        if !has_duration {
            // ONT's readers expect 32 bits. A chunk cannot hold more samples than that.
            let duration = u32::try_from(read.len).unwrap_or(u32::MAX);
            file.number(Some(raw), "duration", StoredNumber::U32, &duration.to_le_bytes())?;
        }
        Ok(pore_type)
    }

    /// Gives a read its group's attributes: the first read of a group gets them, later ones a link.
    fn share(&mut self, group: u32, node: &NewGroup) -> Result<()> {
        const NAMES: [&str; 2] = ["context_tags", "tracking_id"];
        let Self { file, header, shared, .. } = self;
        let Some(slot) = shared.get_mut(group as usize) else {
            return Err(Error::Usage(
                format!("{}: there is no read group {group}", self.name).into(),
            ));
        };
        if let Some(groups) = slot {
            return NAMES
                .iter()
                .zip(groups)
                .try_for_each(|(name, group)| file.link(group, node, name));
        }
        let groups = [file.group(Some(node), NAMES[0])?, file.group(Some(node), NAMES[1])?];
        for attribute in &header.attributes {
            let Some(Some(text)) = attribute.values.get(group as usize) else { continue };
            let (part, name) = place_of(&attribute.name);
            match part {
                WritePart::File | WritePart::Read => {}
                WritePart::Context => file.text(Some(&groups[0]), name, text)?,
                WritePart::Tracking => file.text(Some(&groups[1]), name, text)?,
            }
        }
        *slot = Some(groups);
        Ok(())
    }

    /// Writes the data in memory, and closes the file.
    ///
    /// # Errors
    /// [`Error::Io`], for example on a full disk.
    pub fn finish(self) -> Result<()> {
        drop(self.shared);
        drop(self.places);
        self.file.finish()
    }
}

enum WritePart {
    File,
    Read,
    Context,
    Tracking,
}

/// The group that an attribute of a read group goes to, and its name there.
fn place_of(name: &str) -> (WritePart, &str) {
    match name.split_once('/') {
        Some(("context_tags", own)) => (WritePart::Context, own),
        Some(("tracking_id", own)) => (WritePart::Tracking, own),
        _ if OF_FILE.contains(&name) => (WritePart::File, name),
        _ if name == PORE_TYPE => (WritePart::Read, name),
        _ if CONTEXT_TAGS.contains(&name) => (WritePart::Context, name),
        _ => (WritePart::Tracking, name),
    }
}

fn bytes_of(value: AuxValue<'_>) -> Vec<u8> {
    match value {
        AuxValue::Int8(v) => v.to_le_bytes().to_vec(),
        AuxValue::Int16(v) => v.to_le_bytes().to_vec(),
        AuxValue::Int32(v) => v.to_le_bytes().to_vec(),
        AuxValue::Int64(v) => v.to_le_bytes().to_vec(),
        AuxValue::Uint8(v) | AuxValue::Char(v) | AuxValue::Enum(v) => vec![v],
        AuxValue::Uint16(v) => v.to_le_bytes().to_vec(),
        AuxValue::Uint32(v) => v.to_le_bytes().to_vec(),
        AuxValue::Uint64(v) => v.to_le_bytes().to_vec(),
        AuxValue::Float(v) => v.to_le_bytes().to_vec(),
        AuxValue::Double(v) => v.to_le_bytes().to_vec(),
        AuxValue::Missing | AuxValue::String(_) | AuxValue::Array(_) => Vec::new(),
    }
}
