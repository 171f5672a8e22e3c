//! Types of elements (section IV.A.2.d).

use super::btree::bytes_for;
use super::cursor::{Cursor, until_nul};
use super::{Result, damaged, foreign};
use crate::array::MOST_RANK;

pub(crate) use crate::convert::{Bits, FloatForm};

/// The most levels of types inside each other.
const MOST_LEVELS: usize = 32;
/// The most members of a compound type or an enumeration.
const MOST_MEMBERS: usize = 1 << 16;

/// A type of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datatype {
    /// Bytes of an element.
    pub size: usize,
    /// What the bytes mean.
    pub class: Class,
}

/// The message of a type, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeMessage {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The address of the committed type that it is part of, if it is one.
    pub committed: Option<u64>,
}

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
    /// The order of VAX.
    Vax,
}

/// How a string is filled up to its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// It ends at its first NUL.
    Terminated,
    /// With NULs.
    Nul,
    /// With spaces.
    Spaces,
}

/// What a reference refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Referent {
    /// An object.
    Object,
    /// A region of a dataset.
    Region,
    /// Something that the reference itself says, as since version 1.12 of the library.
    Any,
}

/// The class of a type, and its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// Integers.
    Integer { order: ByteOrder, signed: bool, bits: Bits },
    /// Floating-point numbers.
    Float { order: ByteOrder, bits: Bits, form: FloatForm },
    /// Times.
    Time,
    /// Strings of the type's size.
    Text { padding: Padding, utf8: bool },
    /// Bit fields.
    BitField { order: ByteOrder, bits: Bits },
    /// Bytes of which only the writer knows the meaning, with its description.
    Opaque { tag: String },
    /// Records.
    Compound { members: Vec<Member> },
    /// References.
    Reference(Referent),
    /// Names for values of the base type, each with the value's bytes.
    Enumeration { base: Box<Datatype>, names: Vec<(String, Vec<u8>)> },
    /// Strings of any length.
    LongText { padding: Padding, utf8: bool },
    /// Lists of any length.
    List { base: Box<Datatype> },
    /// Arrays of these lengths.
    Array { base: Box<Datatype>, lengths: Vec<u64> },
    /// Complex numbers: two numbers of the base type.
    Complex { base: Box<Datatype> },
}

/// A member of a compound type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its first byte in the record.
    pub offset: usize,
    /// Its type.
    pub datatype: Datatype,
}

impl Datatype {
    /// Parses the body of a datatype message.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        Self::nested(cursor, 0)
    }

    fn nested(cursor: &mut Cursor<'_>, level: usize) -> Result<Self> {
        if level > MOST_LEVELS {
            return foreign(format!("types in more than {MOST_LEVELS} levels"));
        }
        let at = cursor.at();
        let head = cursor.u8()?;
        let version = head >> 4;
        let class = head & 15;
        if !(1..=5).contains(&version) {
            return damaged(at, format!("version {version} of a type"), "1 to 5");
        }
        let flags = [cursor.u8()?, cursor.u8()?, cursor.u8()?];
        let size = cursor.u32()? as usize;
        let count = usize::from(u16::from_le_bytes([flags[0], flags[1]]));
        let order = if flags[0] & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big };
        if size == 0 && class != 3 {
            return damaged(at, "a type of elements without bytes", "bytes");
        }
        let class = match class {
            0 => Class::Integer { order, signed: flags[0] & 8 != 0, bits: bits(cursor, size)? },
            1 => float(cursor, size, flags)?,
            2 => {
                cursor.skip(2)?;
                Class::Time
            }
            3 => Class::Text { padding: padding(flags[0] & 15, at)?, utf8: flags[0] >> 4 == 1 },
            4 => Class::BitField { order, bits: bits(cursor, size)? },
            5 => {
                let len = usize::from(flags[0]);
                let tag = until_nul(cursor.take(len)?);
                Class::Opaque { tag: String::from_utf8_lossy(tag).into_owned() }
            }
            6 => Class::Compound { members: members(cursor, version, (size, count), level)? },
            7 => Class::Reference(match flags[0] & 15 {
                0 => Referent::Object,
                1 => Referent::Region,
                2..=4 => Referent::Any,
                kind => return damaged(at, format!("references of type {kind}"), "0 to 4"),
            }),
            8 => enumeration(cursor, version, (size, count), level)?,
            9 => {
                let base = Box::new(Self::nested(cursor, level + 1)?);
                // A number of items, an address and an index.
                let reference = 4 + usize::from(cursor.widths().address) + 4;
                if size != reference {
                    let found = format!("references to lists of {size} bytes");
                    return damaged(at, found, format!("{reference}"));
                }
                match flags[0] & 15 {
                    0 => Class::List { base },
                    1 if base.size != 1 => {
                        let found = format!("strings of characters of {} bytes", base.size);
                        return damaged(at, found, "bytes");
                    }
                    1 => Class::LongText {
                        padding: padding(flags[0] >> 4, at)?,
                        utf8: flags[1] & 15 == 1,
                    },
                    kind => return damaged(at, format!("lists of type {kind}"), "0 or 1"),
                }
            }
            10 => array(cursor, version, size, level)?,
            11 => {
                let base = Box::new(Self::nested(cursor, level + 1)?);
                if flags != [1, 0, 0] {
                    return foreign("complex numbers that are no real and imaginary parts");
                }
                if base.size.checked_mul(2) != Some(size) {
                    let found = format!("complex numbers of {size} bytes");
                    return damaged(at, found, format!("twice {}", base.size));
                }
                Class::Complex { base }
            }
            class => return damaged(at, format!("class {class} of types"), "0 to 11"),
        };
        Ok(Self { size, class })
    }
}

