//! Attributes: their names, types and values.

use std::sync::Arc;

use super::btree::version2;
use super::cursor::{Cursor, until_nul};
use super::header::{ATTRIBUTE, ATTRIBUTE_INFO, Object};
use super::heap::{Fractal, global_text};
use super::{ByteSource, NOWHERE, Reader, Result, damaged, foreign};
use crate::types::Value;

/// The type of the records of a version 2 tree of an object's attributes by name.
const ATTRIBUTES_BY_NAME: u8 = 8;
/// Bytes of such a record: an id, the message's flags, the order of creation, and a hash.
const RECORD: usize = 17;
/// Bytes of the id.
const ID: usize = 8;
/// The flag of a message that is stored outside the header.
const SHARED: u8 = 0x02;

/// The kind of an element.
#[derive(Debug, PartialEq)]
pub(super) enum AttributeKind {
    Integer {
        signed: bool,
        big_endian: bool,
    },
    Float {
        big_endian: bool,
    },
    /// A string of the type's size.
    Text,
    /// A string of any length, in a global heap.
    LongText,
    Enum {
        big_endian: bool,
        labels: Vec<(i64, String)>,
    },
    /// Any other kind.
    Other,
}

/// A type: the kind of an element, and its size in bytes.
#[derive(Debug, PartialEq)]
pub(super) struct Type {
    pub(super) kind: AttributeKind,
    pub(super) size: usize,
}

/// The place of the sign and the stored properties of the numbers of IEEE 754 of 32 and 64 bits.
const SINGLE: (u8, [u8; 12]) = (31, [0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]);
const DOUBLE: (u8, [u8; 12]) = (63, [0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0]);

impl Type {
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.at();
        let class = cursor.u8()?;
        let bits = [cursor.u8()?, cursor.u8()?, cursor.u8()?];
        let size = cursor.u32()? as usize;
        let version = class >> 4;
        // The parsed fields have not changed since version 3.
        if !(1..=5).contains(&version) {
            return foreign(format!("version {version} of a type"));
        }
        let big_endian = bits[0] & 1 != 0;
        let kind = match class & 15 {
            0 => {
                let offset = cursor.u16()?;
                let precision = cursor.u16()?;
                // The bits 0x06 are the values of padding bits.
                if offset != 0
                    || usize::from(precision) != size.saturating_mul(8)
                    || bits[0] & 0x06 != 0
                {
                    return foreign("integers that do not fill their bytes");
                }
                AttributeKind::Integer { signed: bits[0] & 8 != 0, big_endian }
            }
            1 => {
                let properties = cursor.take(12)?;
                let ieee = if size == 4 { SINGLE } else { DOUBLE };
                // Normalised, without padding, not in the order of VAX.
                let plain = bits[0] & 0x7e == 0x20 && bits[1] == ieee.0 && properties == ieee.1;
                if !plain || !(size == 4 || size == 8) {
                    return foreign("floating-point numbers other than IEEE 754's");
                }
                AttributeKind::Float { big_endian }
            }
            3 => AttributeKind::Text,
            8 => {
                let base = Self::parse(cursor)?;
                let count = usize::from(u16::from_le_bytes([bits[0], bits[1]]));
                let AttributeKind::Integer { big_endian, .. } = base.kind else {
                    return foreign("an enumeration of no integers");
                };
                if base.size != size {
                    return damaged(at, format!("codes of {} bytes", base.size), format!("{size}"));
                }
                let mut names = Vec::new();
                for _ in 0..count {
                    let name = cursor.text()?;
                    if version < 3 {
                        // The name with its NUL is padded to a multiple of eight bytes.
                        cursor.skip((name.len() + 1).next_multiple_of(8) - name.len() - 1)?;
                    }
                    names.push(String::from_utf8_lossy(name).into_owned());
                }
                let mut labels = Vec::with_capacity(names.len());
                for name in names {
                    labels.push((code(cursor.take(size)?, big_endian), name));
                }
                AttributeKind::Enum { big_endian, labels }
            }
            9 if bits[0] & 15 == 1 => AttributeKind::LongText,
            2..=10 => AttributeKind::Other,
            class => return foreign(format!("class {class} of types")),
        };
        Ok(Self { kind, size })
    }
}

/// An integer without a sign. Of an integer of more than eight bytes, only the low eight are read.
fn code(bytes: &[u8], big_endian: bool) -> i64 {
    let mut wide = [0; 8];
    if big_endian {
        wide.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
    } else {
        wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }
    i64::from_le_bytes(wide)
}

