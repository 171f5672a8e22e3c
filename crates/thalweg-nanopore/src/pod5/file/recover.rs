//! Files without their footer: cut short, or never finished. The tables are found by walking their
//! messages.
//!
//! A table whose own footer is damaged is found in the same way. Every batch that is whole is kept.
//! What is missing at the end is missing: the Signal table comes first in a file, the Reads table
//! last.

use std::ops::Range;

use thalweg_io::arrow_ipc::{Head, Message};
use thalweg_io::control::Control;
use thalweg_io::store::Store;
use thalweg_io::store::many::read;
use thalweg_io::{Error, Result};

use crate::pod5::{
    Container, FIRST_SECTION, IpcBlock, MAGIC, MARKER_BYTES, MOST_HEAD, Schema, Section,
    SectionContent, TableFooter,
};

/// A table that was found.
pub(super) struct FoundTable {
    pub(super) content: SectionContent,
    /// Where its messages are.
    pub(super) range: Range<u64>,
    pub(super) footer: TableFooter,
    /// Whether its last message says that it is the last.
    pub(super) is_whole: bool,
}

/// How many bytes a message's head is first believed to have.
const HEAD_GUESS: u64 = 4096;

/// A table's own footer lies between its last message and the next section.
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
        if control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let Some((table, end)) = table(store, at..store.size(), control)? else { return Ok(found) };
        found.push(table);
        match next_section(store, end, marker)? {
            Some(next) => at = next,
            None => return Ok(found),
        }
    }
}

/// What a container would have said.
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

/// The table whose magic stands at the start of `range`, and where its messages end, in that range.
/// `None` if there is none.
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

/// Where the section after the next marker starts.
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
