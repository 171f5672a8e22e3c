//! Recovery of files without a footer, because they were cut short or never finished. The tables
//! are found by walking through their messages.
//!
//! A table with a damaged footer of its own is found in the same way. Every complete batch is kept.
//! Content that is missing at the end of the file stays missing: the Signal table comes first in a
//! file, the Reads table last.

use std::ops::Range;

use thalweg_io::Result;
use thalweg_io::arrow_ipc::{Head, Message};
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::store::many::read;

use crate::pod5::{
    Container, FIRST_SECTION, IpcBlock, MAGIC, MARKER_BYTES, MOST_HEAD, Schema, Section,
    SectionContent, TableFooter,
};

/// A table that was found.
pub(super) struct FoundTable {
    pub(super) content: SectionContent,
    /// The range of the table's messages in the file.
    pub(super) range: Range<u64>,
    pub(super) footer: TableFooter,
    /// Whether the messages end with the end-of-stream marker.
    pub(super) is_whole: bool,
}

/// First guess at the size of a message's head.
const HEAD_GUESS: u64 = 4096;

/// Bytes searched for the next section after the last message of a table. The table's own footer
/// lies between them.
const MOST_FOOTER: u64 = 64 << 20;

/// Bytes searched for a section marker at a time.
const STRIDE: u64 = 1 << 20;

/// Finds the tables of a file.
pub(super) fn tables(
    store: &dyn Store,
    marker: &[u8; MARKER_BYTES],
    control: &Control,
) -> Result<Vec<FoundTable>> {
    let mut found = Vec::new();
    let mut at = FIRST_SECTION;
    loop {
        control.check()?;
        let Some((table, end)) = table(store, at..store.size(), control)? else { return Ok(found) };
        found.push(table);
        match next_section(store, end, marker)? {
            Some(next) => at = next,
            None => return Ok(found),
        }
    }
}

/// The container that a complete file with these tables would have.
pub(super) fn container(found: &[FoundTable]) -> Container {
    let value = |name: &str| {
        let pairs = found.iter().flat_map(|table| &table.footer.schema.metadata);
        pairs
            .clone()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()
    };
    let section =
        |table: &FoundTable| Section { content: table.content, range: table.range.clone() };
    Container {
        file_identifier: value("MINKNOW:file_identifier"),
        software: value("MINKNOW:software"),
        version: value("MINKNOW:pod5_version"),
        sections: found.iter().map(section).collect(),
    }
}

fn content(schema: &Schema) -> SectionContent {
    let has = |name| schema.column(name).is_some();
    match () {
        () if has("samples") && has("signal") => SectionContent::Signal,
        () if has("adc_max") => SectionContent::RunInfo,
        () if has("read_number") => SectionContent::Reads,
        () => SectionContent::Other(0),
    }
}

/// The table that starts with its magic at the start of `range`, and the offset in the file where
/// its messages end. `None` if `range` does not start with a table.
pub(super) fn table(
    store: &dyn Store,
    range: Range<u64>,
    control: &Control,
) -> Result<Option<(FoundTable, u64)>> {
    let Range { start, end: size } = range;
    let first = start + MAGIC.len() as u64 + 2;
    if first > size || !read(store, &(start..first))?.starts_with(MAGIC) {
        return Ok(None);
    }
    let mut schema = None;
    let mut dictionaries = Vec::new();
    let mut batches = Vec::new();
    let mut at = first;
    let mut is_whole = false;
    while !control.is_cancelled() {
        let guess = read(store, &(at..size.min(at + HEAD_GUESS)))?;
        let Some(len) =
            Message::head_len(&guess).filter(|&len| len as u64 <= size - at && len <= MOST_HEAD)
        else {
            is_whole = guess.starts_with(&Message::END);
            break;
        };
        let head = if len <= guess.len() {
            guess[..len].to_vec()
        } else {
            read(store, &(at..at + len as u64))?
        };
        match Message::parse(&head) {
            Ok(Message::Schema(found)) if schema.is_none() => {
                let Ok(found) = Schema::parse(found) else { break };
                schema = Some(found);
                at += len as u64;
            }
            Ok(Message::Batch { body, is_dictionary }) if body <= size - at - len as u64 => {
                let block = IpcBlock { offset: at - start, head: len as u32, body };
                if Head::parse(&head, body).is_err() {
                    break;
                }
                if is_dictionary {
                    dictionaries.push(block);
                } else {
                    batches.push(block);
                }
                at += len as u64 + body;
            }
            _ => break,
        }
    }
    let found = schema.map(|schema| {
        let footer = TableFooter { schema, dictionaries, batches };
        (FoundTable { content: content(&footer.schema), range: start..at, footer, is_whole }, at)
    });
    Ok(found)
}

/// The start of the section after the next marker.
fn next_section(store: &dyn Store, from: u64, marker: &[u8; MARKER_BYTES]) -> Result<Option<u64>> {
    let mut at = from;
    let end = store.size().min(from + MOST_FOOTER);
    while at + MARKER_BYTES as u64 <= end {
        let bytes = read(store, &(at..end.min(at + STRIDE + MARKER_BYTES as u64)))?;
        if let Some(i) = bytes.windows(MARKER_BYTES).position(|window| window == marker) {
            return Ok(Some(at + (i + MARKER_BYTES) as u64));
        }
        at += STRIDE;
    }
    Ok(None)
}
