//! Superblocks and object headers.

use super::checksum::verified;
use super::cursor::Cursor;
use super::{ByteSource, NOWHERE, Reader, Result, damaged, foreign};

/// The signature of an HDF5 file. This module only reads files that start with it.
const MAGIC: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// The most bytes of all parts of an object header together.
const MOST_HEADER: usize = 4 << 20;

/// Message types of section IV.A.2 of the specification.
pub(super) const DATASPACE: u16 = 0x01;
pub(super) const LINK_INFO: u16 = 0x02;
pub(super) const DATATYPE: u16 = 0x03;
pub(super) const OLD_FILL: u16 = 0x04;
pub(super) const FILL: u16 = 0x05;
pub(super) const LINK: u16 = 0x06;
pub(super) const EXTERNAL_FILES: u16 = 0x07;
pub(super) const LAYOUT: u16 = 0x08;
pub(super) const PIPELINE: u16 = 0x0b;
pub(super) const ATTRIBUTE: u16 = 0x0c;
const SHARED_TABLE: u16 = 0x0f;
const CONTINUATION: u16 = 0x10;
pub(super) const SYMBOL_TABLE: u16 = 0x11;
pub(super) const ATTRIBUTE_INFO: u16 = 0x15;
/// The last type that the specification has.
const LAST: u16 = 0x17;

/// The flag of a message that is stored elsewhere.
const SHARED: u8 = 0x02;
/// The flag of a message that a reader must not skip, even if its type is unknown.
const MUST_KNOW: u8 = 0x80;

/// An open file.
#[derive(Debug, Clone, Copy)]
pub struct MetadataFile {
    /// Address of the root group.
    pub root: u64,
    /// Bytes of a symbol table node.
    pub(super) leaf_bytes: u64,
    /// Bytes of a node of the B-tree over symbol table nodes.
    pub(super) node_bytes: u64,
}

impl MetadataFile {
    /// Parses the superblock.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub fn open<S: ByteSource + ?Sized>(reader: &Reader<'_, S>) -> Result<Self> {
        // 96 bytes are enough for the fields that are read of every version.
        let bytes = reader.get(0, 96.min(reader.size()))?;
        let mut cursor = Cursor::new(&bytes, 0);
        if cursor.take(MAGIC.len())? != MAGIC {
            return foreign("a file that does not start with HDF5's signature");
        }
        let (root, base, end, leaf, internal) = match cursor.u8()? {
            version @ 0..=1 => {
                cursor.skip(4)?;
                sizes(&mut cursor)?;
                cursor.skip(1)?;
                let leaf = cursor.u16()?;
                let internal = cursor.u16()?;
                cursor.skip(if version == 0 { 4 } else { 8 })?;
                let (base, _, end, driver) =
                    (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?);
                if driver != NOWHERE {
                    return foreign("a file of a special driver");
                }
                let _name = cursor.u64()?;
                (cursor.u64()?, base, end, leaf, internal)
            }
            version @ 2..=3 => {
                sizes(&mut cursor)?;
                let flags = cursor.u8()?;
                if version == 3 && flags & 0x05 != 0 {
                    return foreign("a file that is being written");
                }
                let (base, extension, end, root) =
                    (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?);
                verified(bytes.get(..48).unwrap_or_default(), 0)?;
                if extension != NOWHERE {
                    let extension = Object::read(reader, extension)?;
                    if extension.find(SHARED_TABLE).is_some() {
                        return foreign("messages that objects share");
                    }
                }
                // The defaults: files of these versions need not have symbol tables.
                (root, base, end, 4, 16)
            }
            version => return foreign(format!("version {version} of the superblock")),
        };
        if base != 0 {
            return foreign("a file after a block of its user's");
        }
        if end > reader.size() {
            return damaged(
                0,
                format!("a file of {} bytes", reader.size()),
                format!("{end} bytes, as its header says"),
            );
        }
        let leaf = u64::from(leaf);
        let internal = u64::from(internal);
        Ok(Self { root, leaf_bytes: 8 + 2 * leaf * 40, node_bytes: 24 + 2 * internal * 16 + 8 })
    }
}

/// Checks the sizes of offsets and lengths, which must be eight bytes.
fn sizes(cursor: &mut Cursor<'_>) -> Result<()> {
    let offsets = cursor.u8()?;
    let lengths = cursor.u8()?;
    if (offsets, lengths) == (8, 8) {
        return Ok(());
    }
    foreign(format!("addresses of {offsets} bytes and lengths of {lengths}"))
}

/// The header of an object, which is a group or a dataset.
#[derive(Debug, Default)]
pub struct Object {
    /// The bytes of all parts, one after the other.
    bytes: Vec<u8>,
    messages: Vec<HeaderMessage>,
}

/// A message of an object header.
#[derive(Debug)]
struct HeaderMessage {
    kind: u16,
    flags: u8,
    /// The address of its body in the file.
    at: u64,
    /// Where its body starts in the header's bytes.
    start: usize,
    len: usize,
}

/// The address and the length of a part of an object header.
type ObjectPart = (u64, u64);

