//! The index beside a file (`.idx`): the place of each read's record, by read id. slow5lib and
//! slow5tools read and write the same bytes.
//!
//! ```text
//! "SLOW5IDX\1", version (3 bytes), zeros to 64
//! per read: u16 id length, id, u64 offset, u64 size
//! "XDI5WOLS"
//! ```
//!
//! The offset of a BLOW5 record is that of the 8-byte size before it; its size includes these 8
//! bytes. The offset of a SLOW5 record is that of its row; its size includes the newline.
//!
//! An index of ten million reads must leave memory for other work. The bytes of the file are
//! therefore kept as they are, and the only other structure is a hash table of 8-byte slots. This
//! takes about 65 bytes per read with ids of 36 characters.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};

use thalweg_io::Fault;

use super::{Encoding, Header, Version, quoted};

/// First bytes of an index.
const MAGIC: &[u8; 9] = b"SLOW5IDX\x01";

/// The start of the entries. Unused bytes before it are zero.
const ENTRIES_AT: usize = 64;

/// Last bytes of an index.
const END_MARKER: &[u8; 8] = b"XDI5WOLS";

/// Bytes of an id's length.
const ID_LEN_BYTES: usize = 2;

/// Bytes of an offset and a size.
const PLACE_BYTES: usize = 16;

/// Bytes of a BLOW5 file after its last record.
const FILE_END_BYTES: u64 = 5;

/// Least size of a BLOW5 record in an index, which includes the 8 bytes of the stored size.
const LEAST_RECORD_BYTES: u64 = 8;

/// Bytes of an index that are read at a time.
const PIECE: u64 = 1 << 20;

/// What to do about an index of other reads.
const REBUILD: &str = "the index does not belong to this file or is out of date; build it again";

/// Low bits of a slot that hold an entry's position plus one. The high bits hold the top bits of
/// the id's hash, so that most searches for other ids need not compare ids. An index of 2^48 bytes
/// is larger than any in practice.
const POSITION_BITS: u32 = 48;

/// The place of a read's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The offset in the data file of the size before a BLOW5 record, or of a SLOW5 row.
    pub offset: u64,
    /// The number of bytes from `offset` to the next record.
    pub size: u64,
}

