//! The parts of the file around the three tables: signature, section markers, and the footer with
//! the places of the tables (POD5 specification, "Combined file layout").

use flatbuffers::{FlatBufferBuilder, WIPOffset};

use super::Identity;
use crate::pod5::{FOOTER_MAGIC, SIGNATURE};

/// The version of the POD5 library that writes the same columns. Readers derive the version of the
/// tables from it.
pub(super) const POD5_VERSION: &str = "0.3.49";

/// The kind of a table, with its number in the footer (`ContentType` of the footer's schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableContent {
    Reads = 0,
    Signal = 1,
    RunInfo = 4,
}

/// The place of a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenSection {
    pub(super) content: TableContent,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// Appends the bytes before the first table: signature and section marker.
pub(super) fn push_start(identity: &Identity, out: &mut Vec<u8>) {
    out.extend(SIGNATURE);
    out.extend(identity.section_marker);
}

/// Appends the end of a table that is `len` bytes long: padding and the section marker.
pub(super) fn push_section_end(identity: &Identity, len: u64, out: &mut Vec<u8>) {
    let padding = len.next_multiple_of(8) - len;
    out.resize(out.len() + padding as usize, 0);
    out.extend(identity.section_marker);
}

/// Appends the bytes after the last table: the footer, its length, section marker and signature.
pub(super) fn push_footer(
    identity: &Identity,
    software: &str,
    sections: &[WrittenSection],
    out: &mut Vec<u8>,
) {
    out.extend(FOOTER_MAGIC);
    let footer = footer(identity, software, sections);
    let len = footer.len().next_multiple_of(8);
    out.extend(&footer);
    out.resize(out.len() + len - footer.len(), 0);
    out.extend((len as i64).to_le_bytes());
    out.extend(identity.section_marker);
    out.extend(SIGNATURE);
}

/// The position of field `n` of a FlatBuffers table in its vtable.
const fn slot(n: u16) -> u16 {
    4 + 2 * n
}

/// The FlatBuffers tables `Footer` and `EmbeddedFile` of the footer's schema. The field for the
/// file format is left out, because the only format, Feather version 2, is the default.
fn footer(identity: &Identity, software: &str, sections: &[WrittenSection]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let files: Vec<_> = sections
        .iter()
        .map(|section| {
            let table = builder.start_table();
            builder.push_slot(slot(0), section.offset as i64, 0);
            builder.push_slot(slot(1), section.len as i64, 0);
            builder.push_slot(slot(3), section.content as i16, 0);
            WIPOffset::<()>::new(builder.end_table(table).value())
        })
        .collect();
    let contents = builder.create_vector(&files);
    let identifier = builder.create_string(&identity.file_identifier);
    let software = builder.create_string(software);
    let version = builder.create_string(POD5_VERSION);
    let table = builder.start_table();
    builder.push_slot_always(slot(0), identifier);
    builder.push_slot_always(slot(1), software);
    builder.push_slot_always(slot(2), version);
    builder.push_slot_always(slot(3), contents);
    let footer = builder.end_table(table);
    builder.finish(footer, None);
    builder.finished_data().to_vec()
}
