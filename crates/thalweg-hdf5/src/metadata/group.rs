//! The links of groups.

use super::btree::{version1, version2};
use super::cursor::Cursor;
use super::header::{LINK, LINK_INFO, MetadataFile, Object, SYMBOL_TABLE};
use super::heap::{Fractal, Local};
use super::{ByteSource, NOWHERE, Reader, Result, damaged, foreign};

/// A function that takes the name of a link and the address of an object header.
pub type Links<'a> = &'a mut dyn FnMut(&[u8], u64) -> Result<()>;

/// The type of the records of a version 2 tree of a group's links by name.
const LINKS_BY_NAME: u8 = 5;
/// Bytes of such a record: a hash and an id.
const RECORD: usize = 11;
/// Bytes of the hash.
const HASH: usize = 4;

impl Object {
    /// Calls `visit` with the group's hard links, in no particular order. Other links are left out.
    ///
    /// # Errors
    /// [`Refused`](super::Refused), also from `visit`.
    pub fn links<S: ByteSource + ?Sized>(
        &self,
        file: &MetadataFile,
        reader: &Reader<'_, S>,
        visit: Links<'_>,
    ) -> Result<()> {
        if let Some(table) = self.find(SYMBOL_TABLE) {
            let mut table = table?;
            return symbols(file, reader, (table.u64()?, table.u64()?), visit);
        }
        let Some(info) = self.find(LINK_INFO) else {
            return foreign("a group without links, or what is no group");
        };
        let mut info = info?;
        info.version(0, "link info")?;
        if info.u8()? & 1 != 0 {
            info.skip(8)?;
        }
        let heap = info.u64()?;
        let names = info.u64()?;
        for link in self.all(LINK) {
            show(link?, visit)?;
        }
        if heap != NOWHERE {
            dense(reader, heap, names, visit)?;
        }
        Ok(())
    }

    /// The address of the object that the link of this name leads to; `None` if there is no such
    /// link.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub fn child<S: ByteSource + ?Sized>(
        &self,
        file: &MetadataFile,
        reader: &Reader<'_, S>,
        name: &str,
    ) -> Result<Option<u64>> {
        let mut found = None;
        self.links(file, reader, &mut |here, at| {
            if here == name.as_bytes() {
                found = Some(at);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether it is a group.
    pub(super) fn is_group(&self) -> bool {
        self.find(SYMBOL_TABLE).is_some() || self.find(LINK_INFO).is_some()
    }
}

fn symbols<S: ByteSource + ?Sized>(
    file: &MetadataFile,
    reader: &Reader<'_, S>,
    (tree, heap): (u64, u64),
    visit: Links<'_>,
) -> Result<()> {
    let names = Local::read(reader, heap)?;
    let leaves: Vec<u64> =
        version1(reader, tree, 0, 8, file.node_bytes)?.into_iter().map(|(_, leaf)| leaf).collect();
    reader.expect(&leaves, file.leaf_bytes)?;
    for at in leaves {
        let head = reader.get(at, 8)?;
        let mut cursor = Cursor::new(&head, at);
        cursor.magic("SNOD")?;
        cursor.version(1, "a symbol table's node")?;
        cursor.skip(1)?;
        let count = cursor.u16()?;
        let entries = reader.get(at + 8, u64::from(count) * 40)?;
        let mut cursor = Cursor::new(&entries, at + 8);
        for _ in 0..count {
            let (name, place, cached) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
            cursor.skip(20)?;
            // Type 2 is a symbolic link.
            if cached != 2 {
                visit(names.name(name)?, place)?;
            }
        }
    }
    Ok(())
}

/// Calls `visit` with the link of a link message, if it is a hard link.
fn show(mut link: Cursor<'_>, visit: Links<'_>) -> Result<()> {
    link.version(1, "a link")?;
    let flags = link.u8()?;
    let kind = if flags & 0x08 == 0 { 0 } else { link.u8()? };
    link.skip(if flags & 0x04 == 0 { 0 } else { 8 })?;
    link.skip(if flags & 0x10 == 0 { 0 } else { 1 })?;
    let at = link.at();
    let len = link.uint(1 << (flags & 3))?;
    let Ok(len) = usize::try_from(len) else {
        return damaged(at, format!("a name of {len} bytes"), "a name");
    };
    let name = link.take(len)?;
    if kind == 0 {
        visit(name, link.u64()?)?;
    }
    Ok(())
}

fn dense<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    heap: u64,
    names: u64,
    visit: Links<'_>,
) -> Result<()> {
    let mut heap = Fractal::open(reader, heap)?;
    let records = version2(reader, names, LINKS_BY_NAME, RECORD)?;
    let place = |record: &Vec<u8>| heap.place(record.get(HASH..).unwrap_or_default(), names);
    let mut places: Vec<(u64, u64)> = records.iter().map(place).collect::<Result<_>>()?;
    drop(records);
    // In this order, each block is read once.
    places.sort_unstable();
    heap.expect(reader, places.iter().map(|(offset, _)| *offset))?;
    for place in places {
        let (link, at) = heap.object(reader, place)?;
        show(Cursor::new(link, at), visit)?;
    }
    Ok(())
}
