//! Attributes: their names, types and values (section IV.A.2.m), in headers and in dense storage.

use std::sync::Arc;

use super::cursor::{Cursor, until_nul};
use super::dataspace::Dataspace;
use super::datatype::{ByteOrder, Class, Datatype, Referent, TypeMessage};
use super::header::{ATTRIBUTE, ATTRIBUTE_INFO, DATASPACE, DATATYPE, Object, SHARED, shared};
use super::heap::{Collections, Fractal, GlobalId, dense, reference};
use super::{NOWHERE, Reader, Result, damaged, foreign};
use crate::array::MOST_RANK;
use crate::types::Value;

/// The type of the records of a version 2 tree of an object's attributes by name.
const ATTRIBUTES_BY_NAME: u8 = 8;
/// Bytes of such a record: an id, the message's flags, the order of creation, and a hash.
const RECORD: usize = 17;
/// Bytes of the id.
const ID: usize = 8;

/// An attribute of an object.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// Its name. In practice it is UTF-8.
    pub name: Vec<u8>,
    /// Whether its name is marked as UTF-8, and not as ASCII.
    pub is_utf8: bool,
    /// Its number in the order of creation, if the object keeps that.
    pub order: Option<u32>,
    /// The type of its elements.
    pub datatype: Datatype,
    /// The message of this type.
    pub type_message: TypeMessage,
    /// Its shape.
    pub space: Dataspace,
    /// Its elements, as they are stored.
    pub(crate) bytes: Vec<u8>,
    /// The address of the elements.
    at: u64,
    widths: super::cursor::Widths,
}

impl Object {
    /// The attributes of the object, in no particular order.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub async fn attributes(&self, reader: &Reader<'_>) -> Result<Vec<Attribute>> {
        self.attributes_named(reader, None).await
    }

    /// The attribute of this name, or all attributes. Those in dense storage may include others.
    async fn attributes_named(
        &self,
        reader: &Reader<'_>,
        wanted: Option<&str>,
    ) -> Result<Vec<Attribute>> {
        let mut found = Vec::new();
        for body in self.get_all(reader, ATTRIBUTE).await? {
            if let Some(wanted) = wanted
                && name_of(body.cursor()).is_ok_and(|name| name != wanted.as_bytes())
            {
                continue;
            }
            let order = body.order.map(u32::from);
            found.push(Attribute { order, ..attribute(reader, body.cursor()).await? });
        }
        let Some(info) = self.find(ATTRIBUTE_INFO) else { return Ok(found) };
        let mut info = info?;
        info.version(0, "attribute info")?;
        let is_tracked = info.u8()? & 1 != 0;
        if is_tracked {
            info.skip(2)?;
        }
        let heap = info.address()?;
        let names = info.address()?;
        if heap == NOWHERE {
            return Ok(found);
        }
        let (heap, size, records) =
            dense(reader, (heap, names), ATTRIBUTES_BY_NAME, RECORD..=RECORD).await?;
        let is_shared = |record: &[u8]| record.get(ID).is_some_and(|flags| flags & SHARED != 0);
        let (elsewhere, own): (Vec<&[u8]>, Vec<&[u8]>) =
            records.chunks_exact(size).partition(|record| is_shared(record));
        // The flags of the message are between the id and the order of creation.
        let order = |record: &[u8]| {
            let number = record.get(ID + 1..ID + 5)?.try_into().ok().map(u32::from_le_bytes);
            number.filter(|_| is_tracked)
        };
        let ids: Vec<&[u8]> = own.iter().map(|record| &record[..ID]).collect();
        let objects = heap.objects(reader, &ids, names).await?;
        let mut objects: Vec<_> = objects.into_iter().zip(&own).collect();
        // The tree has them in the order of their hashes.
        objects.sort_by_key(|((_, at), _)| *at);
        for ((bytes, at), record) in objects {
            let attribute = attribute(reader, reader.cursor(&bytes, at)).await?;
            found.push(Attribute { order: order(record), ..attribute });
        }
        if !elsewhere.is_empty() {
            // The id is that in the heap of messages that objects share.
            let shared_heap = reader.superblock().shared_heap(ATTRIBUTE);
            let Some(shared_heap) = shared_heap else {
                return damaged(names, "a shared attribute", "a heap for them");
            };
            let shared_heap = Fractal::open(reader, shared_heap).await?;
            let ids: Vec<&[u8]> = elsewhere.iter().map(|record| &record[..ID]).collect();
            let objects = shared_heap.objects(reader, &ids, names).await?;
            for ((bytes, at), record) in objects.into_iter().zip(elsewhere) {
                let attribute = attribute(reader, reader.cursor(&bytes, at)).await?;
                found.push(Attribute { order: order(record), ..attribute });
            }
        }
        Ok(found)
    }

    /// The attributes with their values.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub async fn values(&self, reader: &Reader<'_>) -> Result<Vec<(String, Value)>> {
        let attributes = self.attributes(reader).await?;
        let mut ids = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.is_one()) {
            ids.extend(attribute.global_ids()?);
        }
        let collections = Collections::read(reader, ids).await?;
        attributes
            .into_iter()
            .map(|attribute| Ok((attribute.value(&collections)?, attribute)))
            .map(|found| found.map(|(value, attribute)| (attribute.text_name(), value)))
            .collect()
    }
}

