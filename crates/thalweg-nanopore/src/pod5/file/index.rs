//! The index from read ids to rows, in a file beside the POD5 file or in the user's cache folder.
//!
//! ```text
//! "TWPOD5IX"  u64 version  u64 size of the POD5 file  u64 hash of its identifier
//!     u64 rows  u64 batches  u64 signal rows  u64 checksum
//! u64 first row of each batch of the Reads table  u64 checksum
//! blocks of 4096 bytes:
//!     { 255 x (u64 hash of a read id, u64 row), ascending; u64 how many; u64 checksum }
//! blocks of 4096 bytes:
//!     { 255 x (u64 offset of a signal row in the file, u32 bytes, u32 samples);
//!       u64 how many; u64 checksum }
//! ```
//!
//! Places of signal rows are optional. Without them, each read that is looked up takes two requests
//! more. Each batch of the Signal table has as many as the first. Those that are not known, and
//! those behind the rows of the last batch, are all ones.
//!
//! All numbers are little-endian. Hashes of ids are evenly distributed, so that the block of a hash
//! can be guessed. A lookup in an index of any size usually reads one or two blocks. Opening an
//! index that is too large for memory reads no block. If several rows have the same hash, the ids
//! in those rows decide.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_codec::splitmix::{STEP, checksum, mix, word};
use thalweg_io::control::Control;
use thalweg_io::new_file::NewFile;
use thalweg_io::plan::is_far;
use thalweg_io::store::{FileStore, MemoryStore, Store};
use thalweg_io::{Error, Fault, InFile, Result};

use super::lookup::MOST_BATCHES;
use super::sort::Sorter;
use super::tables::{SignalBatch, SignalRowPlace, Tables};
use crate::pod5::UUID_BYTES;

const MAGIC: &[u8; 8] = b"TWPOD5IX";
const VERSION: u64 = 3;
const HEAD: usize = 64;
const BLOCK: usize = 4096;
const ENTRY: usize = 16;
const ENTRIES: usize = (BLOCK - 32) / ENTRY;

/// The place of a signal row that is not known.
const NOT_KNOWN: (u64, u64) = (u64::MAX, u64::MAX);

/// An index of at most this many bytes is read into memory when it is opened.
const SMALL: u64 = 8 << 20;

/// Batches of the Reads table fetched at a time while the index is built.
const AHEAD: usize = 8;

/// An index that is made in passing has the places of signal rows if the store is far away, and
/// takes at most so many seconds to give them.
const IN_PASSING_S: f64 = 1.0;

/// The sorter of entries uses the memory budget divided by this number.
const SORT_SHARE: usize = 8;

/// Row numbers by read id.
#[derive(Debug)]
pub(crate) struct Pod5Index {
    store: Box<dyn Store>,
    /// The first row of each batch of the Reads table, followed by the total number of rows.
    starts: Vec<u64>,
    blocks: u64,
    blocks_at: u64,
    /// The number of signal rows whose places it has.
    signal_rows: u64,
    /// The checksum of its head, which each block repeats: no block of another index passes for one
    /// of this.
    head_sum: u64,
}

/// The index that a file's reads are found by, once it is loaded or built.
#[derive(Debug, Default)]
pub(super) struct IndexInUse {
    index: Mutex<Option<Arc<Pod5Index>>>,
    /// Whether somebody was warned of it.
    is_told: AtomicBool,
}

impl IndexInUse {
    pub(super) fn get(&self) -> Option<Arc<Pod5Index>> {
        self.lock().clone()
    }

    /// The index that is in use, or from now on this one.
    pub(super) fn keep(&self, index: Pod5Index) -> Arc<Pod5Index> {
        self.lock().get_or_insert_with(|| Arc::new(index)).clone()
    }

    /// Gives up an index that turned out to be damaged, unless another thread did.
    pub(super) fn drop(&self, damaged: &Arc<Pod5Index>) {
        let mut index = self.lock();
        if index.as_ref().is_some_and(|index| Arc::ptr_eq(index, damaged)) {
            *index = None;
        }
    }

