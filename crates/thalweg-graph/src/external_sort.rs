//! Edges grouped by the vertices at one end, however many there are: what does not fit into memory
//! goes to a file, in buckets of vertices that are near each other.
//!
//! A bucket holds runs of edges to the same vertex: `other u64, upper halves of the keys u32, count
//! u32, their lower halves u32…, numbers u64…`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_codec::splitmix::word;
use thalweg_io::disk::Disk;
use thalweg_io::new_file::nameless;
use thalweg_io::{Error, Result};

use crate::storage::grouped_lists::GroupedLists;
use crate::storage::lists::VisitList;

/// Bytes of a bucket before they go to the file.
const PIECE: usize = 64 << 10;

/// Bytes before a run's keys.
const HEAD: usize = 16;

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
                nameless(&self.beside)
                    .map_err(|e| Error::io(&self.name, "creating a file to sort in, in", e))?,
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
        file.read_exact_at(&mut out[start..], at)
            .map_err(|e| Error::io(&self.name, "sorting in a file in", e))
    }
}

/// Edges being grouped.
#[derive(Debug)]
pub(crate) struct EdgeSorter {
    buckets: BTreeMap<u64, Bucket>,
    /// Bits of a key that do not choose its bucket.
    shift: u32,
    spill: Spill,
    memory: usize,
    is_numbered: bool,
}

impl EdgeSorter {
    /// One that keeps to so many bytes of memory, and puts the rest into a file without a name at
    /// `beside`.
    pub(crate) fn new(memory: usize, is_numbered: bool, beside: PathBuf) -> Self {
        let name = beside.parent().unwrap_or(&beside).to_string_lossy().into();
        let spill = Spill { file: None, beside, name, written: 0 };
        Self { buckets: BTreeMap::new(), shift: 0, spill, memory, is_numbered }
    }

