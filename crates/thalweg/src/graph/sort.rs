//! Edges grouped by the vertices at one end, however many there are: what does not fit into memory goes to a file, in buckets of
//! vertices that are near each other.
//!
//! A bucket holds runs of edges to the same vertex: `other u64, count u32 (bit 31: keys of 8 bytes), keys u32…, numbers u64…`; a
//! key's upper bits are the bucket's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::splitmix::word;
use crate::write::nameless;

/// Bytes of a bucket before they go to the file.
const PIECE: usize = 64 << 10;

const WIDE: u32 = 1 << 31;

/// Bytes before a run's keys.
const HEAD: usize = 12;

#[derive(Debug, Default)]
struct Bucket {
    buffer: Vec<u8>,
    /// Where its pieces lie in the file.
    pieces: Vec<(u64, usize)>,
    len: u64,
}

/// Where to keep what memory does not hold.
#[derive(Debug)]
struct Spill {
    file: Option<File>,
    beside: PathBuf,
    name: Arc<str>,
    written: u64,
}

impl Spill {
    fn push(&mut self, bytes: &[u8]) -> Result<(u64, usize)> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(
                nameless(&self.beside).map_err(|e| Error::io(&self.name, "creating a file to sort in, in", e))?,
            ),
        };
        file.write_all(bytes).map_err(|e| Error::io(&self.name, "sorting in a file in", e))?;
        let at = self.written;
        self.written += bytes.len() as u64;
        Ok((at, bytes.len()))
    }

    fn read(&self, (at, len): (u64, usize), out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        out.resize(start + len, 0);
        let Some(file) = &self.file else { return Ok(()) };
        file.read_exact_at(&mut out[start..], at).map_err(|e| Error::io(&self.name, "sorting in a file in", e))
    }
}

/// Edges being grouped.
#[derive(Debug)]
pub(super) struct Sorter {
    buckets: BTreeMap<u64, Bucket>,
    /// Bits of a key that do not choose its bucket.
    shift: u32,
    spill: Spill,
    memory: usize,
    is_numbered: bool,
}

impl Sorter {
    /// One that keeps to so many bytes of memory, and puts the rest into a file without a name at `beside`.
    pub(super) fn new(memory: usize, is_numbered: bool, beside: PathBuf) -> Self {
        let name = beside.parent().unwrap_or(&beside).to_string_lossy().into();
        let spill = Spill { file: None, beside, name, written: 0 };
        Self { buckets: BTreeMap::new(), shift: 0, spill, memory, is_numbered }
    }

    /// Adds edges of a vertex to others, `keys`, by which they will be grouped; `numbers` are theirs, if they have any. Quickest
    /// where keys ascend.
    pub(super) fn push(&mut self, other: u64, mut keys: &[u64], mut numbers: &[u64]) -> Result<()> {
        while let Some(first) = keys.first() {
            let number = first >> self.shift;
            let len = keys.iter().take_while(|key| **key >> self.shift == number).count().min(WIDE as usize - 1);
            let (here, more) = keys.split_at(len);
            let (own, rest) = numbers.split_at(if self.is_numbered { len } else { 0 });
            (keys, numbers) = (more, rest);
            let is_wide = self.shift > 32;
            if !self.buckets.contains_key(&number) {
                self.make_room();
            }
            let bucket = self.buckets.entry(first >> self.shift).or_default();
            bucket.len += len as u64;
            bucket.buffer.extend_from_slice(&other.to_le_bytes());
            bucket.buffer.extend_from_slice(&(len as u32 | if is_wide { WIDE } else { 0 }).to_le_bytes());
            if is_wide {
                bucket.buffer.extend(here.iter().flat_map(|key| key.to_le_bytes()));
            } else {
                bucket.buffer.extend(here.iter().flat_map(|key| (*key as u32).to_le_bytes()));
            }
            bucket.buffer.extend(own.iter().flat_map(|number| number.to_le_bytes()));
            if bucket.buffer.len() >= PIECE {
                bucket.pieces.push(self.spill.push(&bucket.buffer)?);
                bucket.buffer.clear();
            }
        }
        Ok(())
    }

