//! Predicts what libhdf5 reads next: the children of a node of a chunk index.

use crate::libhdf5::array::MOST_RANK;

/// The most children of a node that are predicted.
const MOST: usize = 128;

/// Bytes before the entries of a node: signature, type, level, entries used, and two siblings (HDF5
/// file format specification 3.0, section III.A.1).
const HEAD: usize = 24;
/// Bytes of an address in all but the smallest files.
const ADDRESS: usize = 8;
/// Bytes of the first fields of a key: the size of the chunk and its mask of filters.
const KEY_HEAD: usize = 8;

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The addresses of a node's children, in order, if `node` is a whole inner node of a version-1
/// B-tree of chunks. They may be wrong: the number of dimensions of a key is guessed from the
/// node's length and from the zero that ends each key.
pub(super) fn children(node: &[u8]) -> Option<Vec<u64>> {
    let &[b'T', b'R', b'E', b'E', 1, level, low, high, ..] = node else { return None };
    let used = usize::from(u16::from_le_bytes([low, high])).min(MOST);
    if level == 0 || used == 0 {
        return None;
    }
    // A key has a number for each dimension, and one for the bytes of an element, which is 0.
    (1..=MOST_RANK).find_map(|rank| {
        let key = KEY_HEAD + (rank + 1) * ADDRESS;
        let entries = node.len().checked_sub(HEAD + key)?;
        if entries % (key + ADDRESS) != 0 || entries / (key + ADDRESS) < used {
            return None;
        }
        let at = |entry: usize| HEAD + entry * (key + ADDRESS);
        let child = |entry| {
            let child = at(entry) + key;
            number(node, child).filter(|_| number(node, child - ADDRESS) == Some(0))
        };
        (0..used).map(child).collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::children;

    /// A node of up to 64 children, as libhdf5 writes it.
    fn node(level: u8, rank: u64, addresses: &[u64]) -> Vec<u8> {
        let mut bytes = b"TREE\x01".to_vec();
        bytes.push(level);
        bytes.extend((addresses.len() as u16).to_le_bytes());
        bytes.extend([0xff; 16]);
        for entry in 0..65 {
            bytes.extend(8192u32.to_le_bytes());
            bytes.extend(0u32.to_le_bytes());
            (0..rank).for_each(|d| bytes.extend((entry * 100 + d + 1).to_le_bytes()));
            bytes.extend(0u64.to_le_bytes());
            if entry < 64 {
                bytes.extend(
                    addresses.get(entry as usize).copied().unwrap_or(u64::MAX).to_le_bytes(),
                );
            }
        }
        bytes
    }

    #[test]
    fn inner_nodes_hold_the_addresses_of_their_children() {
        let addresses: Vec<u64> = (0..40).map(|i| 77_777 * i + 5).collect();
        for rank in 1..=32 {
            let bytes = node(1, rank, &addresses);
            assert_eq!(children(&bytes).as_ref(), Some(&addresses), "{rank}");
            assert_eq!(children(&bytes[..bytes.len() - 4]), None);
        }
        assert_eq!(children(&node(0, 1, &addresses)), None);
        assert_eq!(children(&node(1, 1, &[])), None);
        assert_eq!(children(b"TREE"), None);
    }
}
