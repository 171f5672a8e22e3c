//! Superblocks: where the root group is, and how the file is laid out (sections II.A and II.C).

use std::sync::Arc;

use super::checksum::verified;
use super::cursor::{Cursor, Widths};
use super::header::{BTREE_K, DRIVER_INFO, Object, SHARED_TABLE};
use super::{NOWHERE, Reader, Result, damaged, foreign};
use crate::superblock::{SIGNATURE, offsets};

/// Enough for the fields of every version.
const MOST_BYTES: u64 = 128;
/// Most indexes of shared messages (`H5O_SHMESG_MAX_NINDEXES`).
const MOST_INDEXES: u8 = 8;

/// What the superblock says.
#[derive(Debug, Clone)]
pub struct Superblock {
    /// Address of the root group's object header.
    pub root: u64,
    /// Offset of address 0 in the file: the size of the user block.
    pub base: u64,
    /// Its version.
    pub version: u8,
    /// Whether the file is marked as open for writing. A writer that was killed leaves the mark.
    pub is_open_for_writing: bool,
    /// The size of the file in bytes, as the superblock has it.
    pub(super) end: u64,
    pub(super) widths: Widths,
    /// Most entries of half a symbol table node.
    pub(crate) leaf_k: u16,
    /// Most children of half a node of the tree over symbol table nodes, and of half a node of the
    /// tree of a dataset's chunks.
    pub(crate) group_k: u16,
    pub(crate) chunk_k: u16,
    /// The indexes of messages that objects share.
    pub shared_messages: Arc<Vec<SharedMessages>>,
    /// The address of its extension's object header; all bits are set if there is none.
    pub extension: u64,
}

/// An index of messages that objects share (section III.H).
#[derive(Debug, Clone, Copy)]
pub struct SharedMessages {
    /// The types of the messages as bits.
    pub types: u16,
    /// The least size of a message in bytes.
    pub least: u32,
    /// The most messages of a list, and the least of a tree.
    pub phases: (u16, u16),
    /// The address of the heap that holds them.
    heap: u64,
}

impl Default for Superblock {
    /// The values that hold where a superblock or its extension says nothing.
    fn default() -> Self {
        Self {
            root: NOWHERE,
            base: 0,
            version: 0,
            is_open_for_writing: false,
            end: 0,
            widths: Widths::default(),
            leaf_k: 4,
            group_k: 16,
            chunk_k: 32,
            shared_messages: Arc::default(),
            extension: NOWHERE,
        }
    }
}

impl Superblock {
    /// The heap of shared messages of this type.
    pub(super) fn shared_heap(&self, kind: u16) -> Option<u64> {
        let bit = 1u16.checked_shl(kind.into()).unwrap_or(0);
        let holds = |index: &&SharedMessages| index.types & bit != 0;
        self.shared_messages.iter().find(holds).map(|index| index.heap)
    }
}

/// Finds the signature, and parses what is behind it into the reader's superblock.
pub(super) async fn parse(reader: &mut Reader<'_>) -> Result<()> {
    let base = signature(reader).await?;
    let mut found = Superblock { base, ..Superblock::default() };
    let bytes = reader.get(base, MOST_BYTES.min(reader.size() - base)).await?;
    let mut cursor = Cursor::new(&bytes, base, found.widths);
    cursor.skip(SIGNATURE.len())?;
    let version = cursor.u8()?;
    found.version = version;
    let (extension, end) = match version {
        0 | 1 => (NOWHERE, old(version, &mut cursor, &mut found)?),
        2 | 3 => modern(version, &mut cursor, &mut found, &bytes)?,
        version => return foreign(format!("version {version} of the superblock")),
    };
    // The base address that is stored is that of the file when it was made. A user block that was
    // put in front of it since moves all addresses.
    found.end = end.saturating_sub(found.base).saturating_add(base);
    found.base = base;
    found.extension = extension;
    drop(bytes);
    reader.superblock = found;
    if extension != NOWHERE {
        extend(reader, extension).await?;
    }
    Ok(())
}

/// The offset of the signature.
async fn signature(reader: &Reader<'_>) -> Result<u64> {
    for at in offsets(reader.size()) {
        if *reader.get(at, SIGNATURE.len() as u64).await? == SIGNATURE {
            return Ok(at);
        }
    }
    damaged(0, "no signature of HDF5", "it at byte 0, 512, 1024, 2048 and so on")
}

