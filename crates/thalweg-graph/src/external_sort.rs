//! Sorting any number of edges by the vertices at one end, the *keys*, in bounded memory. Edges are
//! collected in buckets of keys that are near each other; full buckets go to a file.
//!
//! A bucket holds runs of edges to one other vertex: `other u64, upper half of the keys u32, count
//! u32, lower halves of the keys u32…, numbers of the edges u64…`.

mod grouping;

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

use self::grouping::BucketEdges;
use crate::storage::grouped_lists::GroupedLists;
use crate::storage::lists::VisitList;

/// Bytes of a bucket that go to the file together.
const SPILL_BYTES: usize = 64 << 10;

/// Bytes of a run before its keys.
const HEAD: usize = 16;

#[derive(Debug, Default)]
struct Bucket {
    buffer: Vec<u8>,
    /// Where its spilled parts lie in the file, and their lengths.
    spilled: Vec<(u64, usize)>,
    len: u64,
}

/// A temporary file without a name, for edges that do not fit into memory. It is created when it is
/// first needed.
#[derive(Debug)]
struct SpillFile {
    file: Option<File>,
    path: PathBuf,
    name: Arc<str>,
    written: u64,
}

impl SpillFile {
    fn push(&mut self, bytes: &[u8]) -> Result<(u64, usize)> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(
                nameless(&self.path)
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

/// Collects edges, then groups them by key.
#[derive(Debug)]
pub(crate) struct EdgeSorter {
    buckets: BTreeMap<u64, Bucket>,
    /// The number of low bits of a key that do not select its bucket.
    shift: u32,
    spill: SpillFile,
    memory: usize,
    is_numbered: bool,
}

impl EdgeSorter {
    /// Starts a sorter that uses `memory` bytes, and spills the rest to a file without a name that
    /// is created at `path`.
    pub(crate) fn new(memory: usize, is_numbered: bool, path: PathBuf) -> Self {
        let name = path.parent().unwrap_or(&path).to_string_lossy().into();
        let spill = SpillFile { file: None, path, name, written: 0 };
        Self { buckets: BTreeMap::new(), shift: 0, spill, memory, is_numbered }
    }

    /// Adds edges between the vertex `other` and the vertices `keys`, by which they will be
    /// grouped. `numbers` are the edges' numbers, if they have any. Ascending keys are fastest.
    pub(crate) fn push(&mut self, other: u64, mut keys: &[u64], mut numbers: &[u64]) -> Result<()> {
        while let Some(first) = keys.first() {
            let number = first >> self.shift;
            // The keys of a run share their upper half.
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
            if bucket.buffer.len() >= SPILL_BYTES {
                bucket.spilled.push(self.spill.push(&bucket.buffer)?);
                bucket.buffer.clear();
            }
        }
        Ok(())
    }

    /// Doubles the width of all buckets until there is room for another one.
    fn make_room(&mut self) {
        let most = (self.memory / 2 / (SPILL_BYTES + SPILL_BYTES / 2)).max(4);
        while self.buckets.len() >= most {
            self.shift += 1;
            for (number, bucket) in std::mem::take(&mut self.buckets) {
                let into = self.buckets.entry(number >> 1).or_default();
                into.len += bucket.len;
                into.spilled.extend(bucket.spilled);
                into.buffer.extend_from_slice(&bucket.buffer);
            }
        }
    }

    /// Passes all lists to `f`, many at a time, with ascending keys.
    pub(crate) fn drain(self, f: &mut dyn FnMut(&GroupedLists) -> Result<()>) -> Result<()> {
        let Self { buckets, shift, spill, memory, is_numbered } = self;
        let mut group = BucketEdges::default();
        for bucket in buckets.into_values() {
            // An edge takes up to 24 bytes, and twice that while it is sorted.
            if bucket.len.saturating_mul(48) > memory as u64
                && shift > 0
                && bucket.len > SPILL_BYTES as u64
            {
                let path = spill.path.clone();
                let mut finer =
                    Self { shift: shift.saturating_sub(8), ..Self::new(memory, is_numbered, path) };
                // Split this bucket into finer ones, and sort those.
                let mut bytes = Vec::new();
                for piece in bucket.spilled.iter().map(Some).chain([None]) {
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
            for piece in bucket.spilled {
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

/// Passes the runs in the bytes of a bucket to `f`.
fn runs(bytes: &[u8], is_numbered: bool, f: &mut VisitList<'_>) -> Result<()> {
    let mut keys = Vec::new();
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEAD) {
        let other = word(&head[..8]);
        let upper = word(&head[8..12]) << 32;
        let len = word(&head[12..]) as usize;
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

/// The file for edges that do not fit into memory while they are sorted on their way to a disk.
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
            pushes in prop::collection::vec(
                (0..50_u64, prop::collection::vec(any::<u64>(), 0..40), 0..64_u32),
                0..60,
            ),
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
                    let number = if is_numbered { *number } else { 0 };
                    expected.entry(*key).or_default().push((*other, number));
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
                    let list = ids.iter().enumerate().map(|(i, id)| (*id, number(i)));
                    found.insert(key, list.collect());
                }
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