impl Object {
    /// Reads the header at an address.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub fn read<S: ByteSource + ?Sized>(reader: &Reader<'_, S>, at: u64) -> Result<Self> {
        let mut object = Self::default();
        let prefix = reader.get(at, 16)?;
        let mut cursor = Cursor::new(&prefix, at);
        let mut parts = Vec::new();
        if prefix.starts_with(b"OHDR") {
            cursor.magic("OHDR")?;
            cursor.version(2, "an object header")?;
            let flags = cursor.u8()?;
            let times = if flags & 0x20 == 0 { 0 } else { 16 };
            let phases = if flags & 0x10 == 0 { 0 } else { 4 };
            let width = 1 << (flags & 3);
            let before = 6 + times + phases + width;
            let size = {
                let prefix = reader.get(at, before)?;
                let mut cursor = Cursor::new(&prefix, at);
                cursor.skip((before - width) as usize)?;
                cursor.uint(width as usize)?
            };
            let Some(whole) =
                size.checked_add(before + 4).filter(|&whole| whole <= MOST_HEADER as u64)
            else {
                return damaged(
                    at,
                    format!("an object header of {size} bytes"),
                    format!("at most {MOST_HEADER}"),
                );
            };
            let start = object.append(reader, at, whole)?;
            object.check_sum(at, start)?;
            object.modern(at + before, start + before as usize, flags & 4 != 0, &mut parts)?;
            while let Some((at, len)) = parts.pop() {
                let start = object.append(reader, at, len)?;
                Cursor::new(object.bytes.get(start..).unwrap_or_default(), at).magic("OCHK")?;
                object.check_sum(at, start)?;
                object.modern(at + 4, start + 4, flags & 4 != 0, &mut parts)?;
            }
        } else {
            cursor.version(1, "an object header")?;
            cursor.skip(7)?;
            let size = cursor.u32()?;
            parts.push((at + 16, u64::from(size)));
            while let Some((at, len)) = parts.pop() {
                let start = object.append(reader, at, len)?;
                object.old(at, start, &mut parts)?;
            }
        }
        Ok(object)
    }

    /// Appends a part to the header's bytes, and returns where it starts in them.
    fn append<S: ByteSource + ?Sized>(
        &mut self,
        reader: &Reader<'_, S>,
        at: u64,
        len: u64,
    ) -> Result<usize> {
        let start = self.bytes.len();
        if len > (MOST_HEADER - start) as u64 {
            return damaged(
                at,
                format!("a part of an object header of {len} bytes"),
                format!("at most {MOST_HEADER}"),
            );
        }
        self.bytes.extend_from_slice(&reader.get(at, len)?);
        // A part without bytes could lead to itself without end.
        if len == 0 && start > 0 {
            return damaged(at, "an empty part of an object header", "messages");
        }
        Ok(start)
    }

    /// Verifies the part from `start` on, and removes its checksum.
    fn check_sum(&mut self, at: u64, start: usize) -> Result<()> {
        let data = verified(self.bytes.get(start..).unwrap_or_default(), at)?.len();
        self.bytes.truncate(start + data);
        Ok(())
    }

    /// Parses the messages of a version 1 part.
    fn old(&mut self, at: u64, start: usize, parts: &mut Vec<ObjectPart>) -> Result<()> {
        let mut cursor = Cursor::new(self.bytes.get(start..).unwrap_or_default(), at);
        while !cursor.rest().is_empty() {
            let (kind, len, flags) = (cursor.u16()?, cursor.u16()?, cursor.u8()?);
            cursor.skip(3)?;
            let here = cursor.at();
            if !len.is_multiple_of(8) {
                return damaged(here, format!("a message of {len} bytes"), "a multiple of 8");
            }
            let body = cursor.take(usize::from(len))?;
            let message = HeaderMessage {
                kind,
                flags,
                at: here,
                start: start + (here - at) as usize,
                len: usize::from(len),
            };
            note(&mut self.messages, message, body, parts)?;
        }
        Ok(())
    }

    /// Parses the messages of a version 2 part. The first is at `start` of the header's bytes, and
    /// at `at` of the file.
    fn modern(
        &mut self,
        at: u64,
        start: usize,
        tracked: bool,
        parts: &mut Vec<ObjectPart>,
    ) -> Result<()> {
        let least = if tracked { 6 } else { 4 };
        let mut cursor = Cursor::new(self.bytes.get(start..).unwrap_or_default(), at);
        // Bytes that are too few for a message are a gap.
        while cursor.rest().len() >= least {
            let (kind, len, flags) = (cursor.u8()?, cursor.u16()?, cursor.u8()?);
            cursor.skip(least - 4)?;
            let here = cursor.at();
            let body = cursor.take(usize::from(len))?;
            let message = HeaderMessage {
                kind: u16::from(kind),
                flags,
                at: here,
                start: start + (here - at) as usize,
                len: usize::from(len),
            };
            note(&mut self.messages, message, body, parts)?;
        }
        Ok(())
    }

    /// The bodies of all messages of a kind.
    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = Result<Cursor<'_>>> {
        self.messages.iter().filter(move |message| message.kind == kind).map(|message| {
            if message.flags & SHARED != 0 {
                return foreign("messages that objects share");
            }
            let body =
                self.bytes.get(message.start..message.start + message.len).unwrap_or_default();
            Ok(Cursor::new(body, message.at))
        })
    }

    /// The body of the first message of a kind.
    pub(super) fn find(&self, kind: u16) -> Option<Result<Cursor<'_>>> {
        self.all(kind).next()
    }
}

/// Adds a message to `messages`, or the part that it leads to to `parts`.
fn note(
    messages: &mut Vec<HeaderMessage>,
    message: HeaderMessage,
    body: &[u8],
    parts: &mut Vec<ObjectPart>,
) -> Result<()> {
    match message.kind {
        CONTINUATION => {
            let mut cursor = Cursor::new(body, message.at);
            parts.push((cursor.u64()?, cursor.u64()?));
        }
        0 => {}
        kind if kind > LAST && message.flags & MUST_KNOW != 0 => {
            return foreign(format!("messages of type {kind}"));
        }
        _ => messages.push(message),
    }
    Ok(())
}
