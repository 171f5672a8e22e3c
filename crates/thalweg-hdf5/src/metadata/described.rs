//! Objects as other programs want them described: all their links, the values of all their
//! attributes, and types as JSON.

use serde_json::{Value as Json, json};
use thalweg_io::Error;

use super::attribute::Attribute;
use super::cursor::until_nul;
use super::dataset::{DatasetHeader, Layout};
use super::dataspace::Dataspace;
use super::datatype::{Bits, ByteOrder, Class, Datatype, Member, Padding, Referent};
use super::elements::element_type;
use super::heap::{Collections, reference};
use super::node::Node;
use super::{Object, Reader, Refused, Result, damaged, foreign};
use crate::array::ElementType;

/// Bytes of a reference to an object.
const OBJECT_REFERENCE: usize = 8;

/// The most bytes of the values of the attributes of an object.
const MOST_VALUES: u64 = 256 << 20;

/// An attribute with all its values.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeValues {
    /// Its name.
    pub name: String,
    /// Its type as [`DatasetHeader::type_json`] shows it.
    pub datatype: Json,
    /// The length of each dimension; `None` if it has no value.
    pub shape: Option<Vec<u64>>,
    /// Its elements in C order.
    pub elements: Elements,
}

/// The elements of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elements {
    /// Of one size, little-endian. References to objects are the addresses of their headers.
    Fixed(Vec<u8>),
    /// Strings, which end before their first NUL, or lists as the bytes of their elements,
    /// little-endian.
    Variable(Vec<Vec<u8>>),
    /// Why they are not read, in words.
    NotRead(String),
}

impl DatasetHeader {
    /// The type of the elements, as it is stored.
    ///
    /// Each type is an object with its `class` and its `size` in bytes. The classes are `integer`
    /// (with `order` and `signed`), `float` and `bits` (with `order`), `text` and `long_text` (with
    /// `utf8` and `padding`), `opaque` (with `tag`), `record` (with `members`, each with `name`,
    /// `offset` and `type`), `enumeration` (with `base` and `names`, each with its code), `list`,
    /// `complex` and `array` (with `item`, and an array with `shape`), `reference` (with `to`) and
    /// `time`.
    pub fn type_json(&self) -> Json {
        json_of(&self.datatype)
    }

    /// The length of each dimension; `None` if the dataset has no value.
    pub fn shape(&self) -> Option<&[u64]> {
        match &self.space {
            Dataspace::Null => None,
            Dataspace::Simple { shape, .. } => Some(shape),
        }
    }

    /// The shape of a chunk; `None` if the dataset is not stored in chunks.
    pub fn chunk(&self) -> Option<&[u64]> {
        match &self.layout {
            Layout::Chunked(grid) => Some(&grid.chunk),
            _ => None,
        }
    }

    /// The length to which each dimension may grow, which is `u64::MAX` if it has no limit; `None`
    /// if the dataset has no value.
    pub fn most(&self) -> Option<&[u64]> {
        match &self.space {
            Dataspace::Null => None,
            Dataspace::Simple { most, .. } => Some(most),
        }
    }
}

fn json_of(datatype: &Datatype) -> Json {
    let size = datatype.size;
    let order = |order: &ByteOrder| match order {
        ByteOrder::Little => "<",
        ByteOrder::Big => ">",
        ByteOrder::Vax => "vax",
    };
    let padding = |padding: &Padding| match padding {
        Padding::Terminated => "terminated",
        Padding::Nul => "nul",
        Padding::Spaces => "spaces",
    };
    match &datatype.class {
        Class::Integer { order: of, signed, .. } => {
            json!({ "class": "integer", "size": size, "order": order(of), "signed": signed })
        }
        Class::Float { order: of, .. } => {
            json!({ "class": "float", "size": size, "order": order(of) })
        }
        Class::BitField { order: of, .. } => {
            json!({ "class": "bits", "size": size, "order": order(of) })
        }
        Class::Time => json!({ "class": "time", "size": size }),
        Class::Text { padding: of, utf8 } => {
            json!({ "class": "text", "size": size, "utf8": utf8, "padding": padding(of) })
        }
        Class::LongText { padding: of, utf8 } => {
            json!({ "class": "long_text", "size": size, "utf8": utf8, "padding": padding(of) })
        }
        Class::Opaque { tag } => json!({ "class": "opaque", "size": size, "tag": tag }),
        Class::Compound { members } => {
            let member = |member: &Member| {
                json!({
                    "name": member.name,
                    "offset": member.offset,
                    "type": json_of(&member.datatype),
                })
            };
            let members: Vec<Json> = members.iter().map(member).collect();
            json!({ "class": "record", "size": size, "members": members })
        }
        Class::Reference(referent) => {
            let to = match referent {
                Referent::Object => "object",
                Referent::Region => "region",
                Referent::Any => "any",
            };
            json!({ "class": "reference", "size": size, "to": to })
        }
        Class::Enumeration { base, names } => {
            let named = |(name, code): &(String, Vec<u8>)| json!([name, integer(code, base)]);
            let names: Vec<Json> = names.iter().map(named).collect();
            json!({ "class": "enumeration", "size": size, "base": json_of(base), "names": names })
        }
        Class::List { base } => json!({ "class": "list", "size": size, "item": json_of(base) }),
        Class::Complex { base } => {
            json!({ "class": "complex", "size": size, "item": json_of(base) })
        }
        Class::Array { base, lengths } => {
            json!({ "class": "array", "size": size, "item": json_of(base), "shape": lengths })
        }
    }
}

