//! Finding places where records may start if the framing is lost. Cheap tests reject almost all
//! places, so that the remaining ones can be decoded in full. This module does no input: the caller
//! fetches bytes and decodes candidates.

use super::{Encoding, Header, RecordPress};

/// Bytes of the size before a record.
const SIZE_BYTES: usize = 8;

/// First bytes of a zstd frame (RFC 8878, section 3.1.1).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes of a record without its id, signal and auxiliary fields: id length, read group, four
/// doubles, signal length.
const FIXED_BYTES: u64 = 2 + 4 + 4 * 8 + 8;

/// Least size of a zlib stream: header, an empty block, checksum (RFC 1950, section 2.2).
const LEAST_ZLIB_BYTES: u64 = 2 + 2 + 4;

/// Least size of a zstd frame with content: magic, descriptor, size, one block.
const LEAST_ZSTD_BYTES: u64 = 4 + 2 + 3 + 1;

/// A place where a record may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The index in the given bytes of the size before the record.
    pub at: usize,
    /// The number of bytes to the next frame, if this is a record.
    pub len: u64,
}

/// Finds places where a binary record may start.
#[derive(Debug, Clone, Copy)]
pub struct Resync {
    press: RecordPress,
    read_groups: u32,
    least: u64,
    most: u64,
}

impl Resync {
    /// Bytes from a candidate's start that the tests use. Windows over a file overlap by this
    /// number, so that the tests have fewer bytes only at the end of the file.
    pub(crate) const LOOK: usize = 128;

    /// A search for records of a file with this header, of at most `most` stored bytes. `None` for
    /// text, where a newline ends every row.
    pub fn new(header: &Header, most: u64) -> Option<Self> {
        let binary = header.encoding == Encoding::Binary;
        let press = header.record_press;
        let least = least_bytes(header.record_press);
        binary.then_some(Self { press, read_groups: header.read_groups, least, most })
    }

    /// The first place at or after index `from` of `bytes` where a record may start. The record
    /// must end within `remaining` bytes from the start of `bytes`.
    pub fn next(&self, bytes: &[u8], from: usize, remaining: u64) -> Option<Candidate> {
        let end = bytes.len().checked_sub(SIZE_BYTES)?;
        (from..=end).find_map(|at| {
            let rest = bytes.get(at..)?;
            let size = u64::from_le_bytes(*rest.first_chunk()?);
            // This test comes first, because it rejects most places. Nearly all the time is spent
            // here.
            let in_range = size >= self.least && size <= self.most;
            let fits = in_range && size + SIZE_BYTES as u64 <= remaining - at as u64;
            let plausible = fits && self.is_plausible(rest.get(SIZE_BYTES..)?, size);
            plausible.then(|| Candidate { at, len: size + SIZE_BYTES as u64 })
        })
    }

    /// Whether a record of `size` stored bytes may start with the bytes `stored`. Bytes that are
    /// not available are not tested.
    fn is_plausible(&self, stored: &[u8], size: u64) -> bool {
        let stored = stored.get(..Self::LOOK - SIZE_BYTES).unwrap_or(stored);
        match self.press {
            RecordPress::Zstd => stored.starts_with(&ZSTD_MAGIC),
            // The method is 8, and the two bytes are a multiple of 31 (RFC 1950, section 2.2).
            RecordPress::Zlib => stored.first_chunk().is_some_and(|&[cmf, flg]| {
                cmf & 15 == 8 && cmf >> 4 <= 7 && u16::from_be_bytes([cmf, flg]) % 31 == 0
            }),
            RecordPress::None => self.plain_fits(stored, size),
            // The count of 16-bit values, a key of 2 bits each, then 1 to 4 bytes each.
            RecordPress::SvbZd => stored.first_chunk().is_some_and(|&count| {
                let count = u64::from(u32::from_le_bytes(count));
                let keys = count.div_ceil(4);
                count >= FIXED_BYTES / 2
                    && (4 + keys + count..=4 + keys + 4 * count).contains(&size)
            }),
        }
    }

    fn plain_fits(&self, stored: &[u8], size: u64) -> bool {
        let Some((id_len, rest)) = stored.split_first_chunk() else { return false };
        let id_len = u16::from_le_bytes(*id_len);
        if id_len == 0 || FIXED_BYTES + u64::from(id_len) > size {
            return false;
        }
        let Some(rest) = rest.get(usize::from(id_len)..) else { return true };
        let Some((group, rest)) = rest.split_first_chunk() else { return true };
        if u32::from_le_bytes(*group) >= self.read_groups {
            return false;
        }
        // The signal length follows the four doubles. It counts bytes or samples, and a sample
        // takes at least one byte.
        let len = rest.get(4 * 8..).and_then(|rest| rest.first_chunk());
        len.is_none_or(|&len| u64::from_le_bytes(len) <= size - FIXED_BYTES - u64::from(id_len))
    }
}

/// The least number of stored bytes of a record.
pub(crate) fn least_bytes(press: RecordPress) -> u64 {
    match press {
        RecordPress::None => FIXED_BYTES,
        RecordPress::Zlib => LEAST_ZLIB_BYTES,
        RecordPress::Zstd => LEAST_ZSTD_BYTES,
        RecordPress::SvbZd => 4 + FIXED_BYTES / 2,
    }
}

/// Whether a zlib stream ends at the end of a record's bytes. `plain` is the decoded stream.
/// Decoders ignore bytes after a stream, and would accept a record with a damaged size.
pub(crate) fn zlib_ends(stored: &[u8], plain: &[u8]) -> bool {
    stored.last_chunk().is_some_and(|&sum| u32::from_be_bytes(sum) == adler32(plain))
}

/// The checksum at the end of a zlib stream (RFC 1950, section 8.2).
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    // The most bytes that two 32-bit sums hold before they must be reduced (zlib's NMAX).
    const RUN: usize = 5552;
    let mut a = 1u32;
    let mut b = 0u32;
    for run in bytes.chunks(RUN) {
        for &byte in run {
            a += u32::from(byte);
            b += a;
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resync(press: RecordPress) -> Resync {
        Resync { press, read_groups: 1, least: least_bytes(press), most: 1 << 20 }
    }

    #[test]
    fn checksums_are_adler32() {
        assert_eq!(adler32(b""), 1);
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert!(adler32(&vec![255; 100_000]) < 65_521 << 16);
    }

    #[test]
    fn signatures_are_found_and_sizes_must_fit() {
        let mut bytes = vec![0xee; 100];
        bytes[40..48].copy_from_slice(&20u64.to_le_bytes());
        bytes[48..52].copy_from_slice(&ZSTD_MAGIC);
        let zstd = resync(RecordPress::Zstd);
        assert_eq!(zstd.next(&bytes, 0, 100), Some(Candidate { at: 40, len: 28 }));
        assert_eq!(zstd.next(&bytes, 41, 100), None);
        assert_eq!(zstd.next(&bytes, 0, 67), None, "it would end beyond the file");
        assert_eq!(resync(RecordPress::Zlib).next(&bytes, 0, 100), None);
        bytes[48..50].copy_from_slice(&[0x78, 0x9c]);
        assert_eq!(
            resync(RecordPress::Zlib).next(&bytes, 0, 100),
            Some(Candidate { at: 40, len: 28 })
        );
        for press in RecordPress::ALL {
            assert_eq!(resync(press).next(&[0; 500], 0, 500), None, "a hole is no record");
            assert_eq!(resync(press).next(&[255; 500], 0, 500), None);
            assert_eq!(resync(press).next(b"5WOLB", 0, 5), None);
        }
    }
}