/// Parses a superblock of version 0 or 1, and returns the end of the file.
fn old(version: u8, cursor: &mut Cursor<'_>, found: &mut Superblock) -> Result<u64> {
    // Versions of the free space, of the root group's entry, of shared headers.
    cursor.skip(4)?;
    widths(cursor, found)?;
    cursor.skip(1)?;
    found.leaf_k = cursor.u16()?;
    found.group_k = cursor.u16()?;
    cursor.skip(4)?;
    if version == 1 {
        found.chunk_k = cursor.u16()?;
        cursor.skip(2)?;
    }
    let mut rest = Cursor::new(cursor.rest(), cursor.at(), found.widths);
    found.base = rest.address()?;
    rest.address()?;
    let end = rest.address()?;
    if rest.address()? != NOWHERE {
        return foreign("a file of a driver that splits it");
    }
    // The entry of the root group: the offset of its name, the address of its header.
    rest.length()?;
    found.root = rest.address()?;
    Ok(end)
}

/// Parses a superblock of version 2 or 3, and returns the address of its extension, and the end of
/// the file.
fn modern(
    version: u8,
    cursor: &mut Cursor<'_>,
    found: &mut Superblock,
    bytes: &[u8],
) -> Result<(u64, u64)> {
    widths(cursor, found)?;
    let flags = cursor.u8()?;
    found.is_open_for_writing = version == 3 && flags & 0x05 != 0;
    let mut rest = Cursor::new(cursor.rest(), cursor.at(), found.widths);
    let base = rest.address()?;
    let extension = rest.address()?;
    let end = rest.address()?;
    found.root = rest.address()?;
    let len = bytes.len() - rest.rest().len() + 4;
    verified(bytes.get(..len).unwrap_or_default(), found.base)?;
    found.base = base;
    Ok((extension, end))
}

/// Parses the widths of addresses and lengths.
fn widths(cursor: &mut Cursor<'_>, found: &mut Superblock) -> Result<()> {
    let at = cursor.at();
    let address = cursor.u8()?;
    let length = cursor.u8()?;
    let is_known = |width| matches!(width, 2 | 4 | 8);
    if !is_known(address) || !is_known(length) {
        let found = format!("addresses of {address} bytes and lengths of {length}");
        return damaged(at, found, "2, 4 or 8");
    }
    found.widths = Widths { address, length };
    Ok(())
}

/// Parses the superblock's extension.
async fn extend(reader: &mut Reader<'_>, at: u64) -> Result<()> {
    let extension = Object::read(reader, at).await?;
    if extension.find(DRIVER_INFO).is_some() {
        return foreign("a file of a driver that splits it");
    }
    let mut found = reader.superblock.clone();
    if let Some(values) = extension.find(BTREE_K) {
        let mut values = values?;
        values.version(0, "the sizes of trees")?;
        found.chunk_k = values.u16()?;
        found.group_k = values.u16()?;
        found.leaf_k = values.u16()?;
    }
    if let Some(table) = extension.find(SHARED_TABLE) {
        let mut table = table?;
        table.version(0, "the table of shared messages")?;
        let at = table.address()?;
        let count = table.u8()?;
        found.shared_messages = Arc::new(shared_messages(reader, at, count).await?);
    }
    reader.superblock = found;
    Ok(())
}

/// The indexes in the master table of shared messages (section III.H).
async fn shared_messages(reader: &Reader<'_>, at: u64, count: u8) -> Result<Vec<SharedMessages>> {
    if count > MOST_INDEXES {
        return damaged(at, format!("{count} indexes"), format!("at most {MOST_INDEXES}"));
    }
    let entry = 2 + 2 + 4 + 2 + 2 + 2 + 2 * u64::from(reader.superblock.widths.address);
    let bytes = reader.get(at, 4 + u64::from(count) * entry + 4).await?;
    let mut cursor = reader.cursor(verified(&bytes, at)?, at);
    cursor.magic("SMTB")?;
    let mut indexes = Vec::new();
    for _ in 0..count {
        // The version and the kind of the index.
        cursor.skip(2)?;
        let types = cursor.u16()?;
        let least = cursor.u32()?;
        let phases = (cursor.u16()?, cursor.u16()?);
        // The number of messages, and the address of the index.
        cursor.skip(2)?;
        cursor.address()?;
        indexes.push(SharedMessages { types, least, phases, heap: cursor.address()? });
    }
    Ok(indexes)
}