/// An index in memory, in the order of the file.
///
/// ```
/// use thalweg_nanopore::slow5::Entry;
/// use thalweg_nanopore::slow5::Index;
/// use thalweg_nanopore::slow5::Version;
///
/// let mut index = Index::new(Version::V0_2_0);
/// index.push("read-1", Entry { offset: 1000, size: 300 })?;
/// assert_eq!(index.get("read-1"), Some(Entry { offset: 1000, size: 300 }));
/// assert_eq!(Index::parse(index.parts().concat())?.len(), 1);
/// # Ok::<(), thalweg_io::Fault>(())
/// ```
#[derive(Clone)]
pub struct Index {
    version: Version,
    /// The file without its end marker.
    bytes: Vec<u8>,
    len: usize,
    /// The hash table: a power of two of slots, at most three quarters full.
    slots: Vec<u64>,
    /// The hash function, with random keys: the ids of a file could be chosen to collide.
    hasher: RandomState,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("version", &self.version)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// An empty index for a file of this version.
    pub fn new(version: Version) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(version.to_bytes());
        bytes.resize(ENTRIES_AT, 0);
        Self { version, bytes, len: 0, slots: Vec::new(), hasher: RandomState::new() }
    }

    /// Whether a file that begins so is an index.
    pub fn is_start(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Reads the index of a file of `data_bytes`. The memory that this takes grows with the entries
    /// that fit this file, and not with what else is in the index.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if reading fails. The fault is one of [`Index::parse`], or records of more
    /// bytes than the file has.
    pub fn read(mut file: impl Read, data_bytes: u64) -> io::Result<Result<Self, Fault>> {
        let mut bytes = Vec::new();
        let mut at = ENTRIES_AT;
        let mut total = 0u64;
        while Self::is_start(&bytes) || bytes.len() < MAGIC.len() {
            if (&mut file).take(PIECE).read_to_end(&mut bytes)? == 0 {
                break;
            }
            while let Some((id, place, next)) = entry(&bytes, at) {
                total = total.saturating_add(place.size);
                if place.size == 0 || total > data_bytes {
                    let size = place.size;
                    let found =
                        format!("a record of {size} bytes (read {}), {total} in all", quoted(id));
                    let expected = format!("records in {data_bytes} bytes of data; {REBUILD}");
                    return Ok(Err(Fault::new(at, found, expected)));
                }
                at = next;
            }
        }
        Ok(Self::parse(bytes))
    }

    /// Parses the bytes of an index file. [`Index::check`] compares the index with its data file.
    ///
    /// # Errors
    ///
    /// When the bytes are not an index; when the index has a newer version, is cut short, or has
    /// bytes after its end; when a read occurs twice, or an id is not UTF-8.
    pub fn parse(mut bytes: Vec<u8>) -> Result<Self, Fault> {
        let Some(version) = bytes.strip_prefix(MAGIC) else {
            let head = bytes.get(..MAGIC.len()).unwrap_or(&bytes);
            return Err(Fault::new(0, quoted(head), "\"SLOW5IDX\", the start of an index"));
        };
        let &[major, minor, patch, ..] = version else {
            return Err(cut_short(&bytes, bytes.len()));
        };
        let version = Version::new(major, minor, patch).supported(MAGIC.len())?;

        // Entries are counted first, so that the table is allocated once and with the right size.
        let mut at = ENTRIES_AT;
        let mut len = 0usize;
        while bytes.get(at..) != Some(END_MARKER) {
            let (id, _, next) = entry(&bytes, at).ok_or_else(|| cut_short(&bytes, at))?;
            if let Err(e) = std::str::from_utf8(id) {
                let found = format!("the read id {}", quoted(id));
                return Err(Fault::new(at + ID_LEN_BYTES + e.valid_up_to(), found, "UTF-8 text"));
            }
            at = next;
            len += 1;
        }
        bytes.truncate(at);
        let mut index = Self {
            version,
            bytes,
            len: 0,
            slots: vec![0; slots_for(len)],
            hasher: RandomState::new(),
        };
        let mut at = ENTRIES_AT;
        while let Some((id, _, next)) = entry(&index.bytes, at) {
            let (slot, tag) = index.vacant(id).map_err(|first| twice(id, at, first))?;
            index.fill(slot, tag | (at as u64 + 1));
            at = next;
        }
        Ok(index)
    }

    /// Appends a read.
    ///
    /// # Errors
    ///
    /// When the index has the read already, or its id is longer than 65,535 bytes.
    pub fn push(&mut self, read_id: &str, place: Entry) -> Result<(), Fault> {
        let at = self.bytes.len();
        let id_len = u16::try_from(read_id.len()).map_err(|_| {
            Fault::new(at, format!("a read id of {} bytes", read_id.len()), "at most 65535")
        })?;
        if slots_for(self.len + 1) > self.slots.len() {
            self.grow();
        }
        let (slot, tag) = self
            .vacant(read_id.as_bytes())
            .map_err(|first| twice(read_id.as_bytes(), at, first))?;
        self.fill(slot, tag | (at as u64 + 1));
        self.bytes.extend(id_len.to_le_bytes());
        self.bytes.extend(read_id.as_bytes());
        self.bytes.extend(place.offset.to_le_bytes());
        self.bytes.extend(place.size.to_le_bytes());
        Ok(())
    }

    /// Checks the index against its data file: same version, every record inside the data, as many
    /// bytes of records as the file has.
    ///
    /// # Errors
    ///
    /// When the index belongs to another file, or to an older state of the file.
    pub fn check(&self, header: &Header, file_size: u64) -> Result<(), Fault> {
        if self.version != header.version {
            let expected = format!("version {}, the data file's; {REBUILD}", header.version);
            return Err(Fault::new(
                MAGIC.len(),
                format!("index version {}", self.version),
                expected,
            ));
        }
        let (least, after) = match header.encoding {
            Encoding::Binary => (LEAST_RECORD_BYTES, FILE_END_BYTES),
            Encoding::Ascii => (1, 0),
        };
        let data_end = file_size.saturating_sub(after);
        let mut at = ENTRIES_AT;
        let mut total = 0u64;
        while let Some((id, place, next)) = entry(&self.bytes, at) {
            let end = place.offset.checked_add(place.size);
            let inside =
                place.offset >= header.data_offset && end.is_some_and(|end| end <= data_end);
            if !inside || place.size < least {
                let found = format!(
                    "read {} at byte {} with {} bytes",
                    quoted(id),
                    place.offset,
                    place.size
                );
                let expected = format!(
                    "a record between bytes {} and {data_end}; {REBUILD}",
                    header.data_offset
                );
                return Err(Fault::new(at, found, expected));
            }
            total = total.saturating_add(place.size);
            at = next;
        }
        let expected = data_end.saturating_sub(header.data_offset);
        if total != expected {
            let found = format!("{} reads with {total} bytes", self.len);
            return Err(Fault::new(at, found, format!("{expected} bytes of records; {REBUILD}")));
        }
        Ok(())
    }

    /// The place of a read's record.
    pub fn get(&self, read_id: &str) -> Option<Entry> {
        let at = self.vacant(read_id.as_bytes()).err()?;
        entry(&self.bytes, at).map(|(_, place, _)| place)
    }

    /// The version of the data file that the index was made for.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The number of reads.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no reads.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All reads and their places, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Entry)> {
        let mut at = ENTRIES_AT;
        std::iter::from_fn(move || {
            let (id, place, next) = entry(&self.bytes, at)?;
            at = next;
            // Every id was checked to be UTF-8 when it was added.
            Some((std::str::from_utf8(id).ok()?, place))
        })
    }

    /// The content of the index file: the concatenation of these parts.
    pub fn parts(&self) -> [&[u8]; 2] {
        [&self.bytes, END_MARKER]
    }

    /// The slot for a new read, and its tag (the top bits of its hash). If the index already has
    /// the read, its entry's position is the error.
    fn vacant(&self, id: &[u8]) -> Result<(usize, u64), usize> {
        let hash = self.hasher.hash_one(id);
        let tag = hash >> POSITION_BITS << POSITION_BITS;
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash as usize & mask;
        // The search ends, because at least a quarter of the slots are empty. It does not start if
        // there are no slots.
        while let Some(&value) = self.slots.get(slot) {
            if value == 0 {
                return Ok((slot, tag));
            }
            if value >> POSITION_BITS == hash >> POSITION_BITS {
                let at = position(value);
                if entry(&self.bytes, at).is_some_and(|(other, ..)| other == id) {
                    return Err(at);
                }
            }
            slot = (slot + 1) & mask;
        }
        Ok((0, tag))
    }

    fn fill(&mut self, slot: usize, value: u64) {
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = value;
            self.len += 1;
        }
    }

    fn grow(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; slots_for(self.len + 1).max(old.len() * 2)];
        self.len = 0;
        for value in old.into_iter().filter(|&value| value != 0) {
            let vacant =
                entry(&self.bytes, position(value)).and_then(|(id, ..)| self.vacant(id).ok());
            if let Some((slot, _)) = vacant {
                self.fill(slot, value);
            }
        }
    }
}

