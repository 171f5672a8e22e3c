//! B-trees: version 1 over symbol tables and chunks (section III.A.1), version 2 over dense
//! storage, chunks and large objects of heaps (section III.A.2).

use super::checksum::verified;
use super::{Reader, Result, at_once, damaged};

/// The kind of a version 1 tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree1 {
    /// 0 for symbol tables, 1 for chunks.
    pub(super) kind: u8,
    /// Bytes of a key.
    pub(super) key: usize,
    /// Most children of half a node.
    pub(super) k: u16,
}

impl Tree1 {
    /// Walks the tree level by level, and returns the entries of the last level and the bytes of
    /// each: a key, and the address of a child.
    pub(super) async fn entries(self, reader: &Reader<'_>, root: u64) -> Result<(usize, Vec<u8>)> {
        let entry = self.key + usize::from(reader.superblock().widths.address);
        let mut below = None;
        let mut places = vec![root];
        loop {
            let (level, entries) = self.level(reader, &places, below).await?;
            let Some(next) = level.checked_sub(1) else { return Ok((entry, entries)) };
            below = Some(next);
            let child = |entry: &[u8]| {
                let mut cursor = reader.cursor(entry, root);
                cursor.skip(self.key)?;
                cursor.address()
            };
            places = entries.chunks_exact(entry).map(child).collect::<Result<_>>()?;
        }
    }

    /// The level of the nodes at `places`, and their entries. `expected` is the level, except for
    /// the root.
    async fn level(
        self,
        reader: &Reader<'_>,
        places: &[u64],
        expected: Option<u8>,
    ) -> Result<(u8, Vec<u8>)> {
        let width = usize::from(reader.superblock().widths.address);
        let head = 8 + 2 * width;
        let node = (head + 2 * usize::from(self.k) * (self.key + width) + self.key) as u64;
        let mut level = expected;
        let mut all = Vec::new();
        for places in places.chunks(at_once(node)) {
            reader.hint(places, node);
            let heads: Vec<(u64, u64)> = places.iter().map(|&at| (at, head as u64)).collect();
            let mut entries = Vec::with_capacity(places.len());
            for (bytes, &at) in reader.get_all(&heads).await?.iter().zip(places) {
                let mut cursor = reader.cursor(bytes, at);
                cursor.magic("TREE")?;
                cursor.version(self.kind, "a B-tree")?;
                let found = cursor.u8()?;
                let used = u64::from(cursor.u16()?);
                if level.is_some_and(|level| level != found) {
                    let expected = format!("level {}", level.unwrap_or(0));
                    return damaged(at, format!("a B-tree's node of level {found}"), expected);
                }
                level = Some(found);
                entries.push((at + head as u64, used * (self.key + width) as u64));
            }
            for bytes in reader.get_all(&entries).await? {
                all.extend_from_slice(&bytes);
            }
        }
        Ok((level.unwrap_or(0), all))
    }
}

/// The records of a version 2 tree of records of this type, level by level, and the bytes of each.
/// Records may have `sizes` bytes.
pub(super) async fn version2(
    reader: &Reader<'_>,
    at: u64,
    kind: u8,
    sizes: std::ops::RangeInclusive<usize>,
) -> Result<(usize, Vec<u8>)> {
    let widths = reader.superblock().widths;
    let len = 4 + 1 + 1 + 4 + 2 + 2 + 2 + u64::from(widths.address) + 2 + u64::from(widths.length);
    let header = reader.get(at, len + 4).await?;
    let mut cursor = reader.cursor(verified(&header, at)?, at);
    cursor.magic("BTHD")?;
    cursor.version(0, "a B-tree")?;
    cursor.version(kind, "a B-tree's records")?;
    let node = cursor.u32()?;
    let record = cursor.u16()?;
    let depth = cursor.u16()?;
    cursor.skip(2)?;
    let root = cursor.address()?;
    let count = cursor.u16()?;
    let total = cursor.length()?;
    let size = usize::from(record);
    if !sizes.contains(&size) || size == 0 {
        return damaged(at, format!("records of {record} bytes"), format!("{sizes:?}"));
    }
    if total == 0 || count == 0 {
        return Ok((size, Vec::new()));
    }
    let shape = NodeShape::new(u64::from(node), size as u64, depth, widths.address.into(), at)?;
    let mut level = vec![(root, u64::from(count))];
    let mut records = Vec::new();
    for depth in (0..shape.levels.len()).rev() {
        let mut below = Vec::new();
        for nodes in level.chunks(at_once(shape.node)) {
            let places: Vec<(u64, u64)> = nodes
                .iter()
                .map(|&(at, count)| Ok((at, shape.bytes(at, count, depth)?)))
                .collect::<Result<_>>()?;
            let all = reader.get_all(&places).await?;
            for (bytes, &(at, count)) in all.iter().zip(nodes) {
                let mut cursor = reader.cursor(verified(bytes, at)?, at);
                cursor.magic(if depth == 0 { "BTLF" } else { "BTIN" })?;
                cursor.version(0, "a B-tree's node")?;
                cursor.version(kind, "a B-tree's records")?;
                records.extend_from_slice(cursor.take(count as usize * size)?);
                for _ in 0..if depth == 0 { 0 } else { count + 1 } {
                    let place = cursor.address()?;
                    let count = cursor.uint(shape.count)?;
                    cursor.skip(shape.totals[depth - 1])?;
                    below.push((place, count));
                }
            }
        }
        level = below;
    }
    if (records.len() / size) as u64 != total {
        return damaged(
            at,
            format!("{} records", records.len() / size),
            format!("{total}, as the tree's header says"),
        );
    }
    Ok((size, records))
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
    fn new(node: u64, record: u64, depth: u16, address: usize, at: u64) -> Result<Self> {
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
        let mut levels = vec![(most, 0)];
        let mut totals = vec![0];
        let mut below = most;
        for level in 0..usize::from(depth) {
            let pointer = address + count + totals[level];
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

    /// The bytes of a node of a level with this number of records.
    fn bytes(&self, at: u64, count: u64, level: usize) -> Result<u64> {
        let (most, pointer) = self.levels[level];
        if count > most {
            let found = format!("a B-tree's node of {count} records");
            return damaged(at, found, format!("at most {most}"));
        }
        let pointers = if level == 0 { 0 } else { (count + 1) * pointer as u64 };
        Ok(OVERHEAD + count * self.record as u64 + pointers)
    }
}

/// The bytes that hold every number up to `most`.
pub(super) fn bytes_for(most: u64) -> usize {
    most.checked_ilog2().unwrap_or(0) as usize / 8 + 1
}
