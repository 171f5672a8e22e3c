//! What a copy of an object needs beyond what reading needs: its properties, all its links and
//! attributes, and what its references refer to.

use thalweg_io::Error;

use super::attribute::Attribute;
use super::cursor::{Cursor, until_nul};
use super::dataset::{DatasetHeader, Layout};
use super::datatype::{Datatype, Referent, TypeMessage};
use super::file::{COPIES, limit};
use super::group::Link;
use super::header::{DATATYPE, LINK_INFO, Object};
use super::heap::{Collections, GlobalId, reference};
use super::selection::{Selected, selection};
use super::superblock::Superblock;
use super::virtual_layout::{StoredMapping, stored_mappings};
use super::{MetadataFile, NOWHERE, Reader, Result, damaged, foreign};
use crate::types::Chunk;

/// Message types that only copies need.
const GROUP_INFO: u16 = 0x0a;
const COMMENT: u16 = 0x0d;
const CHANGE_TIMES: [u16; 2] = [0x0e, 0x12];
const FILE_SPACE: u16 = 0x17;

/// An object to be copied.
#[derive(Debug)]
pub(crate) struct StoredObject {
    /// How its header is stored.
    pub(crate) properties: ObjectProperties,
    /// What kind of object it is.
    pub(crate) kind: StoredKind,
}

/// How the header of an object is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectProperties {
    /// Whether the time of its last change is stored.
    pub(crate) has_times: bool,
    /// Whether the order of creation of its attributes is stored (1), and indexed (2).
    pub(crate) attribute_order: u8,
    /// From how many attributes on they are in dense storage, and below how many they are not any
    /// more.
    pub(crate) attribute_phases: Option<(u16, u16)>,
}

/// The kind of an object.
#[derive(Debug)]
pub(crate) enum StoredKind {
    /// A group.
    Group(StoredGroup),
    /// A dataset.
    Dataset(Box<DatasetHeader>),
    /// A committed type.
    Type(TypeMessage),
}

/// A group to be copied.
#[derive(Debug)]
pub(crate) struct StoredGroup {
    /// Whether the order of creation of its links is stored (1), and indexed (2).
    pub(crate) link_order: u8,
    /// From how many links on they are in dense storage, and below how many they are not any more.
    pub(crate) link_phases: Option<(u16, u16)>,
    /// Its links, in the order of creation if it is known, else by name.
    pub(crate) links: Vec<Link>,
}

/// What a reference refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredReference {
    /// The address of the object.
    pub(crate) object: u64,
    /// The part of the object.
    pub(crate) part: ReferencedPart,
}

/// The part of an object that a reference refers to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReferencedPart {
    /// All of it.
    Whole,
    /// These elements of the dataset.
    Region(Selected),
    /// Its attribute of this name.
    Attribute(Vec<u8>),
    /// An object of another file.
    InOtherFile,
}

/// How the space of a file is managed (section IV.A.2.x).
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSpace {
    /// The strategy, as in `H5F_fspace_strategy_t`: 0 free space managers and aggregators, 1 pages,
    /// 2 aggregators, 3 none of these.
    pub(crate) strategy: u8,
    /// Whether free space is kept when the file is closed.
    pub(crate) is_persistent: bool,
    /// The least size of free space that is managed, in bytes.
    pub(crate) threshold: u64,
    /// The size of a page in bytes; `None` in a file of a library before 1.10.1.
    pub(crate) page: Option<u64>,
}

impl MetadataFile {
    /// The object at an address. Values in one run are inside the file.
    ///
    /// # Errors
    /// [`Error::Malformed`]; [`Error::Unsupported`]; the errors of the store.
    pub(crate) fn object(&self, address: u64, path: &str) -> Result<StoredObject, Error> {
        self.wait(path, async {
            let reader = self.reader();
            let object = Object::read(&reader, address).await?;
            let kind = if object.is_group() {
                StoredKind::Group(object.stored_group(&reader).await?)
            } else if let Some(header) = object.dataset(&reader).await? {
                if let &Layout::Contiguous(at) = &header.layout
                    && at != NOWHERE
                {
                    let count = header.space.count();
                    let bytes = count.and_then(|n| n.checked_mul(header.datatype.size as u64));
                    reader.check(at, bytes.unwrap_or(u64::MAX))?;
                }
                StoredKind::Dataset(Box::new(header))
            } else if let Some(message) = object.get(&reader, DATATYPE).await? {
                Datatype::parse(&mut message.cursor())?;
                StoredKind::Type(TypeMessage { committed: Some(address), ..message.type_message() })
            } else {
                return foreign("an object that is no group, dataset or type");
            };
            Ok(StoredObject { properties: object.properties(), kind })
        })
    }