/// The code of an enumeration, if its integers have up to eight bytes.
fn integer(code: &[u8], base: &Datatype) -> Json {
    let Class::Integer { order, signed, bits: Bits { offset, precision } } = &base.class else {
        return Json::Null;
    };
    if code.len() > 8 || *order == ByteOrder::Vax {
        return Json::Null;
    }
    let mut wide = [0; 8];
    wide[..code.len()].copy_from_slice(code);
    if *order == ByteOrder::Big {
        wide[..code.len()].reverse();
    }
    let unused = 64 - (*precision).clamp(1, 64) as u32;
    let number = u64::from_le_bytes(wide) >> offset << unused;
    if *signed { (number.cast_signed() >> unused).into() } else { (number >> unused).into() }
}

/// The type with integers in the place of references to objects: their addresses.
fn with_addresses(datatype: &Datatype) -> Datatype {
    let Datatype { size, class } = datatype;
    let class = match class {
        Class::Reference(Referent::Object) if *size == OBJECT_REFERENCE => Class::Integer {
            order: ByteOrder::Little,
            signed: false,
            bits: Bits { offset: 0, precision: 8 * OBJECT_REFERENCE },
        },
        Class::Compound { members } => {
            let mut members = members.clone();
            for member in &mut members {
                member.datatype = with_addresses(&member.datatype);
            }
            Class::Compound { members }
        }
        Class::Array { base, lengths } => {
            Class::Array { base: Box::new(with_addresses(base)), lengths: lengths.clone() }
        }
        class => class.clone(),
    };
    Datatype { size: *size, class }
}

/// Stored elements of this type, little-endian.
fn little_endian(kind: &ElementType, stored: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = match &kind.converted {
        Some(conversion) => conversion.converted(stored).map_err(Refused::Damaged)?,
        None => stored.to_vec(),
    };
    kind.dtype.to_little_endian(&mut bytes);
    Ok(bytes)
}

impl Attribute {
    /// The type of the items of a string or list of any length, which is `None` for strings, or why
    /// they are not read; `None` for other types.
    fn item(&self) -> Option<Result<Option<ElementType>, String>> {
        match &self.datatype.class {
            Class::LongText { .. } => Some(Ok(None)),
            Class::List { base } => Some(element_type(&with_addresses(base)).map(Some)),
            _ => None,
        }
    }

    /// The elements of an attribute of strings or lists.
    async fn variable(
        &self,
        reader: &Reader<'_>,
        item: Option<&ElementType>,
        left: &mut u64,
    ) -> Result<Vec<Vec<u8>>> {
        let size = match &self.datatype.class {
            Class::List { base } => base.size,
            _ => 1,
        };
        let mut places = Vec::new();
        for element in self.elements() {
            places.push(reference(&mut reader.cursor(element, 0))?);
        }
        let is_stored = |&(count, (at, _)): &(u64, (u64, u32))| count > 0 && at != 0;
        let ids = places.iter().filter(|place| is_stored(place)).map(|(_, id)| *id);
        let collections = Collections::read(reader, ids).await?;
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            if !is_stored(&place) {
                found.push(Vec::new());
                continue;
            }
            let (count, id) = place;
            let object = collections.object(id)?;
            let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
            let Some(stored) = len.and_then(|len| object.get(..len)) else {
                let words = format!("an object of {} bytes", object.len());
                return damaged(id.0, words, format!("{count} items of {size} bytes"));
            };
            *left = match left.checked_sub(stored.len() as u64) {
                Some(fewer) => fewer,
                None => return foreign("attributes with very many values"),
            };
            found.push(match item {
                Some(item) => little_endian(item, stored)?,
                None => until_nul(stored).to_vec(),
            });
        }
        Ok(found)
    }

    async fn all_values(&self, reader: &Reader<'_>, left: &mut u64) -> Result<AttributeValues> {
        let elements = match self.item() {
            Some(Ok(item)) => Elements::Variable(self.variable(reader, item.as_ref(), left).await?),
            Some(Err(why)) => Elements::NotRead(why),
            None => match element_type(&with_addresses(&self.datatype)) {
                Ok(kind) => Elements::Fixed(little_endian(&kind, &self.bytes)?),
                Err(why) => Elements::NotRead(why),
            },
        };
        let shape = match &self.space {
            Dataspace::Null => None,
            Dataspace::Simple { shape, .. } => Some(shape.clone()),
        };
        Ok(AttributeValues {
            name: String::from_utf8_lossy(&self.name).into_owned(),
            datatype: json_of(&self.datatype),
            shape,
            elements,
        })
    }
}