impl Object {
    /// The value of the attribute of this name; `None` if there is none.
    pub(super) async fn value(&self, reader: &Reader<'_>, name: &str) -> Result<Option<Value>> {
        let Some(attribute) = self.named(reader, name).await? else { return Ok(None) };
        let ids = if attribute.is_one() { attribute.global_ids()? } else { Vec::new() };
        attribute.value(&Collections::read(reader, ids).await?).map(Some)
    }

    /// The strings of the attribute of this name; `None` if there is none, or if it is of another
    /// type or too large.
    pub(super) async fn texts(
        &self,
        reader: &Reader<'_>,
        name: &str,
    ) -> Result<Option<Vec<String>>> {
        let Some(attribute) = self.named(reader, name).await? else { return Ok(None) };
        if attribute.space == Dataspace::Null || attribute.bytes.len() > Value::MOST_TEXT {
            return Ok(None);
        }
        match attribute.datatype.class {
            Class::Text { .. } => {
                let text = |element: &[u8]| {
                    String::from_utf8_lossy(until_nul(element)).trim_end().to_owned()
                };
                Ok(Some(attribute.elements().map(text).collect()))
            }
            Class::LongText { .. } => {
                let collections = Collections::read(reader, attribute.global_ids()?).await?;
                let mut bytes = 0;
                let mut texts = Vec::new();
                for element in attribute.elements() {
                    texts.push(attribute.text(element, &collections)?);
                    bytes += texts.last().map_or(0, String::len);
                    if bytes > Value::MOST_TEXT {
                        return Ok(None);
                    }
                }
                Ok(Some(texts))
            }
            _ => Ok(None),
        }
    }

    /// The address in the first reference of each list of the attribute `DIMENSION_LIST`.
    pub(super) async fn scales(&self, reader: &Reader<'_>) -> Result<Vec<Option<u64>>> {
        let Some(attribute) = self.named(reader, "DIMENSION_LIST").await? else {
            return Ok(Vec::new());
        };
        let Class::List { base } = &attribute.datatype.class else { return Ok(Vec::new()) };
        if base.class != Class::Reference(Referent::Object)
            || attribute.space.count().is_none_or(|count| count > MOST_RANK as u64)
        {
            return Ok(Vec::new());
        }
        let lists: Vec<(u64, GlobalId)> = attribute
            .elements()
            .map(|element| attribute.reference(element))
            .collect::<Result<_>>()?;
        let ids = lists.iter().filter(|(len, _)| *len > 0).map(|(_, id)| *id);
        let collections = Collections::read(reader, ids).await?;
        let first = |(len, id): (u64, GlobalId)| {
            if len == 0 {
                return Ok(None);
            }
            reader.cursor(collections.object(id)?, id.0).address().map(Some)
        };
        lists.into_iter().map(first).collect()
    }

    /// The attribute of this name.
    async fn named(&self, reader: &Reader<'_>, name: &str) -> Result<Option<Attribute>> {
        let attributes = self.attributes_named(reader, Some(name)).await?;
        Ok(attributes.into_iter().find(|attribute| attribute.name == name.as_bytes()))
    }
}

/// The start of an attribute message.
struct MessageStart {
    version: u8,
    flags: u8,
    /// Bytes of the name, the type and the space.
    sizes: [usize; 3],
    is_utf8: bool,
}

impl MessageStart {
    fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.at();
        let version = cursor.u8()?;
        if !(1..=3).contains(&version) {
            return damaged(at, format!("version {version} of an attribute"), "1 to 3");
        }
        let flags = cursor.u8()?;
        let flags = if version == 1 { 0 } else { flags };
        let sizes = [cursor.u16()?, cursor.u16()?, cursor.u16()?].map(usize::from);
        let is_utf8 = version == 3 && cursor.u8()? == 1;
        Ok(Self { version, flags, sizes, is_utf8 })
    }
}

/// The name of the attribute of a message.
fn name_of(mut cursor: Cursor<'_>) -> Result<&[u8]> {
    let [name, ..] = MessageStart::parse(&mut cursor)?.sizes;
    Ok(until_nul(cursor.take(name)?))
}

