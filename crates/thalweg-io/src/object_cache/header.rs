//! What the table of a section says about itself: the object, its version, and the place of the
//! section in it.
//!
//! ```text
//! byte    0  magic, version of the format, bytes of a block, size of the object, number of the
//!            section, identity, lengths of the next two, URL, tag, zeros
//!      4088  checksum of all this
//!      4096  when the section was used last, as a count of uses
//!      8192  a checksum for each of up to 1,048,576 blocks; 0 if the block is missing
//! ```
//!
//! Numbers are little-endian. The blocks are in another file, at the places that they have in the
//! section: the file of an object's only section is a copy of the object.

use std::sync::Arc;

use thalweg_codec::splitmix::checksum;
use twox_hash::XxHash3_64;

use crate::error::Fault;

/// Bytes of a block, the unit that is there or missing. It is the smallest block of the planner, so
/// that the requests of a stream are whole blocks, and small enough to be checked for a read of a
/// few bytes.
pub(super) const BLOCK: u64 = 64 << 10;
/// Blocks of a section, the unit that is evicted: 64 GiB. Nearly all objects have one section.
pub(super) const BLOCKS: u64 = 1 << 20;

const MAGIC: &[u8; 8] = b"thlwgobj";
const VERSION: u32 = 2;
/// Bytes of a header, its checksum included.
pub(super) const HEADER: usize = 4096;
const SUM: usize = HEADER - 8;
/// Where the count of uses is.
pub(super) const USED: u64 = HEADER as u64;
/// Where the checksums of the blocks begin.
pub(super) const SUMS: u64 = 8192;
/// The fields of fixed size.
const FIXED: usize = 56;

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectId {
    /// Its URL for people.
    pub(super) url: Arc<str>,
    /// The tag of its version.
    pub(super) tag: Arc<str>,
    pub(super) size: u64,
    /// Tells it from all others.
    pub(super) hash: [u64; 2],
}

impl ObjectId {
    /// The version with this tag, of `size` bytes, of the object at `address`. The address is only
    /// hashed, so it may hold secrets; `url` is written down.
    pub fn new(url: &str, address: &str, tag: &str, size: u64) -> Self {
        let all = format!("{address}\0{tag}\0{size}");
        let hash = [0, 1].map(|seed| XxHash3_64::oneshot_with_seed(seed, all.as_bytes()));
        Self { url: url.into(), tag: tag.into(), size, hash }
    }
}

/// The header of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub(super) id: ObjectId,
    /// The section begins at this multiple of a section's bytes.
    pub(super) number: u64,
}

impl Header {
    /// The header of the section with this number, counted from 0.
    pub fn new(id: ObjectId, number: u64) -> Self {
        Self { id, number }
    }

    /// Reads a header, which is at the beginning of `bytes`.
    ///
    /// # Errors
    /// The first byte that is wrong, what is there, and what should be.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let Some(bytes) = bytes.get(..HEADER) else {
            let found = format!("{} bytes", bytes.len());
            return Err(Fault::new(bytes.len(), found, "4096 bytes of a header"));
        };
        let wrong = |at: usize, what: &'static str, expected: &'static str| {
            Err(Fault::new(at, what, expected))
        };
        let number = |at: usize| thalweg_codec::splitmix::word(&bytes[at..at + 8]);
        let (block, version) = (number(8) >> 32, number(8) as u32);
        if !bytes.starts_with(MAGIC) {
            return wrong(0, "other bytes", "the signature of a section");
        }
        if version != VERSION || block != BLOCK {
            let found = format!("version {version}, blocks of {block} bytes");
            return Err(Fault::new(8, found, "version 2, blocks of 65536 bytes"));
        }
        if number(SUM) != checksum(&bytes[..SUM]) {
            return wrong(SUM, "another checksum", "the checksum of the header");
        }
        let (size, place) = (number(16), number(24));
        let is_inside = place.checked_mul(BLOCK * BLOCKS).is_some_and(|start| start < size);
        if !is_inside {
            return wrong(24, "a section beyond the object", "one inside of it");
        }
        let hash = [number(32), number(40)];
        let (url_len, tag_len) = (number(48) as u32 as usize, (number(48) >> 32) as usize);
        let text = |from: usize, len: usize| {
            let bytes = bytes[..SUM].get(from..from.checked_add(len)?)?;
            std::str::from_utf8(bytes).ok().map(Arc::from)
        };
        let texts = text(FIXED, url_len).zip(text(FIXED.saturating_add(url_len), tag_len));
        let Some((url, tag)) = texts else {
            return wrong(48, "no text of this length", "a URL and a tag in UTF-8");
        };
        if bytes[FIXED + url_len + tag_len..SUM].iter().any(|byte| *byte != 0) {
            return wrong(FIXED, "bytes after the tag", "zeros");
        }
        Ok(Self { id: ObjectId { url, tag, size, hash }, number: place })
    }

    /// The bytes of the header. `None` if the URL and the tag are too long for it.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let ObjectId { url, tag, size, hash } = &self.id;
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(BLOCK as u32).to_le_bytes());
        for number in [*size, self.number, hash[0], hash[1]] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&u32::try_from(url.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(tag.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(url.as_bytes());
        bytes.extend_from_slice(tag.as_bytes());
        if bytes.len() > SUM {
            return None;
        }
        bytes.resize(SUM, 0);
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        Some(bytes)
    }

    /// The name of the section's table.
    pub(super) fn file_name(&self) -> String {
        let [one, two] = self.id.hash;
        format!("{one:016x}{two:016x}-{:x}.{TABLE}", self.number)
    }

    /// Where the section begins in the object, and how many bytes it has.
    pub(super) fn extent(&self) -> (u64, u64) {
        let start = self.number * BLOCKS * BLOCK;
        (start, (BLOCKS * BLOCK).min(self.id.size - start))
    }

    /// The blocks of the object that the section has room for.
    pub(super) fn blocks(&self) -> std::ops::Range<u64> {
        let first = self.number * BLOCKS;
        first..(first + BLOCKS).min(self.id.size.div_ceil(BLOCK))
    }
}