    /// Warns of the index, once: all its blocks may be damaged.
    pub(super) fn warn(&self, control: &Control, warning: &str) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            control.warn(warning);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Pod5Index>>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a new index has the places of signal rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignalPlaces {
    All,
    /// If the store is far away, and gives them soon.
    IfQuick,
}

/// The properties of a POD5 file that an index stores. An index with other values belongs to
/// another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) size: u64,
    pub(super) identifier: u64,
    pub(super) batches: u64,
}

impl Owner {
    /// The identifier is not enough: thalweg makes it out of the name and size of the file that it
    /// converts. Where the batches lie tells files apart.
    pub(super) fn new(size: u64, identifier: &str, tables: &Tables) -> Self {
        let batches = tables.reads_blocks.iter().chain(&tables.signal_blocks);
        let places = batches.flat_map(|batch| batch.offset.to_le_bytes());
        let bytes: Vec<u8> = identifier.bytes().chain(places).collect();
        Self { size, identifier: checksum(&bytes), batches: tables.reads_blocks.len() as u64 }
    }
}

/// The hash of an id. Hashes are evenly distributed even if ids have bytes in common.
fn hash(id: &[u8; UUID_BYTES]) -> u64 {
    let (low, high) = id.split_at(8);
    mix(mix(word(low).wrapping_add(STEP)) ^ word(high))
}

/// The destination of a new index.
enum IndexSink {
    File(NewFile),
    Memory(Vec<u8>),
}

impl IndexSink {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::File(file) => file.push(bytes),
            Self::Memory(memory) => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
        }
    }
}

