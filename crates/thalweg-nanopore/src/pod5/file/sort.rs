//! External sort of pairs of numbers. Pairs that do not fit into memory are sorted in parts,
//! written to an unnamed file, and merged from there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use thalweg_io::new_file::nameless;
use thalweg_io::{Error, Result};

/// Bytes of a pair.
const PAIR: usize = 16;

/// Least number of pairs kept in memory, and read at a time from a part.
const LEAST: usize = 4096;

/// Takes pairs in any order and gives them back in ascending order.
#[derive(Debug)]
pub(super) struct Sorter {
    name: Arc<str>,
    most: usize,
    pairs: Vec<(u64, u64)>,
    file: Option<File>,
    /// The sorted parts of the file, in pairs.
    parts: Vec<Range<u64>>,
}

impl Sorter {
    /// A sorter that keeps at most `most` pairs in memory (at least 4096), and the rest in an
    /// unnamed file beside `beside`. It keeps all pairs in memory if `beside` is `None`.
    pub(super) fn new(beside: Option<&Path>, most: usize) -> Result<Self> {
        let name: Arc<str> =
            beside.map_or_else(|| "index".into(), |path| path.to_string_lossy().into());
        let file = beside
            .map(|path| nameless(path).map_err(|e| Error::io(&name, "creating a file beside", e)));
        let file = file.transpose()?;
        Ok(Self { name, most: most.max(LEAST), pairs: Vec::new(), file, parts: Vec::new() })
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// [`Error::Io`], for example on a full disk.
    pub(super) fn push(&mut self, pair: (u64, u64)) -> Result<()> {
        self.pairs.push(pair);
        if self.pairs.len() < self.most { Ok(()) } else { self.spill() }
    }

    /// Moves the pairs in memory to the file as a sorted part.
    fn spill(&mut self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        self.pairs.sort_unstable();
        let failed = |e| Error::io(&self.name, "sorting beside", e);
        let mut out = BufWriter::with_capacity(LEAST * PAIR, file);
        for &(key, value) in &self.pairs {
            out.write_all(&key.to_le_bytes())
                .and_then(|()| out.write_all(&value.to_le_bytes()))
                .map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        let start = self.parts.last().map_or(0, |part| part.end);
        self.parts.push(start..start + self.pairs.len() as u64);
        self.pairs.clear();
        Ok(())
    }

    /// Calls `take` with all pairs in ascending order.
    ///
    /// # Errors
    /// [`Error::Io`], and the errors of `take`.
    pub(super) fn drain(mut self, mut take: impl FnMut((u64, u64)) -> Result<()>) -> Result<()> {
        self.pairs.sort_unstable();
        let Some(file) = self.file.take().filter(|_| !self.parts.is_empty()) else {
            return self.pairs.into_iter().try_for_each(take);
        };
        let room = (self.most / self.parts.len()).max(LEAST);
        let mut parts: Vec<SortedPart> = self
            .parts
            .iter()
            .map(|part| SortedPart { rest: part.clone(), pairs: Vec::new() })
            .collect();
        // The last part is still in memory.
        self.pairs.reverse();
        parts.push(SortedPart { rest: 0..0, pairs: std::mem::take(&mut self.pairs) });
        let mut heap = BinaryHeap::with_capacity(parts.len());
        for (i, part) in parts.iter_mut().enumerate() {
            heap.extend(part.next(&file, room, &self.name)?.map(|pair| Reverse((pair, i))));
        }
        while let Some(Reverse((pair, i))) = heap.pop() {
            take(pair)?;
            if let Some(part) = parts.get_mut(i) {
                heap.extend(part.next(&file, room, &self.name)?.map(|pair| Reverse((pair, i))));
            }
        }
        Ok(())
    }
}

/// A sorted part that is being read.
struct SortedPart {
    rest: Range<u64>,
    /// The next pairs, in reverse order.
    pairs: Vec<(u64, u64)>,
}

impl SortedPart {
    fn next(&mut self, file: &File, room: usize, name: &Arc<str>) -> Result<Option<(u64, u64)>> {
        if self.pairs.is_empty() && !self.rest.is_empty() {
            let count = (self.rest.end - self.rest.start).min(room as u64);
            let mut bytes = vec![0; count as usize * PAIR];
            let failed = |e| Error::io(name, "sorting beside", e);
            file.read_exact_at(&mut bytes, self.rest.start * PAIR as u64).map_err(failed)?;
            let (words, _) = bytes.as_chunks::<8>();
            let pairs = words.chunks_exact(2).rev().filter_map(|pair| match pair {
                [key, value] => Some((u64::from_le_bytes(*key), u64::from_le_bytes(*value))),
                _ => None,
            });
            self.pairs.extend(pairs);
            self.rest.start += count;
        }
        Ok(self.pairs.pop())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use thalweg_codec::splitmix::mix;

    #[test]
    fn pairs_come_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("out");
        for (count, beside) in [
            (0, None),
            (100, Some(&beside)),
            (4096, Some(&beside)),
            (100_000, Some(&beside)),
            (9000, None),
        ] {
            let mut sorter = Sorter::new(beside.map(|path| path.as_path()), 1).unwrap();
            // Keys occur twice.
            let pairs: Vec<(u64, u64)> = (0..count).map(|i| (mix(i / 2), count - i)).collect();
            pairs.iter().for_each(|&pair| sorter.push(pair).unwrap());
            assert_eq!(sorter.parts.len(), beside.map_or(0, |_| count as usize / LEAST));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing to clean up");
            let mut found = Vec::new();
            let mut wanted = pairs;
            sorter
                .drain(|pair| {
                    found.push(pair);
                    Ok(())
                })
                .unwrap();
            wanted.sort_unstable();
            assert!(found == wanted, "{count}");
        }
    }
}
