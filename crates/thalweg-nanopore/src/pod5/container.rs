//! The file around the tables: signatures, section markers, and the footer with the places of the
//! tables (POD5 specification, "Combined File Layout").
//!
//! ```text
//! signature (8)  marker (16)  { section, zeros to a multiple of 8, marker }*
//! "FOOTER\0\0"  footer (FlatBuffers), zeros to a multiple of 8
//! i64 footer length  marker (16)  signature (8)
//! ```

use std::ops::Range;

use thalweg_io::Fault;

use super::flatbuffer::FlatTable;

/// First and last bytes of the file.
pub const SIGNATURE: [u8; 8] = *b"\x8bPOD\r\n\x1a\n";

/// Size of a section marker: a UUID that is new for each file.
pub(crate) const MARKER_BYTES: usize = 16;

/// Where the first section starts.
pub(crate) const FIRST_SECTION: u64 = (SIGNATURE.len() + MARKER_BYTES) as u64;

/// The bytes directly before the footer.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"FOOTER\0\0";

/// Size of the end of the file: footer length, marker and signature.
pub const TAIL_BYTES: usize = 8 + MARKER_BYTES + SIGNATURE.len();

/// What a section holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionContent {
    /// The Reads table: one row per read.
    Reads,
    /// The Signal table: one row per chunk of signal.
    Signal,
    /// The RunInfo table: one row per run.
    RunInfo,
    /// An index or newer content, with its number in the footer. A reader does not need it.
    Other(i16),
}

impl SectionContent {
    fn of(number: i16) -> Self {
        match number {
            0 => Self::Reads,
            1 => Self::Signal,
            4 => Self::RunInfo,
            other => Self::Other(other),
        }
    }

    /// The content's name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reads => "Reads table",
            Self::Signal => "Signal table",
            Self::RunInfo => "RunInfo table",
            Self::Other(_) => "embedded file",
        }
    }
}

/// A file embedded in the POD5 file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What the section holds.
    pub content: SectionContent,
    /// The section's bytes in the file.
    pub range: Range<u64>,
}

/// The content of the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// A UUID as text, new for each written file.
    pub file_identifier: String,
    /// The software that wrote the file.
    pub software: String,
    /// The version of the library that wrote the file. POD5 has no other version number for the
    /// format as a whole.
    pub version: String,
    /// The tables, in the footer's order.
    pub sections: Vec<Section>,
}

/// Checks the first 24 bytes; returns the section marker.
///
/// # Errors
/// When the signature is not POD5's.
pub fn head(bytes: &[u8]) -> Result<[u8; MARKER_BYTES], Fault> {
    let signature = bytes.get(..SIGNATURE.len()).unwrap_or(bytes);
    if signature != SIGNATURE {
        let found = format!("\"{}\"", signature.escape_ascii());
        return Err(Fault::new(
            0,
            found,
            format!("\"{}\", POD5's signature", SIGNATURE.escape_ascii()),
        ));
    }
    let marker = bytes.get(SIGNATURE.len()..).and_then(|rest| rest.first_chunk());
    marker
        .copied()
        .ok_or_else(|| Fault::new(SIGNATURE.len(), "the end of the file", "a section marker"))
}

/// Checks the last [`TAIL_BYTES`] bytes of a file of `size` bytes; returns the range of the footer
/// without its magic.
///
/// # Errors
/// When these bytes are not the end of a complete file: the file was cut short, or its writer did
/// not finish.
pub fn tail(bytes: &[u8], size: u64, marker: &[u8; MARKER_BYTES]) -> Result<Range<u64>, Fault> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>().filter(|_| bytes.len() == TAIL_BYTES)
    else {
        return Err(Fault::new(
            0,
            format!("{} bytes", bytes.len()),
            format!("{TAIL_BYTES} bytes that end a POD5 file"),
        ));
    };
    let (found, signature) = rest.split_at(MARKER_BYTES);
    if signature != SIGNATURE {
        return Err(Fault::new(
            8 + MARKER_BYTES,
            format!("\"{}\"", signature.escape_ascii()),
            "POD5's closing signature",
        ));
    }
    if found != marker {
        return Err(Fault::new(
            8,
            "another section marker than at the file's start",
            "the same one",
        ));
    }
    let end = size - TAIL_BYTES as u64;
    let length = i64::from_le_bytes(*length);
    let least = FIRST_SECTION + FOOTER_MAGIC.len() as u64;
    let start = u64::try_from(length)
        .ok()
        .filter(|&length| length > 0)
        .and_then(|length| end.checked_sub(length));
    start.filter(|&start| start >= least).map(|start| start..end).ok_or_else(|| {
        Fault::new(
            0,
            format!("a footer of {length} bytes"),
            format!("one within the {size} bytes of the file"),
        )
    })
}

impl Container {
    /// Parses the footer. No section may end after byte `limit` of the file, where the footer's
    /// magic starts.
    ///
    /// # Errors
    /// Offsets that point outside the footer, and sections outside the file.
    pub fn parse(footer: &[u8], limit: u64) -> Result<Self, Fault> {
        let root = FlatTable::root(footer)?;
        let mut sections = Vec::new();
        for entry in root.tables(3)? {
            let entry = entry?;
            let offset = entry.i64(0)?;
            let length = entry.i64(1)?;
            let format = entry.i16(2)?;
            let content = SectionContent::of(entry.i16(3)?);
            let start = u64::try_from(offset).ok().filter(|&start| start >= FIRST_SECTION);
            let end = start
                .zip(u64::try_from(length).ok())
                .and_then(|(start, length)| start.checked_add(length));
            let Some((start, end)) = start.zip(end).filter(|&(_, end)| end <= limit) else {
                let found = format!("a {} of {length} bytes at byte {offset}", content.name());
                return Err(Fault::new(
                    0,
                    found,
                    format!("one between bytes {FIRST_SECTION} and {limit}"),
                ));
            };
            if format != 0 {
                let found = format!("a {} in format {format}", content.name());
                return Err(Fault::new(0, found, "format 0, an Arrow IPC file"));
            }
            sections.push(Section { content, range: start..end });
        }
        Ok(Self {
            file_identifier: root.text(0)?.to_owned(),
            software: root.text(1)?.to_owned(),
            version: root.text(2)?.to_owned(),
            sections,
        })
    }

    /// The sections that are tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Section> {
        let is_table = |content| !matches!(content, SectionContent::Other(_));
        self.sections.iter().filter(move |section| is_table(section.content))
    }

    /// The range of the first section with this content.
    pub fn section(&self, content: SectionContent) -> Option<Range<u64>> {
        self.sections
            .iter()
            .find(|section| section.content == content)
            .map(|section| section.range.clone())
    }
}