impl Pod5Index {
    /// Whether a file that begins so is an index.
    pub(crate) fn is_start(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Builds the index as `new`, or in memory without a file, while reads wait for it.
    pub(super) fn build(
        tables: &Tables,
        owner: Owner,
        new: Option<NewFile>,
        memory: usize,
        control: &Control,
    ) -> Result<Self> {
        match Self::write(tables, owner, new, SignalPlaces::IfQuick, memory, control)? {
            IndexSink::File(file) => {
                let place = file.path().to_owned();
                file.finish()?;
                let name: Arc<str> = place.to_string_lossy().into();
                let gone = Fault::new(0, "another file", "the index that was just written");
                Self::open(&place, owner)?.ok_or_else(|| gone.in_file(&name, 0, "index"))
            }
            IndexSink::Memory(bytes) => Self::of(Box::new(MemoryStore::new("index", bytes)), owner),
        }
    }

    /// Writes the index to `new`, which may be an object at a URL.
    pub(super) fn write_to(
        tables: &Tables,
        owner: Owner,
        new: NewFile,
        memory: usize,
        control: &Control,
    ) -> Result<()> {
        match Self::write(tables, owner, Some(new), SignalPlaces::All, memory, control)? {
            IndexSink::File(file) => file.finish(),
            IndexSink::Memory(_) => Ok(()),
        }
    }

    fn write(
        tables: &Tables,
        owner: Owner,
        new: Option<NewFile>,
        places: SignalPlaces,
        memory: usize,
        control: &Control,
    ) -> Result<IndexSink> {
        let beside = new.as_ref().map(NewFile::path);
        let mut entries = Sorter::new(beside, memory / SORT_SHARE / ENTRY)?;
        let mut sink = new.map_or_else(|| IndexSink::Memory(Vec::new()), IndexSink::File);
        let mut starts = vec![0];
        let mut row = 0;
        for stride in tables.strides(AHEAD) {
            for batch in tables.reads_batches(&stride.collect::<Vec<_>>(), control)? {
                let batch = batch?;
                let at = |fault: Fault| {
                    fault.in_file(
                        tables.name(),
                        batch.offset,
                        "read ids of a batch of the Reads table",
                    )
                };
                let view = batch.batch();
                let ids = tables.reads.read_ids(&view).map_err(at)?;
                for i in 0..ids.len() {
                    entries.push((hash(&ids.fixed(i).map_err(at)?), row + i as u64))?;
                }
                row += ids.len() as u64;
                starts.push(row);
            }
        }
        // Reads from a store that is near are no faster with places (docs/formats/pod5.md).
        let is_quick = || is_far(&tables.model) && tables.signal_places_s() <= IN_PASSING_S;
        let has_places = places == SignalPlaces::All || is_quick();
        let signal_rows = if has_places { tables.signal_rows() } else { 0 };
        let head_sum = push_head(&mut sink, owner, &starts, signal_rows)?;
        let mut blocks = Blocks::new(&mut sink, head_sum);
        entries.drain(|entry| blocks.push(entry))?;
        blocks.end()?;
        if signal_rows > 0 {
            Self::write_places(tables, &mut blocks, control)?;
        }
        Ok(sink)
    }

    /// Writes the places of all signal rows.
    fn write_places(tables: &Tables, blocks: &mut Blocks<'_>, control: &Control) -> Result<()> {
        let batches: Vec<usize> = (0..tables.signal_blocks.len()).collect();
        let batch = tables.rows_per_batch as usize * size_of::<SignalRowPlace>();
        let at_once = (tables.signal_cache.most() / batch.max(1)).clamp(1, MOST_BATCHES);
        for some in batches.chunks(at_once) {
            for batch in tables.signal_batches(some, control)? {
                // What is wrong with a batch matters to those who read it.
                let pieces = match &batch {
                    Ok(batch) => &batch.pieces[..],
                    Err(Error::Malformed { .. } | Error::Truncated { .. }) => &[],
                    Err(error) => return Err(error.clone()),
                };
                let is_short = |piece: &SignalRowPlace| piece.len <= u64::from(u32::MAX);
                let pieces = if pieces.iter().all(is_short) { pieces } else { &[] };
                for row in 0..tables.rows_per_batch as usize {
                    let place = |piece: &SignalRowPlace| {
                        (piece.offset, piece.len | u64::from(piece.samples) << 32)
                    };
                    blocks.push(pieces.get(row).map_or(NOT_KNOWN, place))?;
                }
            }
        }
        blocks.end()
    }

    /// Opens the index at `place`. Returns `None` if there is no index, if it is damaged, or if it
    /// belongs to another state of the file.
    ///
    /// # Errors
    /// A file that is not a thalweg index. It stays in place, because somebody may need it.
    pub(super) fn open(place: &Path, owner: Owner) -> Result<Option<Self>> {
        if !place.is_file() {
            return Ok(None);
        }
        let file = FileStore::open(place)?;
        let mut magic = [0; MAGIC.len()];
        let has_magic =
            file.size() >= HEAD as u64 && file.read_at(0, &mut magic).is_ok() && magic == *MAGIC;
        if !has_magic {
            let fault = Fault::new(
                0,
                format!("\"{}\"", magic.escape_ascii()),
                "thalweg's index of a POD5 file; move it away",
            );
            return Err(fault.in_file(file.name(), 0, "index"));
        }
        let store: Box<dyn Store> = if file.size() <= SMALL {
            Box::new(MemoryStore::load(&file, &Control::new())?)
        } else {
            Box::new(file)
        };
        Ok(Self::of(store, owner).ok())
    }

    fn of(store: Box<dyn Store>, owner: Owner) -> Result<Self> {
        let bad = |found: &'static str| {
            Fault::new(0, found, "an index of this file").in_file(store.name(), 0, "index")
        };
        let mut head = [0; HEAD];
        store.read_at(0, &mut head)?;
        let (fields, sum_of_head) = head.split_at(HEAD - 8);
        let field = |i: usize| word(&fields[i * 8..]);
        let found = Owner { size: field(2), identifier: field(3), batches: field(5) };
        if word(sum_of_head) != checksum(fields) || field(1) != VERSION || found != owner {
            return Err(bad("another"));
        }
        let (rows, signal_rows) = (field(4), field(6));
        let starts_len = owner.batches as usize * 8;
        let blocks_at = (HEAD + starts_len + 8) as u64;
        let blocks = rows.div_ceil(ENTRIES as u64);
        let all = blocks.checked_add(signal_rows.div_ceil(ENTRIES as u64));
        if all
            .and_then(|all| all.checked_mul(BLOCK as u64))
            .and_then(|len| len.checked_add(blocks_at))
            != Some(store.size())
        {
            return Err(bad("one of another size"));
        }
        let mut bytes = vec![0; starts_len + 8];
        store.read_at(HEAD as u64, &mut bytes)?;
        let (starts, sum) = bytes.split_at(starts_len);
        let mut starts_of: Vec<u64> = starts.chunks_exact(8).map(word).collect();
        starts_of.push(rows);
        if word(sum) != checksum(starts) || !starts_of.is_sorted() {
            return Err(bad("a damaged one"));
        }
        let head_sum = word(sum_of_head);
        Ok(Self { store, starts: starts_of, blocks, blocks_at, signal_rows, head_sum })
    }