    /// Adds edges of a vertex to others, `keys`, by which they will be grouped; `numbers` are
    /// theirs, if they have any. Quickest where keys ascend.
    pub(crate) fn push(&mut self, other: u64, mut keys: &[u64], mut numbers: &[u64]) -> Result<()> {
        while let Some(first) = keys.first() {
            let number = first >> self.shift;
            // Keys of a run have their upper half in common.
            let same = self.shift.min(32);
            let len = keys
                .iter()
                .take_while(|key| **key >> same == first >> same)
                .count()
                .min(u32::MAX as usize);
            let (here, more) = keys.split_at(len);
            let (own, rest) = numbers.split_at(if self.is_numbered { len } else { 0 });
            (keys, numbers) = (more, rest);
            if !self.buckets.contains_key(&number) {
                self.make_room();
            }
            let bucket = self.buckets.entry(first >> self.shift).or_default();
            bucket.len += len as u64;
            bucket.buffer.extend_from_slice(&other.to_le_bytes());
            bucket.buffer.extend_from_slice(&((first >> 32) as u32).to_le_bytes());
            bucket.buffer.extend_from_slice(&(len as u32).to_le_bytes());
            bucket.buffer.extend(here.iter().flat_map(|key| (*key as u32).to_le_bytes()));
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

    /// Shows `f` all lists, many at a time, ascending.
    pub(crate) fn drain(self, f: &mut dyn FnMut(&GroupedLists) -> Result<()>) -> Result<()> {
        let Self { buckets, shift, spill, memory, is_numbered } = self;
        let mut group = BucketEdges::default();
        for bucket in buckets.into_values() {
            // An edge takes up to 24 bytes, and twice while they are sorted.
            if bucket.len.saturating_mul(48) > memory as u64
                && shift > 0
                && bucket.len > PIECE as u64
            {
                let beside = spill.beside.clone();
                let mut finer = Self {
                    shift: shift.saturating_sub(8),
                    ..Self::new(memory, is_numbered, beside)
                };
                // Of what it has, more would be made wider at once.
                let mut bytes = Vec::new();
                for piece in bucket.pieces.iter().map(Some).chain([None]) {
                    bytes.clear();
                    match piece {
                        Some(piece) => spill.read(*piece, &mut bytes)?,
                        None => bytes.extend_from_slice(&bucket.buffer),
                    }
                    runs(&bytes, is_numbered, &mut |other, keys, numbers| {
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
            runs(&bytes, is_numbered, &mut |other, keys, numbers| {
                group.keys.extend_from_slice(keys);
                group.others.resize(group.keys.len(), other);
                group.numbers.extend_from_slice(numbers);
                Ok(())
            })?;
            drop(bytes);
            f(group.grouped())?;
        }
        Ok(())
    }
}

/// The runs in bytes of a bucket.
fn runs(bytes: &[u8], is_numbered: bool, f: &mut VisitList<'_>) -> Result<()> {
    let (mut keys, mut numbers) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEAD) {
        let (other, upper, len) =
            (word(&head[..8]), word(&head[8..12]) << 32, word(&head[12..]) as usize);
        at += HEAD;
        keys.clear();
        numbers.clear();
        keys.extend(
            bytes[at..at + len * 4]
                .as_chunks()
                .0
                .iter()
                .map(|key| upper | u64::from(u32::from_le_bytes(*key))),
        );
        at += len * 4;
        if is_numbered {
            numbers.extend(
                bytes[at..at + len * 8]
                    .as_chunks()
                    .0
                    .iter()
                    .map(|number| u64::from_le_bytes(*number)),
            );
            at += len * 8;
        }
        f(other, &keys, &numbers)?;
    }
    Ok(())
}

/// Edges of a bucket.
#[derive(Debug, Default)]
struct BucketEdges {
    keys: Vec<u64>,
    others: Vec<u64>,
    numbers: Vec<u64>,
    starts: Vec<u32>,
    sorted: Vec<(u64, u64)>,
    pairs: Vec<(u32, u32)>,
    spare: Vec<(u32, u32)>,
    out: GroupedLists,
}

impl BucketEdges {
    fn clear(&mut self) {
        self.keys.clear();
        self.others.clear();
        self.numbers.clear();
    }

    /// Groups them by key.
    fn grouped(&mut self) -> &GroupedLists {
        let Self { keys, others, numbers, starts, sorted, pairs, spare, out } = self;
        out.keys.clear();
        out.ends.clear();
        out.ids.clear();
        out.numbers.clear();
        let (least, most) =
            keys.iter().fold((u64::MAX, 0), |(least, most), key| (least.min(*key), most.max(*key)));
        if keys.is_empty() {
            return out;
        }
        let span = most - least;
        if span > SPARSE * keys.len() as u64
            && span <= u32::MAX.into()
            && numbers.is_empty()
            && keys.len() <= u32::MAX as usize
        {
            pairs.clear();
            pairs.extend(keys.iter().zip(0..).map(|(key, place)| ((key - least) as u32, place)));
            by_key(pairs, spare, 64 - span.leading_zeros());
            out.ids.extend(pairs.iter().map(|pair| others[pair.1 as usize]));
            out.keys.reserve(pairs.len());
            out.ends.reserve(pairs.len());
            for (place, (key, _)) in pairs.iter().enumerate() {
                if pairs.get(place + 1).is_none_or(|next| next.0 != *key) {
                    out.keys.push(least + u64::from(*key));
                    out.ends.push(place + 1);
                }
            }
            out.sort_lists();
            return out;
        }
        if span > SPARSE * keys.len() as u64 || keys.len() > u32::MAX as usize {
            let number = |place: usize| numbers.get(place).copied().unwrap_or_default();
            let mut edges: Vec<(u64, u64, u64)> =
                (0..keys.len()).map(|i| (keys[i], others[i], number(i))).collect();
            edges.sort_unstable();
            for same in edges.chunk_by(|a, b| a.0 == b.0) {
                out.ids.extend(same.iter().map(|edge| edge.1));
                if !numbers.is_empty() {
                    out.numbers.extend(same.iter().map(|edge| edge.2));
                }
                out.end_list(same[0].0);
            }
            return out;
        }
        // By counting: edges of a key keep their order.
        starts.clear();
        starts.resize(span as usize + 1, 0);
        keys.iter().for_each(|key| starts[(key - least) as usize] += 1);
        let mut sum = 0;
        for (key, start) in (least..=most).zip(&mut *starts) {
            let count = std::mem::replace(start, sum);
            sum += count;
            if count > 0 {
                out.keys.push(key);
                out.ends.push(sum as usize);
            }
        }
        if numbers.is_empty() {
            out.ids.resize(keys.len(), 0);
            for (key, other) in keys.iter().zip(&*others) {
                let start = &mut starts[(key - least) as usize];
                out.ids[*start as usize] = *other;
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
        if numbers.is_empty() {
            out.sort_lists();
        } else {
            let mut from = 0;
            for end in &out.ends {
                sorted[std::mem::replace(&mut from, *end)..*end].sort_unstable();
            }
            out.ids.extend(sorted.iter().map(|edge| edge.0));
            out.numbers.extend(sorted.iter().map(|edge| edge.1));
        }
        out
    }
}

/// Keys that are sparser than one in so many are not counted one by one: going through the counts
/// would take longer.
const SPARSE: u64 = 4;

/// Bits that a pass sorts by: its counts fit the first cache.
const DIGIT: u32 = 11;

/// Sorts pairs by their first numbers, of so many bits; those of the same keep their order.
fn by_key(pairs: &mut Vec<(u32, u32)>, spare: &mut Vec<(u32, u32)>, bits: u32) {
    spare.resize(pairs.len(), (0, 0));
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |pair: &(u32, u32)| (pair.0 >> shift) as usize & ((1 << DIGIT) - 1);
        let mut starts = [0_u32; 1 << DIGIT];
        pairs.iter().for_each(|pair| starts[digit(pair)] += 1);
        let mut sum = 0;
        starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
        for pair in pairs.iter() {
            let start = &mut starts[digit(pair)];
            spare[*start as usize] = *pair;
            *start += 1;
        }
        std::mem::swap(pairs, spare);
    }
}

/// Where to sort what memory does not hold, on its way to a disk.
pub(crate) fn spill_path(disk: &dyn Disk) -> PathBuf {
    match disk.scratch() {
        Some(folder) => folder.join(format!("sort.{}.tmp", std::process::id())),
        None => std::env::temp_dir().join(format!("thalweg.{}.tmp", std::process::id())),
    }
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
            let mut sorter = EdgeSorter::new(memory, is_numbered, folder.path().join("sort.tmp"));
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
            sorter.drain(&mut |lists| {
                for (key, ids, numbers) in lists.lists() {
                    assert!(last < Some(key));
                    last = Some(key);
                    let number = |i: usize| numbers.get(i).copied().unwrap_or_default();
                    found.insert(key, ids.iter().enumerate().map(|(i, id)| (*id, number(i))).collect());
                }
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