impl Node {
    /// Its attributes with all their values, in the order of creation if that is known, else by
    /// name.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub fn attribute_values(&self) -> Result<Vec<AttributeValues>, Error> {
        let reader = self.file().reader_of_values();
        self.file().wait(self.path(), async {
            let object = Object::read(&reader, self.address()).await?;
            let mut attributes = object.attributes(&reader).await?;
            if attributes.iter().all(|attribute| attribute.order.is_some()) {
                attributes.sort_by_key(|attribute| attribute.order);
            } else {
                attributes.sort_by(|a, b| a.name.cmp(&b.name));
            }
            let mut left = MOST_VALUES;
            let mut found = Vec::with_capacity(attributes.len());
            for attribute in attributes {
                found.push(attribute.all_values(&reader, &mut left).await?);
            }
            Ok(found)
        })
    }

    /// The names of all links of a group, symbolic ones and those to other files included, in the
    /// order of creation if that is known, else by name.
    ///
    /// # Errors
    /// As [`Node::links`].
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let links = self.file().links(self.address(), self.path())?;
        let mut links: Vec<_> = links.iter().collect();
        if links.iter().all(|link| link.order.is_some()) {
            links.sort_by_key(|link| link.order);
        } else {
            links.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(links.iter().map(|link| String::from_utf8_lossy(&link.name).into_owned()).collect())
    }

    /// What the header of a dataset says; `None` if the object is not a dataset.
    ///
    /// # Errors
    /// As [`Node::array`].
    pub fn header(&self) -> Result<Option<DatasetHeader>, Error> {
        let reader = self.file().reader_of_values();
        self.file().wait(self.path(), async {
            Object::read(&reader, self.address()).await?.dataset(&reader).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbers_in_both_orders() {
        let base = |order, signed, size| Datatype {
            size,
            class: Class::Integer { order, signed, bits: Bits { offset: 0, precision: 8 * size } },
        };
        assert_eq!(integer(&[0xfe], &base(ByteOrder::Little, true, 1)), json!(-2));
        assert_eq!(integer(&[0xfe], &base(ByteOrder::Little, false, 1)), json!(254));
        assert_eq!(integer(&[1, 2], &base(ByteOrder::Big, true, 2)), json!(258));
        assert_eq!(integer(&[1, 2], &base(ByteOrder::Vax, true, 2)), Json::Null);
    }

    #[test]
    fn references_in_records_are_addresses() {
        let reference = Datatype { size: 8, class: Class::Reference(Referent::Object) };
        let bits = Bits { offset: 0, precision: 32 };
        let number = Class::Integer { order: ByteOrder::Big, signed: true, bits };
        let member =
            |name: &str, offset, datatype| Member { name: name.to_owned(), offset, datatype };
        let members = vec![
            member("dataset", 0, reference),
            member("dimension", 8, Datatype { size: 4, class: number }),
        ];
        let record = Datatype { size: 12, class: Class::Compound { members } };
        assert!(element_type(&record).is_err());
        let stored = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        let kind = element_type(&with_addresses(&record));
        let bytes = kind.ok().and_then(|kind| little_endian(&kind, &stored).ok());
        assert_eq!(bytes, Some(vec![1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]));
        assert_eq!(
            json_of(&record)["members"][0],
            json!({
                "name": "dataset", "offset": 0,
                "type": { "class": "reference", "size": 8, "to": "object" },
            })
        );
    }
}