/// The bits of a number of `size` bytes.
fn bits(cursor: &mut Cursor<'_>, size: usize) -> Result<Bits> {
    let at = cursor.at();
    let offset = usize::from(cursor.u16()?);
    let precision = usize::from(cursor.u16()?);
    if precision == 0 || offset + precision > size.saturating_mul(8) {
        let found = format!("{precision} bits from bit {offset} on");
        return damaged(at, found, format!("bits of {size} bytes"));
    }
    Ok(Bits { offset, precision })
}

fn float(cursor: &mut Cursor<'_>, size: usize, flags: [u8; 3]) -> Result<Class> {
    let at = cursor.at();
    let order = match flags[0] & 0x41 {
        0 => ByteOrder::Little,
        1 => ByteOrder::Big,
        0x41 => ByteOrder::Vax,
        _ => return damaged(at, "an unknown byte order", "little-endian, big-endian or VAX"),
    };
    let bits = bits(cursor, size)?;
    let part = |cursor: &mut Cursor<'_>| -> Result<Bits> {
        Ok(Bits { offset: usize::from(cursor.u8()?), precision: usize::from(cursor.u8()?) })
    };
    let exponent = part(cursor)?;
    let mantissa = part(cursor)?;
    let form = FloatForm {
        sign: usize::from(flags[1]),
        exponent,
        mantissa,
        bias: cursor.u32()?,
        is_implied: match flags[0] >> 4 & 3 {
            0 | 1 => false,
            2 => true,
            form => return damaged(at, format!("form {form} of a mantissa"), "0 to 2"),
        },
    };
    let end = size.saturating_mul(8);
    let is_inside = |part: Bits| part.precision > 0 && part.offset + part.precision <= end;
    if !is_inside(exponent) || !is_inside(mantissa) || form.sign >= end {
        return damaged(at, "parts of a floating-point number outside of it", "parts in it");
    }
    Ok(Class::Float { order, bits, form })
}

fn padding(code: u8, at: u64) -> Result<Padding> {
    Ok(match code {
        0 => Padding::Terminated,
        1 => Padding::Nul,
        2 => Padding::Spaces,
        code => return damaged(at, format!("padding {code} of strings"), "0 to 2"),
    })
}