/// The extensions of the two files of a section: its table, and its blocks.
pub(super) const TABLE: &str = "blocks";
pub(super) const BYTES: &str = "bytes";

/// Whether a file of this name is one of a section.
pub(super) fn is_of_section(name: &str) -> bool {
    let is_hex = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let (stem, extension) = name.rsplit_once('.').unwrap_or_default();
    let parts = stem.split_once('-').filter(|_| [TABLE, BYTES].contains(&extension));
    parts.is_some_and(|(hash, number)| hash.len() == 32 && is_hex(hash) && is_hex(number))
}

/// The checksum of a block. It depends on the object, the version and the block's number, so that a
/// block in the wrong place is as wrong as a damaged one. It is never 0.
pub(super) fn seal(id: &ObjectId, block: u64, bytes: &[u8]) -> u64 {
    use thalweg_codec::splitmix::{STEP, mix};
    let place = mix(id.hash[0].wrapping_add(block.wrapping_mul(STEP)));
    (XxHash3_64::oneshot(bytes) ^ place).max(1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn header(url: &str) -> Header {
        let id = ObjectId::new(url, "address?secret", "\"tag\"", BLOCK * BLOCKS * 3);
        Header { id, number: 2 }
    }

    #[test]
    fn headers_are_read_as_they_were_written() {
        let written = header("s3://bucket/key");
        let bytes = written.encode().unwrap();
        assert_eq!(bytes.len(), HEADER);
        assert_eq!(Header::parse(&bytes).unwrap(), written);
        assert!(!bytes.windows(6).any(|part| part == b"secret"));
        assert!(is_of_section(&written.file_name()), "{}", written.file_name());
        assert!(header(&"x".repeat(4000)).encode().is_some());
        assert_eq!(header(&"x".repeat(4100)).encode(), None);
        let beyond = Header { number: 3, ..written };
        assert!(Header::parse(&beyond.encode().unwrap()).is_err());
    }

    #[test]
    fn each_changed_byte_is_found() {
        let bytes = header("s3://bucket/key").encode().unwrap();
        for at in 0..HEADER {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(Header::parse(&bytes).is_err(), "byte {at}");
            assert!(Header::parse(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn other_files_are_no_sections() {
        for name in ["", "a.blocks", "uses", "0123456789abcdef0123456789abcdef-.blocks"] {
            assert!(!is_of_section(name), "{name}");
        }
    }

    #[test]
    fn a_block_belongs_to_one_place_of_one_version() {
        let id = |tag| ObjectId::new("u", "a", tag, 1 << 30);
        let sum = seal(&id("1"), 7, b"bytes");
        assert_ne!(sum, seal(&id("1"), 8, b"bytes"));
        assert_ne!(sum, seal(&id("2"), 7, b"bytes"));
        assert_ne!(sum, seal(&id("1"), 7, b"Bytes"));
    }
}