/// Parses the body of an attribute message.
async fn attribute(reader: &Reader<'_>, mut cursor: Cursor<'_>) -> Result<Attribute> {
    let MessageStart { version, flags, sizes, is_utf8 } = MessageStart::parse(&mut cursor)?;
    let mut part = |size: usize| -> Result<_> {
        let at = cursor.at();
        let bytes = cursor.take(size)?;
        if version == 1 {
            cursor.skip(size.next_multiple_of(8) - size)?;
        }
        Ok(cursor.same(bytes, at))
    };
    let [name, kind, space] = sizes;
    let name = part(name)?;
    let kind = part(kind)?;
    let mut space = part(space)?;
    let name = until_nul(name.rest()).to_vec();
    let type_message = if flags & 1 == 0 {
        TypeMessage { bytes: kind.rest().to_vec(), committed: None }
    } else {
        shared(reader, kind.clone(), DATATYPE).await?.type_message()
    };
    let datatype = Datatype::parse(&mut kind.same(&type_message.bytes, kind.at()))?;
    let space = if flags & 2 == 0 {
        Dataspace::parse(&mut space)?
    } else {
        Dataspace::parse(&mut shared(reader, space, DATASPACE).await?.cursor())?
    };
    let bytes = space
        .count()
        .and_then(|count| usize::try_from(count).ok()?.checked_mul(datatype.size))
        .and_then(|len| cursor.rest().get(..len));
    let Some(bytes) = bytes else {
        let name = String::from_utf8_lossy(&name);
        let found = format!("{} bytes of the attribute {name}", cursor.rest().len());
        return damaged(cursor.at(), found, format!("{space:?} of {} bytes", datatype.size));
    };
    let bytes = bytes.to_vec();
    let widths = cursor.widths();
    let at = cursor.at();
    let order = None;
    Ok(Attribute { name, is_utf8, order, datatype, type_message, space, bytes, at, widths })
}

impl Attribute {
    /// The name as text.
    fn text_name(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Whether it has one element.
    fn is_one(&self) -> bool {
        self.space.count() == Some(1)
    }

    /// The elements as they are stored.
    pub(super) fn elements(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.datatype.size.max(1))
    }

    /// Where the strings of a string of any length are; nothing for other types.
    fn global_ids(&self) -> Result<Vec<GlobalId>> {
        if !matches!(self.datatype.class, Class::LongText { .. }) {
            return Ok(Vec::new());
        }
        let ids: Vec<(u64, GlobalId)> =
            self.elements().map(|element| self.reference(element)).collect::<Result<_>>()?;
        Ok(ids.into_iter().map(|(_, id)| id).filter(|(at, _)| *at != 0).collect())
    }

    /// The length and the place of a string or list of any length.
    fn reference(&self, element: &[u8]) -> Result<(u64, GlobalId)> {
        reference(&mut Cursor::new(element, self.at, self.widths))
    }

    fn value(&self, collections: &Collections) -> Result<Value> {
        let Some(element) = self.elements().next().filter(|_| self.is_one()) else {
            return Ok(Value::ARRAY);
        };
        let size = self.datatype.size;
        Ok(match &self.datatype.class {
            Class::Integer { order, signed, bits } if size <= 8 => {
                let number = number(element, *order)? >> bits.offset;
                let shift = 64 - bits.precision as u32;
                if *signed {
                    // The sign is the highest of the stored bits.
                    Value::Signed((number << shift).cast_signed() >> shift, size)
                } else {
                    Value::Unsigned(number << shift >> shift, size)
                }
            }
            Class::Float { order, form, .. } if size <= 8 => {
                Value::Float(form.value(number(element, *order)?, size), size)
            }
            Class::Text { .. } if size <= Value::MOST_TEXT => {
                Value::Text(String::from_utf8_lossy(until_nul(element)).into_owned())
            }
            Class::LongText { .. } => Value::Text(self.text(element, collections)?),
            Class::Enumeration { base, names } if size <= 8 => {
                let code = |bytes| code(bytes, base);
                let labels = names.iter().map(|(name, bytes)| Ok((code(bytes)?, name.clone())));
                Value::Enum(code(element)?, Arc::new(labels.collect::<Result<_>>()?))
            }
            Class::Enumeration { .. } => Value::LONG_CODES,
            _ => Value::STRANGE,
        })
    }

    /// A string of any length, up to its first NUL.
    fn text(&self, element: &[u8], collections: &Collections) -> Result<String> {
        let (len, id) = self.reference(element)?;
        if id.0 == 0 {
            return Ok(String::new());
        }
        let object = collections.object(id)?;
        if len > Value::MOST_TEXT as u64 {
            return foreign(format!("a text of {len} bytes in an attribute"));
        }
        let Some(bytes) = usize::try_from(len).ok().and_then(|len| object.get(..len)) else {
            let found = format!("a string of {} bytes", object.len());
            return damaged(id.0, found, format!("{len}"));
        };
        Ok(String::from_utf8_lossy(until_nul(bytes)).into_owned())
    }
}

/// The code of an enumeration with this base type, which is an integer of up to eight bytes.
fn code(bytes: &[u8], base: &Datatype) -> Result<i64> {
    let Class::Integer { order, signed, bits } = &base.class else {
        return foreign("an enumeration whose base type is not an integer");
    };
    let number = number(bytes, *order)? >> bits.offset;
    let shift = 64 - bits.precision as u32;
    let number = number << shift;
    Ok(if *signed { number.cast_signed() >> shift } else { (number >> shift).cast_signed() })
}

/// The bits of a number of up to eight bytes.
fn number(bytes: &[u8], order: ByteOrder) -> Result<u64> {
    let mut wide = [0; 8];
    match order {
        ByteOrder::Little => wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
        ByteOrder::Big => {
            wide.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
        }
        ByteOrder::Vax => return foreign("numbers in the byte order of VAX"),
    }
    Ok(u64::from_le_bytes(wide))
}