/// The dimensions of a dataspace. A scalar has no dimensions; `None` means that there is no
/// element.
pub(super) fn dimensions(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u64>>> {
    let version = cursor.u8()?;
    let rank = cursor.u8()?;
    let _flags = cursor.u8()?;
    match version {
        1 => cursor.skip(5)?,
        2 if cursor.u8()? == 2 => return Ok(None),
        2 => {}
        version => return foreign(format!("version {version} of a dataspace")),
    }
    (0..rank).map(|_| cursor.u64()).collect::<Result<_>>().map(Some)
}

impl Object {
    /// The attributes of the object, in no particular order.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub fn attributes<S: ByteSource + ?Sized>(
        &self,
        reader: &Reader<'_, S>,
    ) -> Result<Vec<(String, Value)>> {
        let mut found = Vec::new();
        for message in self.all(ATTRIBUTE) {
            found.push(attribute(reader, message?)?);
        }
        if let Some(info) = self.find(ATTRIBUTE_INFO) {
            let mut info = info?;
            info.version(0, "attribute info")?;
            if info.u8()? & 1 != 0 {
                info.skip(2)?;
            }
            let heap = info.u64()?;
            let names = info.u64()?;
            if heap != NOWHERE {
                dense(reader, heap, names, &mut found)?;
            }
        }
        Ok(found)
    }
}

fn dense<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    heap: u64,
    names: u64,
    found: &mut Vec<(String, Value)>,
) -> Result<()> {
    let mut heap = Fractal::open(reader, heap)?;
    let mut places = Vec::new();
    for record in version2(reader, names, ATTRIBUTES_BY_NAME, RECORD)? {
        if record.get(ID).is_some_and(|flags| flags & SHARED != 0) {
            return foreign("attributes that objects share");
        }
        places.push(heap.place(record.get(..ID).unwrap_or_default(), names)?);
    }
    places.sort_unstable();
    for place in places {
        let (bytes, at) = heap.object(reader, place)?;
        let bytes = bytes.to_vec();
        found.push(attribute(reader, Cursor::new(&bytes, at))?);
    }
    Ok(())
}

fn attribute<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    mut cursor: Cursor<'_>,
) -> Result<(String, Value)> {
    let version = cursor.u8()?;
    if !(1..=3).contains(&version) {
        return foreign(format!("version {version} of an attribute"));
    }
    if cursor.u8()? != 0 && version > 1 {
        return foreign("types that objects share");
    }
    let sizes = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
    cursor.skip(usize::from(version == 3))?;
    let mut part = |size: usize| -> Result<_> {
        let at = cursor.at();
        let bytes = cursor.take(size)?;
        if version == 1 {
            cursor.skip(size.next_multiple_of(8) - size)?;
        }
        Ok(Cursor::new(bytes, at))
    };
    let [name, kind, space] = sizes;
    let (name, mut kind, mut space) = (part(name)?, part(kind)?, part(space)?);
    let name = String::from_utf8_lossy(until_nul(name.rest())).into_owned();
    let one = dimensions(&mut space)?.is_some_and(|of| of.iter().all(|&dimension| dimension == 1));
    if !one {
        return Ok((name, Value::ARRAY));
    }
    let kind = Type::parse(&mut kind)?;
    Ok((name, value(reader, kind, cursor)?))
}

fn value<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    kind: Type,
    mut cursor: Cursor<'_>,
) -> Result<Value> {
    let Type { kind, size } = kind;
    Ok(match kind {
        AttributeKind::Integer { signed, big_endian } if size <= 8 => {
            let bytes = cursor.take(size)?;
            let unsigned = code(bytes, big_endian);
            if signed {
                // The sign is the highest of the stored bits.
                let shift = 64 - 8 * size.clamp(1, 8) as u32;
                Value::Signed(unsigned << shift >> shift, size)
            } else {
                Value::Unsigned(unsigned.cast_unsigned(), size)
            }
        }
        AttributeKind::Float { big_endian } => {
            let bits = code(cursor.take(size)?, big_endian).cast_unsigned();
            let value = if size == 4 {
                f64::from(f32::from_bits(bits as u32))
            } else {
                f64::from_bits(bits)
            };
            Value::Float(value, size)
        }
        AttributeKind::Text if size <= Value::MOST_TEXT => {
            Value::Text(String::from_utf8_lossy(until_nul(cursor.take(size)?)).into_owned())
        }
        AttributeKind::LongText => {
            let (len, at, index) = (cursor.u32()?, cursor.u64()?, cursor.u32()?);
            // An empty string has the address zero.
            Value::Text(if at == 0 {
                String::new()
            } else {
                global_text(reader, at, index, u64::from(len))?
            })
        }
        AttributeKind::Enum { big_endian, labels } if size <= 8 => {
            Value::Enum(code(cursor.take(size)?, big_endian), Arc::new(labels))
        }
        AttributeKind::Enum { .. } => Value::LONG_CODES,
        AttributeKind::Integer { .. } | AttributeKind::Text | AttributeKind::Other => {
            Value::STRANGE
        }
    })
}