    /// The chunks of a dataset, in C order of their grid; none of a dataset in another layout.
    /// Every chunk is inside the file.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub(crate) fn chunks(&self, header: &DatasetHeader, path: &str) -> Result<Vec<Chunk>, Error> {
        let Layout::Chunked(grid) = &header.layout else { return Ok(Vec::new()) };
        self.wait(path, async {
            let reader = self.reader();
            let chunks = grid.chunks(&reader, &header.space, header.filters.len()).await?;
            reader.check_chunks(&chunks)?;
            Ok(chunks)
        })
    }

    /// The attributes of an object, in the order of creation if it is known, and its comment.
    ///
    /// # Errors
    /// [`Error::Malformed`]; [`Error::Unsupported`]; the errors of the store.
    pub(crate) fn stored_attributes(
        &self,
        address: u64,
        path: &str,
    ) -> Result<(Vec<Attribute>, Option<Vec<u8>>), Error> {
        self.wait(path, async {
            let reader = self.reader();
            let object = Object::read(&reader, address).await?;
            let mut attributes = object.attributes(&reader).await?;
            if attributes.iter().all(|attribute| attribute.order.is_some()) {
                attributes.sort_by_key(|attribute| attribute.order);
            }
            let comment = match object.find(COMMENT) {
                Some(message) => Some(until_nul(message?.rest()).to_vec()),
                None => None,
            };
            Ok((attributes, comment))
        })
    }

    /// The mappings of a virtual dataset, as they are stored; none of another dataset.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub(crate) fn stored_mappings(
        &self,
        header: &DatasetHeader,
        path: &str,
    ) -> Result<Vec<StoredMapping>, Error> {
        let &Layout::Virtual(id) = &header.layout else { return Ok(Vec::new()) };
        if id.0 == NOWHERE {
            return Ok(Vec::new());
        }
        self.wait(path, async {
            let reader = self.reader();
            let collections = Collections::read(&reader, [id]).await?;
            stored_mappings(&reader.cursor(collections.object(id)?, id.0))
        })
    }

    /// How the space of the file is managed, if the file says so.
    ///
    /// # Errors
    /// [`Error::Malformed`]; [`Error::Unsupported`]; the errors of the store.
    pub(crate) fn file_space(&self) -> Result<Option<FileSpace>, Error> {
        let at = self.superblock().extension;
        if at == NOWHERE {
            return Ok(None);
        }
        self.wait("/", async {
            let extension = Object::read(&self.reader(), at).await?;
            extension.find(FILE_SPACE).map(|message| file_space(message?)).transpose()
        })
    }

    /// What references refer to, which are stored as `elements`. A null reference is `None`.
    ///
    /// # Errors
    /// [`Error::Malformed`]; the errors of the store.
    pub(crate) fn references(
        &self,
        path: &str,
        referent: Referent,
        elements: &[u8],
    ) -> Result<Vec<Option<StoredReference>>, Error> {
        let reader = self.reader_of_values();
        self.wait(path, async {
            match referent {
                Referent::Object => {
                    let one = |element: &[u8]| {
                        let object = reader.cursor(element, 0).address()?;
                        let is_null = object == 0 || object == NOWHERE;
                        let reference = StoredReference { object, part: ReferencedPart::Whole };
                        Ok((!is_null).then_some(reference))
                    };
                    elements.chunks_exact(OBJECT_REFERENCE).map(one).collect()
                }
                Referent::Region => regions(&reader, elements).await,
                Referent::Any => any(&reader, elements).await,
            }
        })
    }
}

impl Superblock {
    /// Bytes of the addresses and of the lengths in the file.
    pub(crate) fn widths(&self) -> (u8, u8) {
        (self.widths.address, self.widths.length)
    }
}

impl Object {
    fn properties(&self) -> ObjectProperties {
        let has_times = match self.flags {
            Some(flags) => flags & 0x20 != 0,
            None => CHANGE_TIMES.into_iter().any(|kind| self.has(kind)),
        };
        let attribute_order = self.flags.unwrap_or(0) >> 2 & 3;
        ObjectProperties { has_times, attribute_order, attribute_phases: self.attribute_phases }
    }

    async fn stored_group(&self, reader: &Reader<'_>) -> Result<StoredGroup> {
        let mut links = self.links(reader).await?;
        if links.iter().all(|link| link.order.is_some()) {
            links.sort_by_key(|link| link.order);
        } else {
            links.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let link_order = match self.find(LINK_INFO) {
            Some(info) => {
                let mut info = info?;
                info.version(0, "link info")?;
                info.u8()? & 3
            }
            None => 0,
        };
        let mut link_phases = None;
        if let Some(info) = self.find(GROUP_INFO) {
            let mut info = info?;
            info.version(0, "group info")?;
            if info.u8()? & 1 != 0 {
                link_phases = Some((info.u16()?, info.u16()?));
            }
        }
        Ok(StoredGroup { link_order, link_phases, links })
    }
}

/// Bytes of the references to objects, to regions, and of any kind, in a file with addresses of
/// eight bytes.
pub(crate) const OBJECT_REFERENCE: usize = 8;
pub(crate) const REGION_REFERENCE: usize = 12;
pub(crate) const ANY_REFERENCE: usize = 18;

/// What references to regions refer to. Each element is the place of an object in a global heap:
/// the address of the dataset, and the elements (section VIII.B).
async fn regions(reader: &Reader<'_>, elements: &[u8]) -> Result<Vec<Option<StoredReference>>> {
    let mut ids = Vec::new();
    for element in elements.chunks_exact(REGION_REFERENCE) {
        let mut cursor = reader.cursor(element, 0);
        let id: GlobalId = (cursor.address()?, cursor.u32()?);
        ids.push(Some(id).filter(|(at, _)| *at != 0 && *at != NOWHERE));
    }
    let mut heaps = Heaps::read(reader, ids.iter().flatten().copied()).await?;
    let mut region = |id| {
        let mut cursor = heaps.object(reader, id)?;
        let object = cursor.address()?;
        let part = ReferencedPart::Region(selection(&mut cursor)?);
        Ok(StoredReference { object, part })
    };
    ids.into_iter().map(|id| id.map(&mut region).transpose()).collect()
}

/// Objects of global heaps that references lead to.
struct Heaps {
    collections: Collections,
    /// Bytes of objects that may still be parsed. Each object has one reference in practice.
    left: u64,
}

impl Heaps {
    /// Reads the heaps that hold these objects.
    async fn read(reader: &Reader<'_>, ids: impl IntoIterator<Item = GlobalId>) -> Result<Self> {
        let collections = Collections::read(reader, ids).await?;
        let left = limit(collections.bytes(), COPIES);
        Ok(Self { collections, left })
    }