    /// Makes buckets twice as wide until there is room for one more.
    fn make_room(&mut self) {
        let most = (self.memory / 2 / (PIECE + PIECE / 2)).max(4);
        while self.buckets.len() >= most {
            self.shift += 1;
            for (number, bucket) in std::mem::take(&mut self.buckets) {
                let into = self.buckets.entry(number >> 1).or_default();
                into.len += bucket.len;
                into.pieces.extend(bucket.pieces);
                into.buffer.extend_from_slice(&bucket.buffer);
            }
        }
    }

    /// Shows `f` each vertex, ascending: its key, the vertices of its edges ascending, and their numbers.
    pub(super) fn drain(self, f: &mut dyn FnMut(u64, &[u64], &[u64]) -> Result<()>) -> Result<()> {
        let Self { buckets, shift, spill, memory, is_numbered } = self;
        let mut group = Group::default();
        for (number, bucket) in buckets {
            // An edge takes up to 24 bytes, and twice while they are sorted.
            if bucket.len.saturating_mul(48) > memory as u64 && shift > 0 && bucket.len > PIECE as u64 {
                let beside = spill.beside.clone();
                let mut finer = Self { shift: shift.saturating_sub(8), ..Self::new(memory, is_numbered, beside) };
                // Of what it has, more would be made wider at once.
                let mut bytes = Vec::new();
                for piece in bucket.pieces.iter().map(Some).chain([None]) {
                    bytes.clear();
                    match piece {
                        Some(piece) => spill.read(*piece, &mut bytes)?,
                        None => bytes.extend_from_slice(&bucket.buffer),
                    }
                    runs(&bytes, number << shift.min(63), is_numbered, &mut |other, keys, numbers| {
                        finer.push(other, keys, numbers)
                    })?;
                }
                finer.drain(f)?;
                continue;
            }
            let mut bytes = bucket.buffer;
            for piece in bucket.pieces {
                spill.read(piece, &mut bytes)?;
            }
            group.clear();
            runs(&bytes, if shift < 64 { number << shift } else { 0 }, is_numbered, &mut |other, keys, numbers| {
                group.keys.extend_from_slice(keys);
                group.others.resize(group.keys.len(), other);
                group.numbers.extend_from_slice(numbers);
                Ok(())
            })?;
            drop(bytes);
            group.each(f)?;
        }
        Ok(())
    }
}

/// The runs in bytes of a bucket, whose keys have these upper bits.
fn runs(
    bytes: &[u8],
    base: u64,
    is_numbered: bool,
    f: &mut dyn FnMut(u64, &[u64], &[u64]) -> Result<()>,
) -> Result<()> {
    let (mut keys, mut numbers) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEAD) {
        let (other, count) = (word(&head[..8]), word(&head[8..]) as u32);
        let len = (count & !WIDE) as usize;
        at += HEAD;
        keys.clear();
        numbers.clear();
        let width = if count & WIDE == 0 { 4 } else { 8 };
        let own = &bytes[at..at + len * width];
        if width == 4 {
            let upper = base & !u64::from(u32::MAX);
            keys.extend(own.chunks_exact(4).map(|b| upper | u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))));
        } else {
            keys.extend(own.chunks_exact(8).map(word));
        }
        at += own.len();
        if is_numbered {
            numbers.extend(bytes[at..at + len * 8].chunks_exact(8).map(word));
            at += len * 8;
        }
        f(other, &keys, &numbers)?;
    }
    Ok(())
}

/// Edges of a bucket.
#[derive(Debug, Default)]
struct Group {
    keys: Vec<u64>,
    others: Vec<u64>,
    numbers: Vec<u64>,
    starts: Vec<u32>,
    sorted: Vec<(u64, u64)>,
    list: Vec<u64>,
}

impl Group {
    fn clear(&mut self) {
        self.keys.clear();
        self.others.clear();
        self.numbers.clear();
    }