fn position(value: u64) -> usize {
    ((value & ((1 << POSITION_BITS) - 1)) - 1) as usize
}

/// The number of slots for this many entries: a power of two, at most three quarters full.
fn slots_for(len: usize) -> usize {
    if len == 0 { 0 } else { (len + len.div_ceil(3)).next_power_of_two() }
}

/// The entry at a position: id, place, and the position of the next entry.
fn entry(bytes: &[u8], at: usize) -> Option<(&[u8], Entry, usize)> {
    let (id_len, rest) = bytes.get(at..)?.split_first_chunk::<ID_LEN_BYTES>()?;
    let (id, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*id_len)))?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (size, _) = rest.split_first_chunk()?;
    let place = Entry { offset: u64::from_le_bytes(*offset), size: u64::from_le_bytes(*size) };
    Some((id, place, at + ID_LEN_BYTES + id.len() + PLACE_BYTES))
}

#[cold]
fn cut_short(bytes: &[u8], at: usize) -> Fault {
    let tail = bytes.get(at..).unwrap_or_default();
    let found = if tail.is_empty() { String::from("the end of the index") } else { quoted(tail) };
    Fault::new(
        at,
        found,
        "an entry or, as the last bytes of the index, \"XDI5WOLS\"; build the index again",
    )
}

#[cold]
fn twice(id: &[u8], at: usize, first: usize) -> Fault {
    let found = format!("read {} again (first at byte {first})", quoted(id));
    Fault::new(at, found, "distinct read ids; a file with a read twice cannot be indexed")
}

#[cfg(test)]
mod tests;