    /// The batch of the Reads table that contains `row`, and the row within that batch.
    fn place(&self, row: u64) -> Option<(usize, usize)> {
        let index = self.starts.partition_point(|&start| start <= row).checked_sub(1)?;
        (index + 1 < self.starts.len()).then(|| (index, (row - self.starts[index]) as usize))
    }

    /// The entries of a block. Blocks with places follow those with ids.
    fn block(&self, index: u64) -> Result<Vec<(u64, u64)>> {
        let at = self.blocks_at + index * BLOCK as u64;
        let mut bytes = [0; BLOCK];
        self.store.read_at(at, &mut bytes)?;
        let (body, sum) = bytes.split_at(BLOCK - 8);
        let (entries, end) = body.split_at(ENTRIES * ENTRY);
        let count = word(end) as usize;
        let is_own = word(&end[8..]) == index && word(&end[16..]) == self.head_sum;
        if word(sum) != checksum(body) || !is_own || count > ENTRIES || count == 0 {
            let found = if is_own { "a damaged block" } else { "another block" };
            let fault = Fault::new(0, found, "one with its place and checksum");
            return Err(fault.in_file(self.store.name(), at, "index"));
        }
        Ok(entries
            .chunks_exact(ENTRY)
            .take(count)
            .map(|entry| (word(entry), word(&entry[8..])))
            .collect())
    }

    /// The places of the signal rows of a batch, whose bytes are `inside` the file. `None` if the
    /// index does not have them.
    ///
    /// # Errors
    /// A damaged block.
    pub(super) fn signal_batch(
        &self,
        rows: Range<u64>,
        inside: &Range<u64>,
    ) -> Result<Option<SignalBatch>> {
        if rows.is_empty() || rows.end > self.signal_rows {
            return Ok(None);
        }
        let per_block = ENTRIES as u64;
        let mut pieces = Vec::with_capacity((rows.end - rows.start) as usize);
        for block in rows.start / per_block..rows.end.div_ceil(per_block) {
            let entries = self.block(self.blocks + block)?;
            let from = rows.start.saturating_sub(block * per_block) as usize;
            let to = (rows.end - block * per_block).min(entries.len() as u64) as usize;
            let entries = entries.get(from..to).unwrap_or_default();
            for &(offset, rest) in entries.iter().take_while(|entry| **entry != NOT_KNOWN) {
                let (len, samples) = (rest & u64::from(u32::MAX), (rest >> 32) as u32);
                let end = offset.checked_add(len);
                if offset < inside.start || end.is_none_or(|end| end > inside.end) {
                    return Ok(None);
                }
                pieces.push(SignalRowPlace { offset, len, samples, owner: 0 });
            }
        }
        Ok((!pieces.is_empty()).then_some(SignalBatch { pieces }))
    }