/// A name. Before version 3, the name with its NUL is padded to a multiple of eight bytes.
fn name(cursor: &mut Cursor<'_>, version: u8) -> Result<String> {
    let name = cursor.text()?;
    if version < 3 {
        cursor.skip((name.len() + 1).next_multiple_of(8) - name.len() - 1)?;
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

fn members(
    cursor: &mut Cursor<'_>,
    version: u8,
    (size, count): (usize, usize),
    level: usize,
) -> Result<Vec<Member>> {
    let at = cursor.at();
    if count > MOST_MEMBERS {
        return damaged(at, format!("{count} members"), format!("at most {MOST_MEMBERS}"));
    }
    // Since version 3, an offset has as many bytes as the size of the record needs.
    let width = bytes_for(size as u64);
    let mut members = Vec::new();
    for _ in 0..count {
        let name = name(cursor, version)?;
        let offset = cursor.uint(if version < 3 { 4 } else { width })? as usize;
        let mut lengths = Vec::new();
        if version == 1 {
            let rank = usize::from(cursor.u8()?);
            if rank > 4 {
                return damaged(at, format!("a member of {rank} dimensions"), "at most 4");
            }
            cursor.skip(3 + 4 + 4)?;
            for dimension in 0..4 {
                let length = cursor.u32()?;
                if dimension < rank {
                    lengths.push(u64::from(length));
                }
            }
        }
        let mut datatype = Datatype::nested(cursor, level + 1)?;
        if !lengths.is_empty() {
            datatype = arrayed(datatype, lengths, at)?;
        }
        if offset.checked_add(datatype.size).is_none_or(|end| end > size) {
            let found = format!("the member {name:?} at byte {offset} of a record");
            return damaged(at, found, format!("members in its {size} bytes"));
        }
        members.push(Member { name, offset, datatype });
    }
    let mut ranges: Vec<_> =
        members.iter().map(|one| (one.offset, one.offset + one.datatype.size)).collect();
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| matches!(pair, [(_, end), (next, _)] if end > next)) {
        return damaged(at, "members of a record that overlap", "members side by side");
    }
    Ok(members)
}

/// The array type of a base type and lengths.
fn arrayed(base: Datatype, lengths: Vec<u64>, at: u64) -> Result<Datatype> {
    let size = lengths
        .iter()
        .try_fold(base.size, |size, &length| size.checked_mul(usize::try_from(length).ok()?));
    let Some(size) = size.filter(|&size| size > 0 && u32::try_from(size).is_ok()) else {
        return damaged(at, format!("arrays of {lengths:?} elements"), "fewer");
    };
    Ok(Datatype { size, class: Class::Array { base: Box::new(base), lengths } })
}

fn array(cursor: &mut Cursor<'_>, version: u8, size: usize, level: usize) -> Result<Class> {
    let at = cursor.at();
    let rank = usize::from(cursor.u8()?);
    if version < 3 {
        cursor.skip(3)?;
    }
    if rank > MOST_RANK {
        let expected = format!("at most {MOST_RANK}");
        return damaged(at, format!("an array type of {rank} dimensions"), expected);
    }
    let lengths: Vec<u64> =
        (0..rank).map(|_| cursor.u32().map(u64::from)).collect::<Result<_>>()?;
    if version < 3 {
        // The order of the dimensions, which is not used.
        cursor.skip(4 * rank)?;
    }
    let base = Datatype::nested(cursor, level + 1)?;
    let array = arrayed(base, lengths, at)?;
    if array.size != size {
        return damaged(at, format!("an array type of {size} bytes"), format!("{}", array.size));
    }
    Ok(array.class)
}

fn enumeration(
    cursor: &mut Cursor<'_>,
    version: u8,
    (size, count): (usize, usize),
    level: usize,
) -> Result<Class> {
    let at = cursor.at();
    let base = Box::new(Datatype::nested(cursor, level + 1)?);
    if !matches!(base.class, Class::Integer { .. }) {
        return foreign("an enumeration of no integers");
    }
    if base.size != size {
        return damaged(at, format!("codes of {} bytes", base.size), format!("{size}"));
    }
    let names: Vec<String> = (0..count).map(|_| name(cursor, version)).collect::<Result<_>>()?;
    let mut named = Vec::with_capacity(names.len());
    for name in names {
        named.push((name, cursor.take(size)?.to_vec()));
    }
    Ok(Class::Enumeration { base, names: named })
}
