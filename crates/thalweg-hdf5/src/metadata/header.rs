//! Object headers and their messages (sections IV.A.1 and IV.A.2).

use std::borrow::Cow;

use super::checksum::verified;
use super::cursor::{Cursor, Widths};
use super::datatype::TypeMessage;
use super::heap::Fractal;
use super::{Reader, Result, damaged, foreign};

/// The most bytes of all parts of an object header together.
const MOST_HEADER: usize = 4 << 20;

/// Bytes that are asked for at first. They hold the prefix of every version, and often the rest.
const FIRST_BYTES: u64 = 512;

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
pub(super) const SHARED_TABLE: u16 = 0x0f;
const CONTINUATION: u16 = 0x10;
pub(super) const SYMBOL_TABLE: u16 = 0x11;
pub(super) const BTREE_K: u16 = 0x13;
pub(super) const DRIVER_INFO: u16 = 0x14;
pub(super) const ATTRIBUTE_INFO: u16 = 0x15;
/// The last type that the specification has.
const LAST: u16 = 0x17;

/// The flag of a message that is stored elsewhere.
pub(super) const SHARED: u8 = 0x02;
/// The flag of a message that a reader must not skip, even if its type is unknown.
const MUST_KNOW: u8 = 0x80;

/// The header of an object: a group, a dataset or a committed type.
#[derive(Debug, Default)]
pub struct Object {
    /// Its address.
    pub address: u64,
    /// The flags of a version 2 header (section IV.A.1.b).
    pub(super) flags: Option<u8>,
    /// From how many attributes on they are in dense storage, and below how many they are not any
    /// more, if the header says so.
    pub(super) attribute_phases: Option<(u16, u16)>,
    /// The bytes of all parts, one after the other.
    bytes: Vec<u8>,
    messages: Vec<HeaderMessage>,
    widths: Widths,
}

/// A message of an object header.
#[derive(Debug)]
struct HeaderMessage {
    kind: u16,
    flags: u8,
    /// Its number in the order of creation, if the header keeps that.
    order: Option<u16>,
    /// The address of its body in the file.
    at: u64,
    /// Where its body starts in the header's bytes.
    start: usize,
    len: usize,
}

/// The body of a message, which may be stored elsewhere.
#[derive(Debug)]
pub(super) struct Body<'a> {
    bytes: Cow<'a, [u8]>,
    at: u64,
    widths: Widths,
    /// Its number in the order of creation, if the header keeps that.
    pub(super) order: Option<u16>,
    /// The address of the object that holds a shared message.
    holder: Option<u64>,
}

impl Body<'_> {
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor::new(&self.bytes, self.at, self.widths)
    }

    /// The message of a type.
    pub(super) fn type_message(&self) -> TypeMessage {
        TypeMessage { bytes: self.bytes.to_vec(), committed: self.holder }
    }
}

/// The address and the length of a part of an object header.
type ObjectPart = (u64, u64);