    /// Reads and checks every block.
    ///
    /// # Errors
    /// A damaged block.
    pub(super) fn verify(&self) -> Result<()> {
        let all = self.blocks + self.signal_rows.div_ceil(ENTRIES as u64);
        (0..all).try_for_each(|index| self.block(index).map(|_| ()))
    }

    /// The places of all reads whose ids have the same hash as `id`: usually one place or none.
    pub(super) fn candidates(&self, id: &[u8; UUID_BYTES]) -> Result<Vec<(usize, usize)>> {
        let hash = hash(id);
        let mut found = Vec::new();
        if self.blocks == 0 {
            return Ok(found);
        }
        // The hash is in blocks `low..high`. The first guess is interpolated. The next ones move
        // to the adjacent block of the range that is left; later ones bisect that range.
        let mut low = 0;
        let mut high = self.blocks;
        let mut guess = ((u128::from(hash) * u128::from(self.blocks)) >> 64) as u64;
        let mut tries = 0;
        while low < high {
            let entries = self.block(guess)?;
            let (first, last) =
                (entries.first().map_or(0, |e| e.0), entries.last().map_or(0, |e| e.0));
            if hash < first {
                high = guess;
            } else if hash > last {
                low = guess + 1;
            } else {
                // Neighbouring blocks may contain entries with the same hash.
                let mut from = guess;
                while from > 0 && self.block(from)?.first().is_some_and(|e| e.0 == hash) {
                    from -= 1;
                }
                for index in from..self.blocks {
                    let entries = self.block(index)?;
                    found.extend(
                        entries.iter().filter(|e| e.0 == hash).filter_map(|e| self.place(e.1)),
                    );
                    if entries.last().is_some_and(|e| e.0 > hash) {
                        break;
                    }
                }
                break;
            }
            tries += 1;
            if low < high {
                guess = if tries < 4 {
                    if hash < first { high - 1 } else { low }
                } else {
                    low.midpoint(high)
                };
            }
        }
        Ok(found)
    }
}

/// Writes the head, and returns its checksum.
fn push_head(sink: &mut IndexSink, owner: Owner, starts: &[u64], signal_rows: u64) -> Result<u64> {
    let Some((rows, starts)) = starts.split_last() else { return Ok(0) };
    let mut head = Vec::with_capacity(HEAD);
    head.extend(MAGIC);
    for field in [VERSION, owner.size, owner.identifier, *rows, owner.batches, signal_rows] {
        head.extend(field.to_le_bytes());
    }
    let head_sum = checksum(&head);
    head.extend(head_sum.to_le_bytes());
    sink.push(&head)?;
    let starts: Vec<u8> = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
    sink.push(&starts)?;
    sink.push(&checksum(&starts).to_le_bytes())?;
    Ok(head_sum)
}

/// Writes entries in blocks.
struct Blocks<'a> {
    sink: &'a mut IndexSink,
    block: Vec<u8>,
    /// The number of the block.
    number: u64,
    head_sum: u64,
}

impl<'a> Blocks<'a> {
    fn new(sink: &'a mut IndexSink, head_sum: u64) -> Self {
        Self { sink, block: Vec::with_capacity(BLOCK), number: 0, head_sum }
    }

    fn push(&mut self, (first, second): (u64, u64)) -> Result<()> {
        self.block.extend(first.to_le_bytes());
        self.block.extend(second.to_le_bytes());
        if self.block.len() == ENTRIES * ENTRY { self.end() } else { Ok(()) }
    }

    /// Writes the block that was begun.
    fn end(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let count = (self.block.len() / ENTRY) as u64;
        self.block.resize(ENTRIES * ENTRY, 0);
        for word in [count, self.number, self.head_sum] {
            self.block.extend(word.to_le_bytes());
        }
        self.block.extend(checksum(&self.block).to_le_bytes());
        self.sink.push(&self.block)?;
        self.block.clear();
        self.number += 1;
        Ok(())
    }
}