    fn object(&mut self, reader: &Reader<'_>, id: GlobalId) -> Result<Cursor<'_>> {
        let bytes = self.collections.object(id)?;
        let Some(fewer) = self.left.checked_sub(bytes.len() as u64) else {
            return damaged(id.0, "an object with very many references", "one for each");
        };
        self.left = fewer;
        Ok(reader.cursor(bytes, id.0))
    }
}

/// What references of any kind refer to (libhdf5 1.12, `H5R__encode` in H5Rint.c). Each element
/// has a kind, flags, and either the address of an object or the place of more bytes in a global
/// heap.
async fn any(reader: &Reader<'_>, elements: &[u8]) -> Result<Vec<Option<StoredReference>>> {
    const OBJECT: u8 = 2;
    const REGION: u8 = 3;
    const ATTRIBUTE: u8 = 4;
    const INTO_OTHER_FILE: u8 = 1;
    let mut found = Vec::new();
    // Those whose bytes are in a heap: their place in `found`, kind, length and object.
    let mut in_heaps = Vec::new();
    for element in elements.chunks_exact(ANY_REFERENCE) {
        let mut cursor = reader.cursor(element, 0);
        let kind = cursor.u8()?;
        let flags = cursor.u8()?;
        let some = |object, part| Some(StoredReference { object, part });
        found.push(match kind {
            0 => None,
            _ if flags & INTO_OTHER_FILE != 0 => some(NOWHERE, ReferencedPart::InOtherFile),
            OBJECT => some(token(&mut cursor)?, ReferencedPart::Whole),
            REGION | ATTRIBUTE => {
                in_heaps.push((found.len(), kind, reference(&mut cursor)?));
                None
            }
            kind => return damaged(0, format!("a reference of kind {kind}"), "2 to 4"),
        });
    }
    let ids = in_heaps.iter().map(|(_, _, (_, id))| *id);
    let mut heaps = Heaps::read(reader, ids).await?;
    for (place, kind, (len, id)) in in_heaps {
        let mut cursor = heaps.object(reader, id)?;
        if (cursor.rest().len() as u64) < len {
            let words = format!("an object of {} bytes", cursor.rest().len());
            return damaged(cursor.at(), words, format!("{len}"));
        }
        let object = token(&mut cursor)?;
        let part = if kind == REGION {
            // The bytes of the selection, and the dimensions of the dataset.
            cursor.skip(8)?;
            ReferencedPart::Region(selection(&mut cursor)?)
        } else {
            let len = usize::from(cursor.u16()?);
            ReferencedPart::Attribute(cursor.take(len)?.to_vec())
        };
        found[place] = Some(StoredReference { object, part });
    }
    Ok(found)
}

/// An address with its size before it.
fn token(cursor: &mut Cursor<'_>) -> Result<u64> {
    let size = usize::from(cursor.u8()?);
    cursor.uint(size)
}

/// Parses the body of a file space message (section IV.A.2.x).
fn file_space(mut message: Cursor<'_>) -> Result<FileSpace> {
    let at = message.at();
    match message.u8()? {
        0 => {
            let code = message.u8()?;
            // The first has persistent free space, and the second does not.
            let strategy = match code {
                1 | 2 => 0,
                3 => 2,
                4 => 3,
                code => return damaged(at, format!("strategy {code} of file space"), "1 to 4"),
            };
            let threshold = message.length()?;
            Ok(FileSpace { strategy, is_persistent: code == 1, threshold, page: None })
        }
        1 => {
            let strategy = message.u8()?;
            if strategy > 3 {
                return damaged(at, format!("strategy {strategy} of file space"), "0 to 3");
            }
            let is_persistent = message.u8()? != 0;
            let threshold = message.length()?;
            let page = Some(message.length()?);
            Ok(FileSpace { strategy, is_persistent, threshold, page })
        }
        version => foreign(format!("version {version} of file space")),
    }
}
