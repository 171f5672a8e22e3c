//! The checksum of HDF5's newer structures: Bob Jenkins's `lookup3`, little-endian, from zero.

use super::{Result, damaged};

/// Checks a structure whose last four bytes are the checksum of the bytes before, and returns the
/// bytes before.
pub(super) fn verified(bytes: &[u8], at: u64) -> Result<&[u8]> {
    let Some((data, sum)) = bytes.split_last_chunk::<4>() else {
        return damaged(at, format!("{} bytes", bytes.len()), "a structure and its checksum");
    };
    let stored = u32::from_le_bytes(*sum);
    let computed = lookup3(data);
    if stored == computed {
        return Ok(data);
    }
    damaged(
        at + data.len() as u64,
        format!("the checksum {stored:08x}"),
        format!("{computed:08x}, as of the bytes before"),
    )
}

/// `H5_checksum_metadata`.
pub(super) fn lookup3(data: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(data.len() as u32);
    let mut a = start;
    let mut b = start;
    let mut c = start;
    let word = |bytes: &[u8], i: usize| {
        let mut word = [0; 4];
        for (to, &from) in word.iter_mut().zip(bytes.iter().skip(i * 4)) {
            *to = from;
        }
        u32::from_le_bytes(word)
    };
    // The last one to twelve bytes are mixed in another way.
    let whole = data.len().saturating_sub(1) / 12 * 12;
    let (blocks, last) = data.split_at_checked(whole).unwrap_or((data, &[]));
    for block in blocks.chunks_exact(12) {
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 1));
        c = c.wrapping_add(word(block, 2));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    if last.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(last, 0));
    b = b.wrapping_add(word(last, 1));
    c = c.wrapping_add(word(last, 2));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::lookup3;

    /// The value that the author of the checksum gives, and the value of the empty input.
    #[test]
    fn known_values() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
