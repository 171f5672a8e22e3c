//! Finds the children of nodes of version-2 B-trees of chunks.
//!
//! The header of the tree says how long records are, and the node above says how many a node has.
//! So this is remembered when the header and the nodes above are read.

use std::collections::HashMap;

/// The types of trees of chunks: without filters, and with filters.
const TYPES: [u8; 2] = [10, 11];
/// Bytes before the records of a node: signature, version and type (HDF5 file format specification
/// 3.0, section III.A.2).
const HEAD: usize = 6;
/// Bytes before the records, and of the checksum.
const AROUND: usize = 10;
/// Bytes of an address in all but the smallest files.
const ADDRESS: usize = 8;
/// The most levels of a tree. More are not needed for any number of chunks.
const MOST_LEVELS: u16 = 32;
/// The most nodes that are remembered.
const MOST: usize = 4096;

/// What is known of a node before it is read.
#[derive(Debug, Clone, Copy)]
struct IndexNode {
    /// Bytes of each node of its tree.
    size: usize,
    /// Bytes of each record.
    record: usize,
    /// Levels below it.
    depth: u16,
    records: usize,
}

/// The nodes that are known but not read yet, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Trees(HashMap<u64, IndexNode>);

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// The bytes of a number of at most `most`.
fn bytes_of(most: u64) -> usize {
    (most.max(1).ilog2() / 8) as usize + 1
}

impl IndexNode {
    /// The bytes of the number of a child's records, and of the whole entry of a child.
    fn pointer(&self) -> Option<(usize, usize)> {
        let leaf = self.size.checked_sub(AROUND)?.checked_div(self.record)? as u64;
        let count = bytes_of(leaf);
        // The entry of a child that has children also holds the number of records below it.
        let mut pointer = ADDRESS + count;
        let mut below = leaf;
        for _ in 1..self.depth {
            let most = (self.size.checked_sub(AROUND + pointer)? / (self.record + pointer)) as u64;
            below = most.checked_add(1)?.checked_mul(below)?.checked_add(most)?;
            pointer = ADDRESS + count + bytes_of(below);
        }
        Some((count, pointer))
    }

    fn children(&self, bytes: &[u8]) -> Option<Vec<(u64, Self)>> {
        let (count, pointer) = self.pointer()?;
        let first = self.record.checked_mul(self.records)?.checked_add(HEAD)?;
        let child = |place: usize| {
            let at = first.checked_add(place.checked_mul(pointer)?)?;
            let records = number(bytes, at.checked_add(ADDRESS)?, count)? as usize;
            Some((number(bytes, at, ADDRESS)?, Self { depth: self.depth - 1, records, ..*self }))
        };
        (0..=self.records).map(child).collect()
    }
}

impl Trees {
    /// The addresses of the children of the node at `at`, in order, if `bytes` is a whole inner
    /// node and the nodes above it were read before. They may be wrong.
    pub(super) fn children(&mut self, at: u64, bytes: &[u8]) -> Vec<u64> {
        match bytes {
            [b'B', b'T', b'H', b'D', 0, kind, ..] if TYPES.contains(kind) => {
                self.root(bytes);
                Vec::new()
            }
            [b'B', b'T', b'I', b'N', 0, kind, ..] if TYPES.contains(kind) => {
                let node =
                    self.0.remove(&at).filter(|node| node.size == bytes.len() && node.depth > 0);
                let children = node.and_then(|node| node.children(bytes)).unwrap_or_default();
                let inner = children.iter().filter(|(_, child)| child.depth > 0);
                self.0.extend(inner.copied().take(MOST.saturating_sub(self.0.len())));
                children.into_iter().map(|(address, _)| address).collect()
            }
            _ => Vec::new(),
        }
    }

    fn root(&mut self, header: &[u8]) -> Option<()> {
        let small = |at, size| number(header, at, size).map(|number| number as usize);
        let (size, record, depth) = (small(6, 4)?, small(10, 2)?, number(header, 12, 2)? as u16);
        let address = number(header, 16, ADDRESS)?;
        let records = small(24, 2)?;
        if record > 0 && (1..=MOST_LEVELS).contains(&depth) && self.0.len() < MOST {
            self.0.insert(address, IndexNode { size, record, depth, records });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::Trees;
    use proptest::prelude::*;

    const SIZE: usize = 2048;
    const RECORD: usize = 24;

    fn header(depth: u16, root: u64, records: u16) -> Vec<u8> {
        let mut bytes = b"BTHD\x00\x0a".to_vec();
        bytes.extend((SIZE as u32).to_le_bytes());
        bytes.extend((RECORD as u16).to_le_bytes());
        bytes.extend(depth.to_le_bytes());
        bytes.extend([100, 40]);
        bytes.extend(root.to_le_bytes());
        bytes.extend(records.to_le_bytes());
        bytes.extend([0; 12]);
        bytes
    }

    /// A node whose children have 7 records each. In the entry of a child, `below` bytes hold the
    /// number of records below it.
    fn inner(children: &[u64], below: usize) -> Vec<u8> {
        let mut bytes = b"BTIN\x00\x0a".to_vec();
        bytes.resize(bytes.len() + (children.len() - 1) * RECORD, 0xaa);
        for child in children {
            bytes.extend(child.to_le_bytes());
            bytes.push(7);
            bytes.resize(bytes.len() + below, 0xbb);
        }
        bytes.resize(SIZE, 0);
        bytes
    }

    #[test]
    fn inner_nodes_hold_the_addresses_of_their_children() {
        let mut trees = Trees::default();
        let (top, low): (Vec<u64>, Vec<u64>) =
            ((1..20).map(|i| i * 3000).collect(), (1..9).map(|i| i * 70_001).collect());
        assert!(trees.children(90, &header(2, 500, 18)).is_empty());
        // A leaf has up to 84 records, and a node above up to 61, so the number of records below it
        // takes two bytes.
        assert_eq!(trees.children(500, &inner(&top, 2)), top);
        assert_eq!(trees.children(3000, &inner(&low, 0)), low);
        assert!(trees.children(3000, &inner(&low, 0)).is_empty(), "each is read once");
        assert!(trees.children(4000, &inner(&low, 0)).is_empty(), "of a tree that is not known");
        assert!(trees.children(6000, &inner(&low, 0)[..SIZE - 1]).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(
            head in prop::collection::vec(any::<u8>(), 40),
            node in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut trees = Trees::default();
            let mut header = header(3, 500, 9);
            header[6..28].copy_from_slice(&head[..22]);
            header[16..24].copy_from_slice(&500_u64.to_le_bytes());
            trees.children(0, &header);
            trees.children(500, &[b"BTIN\x00\x0b", &node[..]].concat());
        }
    }
}
