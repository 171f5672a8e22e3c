//! B-trees: version 1 over symbol tables and chunks, version 2 over dense storage.

use super::checksum::verified;
use super::cursor::Cursor;
use super::{ByteSource, Reader, Result, damaged, foreign};

/// A level of a version 1 tree, with the entries of all its nodes.
struct TreeLevel {
    level: u8,
    /// For each child, the key before it and its address.
    entries: Vec<(Vec<u8>, u64)>,
}

/// Walks a version 1 tree level by level, and returns the keys of the last level, of `key` bytes
/// each, with their children.
///
/// A node has about `likely` bytes.
pub(super) fn version1<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    root: u64,
    kind: u8,
    key: usize,
    likely: u64,
) -> Result<Vec<(Vec<u8>, u64)>> {
    let mut level = nodes1(reader, &[root], kind, key, None, likely)?;
    while level.level > 0 {
        let below = level.level - 1;
        let places: Vec<u64> = level.entries.iter().map(|(_, child)| *child).collect();
        level = nodes1(reader, &places, kind, key, Some(below), likely)?;
    }
    Ok(level.entries)
}

fn nodes1<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    places: &[u64],
    kind: u8,
    key: usize,
    expected: Option<u8>,
    likely: u64,
) -> Result<TreeLevel> {
    const HEAD: u64 = 24;
    reader.expect(places, likely)?;
    let mut all = TreeLevel { level: expected.unwrap_or(0), entries: Vec::new() };
    for &at in places {
        let head = reader.get(at, HEAD)?;
        let mut cursor = Cursor::new(&head, at);
        cursor.magic("TREE")?;
        cursor.version(kind, "a B-tree")?;
        let level = cursor.u8()?;
        let used = cursor.u16()?;
        match expected {
            None => all.level = level,
            Some(expected) if level != expected => {
                return damaged(
                    at,
                    format!("a B-tree's node of level {level}"),
                    format!("level {expected}"),
                );
            }
            Some(_) => {}
        }
        let entries = reader.get(at + HEAD, u64::from(used) * (key as u64 + 8))?;
        let mut cursor = Cursor::new(&entries, at + HEAD);
        for _ in 0..used {
            let key = cursor.take(key)?.to_vec();
            all.entries.push((key, cursor.u64()?));
        }
    }
    Ok(all)
}

/// The records of a version 2 tree, each of `size` bytes, level by level.
pub(super) fn version2<S: ByteSource + ?Sized>(
    reader: &Reader<'_, S>,
    at: u64,
    kind: u8,
    size: usize,
) -> Result<Vec<Vec<u8>>> {
    let header = reader.get(at, 38)?;
    let mut cursor = Cursor::new(verified(&header, at)?, at);
    cursor.magic("BTHD")?;
    cursor.version(0, "a B-tree")?;
    cursor.version(kind, "a B-tree's records")?;
    let (node, record, depth) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
    cursor.skip(2)?;
    let (root, count, total) = (cursor.u64()?, cursor.u16()?, cursor.u64()?);
    if usize::from(record) != size {
        return damaged(at, format!("records of {record} bytes"), format!("{size}"));
    }
    if total == 0 || count == 0 {
        return Ok(Vec::new());
    }
    let shape = NodeShape::new(u64::from(node), size as u64, depth, at)?;
    let mut level = vec![(root, u64::from(count))];
    let mut inner = Vec::new();
    for depth in (0..shape.levels.len()).rev() {
        let places: Vec<u64> = level.iter().map(|(place, _)| *place).collect();
        reader.expect(&places, shape.node)?;
        let mut below = Vec::new();
        for (place, count) in level {
            shape.node(reader, (place, count), depth, kind, &mut inner, &mut below)?;
        }
        level = below;
    }
    if inner.len() as u64 != total {
        return damaged(
            at,
            format!("{} records", inner.len()),
            format!("{total}, as the tree's header says"),
        );
    }
    Ok(inner)
}

/// How the nodes of a version 2 tree are laid out.
struct NodeShape {
    node: u64,
    record: usize,
    /// For each level from the leaves on: the most records of a node, and the bytes of the entry of
    /// a child.
    levels: Vec<(u64, usize)>,
    /// The bytes of the number of a node's records.
    count: usize,
    /// For each level: the bytes of the number of all records below one of its nodes.
    totals: Vec<usize>,
}

/// Bytes of a node besides its records: signature, version, type, checksum.
const OVERHEAD: u64 = 10;

impl NodeShape {
    fn new(node: u64, record: u64, depth: u16, at: u64) -> Result<Self> {
        let most = node.saturating_sub(OVERHEAD) / record;
        // The trees of the library have a few levels, and nodes of half a KiB.
        if most == 0 || depth > 16 || node > 1 << 20 {
            return damaged(
                at,
                format!("a B-tree of depth {depth} with nodes of {node} bytes"),
                "a B-tree",
            );
        }
        let count = bytes_for(most);
        let (mut levels, mut totals, mut below) = (vec![(most, 0)], vec![0], most);
        for level in 0..usize::from(depth) {
            let pointer = 8 + count + totals[level];
            let most = node.saturating_sub(OVERHEAD + pointer as u64) / (record + pointer as u64);
            if most == 0 {
                return damaged(at, format!("nodes of {node} bytes"), "room for records");
            }
            below = most.saturating_add(1).saturating_mul(below).saturating_add(most);
            levels.push((most, pointer));
            totals.push(bytes_for(below));
        }
        Ok(Self { node, record: record as usize, levels, count, totals })
    }

    /// Appends the records of a node of a level to `records`, and its children to `children`.
    fn node<S: ByteSource + ?Sized>(
        &self,
        reader: &Reader<'_, S>,
        (at, count): (u64, u64),
        level: usize,
        kind: u8,
        records: &mut Vec<Vec<u8>>,
        children: &mut Vec<(u64, u64)>,
    ) -> Result<()> {
        let (most, pointer) = self.levels[level];
        if count > most {
            return damaged(
                at,
                format!("a B-tree's node of {count} records"),
                format!("at most {most}"),
            );
        }
        let count = count as usize;
        let pointers = if level == 0 { 0 } else { (count + 1) * pointer };
        let bytes = reader.get(at, OVERHEAD + (count * self.record + pointers) as u64)?;
        let mut cursor = Cursor::new(verified(&bytes, at)?, at);
        cursor.magic(if level == 0 { "BTLF" } else { "BTIN" })?;
        cursor.version(0, "a B-tree's node")?;
        cursor.version(kind, "a B-tree's records")?;
        for _ in 0..count {
            records.push(cursor.take(self.record)?.to_vec());
        }
        if level > 0 {
            for _ in 0..=count {
                let place = cursor.u64()?;
                let count = cursor.uint(self.count)?;
                cursor.skip(self.totals[level - 1])?;
                children.push((place, count));
            }
        }
        Ok(())
    }
}

/// The bytes that hold every number up to `most`.
pub(super) fn bytes_for(most: u64) -> usize {
    most.checked_ilog2().unwrap_or(0) as usize / 8 + 1
}

/// Refuses dense storage with filters. `len` is the size of their description in bytes.
pub(super) fn check_filters(len: u16) -> Result<()> {
    if len == 0 { Ok(()) } else { foreign("dense storage that is compressed") }
}