    /// Shows `f` the lists, by key.
    fn each(&mut self, f: &mut dyn FnMut(u64, &[u64], &[u64]) -> Result<()>) -> Result<()> {
        let Self { keys, others, numbers, starts, sorted, list } = self;
        let (Some(least), Some(most)) = (keys.iter().min().copied(), keys.iter().max().copied()) else { return Ok(()) };
        let span = most - least;
        if span >= 16 * keys.len() as u64 + 1024 || keys.len() > u32::MAX as usize {
            return each_sorted(keys, others, numbers, f);
        }
        // By counting: edges of a key keep their order.
        starts.clear();
        starts.resize(span as usize + 2, 0);
        keys.iter().for_each(|key| starts[(key - least) as usize + 1] += 1);
        let mut sum = 0;
        starts.iter_mut().for_each(|start| {
            sum += *start;
            *start = sum;
        });
        if numbers.is_empty() {
            list.resize(keys.len(), 0);
            for (key, other) in keys.iter().zip(&*others) {
                let start = &mut starts[(key - least) as usize];
                list[*start as usize] = *other;
                *start += 1;
            }
        } else {
            sorted.resize(keys.len(), (0, 0));
            for ((key, other), number) in keys.iter().zip(&*others).zip(&*numbers) {
                let start = &mut starts[(key - least) as usize];
                sorted[*start as usize] = (*other, *number);
                *start += 1;
            }
        }
        let mut from = 0;
        for (key, end) in (least..=most).zip(&*starts) {
            let range = from..*end as usize;
            from = range.end;
            if range.is_empty() {
                continue;
            }
            if numbers.is_empty() {
                let own = &mut list[range];
                if !own.is_sorted() {
                    own.sort_unstable();
                }
                f(key, own, &[])?;
            } else {
                let own = &mut sorted[range];
                own.sort_unstable();
                let (ids, numbers): (Vec<u64>, Vec<u64>) = own.iter().copied().unzip();
                f(key, &ids, &numbers)?;
            }
        }
        Ok(())
    }
}

fn each_sorted(
    keys: &[u64],
    others: &[u64],
    numbers: &[u64],
    f: &mut dyn FnMut(u64, &[u64], &[u64]) -> Result<()>,
) -> Result<()> {
    let number = |place: usize| numbers.get(place).copied().unwrap_or_default();
    let mut edges: Vec<(u64, u64, u64)> = (0..keys.len()).map(|i| (keys[i], others[i], number(i))).collect();
    edges.sort_unstable();
    let (mut ids, mut own) = (Vec::new(), Vec::new());
    for same in edges.chunk_by(|a, b| a.0 == b.0) {
        ids.clear();
        own.clear();
        ids.extend(same.iter().map(|edge| edge.1));
        if !numbers.is_empty() {
            own.extend(same.iter().map(|edge| edge.2));
        }
        f(same[0].0, &ids, &own)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn edges_come_back_grouped(
            pushes in prop::collection::vec((0..50_u64, prop::collection::vec(any::<u64>(), 0..40), 0..64_u32), 0..60),
            memory in prop::sample::select(vec![0_usize, 1 << 20, 64 << 20]),
            is_numbered in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::new(memory, is_numbered, folder.path().join("sort.tmp"));
            let mut expected: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
            let mut number = 0;
            for (other, keys, bits) in &pushes {
                let keys: Vec<u64> = keys.iter().map(|key| key >> bits).collect();
                let numbers: Vec<u64> = keys.iter().map(|_| { number += 1; number }).collect();
                for (key, number) in keys.iter().zip(&numbers) {
                    expected.entry(*key).or_default().push((*other, if is_numbered { *number } else { 0 }));
                }
                sorter.push(*other, &keys, if is_numbered { &numbers } else { &[] }).unwrap();
            }
            expected.values_mut().for_each(|list| list.sort_unstable());
            let mut found: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
            let mut last = None;
            sorter.drain(&mut |key, ids, numbers| {
                assert!(last < Some(key));
                last = Some(key);
                let number = |i: usize| numbers.get(i).copied().unwrap_or_default();
                found.insert(key, ids.iter().enumerate().map(|(i, id)| (*id, number(i))).collect());
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