impl Object {
    /// Reads the header at an address.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub async fn read(reader: &Reader<'_>, at: u64) -> Result<Self> {
        reader.check(at, 16)?;
        let mut head = reader.get_up_to(&[at], FIRST_BYTES).await?;
        let head = head.pop().unwrap_or_default();
        let mut object =
            Self { address: at, widths: reader.superblock().widths, ..Self::default() };
        let mut parts = Vec::new();
        if head.starts_with(b"OHDR") {
            let mut cursor = reader.cursor(&head, at);
            cursor.magic("OHDR")?;
            cursor.version(2, "an object header")?;
            let flags = cursor.u8()?;
            object.flags = Some(flags);
            cursor.skip(if flags & 0x20 == 0 { 0 } else { 16 })?;
            if flags & 0x10 != 0 {
                object.attribute_phases = Some((cursor.u16()?, cursor.u16()?));
            }
            let size = cursor.uint(1 << (flags & 3))?;
            let before = cursor.at() - at;
            let Some(whole) =
                size.checked_add(before + 4).filter(|&whole| whole <= MOST_HEADER as u64)
            else {
                return damaged(
                    at,
                    format!("an object header of {size} bytes"),
                    format!("at most {MOST_HEADER}"),
                );
            };
            let start = object.append(reader, at, whole, &head).await?;
            object.check_sum(at, start)?;
            let is_tracked = flags & 4 != 0;
            object.modern(at + before, start + before as usize, is_tracked, &mut parts)?;
            // In the order in which they are named: of two messages of a kind, the first counts.
            let mut next = 0;
            while let Some(&(at, len)) = parts.get(next) {
                next += 1;
                let start = object.append(reader, at, len, &[]).await?;
                object.cursor(start, at).magic("OCHK")?;
                object.check_sum(at, start)?;
                object.modern(at + 4, start + 4, is_tracked, &mut parts)?;
            }
        } else {
            let mut cursor = reader.cursor(&head, at);
            cursor.version(1, "an object header")?;
            cursor.skip(7)?;
            let size = cursor.u32()?;
            // Four bytes of padding are before the messages.
            let mut part = (at + 16, u64::from(size));
            let mut known = head.get(16..).unwrap_or_default();
            let mut next = 0;
            loop {
                let (at, len) = part;
                let start = object.append(reader, at, len, known).await?;
                object.old(at, start, &mut parts)?;
                let Some(&named) = parts.get(next) else { break };
                next += 1;
                (part, known) = (named, &[]);
            }
        }
        Ok(object)
    }

    /// Appends a part to the header's bytes, and returns where it starts in them. `known` holds the
    /// bytes at the part's address, as far as they are known.
    async fn append(
        &mut self,
        reader: &Reader<'_>,
        at: u64,
        len: u64,
        known: &[u8],
    ) -> Result<usize> {
        let start = self.bytes.len();
        if len > (MOST_HEADER - start) as u64 {
            return damaged(
                at,
                format!("a part of an object header of {len} bytes"),
                format!("at most {MOST_HEADER}"),
            );
        }
        match known.get(..len as usize) {
            Some(bytes) => self.bytes.extend_from_slice(bytes),
            None => self.bytes.extend_from_slice(&reader.get(at, len).await?),
        }
        // A part without bytes could lead to itself without end.
        if len == 0 && start > 0 {
            return damaged(at, "an empty part of an object header", "messages");
        }
        Ok(start)
    }

    /// A cursor at `start` of the header's bytes, which is at `at` of the file.
    fn cursor(&self, start: usize, at: u64) -> Cursor<'_> {
        Cursor::new(self.bytes.get(start..).unwrap_or_default(), at, self.widths)
    }

    /// Verifies the part from `start` on, and removes its checksum.
    fn check_sum(&mut self, at: u64, start: usize) -> Result<()> {
        let data = verified(self.bytes.get(start..).unwrap_or_default(), at)?.len();
        self.bytes.truncate(start + data);
        Ok(())
    }

    /// Parses the messages of a version 1 part.
    fn old(&mut self, at: u64, start: usize, parts: &mut Vec<ObjectPart>) -> Result<()> {
        let mut messages = Vec::new();
        let mut cursor = self.cursor(start, at);
        // Bytes that are too few for a message are a gap.
        while cursor.rest().len() >= 8 {
            let kind = cursor.u16()?;
            let len = cursor.u16()?;
            let flags = cursor.u8()?;
            cursor.skip(3)?;
            let here = cursor.at();
            if !len.is_multiple_of(8) {
                return damaged(here, format!("a message of {len} bytes"), "a multiple of 8");
            }
            let body = cursor.take(usize::from(len))?;
            let message = HeaderMessage {
                kind,
                flags,
                order: None,
                at: here,
                start: start + (here - at) as usize,
                len: usize::from(len),
            };
            note(&mut messages, message, cursor.same(body, here), parts)?;
        }
        self.messages.append(&mut messages);
        Ok(())
    }

    /// Parses the messages of a version 2 part. The first is at `start` of the header's bytes, and
    /// at `at` of the file.
    fn modern(
        &mut self,
        at: u64,
        start: usize,
        is_tracked: bool,
        parts: &mut Vec<ObjectPart>,
    ) -> Result<()> {
        let least = if is_tracked { 6 } else { 4 };
        let mut messages = Vec::new();
        let mut cursor = self.cursor(start, at);
        // Bytes that are too few for a message are a gap.
        while cursor.rest().len() >= least {
            let kind = cursor.u8()?;
            let len = cursor.u16()?;
            let flags = cursor.u8()?;
            let order = if is_tracked { Some(cursor.u16()?) } else { None };
            let here = cursor.at();
            let body = cursor.take(usize::from(len))?;
            let message = HeaderMessage {
                kind: u16::from(kind),
                flags,
                order,
                at: here,
                start: start + (here - at) as usize,
                len: usize::from(len),
            };
            note(&mut messages, message, cursor.same(body, here), parts)?;
        }
        self.messages.append(&mut messages);
        Ok(())
    }

    fn of_kind(&self, kind: u16) -> impl Iterator<Item = &HeaderMessage> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }

    fn body(&self, message: &HeaderMessage) -> Cursor<'_> {
        let body = self.bytes.get(message.start..message.start + message.len);
        Cursor::new(body.unwrap_or_default(), message.at, self.widths)
    }

    /// The body of the first message of a kind. A shared message is refused.
    pub(super) fn find(&self, kind: u16) -> Option<Result<Cursor<'_>>> {
        self.of_kind(kind).next().map(|message| {
            if message.flags & SHARED != 0 {
                return foreign(format!("shared messages of type {kind}"));
            }
            Ok(self.body(message))
        })
    }

    /// Whether there is a message of a kind.
    pub(super) fn has(&self, kind: u16) -> bool {
        self.of_kind(kind).next().is_some()
    }

    /// The body of the first message of a kind, wherever it is stored.
    pub(super) async fn get(&self, reader: &Reader<'_>, kind: u16) -> Result<Option<Body<'_>>> {
        match self.of_kind(kind).next() {
            Some(message) => self.resolved(reader, message).await.map(Some),
            None => Ok(None),
        }
    }

    /// The bodies of all messages of a kind, wherever they are stored.
    pub(super) async fn get_all(&self, reader: &Reader<'_>, kind: u16) -> Result<Vec<Body<'_>>> {
        let mut bodies = Vec::new();
        for message in self.of_kind(kind) {
            bodies.push(self.resolved(reader, message).await?);
        }
        Ok(bodies)
    }

    async fn resolved(&self, reader: &Reader<'_>, message: &HeaderMessage) -> Result<Body<'_>> {
        let cursor = self.body(message);
        let order = message.order;
        if message.flags & SHARED != 0 {
            return Ok(Body { order, ..shared(reader, cursor, message.kind).await? });
        }
        let bytes = Cow::Borrowed(cursor.rest());
        let at = message.at;
        let widths = self.widths;
        Ok(Body { bytes, at, widths, order, holder: None })
    }
}

/// The message of a kind that a shared message stands for (section IV.A.2.a.2).
pub(super) async fn shared(
    reader: &Reader<'_>,
    mut cursor: Cursor<'_>,
    kind: u16,
) -> Result<Body<'static>> {
    let at = cursor.at();
    let version = cursor.u8()?;
    let place = cursor.u8()?;
    match (version, place) {
        // A symbol table's entry: the offset of a name is before the address.
        (1, _) => cursor.skip(6 + usize::from(cursor.widths().length))?,
        (2, _) | (3, 1 | 2) => {}
        (3, place) => return damaged(at, format!("a shared message at place {place}"), "1 or 2"),
        (version, _) => {
            return damaged(at, format!("version {version} of a shared message"), "1 to 3");
        }
    }
    let widths = cursor.widths();
    if (version, place) == (3, 1) {
        let Some(heap) = reader.superblock().shared_heap(kind) else {
            return damaged(at, format!("a shared message of type {kind}"), "a heap for them");
        };
        let heap = Fractal::open(reader, heap).await?;
        let (bytes, at) = heap.object(reader, cursor.take(8)?, at).await?;
        return Ok(Body { bytes: Cow::Owned(bytes), at, widths, order: None, holder: None });
    }
    let address = cursor.address()?;
    let object = Box::pin(Object::read(reader, address)).await?;
    let Some(message) = object.of_kind(kind).next() else {
        return damaged(address, "an object without the shared message", format!("type {kind}"));
    };
    if message.flags & SHARED != 0 {
        return damaged(message.at, "a shared message that is shared again", "the message");
    }
    let bytes = object.body(message).rest().to_vec();
    let bytes = Cow::Owned(bytes);
    let at = message.at;
    Ok(Body { bytes, at, widths, order: None, holder: Some(address) })
}

/// Adds a message to `messages`, or the part that it leads to to `parts`.
fn note(
    messages: &mut Vec<HeaderMessage>,
    message: HeaderMessage,
    mut body: Cursor<'_>,
    parts: &mut Vec<ObjectPart>,
) -> Result<()> {
    match message.kind {
        CONTINUATION => parts.push((body.address()?, body.length()?)),
        0 => {}
        kind if kind > LAST && message.flags & MUST_KNOW != 0 => {
            return foreign(format!("messages of type {kind}"));
        }
        _ => messages.push(message),
    }
    Ok(())
}
