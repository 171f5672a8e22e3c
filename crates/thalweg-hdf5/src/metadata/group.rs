//! Groups: their links, as symbol tables, as link messages and in dense storage.

use super::btree::Tree1;
use super::cursor::Cursor;
use super::header::{LINK, LINK_INFO, Object, SYMBOL_TABLE};
use super::heap::{Local, dense};
use super::{NOWHERE, Reader, Result, both, damaged};

/// The type of the records of a version 2 tree of a group's links by name.
const LINKS_BY_NAME: u8 = 5;
/// Bytes of the hash in such a record. The id in the heap follows.
const HASH: usize = 4;
/// Bytes of such a record: the library's ids have 7 bytes.
const RECORD: std::ops::RangeInclusive<usize> = HASH + 1..=HASH + 64;

/// A link of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name. In practice it is UTF-8.
    pub name: Vec<u8>,
    /// What it leads to.
    pub target: Target,
    /// Its number in the order of creation, if the group keeps that.
    pub order: Option<u64>,
    /// Whether its name is marked as UTF-8, and not as ASCII.
    pub is_utf8: bool,
}

/// What a link leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The object whose header is at this address.
    Object(u64),
    /// What is at this path of the same file.
    Path(Vec<u8>),
    /// What is at a path of another file.
    External {
        /// The path of the file.
        file: Vec<u8>,
        /// The path in the file.
        path: Vec<u8>,
    },
    /// A link of a class that only its writer knows.
    UserDefined(u8),
}

impl Object {
    /// Whether it is a group.
    pub fn is_group(&self) -> bool {
        self.has(SYMBOL_TABLE) || self.has(LINK_INFO)
    }

    /// The links of the group, in no particular order.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub async fn links(&self, reader: &Reader<'_>) -> Result<Vec<Link>> {
        if let Some(table) = self.find(SYMBOL_TABLE) {
            let mut table = table?;
            return symbols(reader, (table.address()?, table.address()?)).await;
        }
        let Some(info) = self.find(LINK_INFO) else {
            return damaged(self.address, "an object without links", "a group");
        };
        let mut info = info?;
        info.version(0, "link info")?;
        if info.u8()? & 1 != 0 {
            info.skip(8)?;
        }
        let heap = info.address()?;
        let names = info.address()?;
        let mut links = Vec::new();
        for body in self.get_all(reader, LINK).await? {
            links.push(link(body.cursor())?);
        }
        if heap != NOWHERE {
            // Boxed, because thousands of parsers may wait, and few of them come here.
            links.append(&mut Box::pin(dense_links(reader, (heap, names))).await?);
        }
        Ok(links)
    }

    /// The address of the object that the hard link of this name leads to; `None` if there is no
    /// such link.
    ///
    /// # Errors
    /// [`Refused`](super::Refused).
    pub async fn child(&self, reader: &Reader<'_>, name: &str) -> Result<Option<u64>> {
        let links = self.links(reader).await?;
        Ok(links.into_iter().find_map(|link| match link.target {
            Target::Object(at) if link.name == name.as_bytes() => Some(at),
            _ => None,
        }))
    }
}

/// The links in dense storage: in the heap, with their names in the tree.
async fn dense_links(reader: &Reader<'_>, (heap, names): (u64, u64)) -> Result<Vec<Link>> {
    let (heap, size, records) = dense(reader, (heap, names), LINKS_BY_NAME, RECORD).await?;
    let ids: Vec<&[u8]> = records.chunks_exact(size).map(|record| &record[HASH..]).collect();
    let mut objects = heap.objects(reader, &ids, names).await?;
    // The tree has them in the order of their hashes.
    objects.sort_by_key(|(_, at)| *at);
    objects.into_iter().map(|(bytes, at)| link(reader.cursor(&bytes, at))).collect()
}

/// The links of a symbol table.
async fn symbols(reader: &Reader<'_>, (tree, heap): (u64, u64)) -> Result<Vec<Link>> {
    /// The type of an entry that caches the place of a symbolic link's path.
    const SYMBOLIC: u32 = 2;
    let superblock = reader.superblock();
    let tree1 = Tree1 { kind: 0, key: superblock.widths.length.into(), k: superblock.group_k };
    let (names, (size, entries)) =
        both(Local::read(reader, heap), tree1.entries(reader, tree)).await?;
    let leaf = |entry: &[u8]| reader.cursor(&entry[tree1.key..], tree).address();
    let leaves: Vec<u64> = entries.chunks_exact(size).map(leaf).collect::<Result<_>>()?;
    let entry = u64::from(superblock.widths.length) + u64::from(superblock.widths.address) + 24;
    let most = 2 * u64::from(superblock.leaf_k);
    let mut links = Vec::new();
    for (bytes, &at) in reader.get_up_to(&leaves, 8 + most * entry).await?.iter().zip(&leaves) {
        let mut cursor = reader.cursor(bytes, at);
        cursor.magic("SNOD")?;
        cursor.version(1, "a symbol table's node")?;
        cursor.skip(1)?;
        let count = u64::from(cursor.u16()?);
        if count > most {
            let found = format!("a symbol table's node of {count} entries");
            return damaged(at, found, format!("at most {most}"));
        }
        for _ in 0..count {
            let name = cursor.length()?;
            let place = cursor.address()?;
            let cached = cursor.u32()?;
            cursor.skip(4)?;
            let mut scratch = cursor.same(cursor.clone().take(16)?, cursor.at());
            cursor.skip(16)?;
            let target = match cached {
                SYMBOLIC => Target::Path(names.text(u64::from(scratch.u32()?))?.to_vec()),
                _ => Target::Object(place),
            };
            let name = names.text(name)?.to_vec();
            links.push(Link { name, target, order: None, is_utf8: false });
        }
    }
    Ok(links)
}

/// The link of a link message.
fn link(mut link: Cursor<'_>) -> Result<Link> {
    link.version(1, "a link")?;
    let flags = link.u8()?;
    let kind = if flags & 0x08 == 0 { 0 } else { link.u8()? };
    let order = if flags & 0x04 == 0 { None } else { Some(link.u64()?) };
    let is_utf8 = flags & 0x10 != 0 && link.u8()? == 1;
    let at = link.at();
    let len = link.uint(1 << (flags & 3))?;
    let Ok(len) = usize::try_from(len) else {
        return damaged(at, format!("a name of {len} bytes"), "a name");
    };
    let name = link.take(len)?.to_vec();
    let target = match kind {
        0 => Target::Object(link.address()?),
        1 => {
            let len = usize::from(link.u16()?);
            Target::Path(link.take(len)?.to_vec())
        }
        64 => {
            let len = usize::from(link.u16()?);
            let at = link.at();
            let mut value = link.same(link.clone().take(len)?, at);
            value.version(0, "an external link")?;
            Target::External { file: value.text()?.to_vec(), path: value.text()?.to_vec() }
        }
        2..=63 => return damaged(at, format!("a link of class {kind}"), "0, 1, or 64 and more"),
        kind => Target::UserDefined(kind),
    };
    Ok(Link { name, target, order, is_utf8 })
}
